/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One graph for each GPU (GANTRY_CUDA_GRAPHS), with the kernels of gantry-cuda.so on the CPU, in random orders, against
 * one graph for all, bit for bit.
 *
 *   test_cuda_gates            all of it
 *   test_cuda_gates mistake    gates make one (FAKE_CUDA_MISTAKE): some seed has to show it
 */
#include "../suite.h"
#include "control.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STARTS = 3 };

typedef struct problem {
    gantry_graph *graph;
    gantry_machine *machine;
    gantry_schedule *schedule;
    results want[STARTS]; /* by one graph for all GPUs, start after start */
} problem;

static bool has_gates(gantry_run *run)
{
    return strcmp(replay_of(run), "graph, one for each GPU") == 0;
}

static problem pose(const graph_case *c, int gpus)
{
    problem p = { .graph = load_graph(c) };
    fakeCudaDevices(gpus, "all", 0);
    p.machine = gpu_machine(gpus, false);
    p.schedule = make_schedule(p.graph, p.machine, "graph", "round-robin");
    unsetenv("GANTRY_CUDA_GRAPHS");
    gantry_run *run = open_run(p.schedule, "cuda");
    for (int i = 0; i < STARTS; i++)
        p.want[i] = run_results(run, p.graph);
    ck_assert(!has_gates(run));
    gantry_run_free(run);
    setenv("GANTRY_CUDA_GRAPHS", "gpu", 1);
    return p;
}

static void put_away(problem *p)
{
    char text[160];
    gantry_schedule_free(p->schedule);
    gantry_machine_free(p->machine);
    gantry_graph_free(p->graph);
    ck_assert_msg(fakeCudaAlive(text, sizeof text) == 0, "left behind: %s", text);
}

static bool as_wanted(const problem *p, gantry_run *run)
{
    bool well = true;
    for (int i = 0; i < STARTS; i++) {
        results got = run_results(run, p->graph);
        well = well && same(&got, &p->want[i]);
    }
    return well;
}

/* Wherever a graph is on several GPUs they wait by gates, and by no edge. */
static int try_case(const graph_case *c, int gpus, int seeds)
{
    problem p = pose(c, gpus);
    int with = 0;
    for (int seed = 1; seed <= seeds; seed++) {
        int edges = fakeCudaCalls("wait between devices"), gates = fakeCudaWaiting();
        fakeCudaSeed((uint64_t)seed);
        gantry_run *run = open_run(p.schedule, "cuda");
        ck_assert_msg(as_wanted(&p, run), "%s on %d GPUs, seed %d: other results", c->file, gpus, seed);
        ck_assert_int_eq(fakeCudaCalls("wait between devices"), edges);
        with += has_gates(run) && fakeCudaWaiting() > gates;
        gantry_run_free(run);
    }
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

static const graph_case blocks = { "jacobi_blocks", { "n=41", "a=2", "b=3", "steps=4" }, 0 };

static gantry_status start(gantry_run *run, gantry_error *err)
{
    uint64_t ticket = 0;
    gantry_status status = gantry_run_start(run, &ticket, err);
    return status ? status : gantry_run_wait(run, ticket, err);
}

/* Some GPUs have been given their graphs, whose gates wait for one that is refused: they are let go, and the next
 * starts are well. */
START_TEST(half_a_start)
{
    problem p = pose(&blocks, 4);
    gantry_run *run = open_run(p.schedule, "cuda");
    for (int n = 1; n <= 4; n++) {
        char spec[80];
        gantry_error err = { 0 };
        results got = run_results(run, p.graph);
        ck_assert(has_gates(run) && same(&got, &p.want[0]));
        snprintf(spec, sizeof spec, "cuGraphLaunch:%d:%d", n, CUDA_ERROR_INVALID_VALUE);
        fakeCudaFail(spec);
        ck_assert_int_eq(start(run, &err), GANTRY_E_DEVICE);
        ck_assert_msg(strstr(err.text, "launching the graph of a GPU on device"), "%s", err.text);
        fakeCudaFail(NULL);
        got = run_results(run, p.graph);
        ck_assert_msg(same(&got, &p.want[0]), "other results behind a start that failed at GPU %d", n);
    }
    gantry_run_free(run);
    put_away(&p);
}
END_TEST

/* The n-th call fails, while a run is opened or while it starts: nothing is left behind. A capture that the driver
 * refuses is made for all GPUs in one. */
START_TEST(failing_calls)
{
    static const char *const calls[] = {
        "cuMemAlloc",     "cuStreamCreate",       "cuEventCreate",
        "cuLaunchKernel", "cuStreamBeginCapture", "cuStreamUpdateCaptureDependencies",
        "cuEventRecord",  "cuStreamWaitEvent",    "cuGraphInstantiateWithFlags",
    };
    problem p = pose(&blocks, 3);
    int failed = 0, left = 0;
    for (int n = 1; n <= 24; n++) {
        char spec[120];
        gantry_error err = { 0 };
        gantry_run *run = NULL;
        gantry_run_options options = GANTRY_RUN_OPTIONS_INIT;
        options.backend = "cuda";
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
    put_away(&p);
}
END_TEST

/* Nobody sets a word: the watchdog lets gates go, and the run is over. */
START_TEST(nobody_comes)
{
    problem p = pose(&blocks, 3);
    gantry_run_options options = GANTRY_RUN_OPTIONS_INIT;
    gantry_error err = { 0 };
    gantry_run *run = NULL;
    options.backend = "cuda";
    options.timeout_us = 300000;
    fakeCudaPatience(-1);
    MUST(gantry_run_new(&run, p.schedule, &options, MUST_ERR));
    setenv("FAKE_CUDA_MISTAKE", "never", 1);
    ck_assert_int_eq(start(run, &err), GANTRY_E_TIMEOUT);
    unsetenv("FAKE_CUDA_MISTAKE");
    ck_assert_int_eq(start(run, &err), GANTRY_E_TIMEOUT);
    ck_assert_msg(strstr(err.text, "the run is over since an earlier failure"), "%s", err.text);
    gantry_run_free(run);
    put_away(&p);
}
END_TEST

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

/* In a child, as a mistake may end the program. */
static bool shows(const graph_case *c, int gpus, uint64_t seed)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        const char *mistake = getenv("FAKE_CUDA_MISTAKE");
        char kept[16] = "";
        if (mistake)
            snprintf(kept, sizeof kept, "%s", mistake);
        unsetenv("FAKE_CUDA_MISTAKE");
        problem p = pose(c, gpus);
        setenv("FAKE_CUDA_MISTAKE", kept, 1);
        fakeCudaSeed(seed);
        gantry_run *run = open_run(p.schedule, "cuda");
        _exit(as_wanted(&p, run) ? 0 : 1);
    }
    ck_assert(child > 0 && waitpid(child, &status, 0) == child);
    return !WIFEXITED(status) || WEXITSTATUS(status);
}

START_TEST(mistake)
{
    int shown = 0;
    for (int seed = 1; seed <= 30 && !shown; seed++)
        shown = shows(&blocks, 2 + seed % 3, (uint64_t)seed) ? seed : 0;
    ck_assert_msg(shown, "no seed shows it");
    printf("seed %d shows it\n", shown);
}
END_TEST

int main(int count, char **word)
{
    Suite *suite = suite_create("gates");
    TCase *tests = tcase_create("all");
    tcase_set_timeout(tests, 240);
    if (count > 1 && strcmp(word[1], "mistake") == 0) {
        tcase_add_test(tests, mistake);
    } else {
        tcase_add_test(tests, gallery);
        tcase_add_test(tests, neighbours);
        tcase_add_loop_test(tests, nothing_beside_gates, 0, 2);
        tcase_add_test(tests, half_a_start);
        tcase_add_loop_test(tests, failing_calls, 0, 9);
        tcase_add_test(tests, nobody_comes);
        tcase_add_test(tests, no_gates);
    }
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
