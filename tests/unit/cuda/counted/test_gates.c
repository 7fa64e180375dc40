/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One graph for each GPU (GANTRY_CUDA_GRAPHS), with the kernels of gantry-cuda.so on the CPU, in random orders, against
 * one graph for all, bit for bit.
 *
 *   test_cuda_gates            all of it
 *   test_cuda_gates mistake    gates make one (FAKE_CUDA_MISTAKE): some seed has to show it
 */
#include "control.h"
#include "gated.h"
#include "mistakes.h"
#include "schedule/schedule.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Wherever a graph is on several GPUs they wait by gates, and by no edge. */
static int try_case(const graph_case *c, int gpus, int seeds)
{
    problem p = pose(c, gpus);
    int with = 0;
    for (int seed = 1; seed <= seeds; seed++) {
        copies_by(seed);
        int edges = fakeCudaCalls("wait between devices"), gates = fakeCudaWaiting();
        fakeCudaSeed((uint64_t)seed);
        gantry_run *run = open_run(p.schedule, "cuda");
        ck_assert_msg(as_wanted(&p, run), "%s on %d GPUs, seed %d: other results", c->file, gpus, seed);
        ck_assert_int_eq(fakeCudaCalls("wait between devices"), edges);
        with += has_gates(run) && fakeCudaWaiting() > gates;
        gantry_run_free(run);
    }
    copies_by(0);
    put_away(&p);
    return with;
}

/* Those without kernels of NVIDIA's libraries. */
static const graph_case cases[] = {
    { "saxpy", { "n=1003" }, 0 },
    { "reduce_sum", { "n=10007" }, 0 },
    { "image_blur", { "n=7", "height=30", "width=50" }, 0 },
    { "pipeline3", { "batches=5", "batch=64", "stage_us=1" }, 0 },
    { "jacobi", { "n=37", "steps=9" }, 0 },
    { "train_pipeline", { "n=64", "forward_us=1" }, 0 },
    { "jacobi_blocks", { "n=41", "a=2", "b=3", "steps=4" }, 0 },
    { NULL, { NULL }, 0 },
};

START_TEST(gallery)
{
    int with = 0;
    for (const graph_case *c = cases; c->file; c++)
        for (int gpus = 2; gpus <= 4; gpus++)
            with += try_case(c, gpus, 2);
    ck_assert_int_gt(with, 20);
}
END_TEST

/* Each GPU reaches its neighbours alone, as it copies from no other. */
START_TEST(neighbours)
{
    static const graph_case rows = { "jacobi", { "n=37", "steps=9" }, 0 };
    ck_assert_int_eq(try_case(&rows, 4, 2), 2);
}
END_TEST

/* No kernel begins beside a gate that waits, so whatever a gate waits for, on any way, is ahead of it on its own GPU.
 */
START_TEST(nothing_beside_gates)
{
    setenv("FAKE_CUDA_HOLD", "1", 1);
    setenv("FAKE_CUDA_WEAK", "1", 1);
    for (const graph_case *c = cases; c->file; c++)
        try_case(c, 3 + _i, 3);
    unsetenv("FAKE_CUDA_HOLD");
    unsetenv("FAKE_CUDA_WEAK");
}
END_TEST

/* Of all that a gate waits for on a GPU one node tells: with one other GPU there are as many of these as gates, and
 * fewer where copies tell. */
START_TEST(few_nodes)
{
    for (const graph_case *c = cases; c->file; c++) {
        problem p = pose(c, 2);
        setenv("GANTRY_CUDA_COPIES", _i ? "kernels:100000" : "engines", 1);
        int nodes = fakeCudaCalls("cuGraphAddNode"), gates = fakeCudaWaiting();
        int before = fakeCudaCalls("cuGraphNodeSetParams");
        gantry_run *run = open_run(p.schedule, "cuda");
        ck_assert(as_wanted(&p, run));
        nodes = fakeCudaCalls("cuGraphAddNode") - nodes;
        gates = fakeCudaWaiting() - gates;
        int copies = fakeCudaCalls("cuGraphNodeSetParams") - before; /* that are gates, too */
        ck_assert_msg(_i ? nodes + copies >= gates && nodes <= 2 * gates : nodes == 2 * gates,
                      "%s: %d gates, and %d nodes with what sets their words", c->file, gates, nodes);
        gantry_run_free(run);
        copies_by(0);
        put_away(&p);
    }
}
END_TEST

/* A task, and the copies to its neighbours, which tell them by themselves, and wait for them: no node more, but gates
 * where there are two neighbours, as those copies are in two lanes, and where it begins and ends. */
START_TEST(nodes_of_a_stencil)
{
    int gpus = _i, tasks = STEPS * gpus, copies = 2 * STEPS * (gpus - 1);
    gantry_graph *g = stencil(gpus);
    fakeCudaDevices(gpus, "all", 0);
    gantry_machine *m = gpu_machine(gpus, false);
    gantry_schedule *s = make_schedule(g, m, "graph", NULL);
    setenv("GANTRY_CUDA_GRAPHS", "gpu", 1);
    copies_by(1);
    compare_with_host(g, s, 4);
    gantry_run *run = open_run(s, "cuda");
    run_results(run, g);
    int nodes = fakeCudaCalls("kernel");
    run_results(run, g);
    nodes = fakeCudaCalls("kernel") - nodes;
    ck_assert(has_gates(run));
    ck_assert_msg(nodes <= tasks + copies + STEPS * (gpus - 2) + 2 * gpus, "%d kernels in %d tasks and %d copies",
                  nodes, tasks, copies);
    gantry_run_free(run);
    copies_by(0);
    gantry_schedule_free(s);
    gantry_machine_free(m);
    gantry_graph_free(g);
}
END_TEST

static const graph_case blocks = { "jacobi_blocks", { "n=41", "a=2", "b=3", "steps=4" }, 0 };

/* Gates would never end, as the driver launches nothing before a graph has. */
START_TEST(no_gates)
{
    problem p = pose(&blocks, 3);
    setenv("CUDA_LAUNCH_BLOCKING", "1", 1);
    gantry_run *run = open_run(p.schedule, "cuda");
    ck_assert(as_wanted(&p, run) && !has_gates(run));
    gantry_run_free(run);
    unsetenv("CUDA_LAUNCH_BLOCKING");
    put_away(&p);
}
END_TEST

/* GPUs that have nothing to tell each other: each has a graph, and no capture is thrown away. */
START_TEST(nothing_to_tell)
{
    static const char text[] =
        "{\"gantry\":1,\"buffers\":{\"a\":{\"dtype\":\"f32\",\"shape\":[2,64],\"split\":2,\"init\":3},"
        "\"b\":{\"dtype\":\"f32\",\"shape\":[2,64],\"split\":2,\"class\":\"state\",\"init\":0}},\"nodes\":[{\"id\":\"n["
        "i]\","
        "\"for\":{\"i\":2},\"kernel\":\"scale\",\"args\":{\"a\":2,\"x\":\"a[i]\",\"y\":\"b[i]\"},\"on\":\"i\"}]}";
    gantry_graph *g = NULL;
    gantry_error err = { 0 };
    fakeCudaDevices(2, "all", 0);
    MUST(gantry_graph_parse(&g, text, strlen(text), "text", NULL, NULL, MUST_ERR));
    gantry_machine *m = gpu_machine(2, false);
    gantry_schedule *s = make_schedule(g, m, "graph", "round-robin");
    setenv("GANTRY_CUDA_GRAPHS", "gpu", 1);
    gantry_run *run = open_run(s, "cuda");
    for (int i = 0; i < STARTS; i++)
        ck_assert_msg(start(run, &err) == GANTRY_OK, "%s", err.text);
    ck_assert_msg(has_gates(run), "%s", replay_of(run));
    ck_assert_int_eq(fakeCudaCalls("cuStreamEndCapture"), 2);
    gantry_run_free(run);
    gantry_schedule_free(s);
    gantry_machine_free(m);
    gantry_graph_free(g);
}
END_TEST

/* ---- copies that others carry ---- */

/* Two GPUs with a slow link from GPU 1 to GPU 0, and a fast one back. */
static gantry_machine *slow_machine(void)
{
    static const char text[] =
        "{\"gantry_machine\":1,\"memories\":[{\"id\":\"host\",\"capacity\":\"1GiB\"},{\"id\":\"gpu0\",\"capacity\":"
        "\"64MiB\"},{\"id\":\"gpu1\",\"capacity\":\"64MiB\"}],\"devices\":[{\"id\":\"gpu0\",\"type\":\"gpu\","
        "\"memory\":"
        "\"gpu0\",\"lanes\":4,\"copy_engines\":1,\"launch_us\":0.1},{\"id\":\"gpu1\",\"type\":\"gpu\",\"memory\":"
        "\"gpu1\","
        "\"lanes\":4,\"copy_engines\":1,\"launch_us\":0.1,\"ordinal\":1}],\"routes\":["
        "{\"from\":\"gpu1\",\"to\":\"gpu0\",\"latency_us\":0.1,\"bandwidth_gbs\":0.05},"
        "{\"from\":\"gpu0\",\"to\":\"gpu1\",\"latency_us\":0.1,\"bandwidth_gbs\":10},"
        "{\"from\":\"host\",\"to\":\"gpu*\",\"both\":true,\"latency_us\":0.1,\"bandwidth_gbs\":10}]}";
    gantry_machine *m = NULL;
    MUST(gantry_machine_parse(&m, text, sizeof text - 1, "machine of the test", MUST_ERR));
    return m;
}

/* The large array "h" takes the link until "p" and "q" are there to be copied behind it, by one kernel then. "q"
 * overwrites in GPU 0 what "read" reads, so the kernel waits for that by a gate. By its position the copy of "q" comes
 * behind that of "w" from GPU 0, which "last" waits for and which ends sooner; the launch that carries it does not. */
enum { P = 3, Q = 4 }; /* among the arrays */
static const array carried_arrays[] = {
    { "big", 1000, IOTA }, { "i", 40, IOTA },    { "h", 1000, IOTA },    { "p", 40, IOTA },
    { "q", 40, IOTA },     { "w", 40, IOTA },    { "z", 40, OUTPUT },    { "r", 40, OUTPUT },
    { "p0", 40, OUTPUT },  { "q0", 40, OUTPUT }, { "h0", 1000, OUTPUT }, { NULL, 0, NULL },
};
static const step carried_steps[] = {
    { "h", "scale", "big", "h", 1, 0.5, "" },     { "p", "scale", "i", "p", 1, 1, "\"h\"" },
    { "read", "scale", "q", "r", 0, 1, "" },      { "w", "scale", "i", "w", 0, 5, "\"read\"" },
    { "q", "scale", "i", "q", 1, 10, "\"p\"" },   { "z", "scale", "i", "z", 1, 30, "\"q\"" },
    { "last", "saxpy", "w", "z", 1, 1, "\"z\"" }, { "h0", "scale", "h", "h0", 0, 1, "" },
    { "p0", "scale", "p", "p0", 0, 1, "" },       { "q0", "scale", "q", "q0", 0, 1, "" },
    { NULL, NULL, NULL, NULL, 0, 0, NULL },
};

static bool is_row_between(const gantry_schedule *s, const gy_sync *y)
{
    return y->distance == 0 && y->carrier != GY_CARRIER_LANE &&
           gy_op_device(s, &s->ops.at[y->from], 0) != gy_op_device(s, &s->ops.at[y->to], 0);
}

/* Rows between GPUs that lead to `to`, or to any op behind it on its device if `behind`, from ops above `above` and
 * below `to` that end by then. */
static int rows_between(const gantry_schedule *s, uint32_t to, bool behind, int64_t above, gy_ticks then)
{
    int count = 0;
    uint32_t device = gy_op_device(s, &s->ops.at[to], 0);
    for (size_t i = 0; i < s->sync.count; i++) {
        const gy_sync *y = &s->sync.at[i];
        bool there = behind ? y->to > to && gy_op_device(s, &s->ops.at[y->to], 0) == device : y->to == to;
        count += there && is_row_between(s, y) && y->from > above && y->from < to && s->ops.at[y->from].end <= then;
    }
    return count;
}

/* The copy of the array from GPU 1 to GPU 0. */
static uint32_t copy_of(const gantry_schedule *s, uint32_t buffer)
{
    uint32_t found = GY_NONE;
    for (uint32_t i = 0; i < s->ops.count; i++) {
        const gy_op *op = &s->ops.at[i];
        const gy_instance *from = &s->instances.at[s->use.at[op->use].instance];
        bool is = op->kind == GY_OP_COPY && from->value == buffer && from->memory == 2;
        found = is && s->instances.at[s->use.at[op->use + 1].instance].memory == 1 ? i : found;
    }
    ck_assert_uint_ne(found, GY_NONE);
    return found;
}

/* That is what the text above is for. */
static void check_carried(const gantry_schedule *s)
{
    uint32_t p = copy_of(s, P), q = copy_of(s, Q);
    const gy_op *first = &s->ops.at[p];
    gy_ticks last = 0;
    ck_assert_uint_lt(p, q);
    ck_assert_uint_eq(s->op_lane.at[first->lane], s->op_lane.at[s->ops.at[q].lane]);
    for (size_t i = 0; i < s->sync.count; i++) {
        const gy_sync *y = &s->sync.at[i];
        if (y->to != q || y->distance > 0)
            continue;
        ck_assert(y->from < p && s->ops.at[y->from].end <= first->start); /* so it is carried */
        last = s->ops.at[y->from].end > last ? s->ops.at[y->from].end : last;
    }
    ck_assert_int_gt(rows_between(s, q, false, -1, last), 0); /* by a gate */
    ck_assert_int_gt(rows_between(s, q, true, p, last), 0);   /* and one comes between that could go into it */
}

/* Rows of a copy that another one carries are asked for ahead of ops that a gate would take in by its own position. */
START_TEST(carried_copies)
{
    fakeCudaDevices(2, "all", 0);
    gantry_graph *g = graph_of(carried_arrays, carried_steps);
    gantry_machine *m = slow_machine();
    gantry_schedule *s = make_schedule(g, m, "graph", NULL);
    check_carried(s);
    setenv("GANTRY_CUDA_GRAPHS", "gpu", 1);
    setenv("GANTRY_CUDA_COPIES", "kernels:1000", 1);
    compare_with_host(g, s, 20);
    unsetenv("GANTRY_CUDA_COPIES");
    gantry_schedule_free(s);
    gantry_machine_free(m);
    gantry_graph_free(g);
}
END_TEST

/* ---- nodes that a word waits for ---- */

/* A launch without rows adds no node: what "none" ends with are the nodes of "a" and "b", in the lane of one of them.
 * The gate of "c", which waits for it, takes in what "d" and "f" wait for: the node of the other lane a second time.
 * "t" is there for GPU 1 to reach GPU 0. */
enum { A, B, NONE, K, C };
static const array twice_arrays[] = {
    { "e", 2, ",\"split\":3" IOTA },
    { "n", 2, ",\"split\":3" },
    { "i", 40, IOTA },
    { "a", 40, IOTA },
    { "b", 40, IOTA },
    { "k", 40, IOTA },
    { "l", 40, IOTA },
    { "c", 40, OUTPUT },
    { "d", 40, OUTPUT },
    { "f", 40, OUTPUT },
    { "t", 40, OUTPUT },
    { NULL, 0, NULL },
};
static const step twice_steps[] = {
    { "a", "scale", "i", "a", 1, 1, "" },
    { "b", "scale", "i", "b", 1, 1, "" },
    { "none", "scale", "e[0]", "n[0]", 1, 1, "\"a\",\"b\"" },
    { "k", "scale", "i", "k", 0, 10, "" },
    { "c", "scale", "k", "c", 0, 30, "\"none\"" },
    { "l", "scale", "k", "l", 0, 2, "" },
    { "d", "scale", "l", "d", 0, 1, "\"a\"" },
    { "f", "scale", "l", "f", 0, 1, "\"b\"" },
    { "t", "scale", "b", "t", 0, 1, "\"d\"" },
    { NULL, NULL, NULL, NULL, 0, 0, NULL },
};

static uint32_t op_of(const gantry_schedule *s, uint32_t node)
{
    uint32_t found = GY_NONE;
    for (uint32_t i = 0; i < s->ops.count; i++)
        found = s->ops.at[i].node == node ? i : found;
    ck_assert_uint_ne(found, GY_NONE);
    return found;
}

static uint32_t lane_of(const gantry_schedule *s, uint32_t node)
{
    return s->op_lane.at[s->ops.at[op_of(s, node)].lane];
}

START_TEST(nodes_once)
{
    fakeCudaDevices(2, "all", 0);
    gantry_graph *g = graph_of(twice_arrays, twice_steps);
    gantry_machine *m = slow_machine();
    gantry_schedule *s = make_schedule(g, m, "graph", NULL);
    gy_ticks then = s->ops.at[op_of(s, NONE)].end;
    ck_assert_uint_ne(lane_of(s, A), lane_of(s, B));
    ck_assert_int_gt(rows_between(s, op_of(s, C), false, -1, then), 0); /* from "none" */
    ck_assert_int_ge(rows_between(s, op_of(s, C), true, -1, then), 2);  /* from "a" and "b" */
    setenv("GANTRY_CUDA_GRAPHS", "gpu", 1);
    compare_with_host(g, s, 3);
    gantry_schedule_free(s);
    gantry_machine_free(m);
    gantry_graph_free(g);
}
END_TEST

/* ---- what is chosen ---- */

/* As if a row between GPUs had been measured so. */
static gantry_machine *measured_machine(int gpus, double edge_us, double gate_us)
{
    gantry_machine *m = gpu_machine(gpus, false), *with = NULL;
    char *text = NULL, costs[100], *made;
    size_t length;
    MUST(gantry_machine_json(m, &text, &length, MUST_ERR));
    char *at = strstr(text, "\"contention\"");
    ck_assert_ptr_nonnull(at);
    snprintf(costs, sizeof costs, "\"edge_us\": %g, \"gate_us\": %g, ", edge_us, gate_us);
    made = malloc(length + sizeof costs);
    int size = snprintf(made, length + sizeof costs, "%.*s%s%s", (int)(at - text), text, costs, at);
    MUST(gantry_machine_parse(&with, made, (size_t)size, "measured", MUST_ERR));
    free(made);
    gantry_free(text);
    gantry_machine_free(m);
    return with;
}

/* The same problem on a machine of which that is known. */
static void measure(problem *p, int gpus, double edge_us, double gate_us)
{
    gantry_schedule_free(p->schedule);
    gantry_machine_free(p->machine);
    p->machine = measured_machine(gpus, edge_us, gate_us);
    p->schedule = make_schedule(p->graph, p->machine, "graph", "round-robin");
}

static const struct choice {
    const char *word; /* of the environment; NULL: it says nothing */
    double edge_us, gate_us;
    const char *report; /* it begins so */
    bool figures;       /* and goes on with what is predicted */
} choices[] = {
    { NULL, 500, 2, "graph, one for each GPU, predicted at 0.", true },
    { "auto", 500, 2, "graph, one for each GPU, predicted at 0.", true },
    { "gpu", 500, 2, "graph, one for each GPU", false },
    { "one", 500, 2, "graph", false },
    { NULL, 5, 5, "graph; one for all GPUs, as one for each is predicted at ", true },
    { "gpu", 5, 5, "graph, one for each GPU", false },
    { NULL, 0.1, 500, "graph; one for all GPUs, as one for each is predicted at ", true },
    { NULL, 500, 0, "graph", false },
};

START_TEST(automatic)
{
    static const graph_case stages = { "pipeline3", { "batches=5", "batch=64", "stage_us=1" }, 0 };
    problem p = pose(&stages, 3);
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
        const struct choice *c = &choices[i];
        measure(&p, 3, c->edge_us, c->gate_us);
        if (c->word)
            setenv("GANTRY_CUDA_GRAPHS", c->word, 1);
        else
            unsetenv("GANTRY_CUDA_GRAPHS");
        gantry_run *run = open_run(p.schedule, "cuda");
        int gates = fakeCudaWaiting();
        ck_assert(as_wanted(&p, run));
        ck_assert_msg((fakeCudaWaiting() > gates) == (strncmp(c->report, "graph, one", 10) == 0), "%zu: %s", i,
                      replay_of(run));
        ck_assert_msg(strncmp(replay_of(run), c->report, strlen(c->report)) == 0, "%s", replay_of(run));
        ck_assert(c->figures || strcmp(replay_of(run), c->report) == 0);
        gantry_run_free(run);
    }
    put_away(&p);
}
END_TEST

/* ---- what is left to one graph, and the reason ---- */

/* Rows that go to and fro between two GPUs, and one thing more. */
#define TO_AND_FRO                                                                                                     \
    "{\"gantry\":1,\"buffers\":{\"a\":{\"dtype\":\"f32\",\"shape\":[2,64],\"split\":2,\"class\":\"state\",\"init\":3}" \
    ","                                                                                                                \
    "\"b\":{\"dtype\":\"f32\",\"shape\":[2,64],\"split\":2,\"class\":\"state\",\"init\":1,\"output\":true},"           \
    "\"s\":{\"dtype\":\"f32\",\"shape\":[1],\"init\":0},\"flag\":{\"dtype\":\"u8\",\"shape\":[1],\"init\":1}},"        \
    "\"nodes\":["                                                                                                      \
    "{\"id\":\"there\",\"kernel\":\"copy\",\"args\":{\"x\":\"a[0]\",\"y\":\"b[1]\"},\"on\":\"gpu1\"},"                 \
    "{\"id\":\"back\",\"kernel\":\"copy\",\"args\":{\"x\":\"b[1]\",\"y\":\"b[0]\"},\"on\":\"gpu0\"}"

enum { LEFT = 4 };
static const struct left {
    const char *node, *set, *value, *why;
} lefts[LEFT] = {
    { ",{\"id\":\"f\",\"when\":{\"buffer\":\"flag\"},\"fill\":{\"to\":\"a[0]\",\"value\":1},\"on\":\"gpu0\"}", NULL,
      NULL, "a node has a `when`" },
    { ",{\"id\":\"spread\",\"collective\":\"all_reduce\",\"op\":\"sum\",\"in\":[\"b[0]\",\"b[1]\"],\"out\":[\"a[0]\","
      "\"a[1]\"],\"on\":[0,1]}",
      NULL, NULL, "GPUs carry out collectives together" },
    { "", "CUDA_LAUNCH_BLOCKING", "1", "CUDA_LAUNCH_BLOCKING is set" },
    { "", "GANTRY_CUDA_PEERS", "off", "a GPU waits for one that does not reach it" },
};

static gantry_graph *left_graph(const struct left *l)
{
    char text[2000];
    gantry_graph *g = NULL;
    snprintf(text, sizeof text, TO_AND_FRO "%s]}", l->node);
    MUST(gantry_graph_parse(&g, text, strlen(text), "text", NULL, NULL, MUST_ERR));
    return g;
}

START_TEST(left_to_one)
{
    const struct left *l = &lefts[_i];
    gantry_graph *g = left_graph(l);
    fakeCudaDevices(2, "all", 0);
    unsetenv("GANTRY_CUDA_GRAPHS");
    if (l->set)
        setenv(l->set, l->value, 1);
    gantry_machine *m = measured_machine(2, 500, 2);
    gantry_schedule *s = make_schedule(g, m, "graph", "round-robin");
    gantry_run *run = open_run(s, "cuda");
    for (int i = 0; i < STARTS; i++)
        run_results(run, g);
    const char *at = strstr(replay_of(run), "; one for all GPUs: ");
    ck_assert_msg(at && strstr(at, l->why), "%s", replay_of(run));
    ck_assert_int_eq(fakeCudaCalls("cuStreamEndCapture"), 1 + (_i == 0)); /* that of a body; none is thrown away */
    gantry_run_free(run);
    if (l->set)
        unsetenv(l->set);
    gantry_schedule_free(s);
    gantry_machine_free(m);
    gantry_graph_free(g);
}
END_TEST

static bool well_with(uint64_t seed)
{
    const char *mistake = getenv("FAKE_CUDA_MISTAKE");
    char kept[16] = "";
    if (mistake)
        snprintf(kept, sizeof kept, "%s", mistake);
    unsetenv("FAKE_CUDA_MISTAKE");
    problem p = pose(&blocks, 2 + (int)(seed % 3));
    setenv("FAKE_CUDA_MISTAKE", kept, 1);
    fakeCudaSeed(seed);
    copies_by((int)seed);
    return as_wanted(&p, open_run(p.schedule, "cuda"));
}

START_TEST(mistake)
{
    some_seed_shows(well_with, 30);
}
END_TEST

static void add_mistake(TCase *tests)
{
    tcase_add_test(tests, mistake);
}

static void add_all(TCase *tests)
{
    tcase_add_test(tests, gallery);
    tcase_add_test(tests, neighbours);
    tcase_add_loop_test(tests, nothing_beside_gates, 0, 2);
    tcase_add_loop_test(tests, few_nodes, 0, 2);
    tcase_add_loop_test(tests, nodes_of_a_stencil, 2, 5);
    tcase_add_test(tests, no_gates);
    tcase_add_test(tests, nothing_to_tell);
    tcase_add_test(tests, carried_copies);
    tcase_add_test(tests, nodes_once);
    tcase_add_test(tests, automatic);
    tcase_add_loop_test(tests, left_to_one, 0, LEFT);
}

int main(int count, char **word)
{
    static const program_part parts[] = { { "mistake", add_mistake }, { NULL, add_all } };
    return run_part("gates", parts, count, word);
}
