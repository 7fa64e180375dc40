/* SPDX-License-Identifier: Apache-2.0 */
/* bench replay and bench build: many small nodes, again and again; and what it takes until they can be started. */
#include "bench.h"
#include <stdio.h>
#include <string.h>

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
    gantry_schedule *schedule = NULL;
    gantry_run *run = NULL;
    double each[REPEATS];
    int code = bench_open_on(&run, &schedule, o, backend, graph, machine);
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
    static const char *const shapes[] = { "chain", "wide", "stencil", "tree", "random" };
    enum { SHAPES = sizeof shapes / sizeof *shapes };
    char near[64];
    for (size_t i = 0; i < SHAPES; i++)
        if (strcmp(shape, shapes[i]) == 0)
            return EXIT_FINE;
    complain("gantry bench: no shape \"%s\"%s; there are chain, wide, stencil, tree and random\n", shape,
             near_miss(near, sizeof near, shape, shapes, SHAPES));
    return EXIT_USAGE;
}

/* ---- on GPUs ---- */

/* A shape of tiny kernels, and the same captured by hand. */
typedef struct tiny {
    gantry_machine *machine;
    gantry_graph *graph;
    baseline *hand;
    const char *shape;
    int64_t nodes;
    int gpus;
} tiny;

static int open_tiny(tiny *t, const options *o, const char *what)
{
    gantry_error err;
    baseline_options bo = BASELINE_OPTIONS_INIT;
    t->shape = o->shape ? o->shape : "chain";
    int code = check_shape(t->shape);
    if (!code)
        code = bench_gpus(&t->machine, o, &t->gpus);
    if (code)
        return code;
    int lanes = strcmp(t->shape, "chain") == 0 ? 1 : t->gpus;
    t->nodes = o->nodes ? o->nodes : 1000;
    t->nodes = t->nodes < lanes ? lanes : t->nodes;
    t->graph = bench_tiny(t->shape, t->nodes, t->gpus, 1);
    t->nodes = (int64_t)gantry_graph_node_count(t->graph);
    bo.shape = t->shape;
    if (bench_is_dag(t->shape))
        bo.dag = bench_dag_of(t->shape, t->nodes, t->gpus, 1);
    bo.nodes = t->nodes;
    bo.devices = lanes;
    return baseline_open(&t->hand, what, t->machine, &bo, &err) ? fail(&err) : EXIT_FINE;
}

static void close_tiny(tiny *t)
{
    baseline_close(t->hand);
    gantry_graph_free(t->graph);
    gantry_machine_free(t->machine);
}

static options as_graph(const options *o)
{
    options with = *o;
    with.replay = o->replay ? o->replay : "graph";
    return with;
}

static int report_tiny(const options *o, const tiny *t, const char *replay, const bench_row *r)
{
    double nodes = (double)t->nodes;
    if (o->json)
        return print_json(json_pack("{s:s, s:s, s:s, s:I, s:i, s:f, s:f, s:f}", "backend", "cuda", "shape", t->shape,
                                    "replay", replay, "nodes", (json_int_t)t->nodes, "devices", t->gpus, "us_per_node",
                                    r->gantry_us / nodes, "raw_us_per_node", r->raw_us / nodes, "ratio",
                                    r->gantry_us / r->raw_us));
    printf("%s of %lld tiny kernels on %d GPU%s, %s: %.3f us a node, by hand %.3f us: %.2f times\n", t->shape,
           (long long)t->nodes, t->gpus, t->gpus == 1 ? "" : "s", replay, r->gantry_us / nodes, r->raw_us / nodes,
           r->gantry_us / r->raw_us);
    return EXIT_FINE;
}

/* Several lists on a GPU are in programs of their own by hand, which nvcc compiles: tools/gpu-bench has both in a
 * table. */
static int replay_lists(const options *o)
{
    enum { STEPS = 100 };
    gantry_machine *machine = NULL;
    bench_replays all = { .shape = o->shape ? o->shape : "chain", .what = "task", .lanes = o->lanes };
    int code = check_shape(all.shape);
    if (!code)
        code = bench_gpus(&machine, o, &all.gpus);
    if (code)
        return code;
    int64_t lists = all.lanes * (strcmp(all.shape, "chain") == 0 ? 1 : all.gpus);
    int64_t nodes = o->nodes > lists ? o->nodes : o->nodes ? lists : STEPS * lists;
    all.machine = machine;
    all.graph = bench_tiny(all.shape, nodes, all.gpus, all.lanes);
    all.tasks = (int64_t)gantry_graph_node_count(all.graph);
    code = bench_all_replays(o, &all);
    gantry_graph_free(all.graph);
    gantry_machine_free(machine);
    return code;
}

static int replay_on_gpus(const options *o)
{
    gantry_error err;
    tiny t = { .nodes = 0 };
    bench_row r = { .times = true };
    options with = as_graph(o);
    gantry_run *run = NULL;
    gantry_schedule *schedule = NULL;
    gantry_run_info info = GANTRY_RUN_INFO_INIT;
    int code = open_tiny(&t, o, "replay");
    if (!code)
        code = bench_open(&run, &schedule, &with, t.graph, t.machine);
    if (!code)
        code = bench_race(&r, bench_start, run, t.hand, REPEATS, &err);
    if (!code && gantry_run_get_info(run, &info, &err))
        code = fail(&err);
    if (!code)
        code = report_tiny(o, &t, info.replay, &r);
    gantry_run_free(run);
    gantry_schedule_free(schedule);
    close_tiny(&t);
    return code;
}

typedef struct builder {
    gantry_schedule *schedule;
} builder;

/* Until the first start has ended, less what a start then takes: building includes the capture, which is made at the
 * first one. */
static int build_once(void *user, double *us)
{
    const builder *b = user;
    gantry_error err;
    gantry_run *run = NULL;
    gantry_run_options ro = GANTRY_RUN_OPTIONS_INIT;
    double start = now_us(), first = 0, second = 0;
    ro.backend = "cuda";
    int code = gantry_run_new(&run, b->schedule, &ro, &err) ? fail(&err) : EXIT_FINE;
    double made = now_us() - start;
    if (!code)
        code = bench_start(run, &first);
    if (!code)
        code = bench_start(run, &second);
    *us = made + (first > second ? first - second : 0);
    gantry_run_free(run);
    return code;
}

enum { BUILDS = 7 };

int bench_build(const options *o)
{
    gantry_error err;
    tiny t = { .nodes = 0 };
    builder b = { NULL };
    options with = as_graph(o);
    rows all = { .bench = "build" };
    int code = open_tiny(&t, o, "build");
    bench_row r = { .times = true };
    if (!code)
        code = schedule_on(&b.schedule, &with, t.graph, t.machine);
    if (!code)
        code = bench_race(&r, build_once, &b, t.hand, BUILDS, &err);
    if (!code) {
        r.want = 1.5 + 2 * (double)t.nodes / r.raw_us; /* half as long again, and 2 us a node */
        snprintf(r.what, sizeof r.what, "%s of %lld tiny kernels, %d GPU%s", t.shape, (long long)t.nodes, t.gpus,
                 t.gpus == 1 ? "" : "s");
        rows_add(&all, r);
        code = rows_print(o, &all);
    }
    gantry_schedule_free(b.schedule);
    close_tiny(&t);
    return code;
}

/* ---- elsewhere ---- */

int bench_refuse_lanes(const options *o, const char *backend)
{
    complain("gantry bench: --lanes %lld is for GPUs, and the back end is %s; add --backend cuda\n",
             (long long)o->lanes, backend);
    return EXIT_USAGE;
}

/* Devices that take nodes come first in machines of this kind; a chain needs one of them. */
int bench_replay(const options *o)
{
    const char *shape = o->shape ? o->shape : "chain", *backend = o->backend ? o->backend : "host";
    bool chain = strcmp(shape, "chain") == 0;
    gantry_machine *machine = NULL;
    double us = 0;
    if (strcmp(backend, "cuda") == 0)
        return o->lanes > 1 || o->series > 1 ? replay_lists(o) : replay_on_gpus(o);
    if (o->lanes > 1)
        return bench_refuse_lanes(o, backend);
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
