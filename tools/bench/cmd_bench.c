/* SPDX-License-Identifier: Apache-2.0 */
/* gantry bench: what Gantry itself costs. */
#include "bench.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int bench_machine(gantry_machine **machine, const options *o, const char *devices)
{
    options with = *o;
    with.devices = o->machine || o->devices ? o->devices : devices;
    return load_machine(machine, &with, NULL, NULL);
}

/* ---- bench schedule ---- */

typedef struct cost {
    int64_t nodes;
    size_t devices;
    double us, bytes, graph_bytes; /* per node */
} cost;

static int report_schedule(const options *o, const cost *c)
{
    if (o->json)
        return print_json(json_pack("{s:I, s:I, s:f, s:f, s:f}", "nodes", (json_int_t)c->nodes, "devices",
                                    (json_int_t)c->devices, "us_per_node", c->us, "peak_bytes_per_node", c->bytes,
                                    "graph_bytes_per_node", c->graph_bytes));
    printf("%lld nodes on %zu devices: %.2f us and %.0f bytes a node beyond the graph's %.0f\n", (long long)c->nodes,
           c->devices, c->us, c->bytes, c->graph_bytes);
    return EXIT_FINE;
}

/* Everything included: checking the graph, placing, lowering, packing, simulating, checking the schedule. */
int bench_schedule(const options *o)
{
    options with = *o;
    gantry_machine *machine = NULL;
    gantry_schedule *schedule = NULL;
    cost c = { .nodes = o->nodes ? o->nodes : 100000 };
    with.effort = o->effort < 0 ? 0 : o->effort;
    int code = bench_machine(&machine, o, "8");
    if (code)
        return code;
    double nodes = (double)c.nodes;
    uint64_t empty = peak_memory();
    gantry_graph *graph = bench_layered(c.nodes);
    uint64_t before = peak_memory();
    double start = now_us();
    code = schedule_on(&schedule, &with, graph, machine);
    c.us = (now_us() - start) / nodes;
    c.bytes = (double)(peak_memory() - before) / nodes;
    c.graph_bytes = (double)(before - empty) / nodes;
    c.devices = gantry_machine_device_count(machine);
    if (!code)
        code = report_schedule(o, &c);
    gantry_schedule_free(schedule);
    gantry_graph_free(graph);
    gantry_machine_free(machine);
    return code;
}

static const struct {
    const char *name;
    int (*run)(const options *o);
} benches[] = { { "schedule", bench_schedule }, { "replay", bench_replay },
                { "build", bench_build },       { "hop", bench_hop },
                { "metg", bench_metg },         { "peer", bench_peer },
                { "host", bench_host },         { "frames", bench_frames },
                { "kernels", bench_kernels },   { "collectives", bench_collectives },
                { "network", bench_network } };
enum { BENCHES = sizeof benches / sizeof *benches };

static int run(const options *o)
{
    const char *names[BENCHES], *name = o->positional.at[0];
    char near[64];
    for (size_t i = 0; i < BENCHES; i++) {
        names[i] = benches[i].name;
        if (strcmp(name, names[i]) == 0)
            return benches[i].run(o);
    }
    complain("gantry bench: no bench \"%s\"%s; there are", name, near_miss(near, sizeof near, name, names, BENCHES));
    for (size_t i = 0; i < BENCHES; i++)
        complain(i + 1 == BENCHES ? " and %s\n" : i + 2 == BENCHES ? " %s" : " %s,", names[i]);
    return EXIT_USAGE;
}

const command command_bench = {
    "bench",
    "schedule|replay|build|hop|metg|peer|host|frames|kernels|collectives|network",
    "measures what Gantry itself costs; on GPUs against the same work by hand",
    1,
    1,
    "machine devices policy effort max-memory spill backend replay shape lanes series nodes bytes json",
    "  gantry bench schedule --nodes 100000 --devices 8 --json      a layered graph: time and memory a node\n"
    "  gantry bench replay --backend host --shape chain --nodes 1000  empty nodes: what running costs a node\n"
    "  gantry bench replay --backend cuda --shape wide                tiny kernels against a graph captured by hand\n"
    "  gantry bench replay --backend cuda --shape stencil --lanes 16   rows on each GPU: streams, graph, device\n"
    "  gantry bench hop                              from GPU to GPU and back: streams, graph, device\n"
    "  gantry bench metg --lanes 16                  the smallest task of which half the time is work, of a stencil\n"
    "  gantry bench build                            until that can be started, against capturing it by hand\n"
    "  gantry bench peer, host                       copies between GPUs, to and from host memory\n"
    "  gantry bench frames                           blurring frames against moving them\n"
    "  gantry bench kernels                          kernels against a copy within memory\n"
    "  gantry bench collectives                      nodes against calls of NCCL in a graph captured by hand\n"
    "  gantry bench collectives --shape chain        by each algorithm, one behind the other and with work between\n"
    "  gantry bench collectives --backend sim --machine h200-8   all kinds by all algorithms, predicted, with bus "
    "GB/s\n"
    "  mpirun -n 4 gantry bench network              messages between processes, by pairs and all together\n",
    run
};
