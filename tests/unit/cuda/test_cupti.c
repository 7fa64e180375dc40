/* SPDX-License-Identifier: Apache-2.0 */
/* Times of ops by CUPTI, a fake one: against clocks that the kernels read themselves. */
#include "backends/cuda/times/cupti.h"
#include "control.h"
#include "suite.h"

#include <cupti.h>
#include <jansson.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char *const replays[] = { "stream", "graph" };

/* ---- records: where NVIDIA's headers say that fields are, in all versions that are relied on ---- */

#define AT(type, correlation, node)                                                                                    \
    _Static_assert(offsetof(type, start) == offsetof(gy_cupti_record, start), #type);                                  \
    _Static_assert(offsetof(type, end) == offsetof(gy_cupti_record, end), #type);                                      \
    _Static_assert(offsetof(type, correlationId) == (correlation), #type);                                             \
    _Static_assert(offsetof(type, graphNodeId) == (node), #type)
AT(CUpti_ActivityKernel5, GY_CUPTI_KERNEL_CORRELATION, GY_CUPTI_KERNEL_NODE);
AT(CUpti_ActivityKernel6, GY_CUPTI_KERNEL_CORRELATION, GY_CUPTI_KERNEL_NODE);
AT(CUpti_ActivityKernel7, GY_CUPTI_KERNEL_CORRELATION, GY_CUPTI_KERNEL_NODE);
AT(CUpti_ActivityKernel8, GY_CUPTI_KERNEL_CORRELATION, GY_CUPTI_KERNEL_NODE);
AT(CUpti_ActivityKernel9, GY_CUPTI_KERNEL_CORRELATION, GY_CUPTI_KERNEL_NODE);
AT(CUpti_ActivityMemcpy3, GY_CUPTI_MEMORY_CORRELATION, GY_CUPTI_MEMORY_NODE);
AT(CUpti_ActivityMemcpy4, GY_CUPTI_MEMORY_CORRELATION, GY_CUPTI_MEMORY_NODE);
AT(CUpti_ActivityMemcpy5, GY_CUPTI_MEMORY_CORRELATION, GY_CUPTI_MEMORY_NODE);
AT(CUpti_ActivityMemset2, GY_CUPTI_MEMORY_CORRELATION, GY_CUPTI_MEMORY_NODE);
AT(CUpti_ActivityMemset3, GY_CUPTI_MEMORY_CORRELATION, GY_CUPTI_MEMORY_NODE);
AT(CUpti_ActivityMemset4, GY_CUPTI_MEMORY_CORRELATION, GY_CUPTI_MEMORY_NODE);
AT(CUpti_ActivityMemcpyPtoP2, GY_CUPTI_PEER_CORRELATION, GY_CUPTI_PEER_NODE);
AT(CUpti_ActivityMemcpyPtoP3, GY_CUPTI_PEER_CORRELATION, GY_CUPTI_PEER_NODE);
AT(CUpti_ActivityMemcpyPtoP4, GY_CUPTI_PEER_CORRELATION, GY_CUPTI_PEER_NODE);
#if CUPTI_API_VERSION >= 130000
AT(CUpti_ActivityKernel10, GY_CUPTI_KERNEL_CORRELATION, GY_CUPTI_KERNEL_NODE);
AT(CUpti_ActivityMemcpy6, GY_CUPTI_MEMORY_CORRELATION, GY_CUPTI_MEMORY_NODE);
#endif
#define SAME(ours, member, theirs, field)                                                                              \
    _Static_assert(offsetof(ours, member) == offsetof(theirs, field), #theirs "." #field)
SAME(gy_cupti_record, kind, CUpti_Activity, kind);
SAME(gy_cupti_call_data, site, CUpti_CallbackData, callbackSite);
SAME(gy_cupti_call_data, function, CUpti_CallbackData, functionName);
SAME(gy_cupti_call_data, correlation, CUpti_CallbackData, correlationId);
SAME(gy_cupti_resource_data, graph, CUpti_ResourceData, resourceDescriptor);
SAME(gy_cupti_graph_data, graph, CUpti_GraphData, graph);
SAME(gy_cupti_graph_data, node, CUpti_GraphData, node);
SAME(gy_cupti_graph_data, original, CUpti_GraphData, originalNode);
SAME(gy_cupti_graph_data, type, CUpti_GraphData, nodeType);
#define VALUE(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #theirs)
VALUE(GY_CUPTI_TAKEN, CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
VALUE(GY_CUPTI_MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY);
VALUE(GY_CUPTI_MEMSET, CUPTI_ACTIVITY_KIND_MEMSET);
VALUE(GY_CUPTI_KERNEL, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
VALUE(GY_CUPTI_PEER, CUPTI_ACTIVITY_KIND_MEMCPY2);
VALUE(GY_CUPTI_DRIVER, CUPTI_CB_DOMAIN_DRIVER_API);
VALUE(GY_CUPTI_RESOURCE, CUPTI_CB_DOMAIN_RESOURCE);
VALUE(GY_CUPTI_CREATED, CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED);
VALUE(GY_CUPTI_CLONED, CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED);

/* ---- kernels that take their time and look at the clock ---- */

enum { STEPS = 4, MARGIN_US = 15000 }; /* margin: what another program may take between two looks at a clock */

typedef struct step {
    int ms, kernels, at; /* at: index in `stamps` */
} step;
typedef struct stamp {
    double begin_us, end_us; /* of its last run */
} stamp;
static stamp stamps[STEPS + 1];
static step steps_of_chain[STEPS] = { { 2, 1, 0 }, { 1, 3, 1 }, { 6, 1, 2 }, { 1, 1, 3 } };
static step cpu_step = { 3, 1, STEPS };

static double now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

/* `first`: of the kernels of an op. */
static void work(const step *s, bool first)
{
    double began = now_us();
    nanosleep(&(struct timespec){ .tv_nsec = s->ms * 1000000L }, NULL);
    stamps[s->at].begin_us = first ? began : stamps[s->at].begin_us;
    stamps[s->at].end_us = now_us();
}

static void body(const fakeCudaLaunch *launch, void **params)
{
    const step *s;
    memcpy(&s, params[0], sizeof s);
    work(s, launch->grid[0] == 1);
}

/* The k-th kernel of an op has k + 1 blocks. */
static gantry_status on_gpu(const gantry_launch *l)
{
    static const size_t size = sizeof(step *);
    const step *s = l->user;
    void *params[] = { (void *)&s };
    CUfunction f = fakeCudaFunction("step", body, &size, 1);
    for (unsigned k = 0; k < (unsigned)s->kernels; k++)
        if (cuLaunchKernel(f, k + 1, 1, 1, 1, 1, 1, 0, l->stream, params, NULL))
            return GANTRY_E_DEVICE;
    return GANTRY_OK;
}

static gantry_status on_cpu(const gantry_launch *l)
{
    work(l->user, true);
    return GANTRY_OK;
}

/* ---- a run that records ---- */

typedef struct world {
    gantry_graph *g;
    gantry_machine *m;
    gantry_schedule *s;
    gantry_run *run;
} world;

static world open_world(gantry_graph *g, int gpus, const char *replay, int in_flight)
{
    world w = { .g = g, .m = gpu_machine(gpus, false) };
    gantry_run_options options = GANTRY_RUN_OPTIONS_INIT;
    gantry_schedule_options so = GANTRY_SCHEDULE_OPTIONS_INIT;
    so.replay = replay;
    so.policy = "round-robin";
    so.objective = in_flight > 1 ? "period" : NULL;
    so.in_flight = in_flight > 1 ? in_flight : 0;
    MUST(gantry_schedule_new(&w.s, g, w.m, &so, MUST_ERR));
    options.backend = "cuda";
    options.record_trace = 1;
    MUST(gantry_run_new(&w.run, w.s, &options, MUST_ERR));
    return w;
}

static void drop(world *w)
{
    gantry_run_free(w->run);
    gantry_schedule_free(w->s);
    gantry_machine_free(w->m);
    gantry_graph_free(w->g);
}

static void expect_nothing_left(void)
{
    char alive[160];
    ck_assert_msg(fakeCudaAlive(alive, sizeof alive) == 0, "left behind: %s", alive);
}

static void start(const world *w)
{
    uint64_t ticket = 0;
    MUST(gantry_run_start(w->run, &ticket, MUST_ERR));
    MUST(gantry_run_wait(w->run, ticket, MUST_ERR));
}

static json_t *trace_of(const world *w)
{
    char *text = NULL;
    size_t length = 0;
    MUST(gantry_run_trace(w->run, &text, &length, MUST_ERR));
    json_t *trace = json_loadb(text, length, 0, NULL);
    ck_assert_ptr_nonnull(trace);
    gantry_free(text);
    return trace;
}

/* The i-th op that was measured; NULL: past the last. */
static const json_t *measured(const json_t *trace, size_t i)
{
    size_t k;
    const json_t *event;
    json_array_foreach(json_object_get(trace, "traceEvents"), k, event)
    {
        bool op = strcmp(json_string_value(json_object_get(event, "ph")), "X") == 0;
        if (op && json_integer_value(json_object_get(event, "pid")) % 2 == 0 && i-- == 0)
            return event;
    }
    return NULL;
}

static double number_of(const json_t *event, const char *key)
{
    return json_number_value(json_object_get(event, key));
}

/* Ops that have a time, of all. */
static size_t count_times(const world *w, size_t *all)
{
    json_t *trace = trace_of(w);
    size_t timed = 0, i = 0;
    double last = -1;
    *all = 0;
    for (const json_t *event; (event = measured(trace, i)); i++) {
        double op = number_of(json_object_get(event, "args"), "op");
        if (op != last) { /* once for each of its lanes */
            timed += number_of(event, "dur") > 0;
            ++*all;
        }
        last = op;
    }
    json_decref(trace);
    return timed;
}

static void expect_all_times(const world *w)
{
    size_t all, timed = count_times(w, &all);
    ck_assert_msg(all && timed == all, "%zu of %zu ops have a time (%s)", timed, all, replay_of(w->run));
}

static gantry_buffer state_of(gantry_graph *g)
{
    const int64_t n = 64;
    gantry_buffer x = gantry_graph_buffer(g, "x", GANTRY_F32, 1, &n);
    gantry_buffer_init_value(g, x, 1);
    gantry_buffer_set_class(g, x, GANTRY_STATE);
    return x;
}

/* One op after the other on one buffer, the last one by the CPU. */
static gantry_graph *chain(void)
{
    static const char *const names[STEPS] = { "a", "b", "c", "d" };
    gantry_graph *g = gantry_graph_new("chain");
    gantry_buffer x = state_of(g);
    for (int i = 0; i < STEPS; i++) {
        gantry_node node = gantry_graph_launch(g, names[i], on_gpu, &steps_of_chain[i]);
        gantry_node_readwrite(g, node, gantry_all(x));
        gantry_node_on(g, node, i % 2 ? "gpu1" : "gpu0");
    }
    gantry_node node = gantry_graph_host(g, "e", on_cpu, &cpu_step);
    gantry_node_readwrite(g, node, gantry_all(x));
    return g;
}

static stamp op_time(const json_t *trace, const char *name)
{
    for (size_t i = 0;; i++) {
        const json_t *event = measured(trace, i);
        ck_assert_msg(event != NULL, "no op \"%s\"", name);
        if (strcmp(json_string_value(json_object_get(event, "name")), name) == 0) {
            double ts = number_of(event, "ts");
            return (stamp){ ts, ts + number_of(event, "dur") };
        }
    }
}

/* As the clocks of the kernels say, counted from the first. */
static void expect_chain(const world *w)
{
    static const char *const names[STEPS + 1] = { "a", "b", "c", "d", "e" };
    gantry_run_info info = GANTRY_RUN_INFO_INIT;
    json_t *trace = trace_of(w);
    stamp first = op_time(trace, "a"), last = { 0, 0 };
    for (int i = 0; i <= STEPS; i++) {
        stamp t = op_time(trace, names[i]), want = stamps[i];
        double begin = stamps[0].begin_us - first.begin_us;
        ck_assert_msg(t.begin_us + begin < want.begin_us + MARGIN_US && t.end_us + begin > want.end_us - MARGIN_US &&
                          t.end_us - t.begin_us > want.end_us - want.begin_us - 1 &&
                          t.end_us - t.begin_us < want.end_us - want.begin_us + MARGIN_US,
                      "%s: %.0f to %.0f us, and its clock says %.0f to %.0f", names[i], t.begin_us, t.end_us,
                      want.begin_us - begin, want.end_us - begin);
        ck_assert_double_ge(t.begin_us, last.end_us - 1);
        last = t;
    }
    MUST(gantry_run_get_info(w->run, &info, MUST_ERR));
    ck_assert_double_ge(first.begin_us, 0);
    ck_assert_double_le(last.end_us, info.last_us + 1);
    json_decref(trace);
}

START_TEST(times_are_those_of_the_work)
{
    fakeCudaDevices(2, "all", 0);
    setenv("FAKE_CUPTI", _i / 2 ? "late=4,on" : "on", 1);
    for (int seed = 1; seed <= 3; seed++) {
        fakeCudaSeed((uint64_t)seed);
        world w = open_world(chain(), 2, replays[_i % 2], 1);
        for (int i = 0; i < 3; i++) {
            int events = fakeCudaCalls("cuEventRecord");
            start(&w);
            ck_assert_str_eq(replay_of(w.run), _i % 2 ? "graph; times by CUPTI" : "stream; times by CUPTI");
            expect_chain(&w);
            expect_all_times(&w);
            events = fakeCudaCalls("cuEventRecord") - events;
            ck_assert_msg(i == 0 || events < (_i % 2 ? 8 : 40), "%d events", events);
        }
        drop(&w);
        expect_nothing_left();
    }
}
END_TEST

/* Copies of all kinds, memsets, loops, phases, collectives, CPU ops. */
START_TEST(all_graphs)
{
    static const char *const peers[] = { "all", "none" };
    fakeCudaDevices(3, peers[_i / 2], 0);
    setenv("FAKE_CUPTI", "on", 1);
    for (const graph_case *c = graph_cases; c->file; c++) {
        world w = open_world(load_graph(c), 3, replays[_i % 2], 1);
        for (int i = 0; i < 2; i++) {
            start(&w);
            ck_assert_msg(strncmp(replay_of(w.run), replays[_i % 2], 5) == 0 && strstr(replay_of(w.run), "by CUPTI"),
                          "%s: %s", c->file, replay_of(w.run));
            expect_all_times(&w);
        }
        drop(&w);
        expect_nothing_left();
    }
}
END_TEST

/* CUPTI tells nothing of the body of a conditional node, so that starts are not captured. */
START_TEST(nodes_by_a_flag)
{
    static const char *const asked[] = { "graph", "auto" };
    fakeCudaDevices(1, "all", 0);
    setenv("FAKE_CUPTI", "on", 1);
    gantry_graph *g = gantry_graph_new("flag");
    const int64_t one = 1;
    gantry_buffer x = state_of(g), flag = gantry_graph_buffer(g, "flag", GANTRY_I32, 1, &one);
    gantry_buffer_init_value(g, flag, 1);
    gantry_node node = gantry_graph_fill(g, "f", gantry_all(x), 2);
    gantry_node_on(g, node, "gpu0");
    gantry_node_when(g, node, gantry_all(flag));
    world w = open_world(g, 1, asked[_i], 1);
    for (int i = 0; i < 8; i++) {
        start(&w);
        ck_assert_ptr_nonnull(
            strstr(replay_of(w.run), "stream (in graphs nodes with a `when` have no times); times by"));
    }
    drop(&w);
    expect_nothing_left();
}
END_TEST

/* Replay "auto" decides as it does where nothing is recorded. */
START_TEST(automatic)
{
    fakeCudaDevices(1, "all", 0);
    setenv("FAKE_CUPTI", "on", 1);
    world w = open_world(load_graph(&graph_cases[0]), 1, "auto", 1);
    for (int i = 0; i < 6; i++) {
        start(&w);
        ck_assert_str_eq(replay_of(w.run), i < 3 ? "stream; times by CUPTI" : "graph (auto); times by CUPTI");
        expect_all_times(&w);
    }
    drop(&w);
}
END_TEST

/* ---- what else goes on ---- */

static void long_body(const fakeCudaLaunch *launch, void **params)
{
    (void)launch;
    (void)params;
    nanosleep(&(struct timespec){ .tv_nsec = 60000000L }, NULL);
}

/* Work of the program, on a stream of its own and in a graph of its own, before a start and with it. */
START_TEST(work_of_others)
{
    CUcontext context;
    CUstream stream;
    CUgraph graph;
    CUgraphExec exec;
    fakeCudaDevices(2, "all", 0);
    setenv("FAKE_CUPTI", "on", 1);
    world w = open_world(chain(), 2, replays[_i], 1);
    ck_assert_int_eq(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    cuCtxSetCurrent(context);
    ck_assert_int_eq(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    CUfunction f = fakeCudaFunction("long", long_body, NULL, 0);
    cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL);
    ck_assert_int_eq(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
    ck_assert_int_eq(cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_SUCCESS);
    for (int i = 0; i < 3; i++) {
        uint64_t ticket = 0;
        ck_assert_int_eq(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL), CUDA_SUCCESS);
        MUST(gantry_run_start(w.run, &ticket, MUST_ERR));
        ck_assert_int_eq(cuGraphLaunch(exec, stream), CUDA_SUCCESS);
        MUST(gantry_run_wait(w.run, ticket, MUST_ERR));
        cuStreamSynchronize(stream);
        json_t *trace = trace_of(&w);
        for (size_t k = 0; measured(trace, k); k++) {
            bool several = strcmp(json_string_value(json_object_get(measured(trace, k), "name")), "b") == 0;
            ck_assert(several || number_of(measured(trace, k), "dur") < 60000); /* else the other may be in between */
        }
        json_decref(trace);
        expect_all_times(&w);
    }
    cuGraphExecDestroy(exec);
    cuGraphDestroy(graph);
    cuStreamDestroy(stream);
    cuCtxSetCurrent(NULL);
    cuDevicePrimaryCtxRelease(0);
    drop(&w);
    expect_nothing_left();
}
END_TEST

/* Both in flight at once: each has its own times. */
START_TEST(two_runs)
{
    uint64_t ticket[2];
    fakeCudaDevices(2, "all", 0);
    setenv("FAKE_CUPTI", "late=2,on", 1);
    world w[2] = { open_world(chain(), 2, replays[_i], 1), open_world(load_graph(&graph_cases[6]), 2, "graph", 1) };
    start(&w[0]);
    start(&w[1]);
    for (int i = 0; i < 4; i++) {
        MUST(gantry_run_start(w[i % 2].run, &ticket[i % 2], MUST_ERR));
        MUST(gantry_run_start(w[1 - i % 2].run, &ticket[1 - i % 2], MUST_ERR));
        MUST(gantry_run_wait(w[0].run, ticket[0], MUST_ERR));
        MUST(gantry_run_wait(w[1].run, ticket[1], MUST_ERR));
        expect_all_times(&w[0]);
        expect_all_times(&w[1]);
        double before = stamps[0].begin_us;
        ck_assert_double_gt(before, 0);
        expect_chain(&w[0]);
    }
    drop(&w[0]); /* the other goes on to hear */
    start(&w[1]);
    expect_all_times(&w[1]);
    drop(&w[1]);
    expect_nothing_left();
}
END_TEST

static void *run_often(void *data)
{
    const world *w = data;
    for (int i = 0; i < 10; i++) {
        start(w);
        expect_all_times(w);
    }
    return NULL;
}

START_TEST(two_threads)
{
    pthread_t thread[2];
    fakeCudaDevices(2, "all", 0);
    setenv("FAKE_CUPTI", "on", 1);
    world w[2] = { open_world(load_graph(&graph_cases[6]), 2, "stream", 1),
                   open_world(load_graph(&graph_cases[8]), 2, "graph", 1) };
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(pthread_create(&thread[i], NULL, run_often, &w[i]), 0);
    for (int i = 0; i < 2; i++) {
        pthread_join(thread[i], NULL);
        drop(&w[i]);
    }
    expect_nothing_left();
}
END_TEST

typedef struct elsewhere {
    const gantry_launch *launch;
    CUcontext context;
    gantry_status status;
} elsewhere;

static void *launch_elsewhere(void *data)
{
    elsewhere *e = data;
    cuCtxSetCurrent(e->context);
    e->status = on_gpu(e->launch);
    cuCtxSetCurrent(NULL);
    return NULL;
}

/* As libraries do it. */
static gantry_status by_a_thread(const gantry_launch *l)
{
    pthread_t thread;
    elsewhere e = { .launch = l };
    cuCtxGetCurrent(&e.context);
    if (pthread_create(&thread, NULL, launch_elsewhere, &e))
        return GANTRY_E_NOMEM;
    pthread_join(thread, NULL);
    return e.status;
}

/* A node belongs to the graph that is captured; of work in a stream it is not known whose it is, and events say how
 * long it took. */
START_TEST(threads_of_the_program)
{
    fakeCudaDevices(1, "all", 0);
    setenv("FAKE_CUPTI", "on", 1);
    gantry_graph *g = gantry_graph_new("threads");
    gantry_buffer x = state_of(g);
    for (int i = 0; i < 3; i++) {
        static const char *const names[] = { "a", "b", "c" };
        gantry_node node = gantry_graph_launch(g, names[i], i == 1 ? by_a_thread : on_gpu, &steps_of_chain[i]);
        gantry_node_readwrite(g, node, gantry_all(x));
        gantry_node_on(g, node, "gpu0");
    }
    world w = open_world(g, 1, replays[_i], 1);
    for (int i = 0; i < 2; i++) {
        start(&w);
        json_t *trace = trace_of(&w);
        stamp b = op_time(trace, "b"), c = op_time(trace, "c");
        double want = stamps[1].end_us - stamps[1].begin_us;
        ck_assert_double_ge(b.end_us - b.begin_us, want - 1);
        ck_assert_double_le(b.end_us - b.begin_us, want + MARGIN_US);
        ck_assert_double_ge(c.end_us - c.begin_us, stamps[2].end_us - stamps[2].begin_us);
        json_decref(trace);
    }
    drop(&w);
}
END_TEST

/* ---- what goes wrong ---- */

/* Faults of CUPTI, and the report after the first start; the next start has times of all ops. */
static const struct absence {
    const char *cupti, *version, *library, *replay, *then;
    bool none; /* the first start has no times of its launches */
} absences[] = {
    { NULL, NULL, NULL, "graph", "stream; times by events, CUPTI cannot be used", false },
    { "on,taken", NULL, NULL, "graph", "stream; times by events, another tool uses CUPTI", false },
    { "on,old", NULL, NULL, "graph", "stream; times by events, CUPTI is too old", false },
    { "on", NULL, "/cupti", "graph", "stream; times by events, CUPTI is too old", false },
    { "on", "11040", NULL, "graph", "stream; times by events, CUPTI was not found", false },
    { "on,refuse", NULL, NULL, "graph", "stream; times by events, CUPTI cannot be used", false },
    { "on,refuse", NULL, NULL, "auto", "stream; times by events, CUPTI cannot be used", false },
    { "on,silent", NULL, NULL, "stream", "stream; times by events, CUPTI told nothing of a start", true },
    { "on,silent", NULL, NULL, "graph", "stream; times by events, CUPTI told nothing of a graph", true },
    { "on,blind", NULL, NULL, "graph", "stream; times by events, CUPTI named no node of a graph", true },
    { "on,blind", NULL, NULL, "stream", "stream; times by CUPTI", false },
};
enum { ABSENCES = sizeof absences / sizeof *absences };

START_TEST(without_cupti)
{
    const struct absence *a = &absences[_i];
    size_t all;
    fakeCudaDevices(2, "all", 0);
    unsetenv("FAKE_CUPTI");
    if (a->cupti)
        setenv("FAKE_CUPTI", a->cupti, 1);
    if (a->version)
        setenv("FAKE_CUDA_VERSION", a->version, 1);
    if (a->library) {
        char folder[512];
        snprintf(folder, sizeof folder, "%s%s", GANTRY_ABSENT, a->library);
        setenv("GANTRY_CUDA_LIBRARIES", folder, 1);
    }
    world w = open_world(load_graph(&graph_cases[6]), 2, a->replay, 1);
    start(&w);
    ck_assert_str_eq(replay_of(w.run), a->then);
    if (a->none)
        ck_assert_uint_lt(count_times(&w, &all), 30); /* those of host functions */
    else
        expect_all_times(&w);
    start(&w);
    ck_assert_str_eq(replay_of(w.run), a->then);
    expect_all_times(&w);
    drop(&w);
    expect_nothing_left();
}
END_TEST

START_TEST(starts_that_overlap)
{
    uint64_t ticket[2];
    fakeCudaDevices(2, "all", 0);
    setenv("FAKE_CUPTI", "on", 1);
    world w = open_world(load_graph(&graph_cases[0]), 2, "stream", 2);
    MUST(gantry_run_start(w.run, &ticket[0], MUST_ERR));
    MUST(gantry_run_start(w.run, &ticket[1], MUST_ERR));
    MUST(gantry_run_wait(w.run, ticket[0], MUST_ERR));
    MUST(gantry_run_wait(w.run, ticket[1], MUST_ERR));
    ck_assert_str_eq(replay_of(w.run), "stream; times by events, starts overlap");
    expect_all_times(&w);
    drop(&w);
}
END_TEST

/* An op has a time if all that it consists of has; how many have none is said. */
START_TEST(lost_records)
{
    static const char *const how[] = { "lose=4,on", "blank=4,on", "back=4,on" };
    char want[80];
    size_t all = 0, timed = 0;
    fakeCudaDevices(2, "all", 0);
    setenv("FAKE_CUPTI", how[_i / 2], 1);
    world w = open_world(load_graph(&graph_cases[6]), 2, replays[_i % 2], 1);
    start(&w);
    timed = count_times(&w, &all);
    ck_assert_msg(timed > all / 2 && timed < all, "%zu of %zu", timed, all);
    snprintf(want, sizeof want, "%s; times by CUPTI, none of %zu ops", replays[_i % 2], all - timed);
    ck_assert_str_eq(replay_of(w.run), want);
    setenv("FAKE_CUPTI", "on", 1);
    start(&w);
    expect_all_times(&w);
    ck_assert_ptr_null(strstr(replay_of(w.run), "none"));
    drop(&w);
}
END_TEST

/* Of three kernels of an op one is lost: less than its whole time is no time. */
START_TEST(half_an_op)
{
    fakeCudaDevices(2, "all", 0);
    setenv("FAKE_CUPTI", "on", 1);
    world w = open_world(chain(), 2, replays[_i], 1);
    for (int lost = 2; lost < 6; lost++) {
        char how[24];
        snprintf(how, sizeof how, "on,lose=%d", lost);
        setenv("FAKE_CUPTI", how, 1);
        start(&w);
        json_t *trace = trace_of(&w);
        stamp b = op_time(trace, "b");
        ck_assert(b.end_us - b.begin_us <= 0 || b.end_us - b.begin_us >= stamps[1].end_us - stamps[1].begin_us);
        json_decref(trace);
    }
    drop(&w);
}
END_TEST

/* Records that come only when they are forced to. */
START_TEST(forced)
{
    fakeCudaDevices(2, "all", 0);
    setenv("FAKE_CUPTI", "on,late=1000000", 1);
    world w = open_world(chain(), 2, replays[_i], 1);
    for (int i = 0; i < 2; i++) {
        start(&w);
        expect_chain(&w);
    }
    drop(&w);
}
END_TEST

/* Bindings change: a graph is captured anew, and its nodes are others. */
START_TEST(captured_anew)
{
    float x[2][1003];
    fakeCudaDevices(1, "all", 0);
    setenv("FAKE_CUPTI", "on", 1);
    world w = open_world(load_graph(&graph_cases[0]), 1, "graph", 1);
    for (int i = 0; i < 6; i++) {
        memset(x[i % 2], 0, sizeof x[0]);
        MUST(gantry_run_bind(w.run, gantry_graph_find_buffer(w.g, "x"), x[i % 2], sizeof x[0], MUST_ERR));
        start(&w);
        ck_assert_str_eq(replay_of(w.run), "graph; times by CUPTI");
        expect_all_times(&w);
    }
    drop(&w);
}
END_TEST

/* The fault is the driver's; what was to be heard is given back. */
START_TEST(a_start_fails)
{
    gantry_error err = { 0 };
    uint64_t ticket = 0;
    fakeCudaDevices(1, "all", 0);
    setenv("FAKE_CUPTI", "on", 1);
    world w = open_world(load_graph(&graph_cases[0]), 1, replays[_i], 1);
    start(&w);
    fakeCudaFail(_i ? "cuGraphLaunch:1:1" : "cuLaunchKernel:1:1");
    ck_assert_int_ne(gantry_run_start(w.run, &ticket, &err), GANTRY_OK);
    fakeCudaFail(NULL);
    start(&w);
    expect_all_times(&w);
    drop(&w);
    expect_nothing_left();
}
END_TEST

/* ---- the table, against a list ---- */

START_TEST(tables)
{
    enum { MOST = 500 };
    uint64_t id[MOST], random = 7;
    uint32_t op[MOST];
    size_t count = 0;
    gy_cupti_table t = { 0 };
    for (int round = 0; round < 4000; round++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        uint64_t key = (random >> 33 & 1023) + 1;
        size_t k = 0;
        while (k < count && id[k] != key)
            k++;
        const gy_cupti_piece *found = gy_cupti_table_find(&t, key);
        ck_assert_msg(k < count ? found && found->op == op[k] : !found, "id %d", (int)key);
        if (k == count && count < MOST) {
            size_t like = count ? (size_t)(random >> 50) % count : 0;
            bool alias = count && random >> 20 & 1;
            op[count] = alias ? op[like] : (uint32_t)round;
            if (alias)
                gy_cupti_table_alias(&t, key, id[like]);
            else
                ck_assert(gy_cupti_table_add(&t, key, (uint32_t)round));
            id[count++] = key;
        }
    }
    gy_cupti_table_alias(&t, 5000, 6000); /* nothing is like that */
    ck_assert_ptr_null(gy_cupti_table_find(&t, 5000));
    gy_cupti_table_clear(&t);
    ck_assert_ptr_null(gy_cupti_table_find(&t, id[0]));
    gy_cupti_table_free(&t);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cupti");
    TCase *tests = tcase_create("all");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, times_are_those_of_the_work, 0, 4);
    tcase_add_loop_test(tests, all_graphs, 0, 4);
    tcase_add_loop_test(tests, nodes_by_a_flag, 0, 2);
    tcase_add_test(tests, automatic);
    tcase_add_loop_test(tests, work_of_others, 0, 2);
    tcase_add_loop_test(tests, two_runs, 0, 2);
    tcase_add_test(tests, two_threads);
    tcase_add_loop_test(tests, threads_of_the_program, 0, 2);
    tcase_add_loop_test(tests, without_cupti, 0, ABSENCES);
    tcase_add_test(tests, starts_that_overlap);
    tcase_add_loop_test(tests, lost_records, 0, 6);
    tcase_add_loop_test(tests, half_an_op, 0, 2);
    tcase_add_loop_test(tests, forced, 0, 2);
    tcase_add_test(tests, captured_anew);
    tcase_add_loop_test(tests, a_start_fails, 0, 2);
    tcase_add_test(tests, tables);
    suite_add_tcase(suite, tests);
    setenv("CK_FORK", "yes", 1); /* environments of their own */
    return run_suite(suite);
}
