/* SPDX-License-Identifier: Apache-2.0 */
/* gantry bench: what Gantry itself costs. */
#include "command.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --devices N virtual devices of this CPU, or --machine with all or some of its own. */
static int bench_machine(gantry_machine **machine, const options *o, const char *devices)
{
    options with = *o;
    with.devices = o->machine || o->devices ? o->devices : devices;
    return load_machine(machine, &with, NULL);
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
static int bench_schedule(const options *o)
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

/* ---- bench replay ---- */

enum { REPEATS = 21 };

static int time_starts(gantry_run *run, double *us)
{
    gantry_error err;
    for (int i = 0; i < REPEATS; i++) {
        uint64_t ticket;
        double start = now_us();
        if (gantry_run_start(run, &ticket, &err) || gantry_run_wait(run, ticket, &err))
            return fail(&err);
        us[i] = now_us() - start;
    }
    return EXIT_FINE;
}

static gantry_status empty_kernel(const gantry_launch *l)
{
    return l->args < 0 ? GANTRY_E_KERNEL : GANTRY_OK;
}

/* Nothing fancier than a loop that calls an empty kernel through a pointer. */
static double time_loop(int64_t nodes)
{
    double us[REPEATS];
    gantry_launch l = { .struct_size = sizeof l };
    gantry_kernel_fn volatile fn = empty_kernel;
    for (int i = 0; i < REPEATS; i++) {
        double start = now_us();
        for (int64_t k = 0; k < nodes; k++)
            if (fn(&l))
                return -1;
        us[i] = now_us() - start;
    }
    return median(us, REPEATS);
}

static int time_graph(const options *o, const char *backend, gantry_graph *graph, const gantry_machine *machine,
                      double *us)
{
    gantry_error err;
    gantry_schedule *schedule = NULL;
    gantry_run *run = NULL;
    gantry_run_options ro = GANTRY_RUN_OPTIONS_INIT;
    double each[REPEATS];
    ro.backend = backend;
    int code = schedule_on(&schedule, o, graph, machine);
    if (!code && gantry_run_new(&run, schedule, &ro, &err))
        code = fail(&err);
    if (!code)
        code = time_starts(run, each);
    if (!code)
        *us = median(each, REPEATS);
    gantry_run_free(run);
    gantry_schedule_free(schedule);
    return code;
}

static int check_shape(const char *shape)
{
    const char *const shapes[] = { "chain", "wide", "stencil" };
    char near[64];
    for (size_t i = 0; i < 3; i++)
        if (strcmp(shape, shapes[i]) == 0)
            return EXIT_FINE;
    fprintf(stderr, "gantry bench: no shape \"%s\"%s; there are chain, wide and stencil\n", shape,
            near_miss(near, sizeof near, shape, shapes, 3));
    return EXIT_USAGE;
}

/* Devices that take nodes come first in machines of this kind; a chain needs one of them. */
static int bench_replay(const options *o)
{
    const char *shape = o->shape ? o->shape : "chain", *backend = o->backend ? o->backend : "host";
    bool chain = strcmp(shape, "chain") == 0;
    gantry_machine *machine = NULL;
    double us = 0;
    int code = check_shape(shape);
    if (!code)
        code = bench_machine(&machine, o, chain ? "1" : "2");
    if (code)
        return code;
    int devices = (int)gantry_machine_device_count(machine);
    int64_t nodes = o->nodes ? o->nodes : 1000;
    nodes = nodes < devices ? devices : nodes;
    gantry_graph *graph = bench_empty(shape, nodes, devices);
    nodes = (int64_t)gantry_graph_node_count(graph);
    code = time_graph(o, backend, graph, machine, &us);
    double per = us / (double)nodes, loop = code ? 0 : time_loop(nodes) / (double)nodes;
    if (!code && o->json)
        code =
            print_json(json_pack("{s:s, s:s, s:I, s:i, s:f, s:f}", "backend", backend, "shape", shape, "nodes",
                                 (json_int_t)nodes, "devices", devices, "us_per_node", per, "loop_us_per_node", loop));
    else if (!code)
        printf("%s of %lld empty nodes on %d devices, %s back end: %.3f us a node (a plain loop: %.4f us)\n", shape,
               (long long)nodes, devices, backend, per, loop);
    gantry_graph_free(graph);
    gantry_machine_free(machine);
    return code;
}

static int run(const options *o)
{
    const char *const names[] = { "schedule", "replay" };
    const char *name = o->positional.at[0];
    char near[64];
    if (strcmp(name, "schedule") == 0)
        return bench_schedule(o);
    if (strcmp(name, "replay") == 0)
        return bench_replay(o);
    fprintf(stderr, "gantry bench: no bench \"%s\"%s; there are schedule and replay\n", name,
            near_miss(near, sizeof near, name, names, 2));
    return EXIT_USAGE;
}

const command command_bench = {
    "bench",
    "schedule|replay",
    "measures what Gantry itself costs",
    1,
    1,
    "machine devices policy effort max-memory spill backend shape nodes json",
    "  gantry bench schedule --nodes 100000 --devices 8 --json      a layered graph: time and memory a node\n"
    "  gantry bench replay --backend host --shape chain --nodes 1000  empty nodes: what running costs a node\n",
    run
};
