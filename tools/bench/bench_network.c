/* SPDX-License-Identifier: Apache-2.0 */
/**
 * bench network: messages between processes, as runs have them: from host memory to host memory, by pairs and all
 * together. What one takes is how much longer a start with more of them takes, so that what a start costs is not in it.
 * A chain begins and ends on rank 0, which has the clock.
 */
#include "bench.h"
#include "runs/run.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 7, SHORT = 2, LONG = 6, SMALL_SHORT = 10, SMALL_LONG = 110, SMALL = 8, LARGE = 32 << 20, FEW = 16 };

typedef struct pair {
    int from, to;
    double us, gbs;
} pair;

typedef struct network {
    const options *o;
    ranks *ranks;
    gantry_machine *machine;
    int processes;
    int64_t bytes; /* of a large message */
    pair *pair;
    size_t pairs;
    double all_gbs; /* of each process, both ways */
} network;

/* Writes what it is to write once, in the first start: pages that nobody has written are all one, and quick to read. */
static gantry_status touch(const gantry_launch *launch)
{
    for (int32_t i = 0; i < launch->args; i++) {
        const gantry_arg *a = gantry_launch_arg(launch, i);
        char *at = a->data;
        if (a->access == GANTRY_WRITE && *at == 0)
            memset(at, 1, (size_t)a->rows);
    }
    return GANTRY_OK;
}

static gantry_buffer add_buffer(gantry_graph *g, int64_t number, int64_t bytes)
{
    char name[32];
    snprintf(name, sizeof name, "x%lld", (long long)number);
    return gantry_graph_buffer(g, name, GANTRY_U8, 1, (&bytes));
}

static gantry_node add_node(gantry_graph *g, int device)
{
    char on[16];
    snprintf(on, sizeof on, "dev%d", device);
    gantry_node n = gantry_graph_launch(g, "n", touch, NULL);
    gantry_node_on(g, n, on);
    gantry_node_time(g, n, NULL, 0.1);
    return n;
}

/* From rank 0 to `from`, there and back between the two `hops` times, and to rank 0. */
static gantry_graph *chain(const pair *p, int hops, int64_t bytes)
{
    gantry_graph *g = gantry_graph_new("chain");
    gantry_buffer last = add_buffer(g, 0, SMALL);
    gantry_node_write(g, add_node(g, 0), gantry_all(last));
    for (int i = 0; i <= hops + 1; i++) {
        gantry_node n = add_node(g, i > hops ? 0 : i % 2 ? p->to : p->from);
        gantry_node_read(g, n, gantry_all(last));
        last = add_buffer(g, i + 1, i < hops ? bytes : SMALL);
        gantry_node_write(g, n, gantry_all(last));
    }
    return g;
}

/* `hops` times each process sends to the one before it, and gets from the one behind it. NULL: out of memory. */
static gantry_graph *ring(int processes, int hops, int64_t bytes)
{
    gantry_buffer *before = calloc(2 * (size_t)processes, sizeof *before), *now = before + processes;
    gantry_graph *g = before ? gantry_graph_new("ring") : NULL;
    for (int i = 0; i <= hops && before; i++) {
        for (int p = 0; p < processes; p++) {
            gantry_node n = add_node(g, p);
            if (i > 0)
                gantry_node_read(g, n, gantry_all(before[(p + 1) % processes]));
            now[p] = add_buffer(g, (int64_t)i * processes + p, bytes);
            gantry_node_write(g, n, gantry_all(now[p]));
        }
        memcpy(before, now, (size_t)processes * sizeof *before);
    }
    free(before);
    return g;
}

/* The quickest of some starts, which others disturb least; all processes make as many. Frees the graph. */
static int time_graph(const network *n, gantry_graph *graph, double *us)
{
    gantry_error err;
    options with = *n->o;
    gantry_schedule *schedule = NULL;
    gantry_run *run = NULL;
    gantry_run_options ro = GANTRY_RUN_OPTIONS_INIT;
    double sample = 0;
    ro.backend = "host";
    ro.network = n->ranks->network;
    with.effort = 0;
    int code = schedule_on(&schedule, &with, graph, n->machine);
    if (!code && gantry_run_new(&run, schedule, &ro, &err))
        code = fail(&err);
    for (int i = 0; i <= SAMPLES && !code; i++) { /* the first does not count */
        code = bench_start(run, &sample);
        *us = i == 1 || (i > 1 && sample < *us) ? sample : *us;
    }
    gantry_run_free(run);
    gantry_schedule_free(schedule);
    gantry_graph_free(graph);
    return code;
}

static int measure_pair(const network *n, pair *p)
{
    double small[2] = { 0 }, large[2] = { 0 };
    int code = time_graph(n, chain(p, SMALL_SHORT, SMALL), &small[0]);
    code = code ? code : time_graph(n, chain(p, SMALL_LONG, SMALL), &small[1]);
    code = code ? code : time_graph(n, chain(p, SHORT, n->bytes), &large[0]);
    code = code ? code : time_graph(n, chain(p, LONG, n->bytes), &large[1]);
    p->us = small[1] > small[0] ? (small[1] - small[0]) / (SMALL_LONG - SMALL_SHORT) : 0;
    double us = (large[1] - large[0]) / (LONG - SHORT) - p->us;
    p->gbs = us > 0 ? (double)n->bytes / us / 1e3 : 0;
    return code;
}

static int measure_all(network *n)
{
    double us[2] = { 0 };
    int code = time_graph(n, ring(n->processes, SHORT, n->bytes), &us[0]);
    code = code ? code : time_graph(n, ring(n->processes, LONG, n->bytes), &us[1]);
    double each = (us[1] - us[0]) / (LONG - SHORT);
    n->all_gbs = each > 0 ? (double)n->bytes / each / 1e3 : 0;
    return code;
}

/* All pairs of few processes; of many each with the next, and with the one half around. */
static bool is_tried(const network *n, int from, int to)
{
    return n->processes <= FEW || to == from + 1 || to == from + n->processes / 2;
}

static int measure(network *n)
{
    size_t most = (size_t)n->processes * (size_t)n->processes / 2;
    int code = EXIT_FINE;
    n->pair = calloc(most + 1, sizeof *n->pair);
    if (!n->pair)
        return fail_nomem();
    for (int from = 0; from < n->processes; from++)
        for (int to = from + 1; to < n->processes && !code; to++) {
            if (!is_tried(n, from, to))
                continue;
            n->pair[n->pairs] = (pair){ .from = from, .to = to };
            code = measure_pair(n, &n->pair[n->pairs++]);
        }
    return code ? code : measure_all(n);
}

static int report(const network *n)
{
    double us = 0, gbs = 0;
    json_t *list = json_array();
    if (!n->o->json)
        printf("%d processes, from host memory to host memory\n  ranks         message      rate\n", n->processes);
    for (size_t i = 0; i < n->pairs; i++) {
        const pair *p = &n->pair[i];
        char names[32];
        us = p->us > us ? p->us : us;
        gbs = i == 0 || p->gbs < gbs ? p->gbs : gbs;
        snprintf(names, sizeof names, "%d - %d", p->from, p->to);
        json_array_append_new(
            list, json_pack("{s:i, s:i, s:f, s:f}", "from", p->from, "to", p->to, "latency_us", p->us, "gbs", p->gbs));
        if (!n->o->json)
            printf("  %-10s %7.2f us  %5.2f GB/s\n", names, p->us, p->gbs);
    }
    if (n->o->json)
        return print_json(json_pack("{s:i, s:o, s:f, s:f, s:f}", "processes", n->processes, "pairs", list, "all_gbs",
                                    n->all_gbs, "latency_us", us, "gbs", gbs));
    json_decref(list);
    printf("  all at once, each to the one before it: %.2f GB/s there, and as much from the one behind it\n"
           "the slowest pair, for a machine file: gantry machine join A B --link latency_us=%.2f,GBps=%.2f\n",
           n->all_gbs, us, gbs);
    return EXIT_FINE;
}

static int make_machine(network *n)
{
    gantry_error err;
    gantry_machine *whole = NULL;
    n->processes = (int)gantry_network_ranks(n->ranks->network);
    gantry_status status = gantry_machine_virtual(&whole, n->processes, &err);
    status = status ? status : gantry_machine_spread(&n->machine, whole, (size_t)n->processes, &err);
    gantry_machine_free(whole);
    return status ? fail(&err) : EXIT_FINE;
}

int bench_network(const options *o)
{
    options mine = *o;
    ranks r = { 0 };
    network n = { .o = &mine, .ranks = &r, .bytes = o->bytes ? o->bytes : LARGE };
    int code = join_ranks(&r, &mine);
    if (!code && !r.network) {
        complain("gantry bench: network measures messages between processes, and there is one; start some, such as "
                 "mpirun -n 2 gantry bench network\n");
        return EXIT_USAGE;
    }
    code = code ? code : make_machine(&n);
    code = code ? code : measure(&n);
    code = code ? code : meet_ranks(&r);
    code = code ? code : report(&n);
    free(n.pair);
    gantry_machine_free(n.machine);
    return leave_ranks(&r, code);
}
