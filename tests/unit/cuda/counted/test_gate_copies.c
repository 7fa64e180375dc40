/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs of GPUs whose small copies set words by themselves, and wait for some, beside gates that nodes tell: starts
 * that fail, and random graphs of small and large copies in random orders.
 */
#include "control.h"
#include "gated.h"
#include "schedule/schedule.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const graph_case blocks = { "jacobi_blocks", { "n=41", "a=2", "b=3", "steps=4" }, 0 };
static const graph_case rows = { "jacobi", { "n=37", "steps=9" }, 0 };

/* Starts that fail below: without copies that tell, with some, and with copies that are gates as well. */
enum { WAYS = 3 };
static const struct way {
    const graph_case *graph;
    int gpus, copies;   /* copies: as copies_by has it */
    const char *spared; /* so many words, in any order, and some gate has all of its own */
} ways[WAYS] = { { &blocks, 4, 0, "24" }, { &blocks, 4, 1, "24" }, { &rows, 2, 1, "12" } };

typedef struct counts {
    int telling, set; /* copies that tell and do not wait; that were made to wait, too */
} counts;

static counts count(void)
{
    return (counts){ fakeCudaTelling(), fakeCudaCalls("cuGraphNodeSetParams") };
}

static void check_way(int way, counts before)
{
    counts now = count();
    ck_assert_msg((now.telling > before.telling) == (ways[way].copies == 1), "%d copies tell",
                  now.telling - before.telling);
    ck_assert_msg(way < 2 || now.set > before.set, "no copy waits");
}

/* ---- starts that fail ---- */

/* Some GPUs have been given their graphs, whose gates wait for one that is refused: they are let go, and the next
 * starts are well. */
START_TEST(half_a_start)
{
    const struct way *way = &ways[_i];
    problem p = pose(way->graph, way->gpus);
    copies_by(way->copies);
    counts before = count();
    gantry_run *run = open_run(p.schedule, "cuda");
    for (int n = 0; n < way->gpus; n++) {
        char spec[80];
        gantry_error err = { 0 };
        fakeCudaSeed((uint64_t)n + 1);
        results got = run_results(run, p.graph);
        ck_assert(has_gates(run) && same(&got, &p.want[0]));
        snprintf(spec, sizeof spec, "cuGraphLaunch:%d:%d", 1 + n, CUDA_ERROR_INVALID_VALUE);
        fakeCudaFail(spec);
        ck_assert_int_eq(start(run, &err), GANTRY_E_DEVICE);
        ck_assert_msg(strstr(err.text, "launching the graph of a GPU on device"), "%s", err.text);
        fakeCudaFail(NULL);
        ck_assert_msg(as_wanted(&p, run), "other results behind a start that failed at GPU %d", n);
    }
    check_way(_i, before);
    gantry_run_free(run);
    copies_by(0);
    put_away(&p);
}
END_TEST

/* The n-th call fails, while a run is opened or while it starts: nothing is left behind. A capture that the driver
 * refuses is made for all GPUs in one. */
enum { CALLS = 12 };
static const char *const calls[CALLS] = {
    "cuMemAlloc",     "cuStreamCreate",         "cuEventCreate",
    "cuLaunchKernel", "cuStreamBeginCapture",   "cuStreamUpdateCaptureDependencies",
    "cuEventRecord",  "cuStreamWaitEvent",      "cuGraphInstantiateWithFlags",
    "cuGraphAddNode", "cuStreamGetCaptureInfo", "cuGraphNodeSetParams",
};

START_TEST(failing_calls)
{
    problem p = pose(&blocks, 3);
    int failed = 0, left = 0;
    for (int n = 1; n <= 24; n++) {
        char spec[120];
        gantry_error err = { 0 };
        gantry_run *run = NULL;
        gantry_run_options options = GANTRY_RUN_OPTIONS_INIT;
        options.backend = "cuda";
        copies_by(_i == CALLS - 1 ? 1 : n); /* the last call is made for copies that wait */
        snprintf(spec, sizeof spec, "%s:%d:%d,%s:%d:%d", calls[_i], n, CUDA_ERROR_INVALID_VALUE, calls[_i], n + 1,
                 CUDA_ERROR_INVALID_VALUE); /* a second time, when it is tried without launches that come early */
        fakeCudaFail(spec);
        gantry_status status = gantry_run_new(&run, p.schedule, &options, &err);
        status = status ? status : start(run, &err);
        fakeCudaFail(NULL);
        failed += status != GANTRY_OK;
        if (run) {
            results got = run_results(run, p.graph);
            ck_assert_msg(same(&got, &p.want[0]), "%s: other results behind that", spec);
            left += !has_gates(run);
        }
        gantry_run_free(run);
    }
    ck_assert_msg(failed || left, "%s never mattered", calls[_i]);
    copies_by(0);
    put_away(&p);
}
END_TEST

static uint32_t device_of(const gantry_schedule *s, uint32_t op)
{
    return s->lanes.at[s->op_lane.at[s->ops.at[op].lane]].device;
}

static bool crosses(const gantry_schedule *s, const gy_sync *row)
{
    return row->distance == 0 && device_of(s, row->from) != device_of(s, row->to);
}

/* The error says which op waits for one of another GPU, the first one that does if nobody sets a word, and for which.
 */
static void check_stuck(const gantry_schedule *s, bool some, const char *text)
{
    uint32_t first = (uint32_t)s->ops.count, op, from;
    for (size_t i = 0; i < s->sync.count; i++)
        if (crosses(s, &s->sync.at[i]) && s->sync.at[i].to < first)
            first = s->sync.at[i].to;
    const char *told = strstr(text, "; op "), *by = strstr(text, " waits for op ");
    ck_assert_msg(told && by && sscanf(told, "; op %u, ", &op) == 1 && sscanf(by, " waits for op %u, ", &from) == 1 &&
                      strstr(by, ": its word is 0, and 1 is awaited"),
                  "%s", text);
    ck_assert_msg(some ? op > first : op == first, "op %u waits first: %s", first, text);
    bool any = false;
    for (size_t i = 0; i < s->sync.count; i++)
        any = any || (crosses(s, &s->sync.at[i]) && s->sync.at[i].from == from &&
                      device_of(s, s->sync.at[i].to) == device_of(s, op));
    ck_assert_msg(any, "no op of that GPU waits for op %u: %s", from, text);
}

/* Nobody sets a word, or only some are set: the watchdog names op and word and lets gates go, the run is over, and
 * another one is well. */
START_TEST(nobody_comes)
{
    const struct way *way = &ways[_i % WAYS];
    problem p = pose(way->graph, way->gpus);
    gantry_run_options options = GANTRY_RUN_OPTIONS_INIT;
    gantry_error err = { 0 };
    gantry_run *run = NULL;
    bool some = _i >= WAYS;
    options.backend = "cuda";
    options.timeout_us = 300000;
    copies_by(way->copies);
    counts before = count();
    fakeCudaPatience(-1);
    MUST(gantry_run_new(&run, p.schedule, &options, MUST_ERR));
    if (some)
        setenv("FAKE_CUDA_SPARED", way->spared, 1);
    setenv("FAKE_CUDA_MISTAKE", "never", 1);
    ck_assert_int_eq(start(run, &err), GANTRY_E_TIMEOUT);
    unsetenv("FAKE_CUDA_MISTAKE");
    unsetenv("FAKE_CUDA_SPARED");
    check_stuck(p.schedule, some, err.text);
    check_way(_i % WAYS, before);
    ck_assert_int_eq(start(run, &err), GANTRY_E_TIMEOUT);
    ck_assert_msg(strstr(err.text, "the run is over since an earlier failure"), "%s", err.text);
    gantry_run_free(run);
    run = open_run(p.schedule, "cuda");
    ck_assert(as_wanted(&p, run) && has_gates(run));
    gantry_run_free(run);
    copies_by(0);
    put_away(&p);
}
END_TEST

/* ---- rows without copies ---- */

/* GPUs that copy nothing and wait for each other all the same, as nodes say: two, or two that are four devices, of
 * which those that wait are not the first of their GPU. */
START_TEST(nothing_copied)
{
    static const array arrays[] = {
        { "x", 40, IOTA },   { "u", 40, IOTA },   { "y", 40, OUTPUT }, { "v", 40, OUTPUT },
        { "p", 40, OUTPUT }, { "q", 40, OUTPUT }, { NULL, 0, NULL },
    };
    int a = _i ? 2 : 0, b = a + 1;
    const step steps[] = { { "a", "saxpy", "x", "y", a, 1, "" },      { "b", "saxpy", "u", "v", b, 1, "\"a\"" },
                           { "c", "saxpy", "x", "y", a, 1, "\"b\"" }, { "d", "saxpy", "x", "p", 0, 1, "" },
                           { "e", "saxpy", "u", "q", 1, 1, "" },      { NULL, NULL, NULL, NULL, 0, 0, NULL } };
    fakeCudaDevices(2, "all", 0);
    gantry_graph *g = graph_of(arrays, steps);
    gantry_machine *m = _i ? shared_machine(4, 2) : gpu_machine(2, false);
    gantry_schedule *s = make_schedule(g, m, "graph", NULL);
    setenv("GANTRY_CUDA_GRAPHS", "gpu", 1);
    int gates = fakeCudaWaiting();
    compare_with_host(g, s, 4);
    ck_assert_int_ge(fakeCudaWaiting() - gates, 2 * 4);
    gantry_schedule_free(s);
    gantry_machine_free(m);
    gantry_graph_free(g);
}
END_TEST

/* ---- random graphs ---- */

static uint64_t state;
static unsigned draw(unsigned below)
{
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (unsigned)((state * UINT64_C(0x2545F4914F6CDD1D) >> 33) % below);
}

/* Of 32 KiB are the largest that tell by themselves, up to 100,000 bytes those of kernels, the others are engines'. */
enum { GRAPHS = 4, SIZES = 5, OF_EACH = 3, ARRAYS = SIZES * OF_EACH, STEPS_MOST = 40 };
static const int sizes[SIZES] = { 1, 40, 8192, 8193, 26000 };

typedef struct drawn {
    array arrays[ARRAYS + 1];
    step steps[STEPS_MOST + 1];
    char names[ARRAYS][8], ids[STEPS_MOST][8], after[STEPS_MOST][16];
} drawn;

/* Arrays change on GPUs that are drawn, so rows go from one to the next, each at its own time. */
static gantry_graph *draw_graph(drawn *d, uint64_t seed, int gpus)
{
    static const double us[] = { 0.5, 1, 5, 20 };
    state = seed * UINT64_C(0x9E3779B97F4A7C15) + 1;
    int steps = 15 + (int)draw(STEPS_MOST - 15);
    *d = (drawn){ .arrays = { { NULL, 0, NULL } } };
    for (int i = 0; i < ARRAYS; i++) {
        snprintf(d->names[i], sizeof d->names[i], "a%d", i);
        d->arrays[i] = (array){ d->names[i], sizes[i / OF_EACH], OUTPUT };
    }
    for (int i = 0; i < steps; i++) {
        int size = (int)draw(4) ? (int)draw(2) : (int)draw(SIZES), x = (int)draw(OF_EACH);
        int y = (x + 1 + (int)draw(OF_EACH - 1)) % OF_EACH;
        snprintf(d->ids[i], sizeof d->ids[i], "s%d", i);
        if (i > 0 && draw(4) == 0)
            snprintf(d->after[i], sizeof d->after[i], "\"s%u\"", draw((unsigned)i));
        d->steps[i] = (step){ d->ids[i],
                              draw(2) ? "scale" : "saxpy",
                              d->names[size * OF_EACH + x],
                              d->names[size * OF_EACH + y],
                              (int)draw((unsigned)gpus),
                              us[draw(4)],
                              d->after[i] };
    }
    return graph_of(d->arrays, d->steps);
}

/* No kernel begins beside one that waits, for every second one, and stores are seen late. */
START_TEST(random_graphs)
{
    static drawn d;
    int gpus = 2 + _i % 3;
    counts before = count();
    setenv("FAKE_CUDA_WEAK", "1", 1);
    setenv("FAKE_CUDA_HOLD", _i % 2 ? "1" : "0", 1);
    fakeCudaDevices(gpus, "all", 0);
    for (uint64_t seed = 1; seed <= GRAPHS; seed++) {
        gantry_graph *g = draw_graph(&d, 100 * (uint64_t)_i + seed, gpus);
        problem p = pose_graph(g, gpus, seed % 3 ? NULL : "round-robin");
        copies_by(1);
        compare_with_host(g, p.schedule, 2);
        copies_by(0);
        put_away(&p);
    }
    counts now = count();
    printf("%d GPUs: %d copies tell, %d of them wait, too\n", gpus, now.telling - before.telling, now.set - before.set);
    ck_assert_int_gt(now.telling - before.telling, 4 * GRAPHS);
    ck_assert_int_gt(now.set, before.set);
    unsetenv("FAKE_CUDA_WEAK");
    unsetenv("FAKE_CUDA_HOLD");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("copies that tell");
    TCase *tests = tcase_create("all");
    tcase_set_timeout(tests, 240);
    tcase_add_loop_test(tests, half_a_start, 0, WAYS);
    tcase_add_loop_test(tests, failing_calls, 0, CALLS);
    tcase_add_loop_test(tests, nothing_copied, 0, 2);
    tcase_add_loop_test(tests, random_graphs, 0, 6);
    suite_add_tcase(suite, tests);
    TCase *hung = tcase_create("hung");
    tcase_set_timeout(hung, 120);
    tcase_add_loop_test(hung, nobody_comes, 0, 2 * WAYS);
    suite_add_tcase(suite, hung);
    return run_suite(suite);
}
