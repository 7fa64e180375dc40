/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trials of replay "auto" on emulated GPUs: starts of one run as streams, as a graph and by resident kernels, in turn.
 * Time is what the test says that launches take, so that it decides which way is faster. Whatever is kept, and when,
 * results are those of the host, bit for bit.
 */
#include "control.h"
#include "rings.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { LENGTH = 32 };

/* ---- the clock ---- */

static int graph_ms = 10, kernel_ms = 3, resident_ms = 1; /* that a launch takes */
static atomic_llong now_ms = 1000;

/* The driver asks with its lock held. */
static bool is_driver(const void *caller)
{
    Dl_info of;
    return dladdr(caller, &of) && strstr(of.dli_fname, "libcuda.so");
}

#pragma GCC visibility push(default) /* the program's own is taken before that of the library */
int clock_gettime(clockid_t clock, struct timespec *to)
{
    (void)clock;
    if (!is_driver(__builtin_return_address(0)))
        now_ms = 1000 + (long long)graph_ms * fakeCudaCalls("cuGraphLaunch") +
                 (long long)kernel_ms * (fakeCudaCalls("cuLaunchKernel") + fakeCudaCalls("cuLaunchKernelEx")) +
                 (long long)resident_ms * fakeCudaCalls("cuLaunchCooperativeKernel");
    const long long ms = now_ms;
    *to = (struct timespec){ .tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000 * 1000000) };
    return 0;
}
#pragma GCC visibility pop

/* ---- runs ---- */

typedef struct world {
    gantry_graph *g;
    gantry_machine *m;
    gantry_schedule *s;
    gantry_run *host, *run;
} world;

static world make(gantry_graph *g, gantry_machine *m)
{
    world w = { .g = g, .m = m };
    gantry_schedule_options options = GANTRY_SCHEDULE_OPTIONS_INIT;
    options.unroll = 1;
    options.effort = 0;
    MUST(gantry_schedule_new(&w.s, w.g, w.m, &options, MUST_ERR));
    w.host = open_run(w.s, "host");
    w.run = open_run(w.s, "cuda");
    return w;
}

static world ring(int gpus, const char *peer, uint64_t seed)
{
    fakeCudaDevices(gpus, peer, 0);
    fakeCudaSeed(seed);
    return make(ring_of(gpus, gpus * (1 + (int)seed % 2), 2, LENGTH, true), ring_machine(gpus, 1 + (int)seed / 2 % 2));
}

static void drop(world *w)
{
    char text[160];
    gantry_run_free(w->host);
    gantry_run_free(w->run);
    gantry_schedule_free(w->s);
    gantry_machine_free(w->m);
    gantry_graph_free(w->g);
    ck_assert_msg(fakeCudaAlive(text, sizeof text) == 0, "left behind: %s", text);
}

static gantry_run_info info_of(gantry_run *run)
{
    gantry_run_info info = GANTRY_RUN_INFO_INIT;
    MUST(gantry_run_get_info(run, &info, MUST_ERR));
    return info;
}

static int residents(void)
{
    return fakeCudaCalls("cuLaunchCooperativeKernel");
}
static int graphs(void)
{
    return fakeCudaCalls("cuGraphLaunch");
}

static void compare(const world *w, uint64_t starts)
{
    MUST(gantry_run_repeat(w->host, starts, MUST_ERR));
    MUST(gantry_run_repeat(w->run, starts, MUST_ERR));
    results wanted = outputs_of(w->host, w->g), got = outputs_of(w->run, w->g);
    ck_assert_msg(same(&wanted, &got), "after %llu starts; %s; %s", (unsigned long long)info_of(w->run).starts,
                  info_of(w->run).replay, info_of(w->run).trial);
}

static void compare_single(const world *w)
{
    results wanted = run_results(w->host, w->g), got = run_results(w->run, w->g);
    ck_assert(same(&wanted, &got));
}

static void check_words(const world *w, const char *replay, const char *trial)
{
    gantry_run_info info = info_of(w->run);
    ck_assert_msg(strncmp(info.replay, replay, strlen(replay)) == 0, "%s", info.replay);
    ck_assert_msg(info.trial && strstr(info.trial, trial), "%s", info.trial ? info.trial : "no trial");
}

/* The first starts of a trial, then few at a time until it is over, with a look at what they leave in each of its
 * stages; and starts alone in between. */
static void go_through(const world *w)
{
    compare(w, 3);
    check_words(w, "", "none yet");
    compare(w, 212);
    for (int i = 0; i < 20; i++) {
        compare(w, 1 + (uint64_t)i % 5);
        if (i % 8 == 5)
            compare_single(w);
    }
}

static const char figures[] = "us a start led by the host, ";

START_TEST(devices_are_kept)
{
    world w = ring(1 + _i % 3, "all", (uint64_t)_i + 1);
    go_through(&w);
    check_words(&w, "device (auto); series of starts by one launch", figures);
    gantry_run_info info = info_of(w.run);
    ck_assert_double_eq_tol(info.trial_host_us, 1e4, 1);
    ck_assert_double_lt(info.trial_device_us, info.trial_host_us);
    int before = graphs(), launched = residents();
    compare(&w, 50);
    compare_single(&w);
    ck_assert_int_eq(graphs(), before);
    ck_assert_int_eq(residents() - launched, 2 * (1 + _i % 3));
    drop(&w);
}
END_TEST

START_TEST(host_is_kept)
{
    resident_ms = 4000;
    world w = ring(1 + _i % 3, "all", (uint64_t)_i + 1);
    int modules = fakeCudaCalls("cuModuleUnload");
    go_through(&w);
    check_words(&w, "graph (auto)", figures);
    ck_assert_int_eq(fakeCudaCalls("cuModuleUnload") - modules, 1 + _i % 3); /* the devices' code has gone */
    gantry_run_info info = info_of(w.run);
    ck_assert_double_eq_tol(info.trial_host_us, 1e4, 1);
    ck_assert_double_eq_tol(info.trial_device_us, 4e6 * (1 + _i % 3), 1);
    int before = residents();
    compare(&w, 300);
    ck_assert_int_eq(residents(), before);
    drop(&w);
}
END_TEST

/* Where the two are close each has a second batch, and the graph of before is launched again. */
START_TEST(close)
{
    resident_ms = 17; /* of each GPU; a batch has 4 starts, so 8.5 ms a start */
    kernel_ms = 5;
    world w = ring(2, "all", (uint64_t)_i + 1);
    compare(&w, 20);
    int captured = fakeCudaCalls("cuGraphInstantiate"), before = residents();
    compare(&w, 212);
    for (int i = 0; i < 12; i++)
        compare(&w, 1 + (uint64_t)i % 3);
    check_words(&w, "device (auto)", figures);
    ck_assert_double_eq_tol(info_of(w.run).trial_device_us, 8500, 1);
    ck_assert_int_eq(fakeCudaCalls("cuGraphInstantiate"), captured);
    ck_assert_int_ge(residents() - before, 2 * (1 + 3 + 2)); /* of none, pieces of 1, 2 and 4, batches */
    drop(&w);
}
END_TEST

/* ---- where the devices cannot ---- */

START_TEST(unreached)
{
    world w = ring(2, "none", (uint64_t)_i + 1);
    go_through(&w);
    check_words(&w, "graph (auto)",
                "not by the devices: GPUs that wait for each other do not reach each other's memory");
    ck_assert_int_eq(residents(), 0);
    drop(&w);
}
END_TEST

/* Outputs of more than workers copy to the host. */
START_TEST(streams_would_copy)
{
    fakeCudaDevices(2, "all", 0);
    world w = make(ring_of(2, 2, 2, 17 << 10, true), ring_machine(2, 1));
    compare(&w, 260);
    check_words(&w, "graph (auto)", "not by the devices: op ");
    ck_assert_int_eq(residents(), 0);
    drop(&w);
}
END_TEST

/* The driver has no room for all blocks at once, on the first GPU or the second: nothing was begun by then. */
START_TEST(no_room)
{
    world w = ring(2, "all", (uint64_t)_i + 1);
    fakeCudaFail(_i % 2 ? "cuLaunchCooperativeKernel:2:720" : "cuLaunchCooperativeKernel:1:720");
    go_through(&w);
    check_words(&w, "graph (auto)", "not by the devices: ");
    ck_assert_msg(strstr(info_of(w.run).trial, "COOPERATIVE_LAUNCH_TOO_LARGE"), "%s", info_of(w.run).trial);
    ck_assert_int_eq(residents(), 1 + _i % 2);
    drop(&w);
}
END_TEST

/* No memory for counters. */
START_TEST(no_memory)
{
    world w = ring(2, "all", (uint64_t)_i + 1);
    compare(&w, 3);
    fakeCudaFail("cuMemAlloc:1:2");
    go_through(&w);
    check_words(&w, "graph (auto)", "not by the devices: ");
    fakeCudaFail(NULL);
    drop(&w);
}
END_TEST

/* ---- starts that fail in a trial ---- */

/* A launch of the devices fails: that start is lost, and told; what follows is led by the host. */
START_TEST(launch_fails)
{
    char spec[64];
    gantry_error err = { 0 };
    world w = ring(2, "all", (uint64_t)_i + 1);
    snprintf(spec, sizeof spec, "cuLaunchCooperativeKernel:%d:2", 3 + _i);
    fakeCudaFail(spec);
    ck_assert_int_ne(gantry_run_repeat(w.run, 300, &err), GANTRY_OK);
    fakeCudaFail(NULL);
    ck_assert_msg(strstr(err.text, "CUDA_ERROR_OUT_OF_MEMORY"), "%s", err.text);
    int before = residents();
    MUST(gantry_run_repeat(w.host, 2, MUST_ERR)); /* states begin anew after a failure */
    MUST(gantry_run_repeat(w.run, 2, MUST_ERR));
    results wanted = outputs_of(w.host, w.g), got = outputs_of(w.run, w.g);
    ck_assert(same(&wanted, &got));
    compare(&w, 300);
    check_words(&w, "graph (auto)", "not by the devices: ");
    ck_assert_int_eq(residents(), before);
    drop(&w);
}
END_TEST

static gantry_run *watched;
static int cancel_at; /* launches of the devices, or of graphs if it is below 0 */

static int look(void *user, const gantry_run_progress *p)
{
    (void)user;
    (void)p;
    return cancel_at >= 0 ? residents() >= cancel_at : graphs() >= -cancel_at;
}

/* Cancelled while the host leads the first batch, or the devices make the first pieces: the trial goes on when the run
 * does. */
START_TEST(canceled)
{
    gantry_error err = { 0 };
    gantry_run_options options = GANTRY_RUN_OPTIONS_INIT;
    graph_ms = 200; /* so that it is looked at after each start */
    resident_ms = 101;
    kernel_ms = 100;
    world w = ring(2, "all", (uint64_t)_i + 1);
    gantry_run_free(w.run);
    options.backend = "cuda";
    options.progress = look;
    MUST(gantry_run_new(&w.run, w.s, &options, MUST_ERR));
    watched = w.run;
    cancel_at = _i % 2 ? 2 + 2 * (_i / 2) : -(9 + _i / 2);
    ck_assert_int_eq(gantry_run_repeat(w.run, 400, &err), GANTRY_E_CANCELED);
    check_words(&w, "", "under way");
    cancel_at = 1000000;
    gantry_run_info info = info_of(w.run);
    MUST(gantry_run_repeat(w.host, info.completed, MUST_ERR)); /* what was complete stays */
    compare(&w, 216);
    check_words(&w, "device (auto)", figures);
    drop(&w);
}
END_TEST

/* ---- loops ---- */

/* Two lists that take in each other's rows; `n` counts, and the loop ends when it has come to `last`. */
static gantry_graph *loop_of(int limit, int every, int last)
{
    char text[4096];
    gantry_graph *g = NULL;
    int length = snprintf(
        text, sizeof text,
        "{\"gantry\":1,\"buffers\":{\"x\":{\"dtype\":\"f32\",\"shape\":[64],\"split\":2,\"init\":\"iota\",\"class\":"
        "\"state\",\"output\":true},\"y\":{\"dtype\":\"f32\",\"shape\":[64],\"split\":2},"
        "\"one\":{\"dtype\":\"f32\",\"shape\":[1],\"init\":1},\"less\":{\"dtype\":\"f32\",\"shape\":[1],\"init\":%d},"
        "\"n\":{\"dtype\":\"f32\",\"shape\":[1],\"init\":0,\"class\":\"state\",\"output\":true},"
        "\"room\":{\"dtype\":\"f32\",\"shape\":[1]},\"done\":{\"dtype\":\"f32\",\"shape\":[1],\"output\":true}},"
        "\"nodes\":[{\"repeat\":%d,\"carry\":{\"x\":\"y\"},\"until\":{\"buffer\":\"done\",\"every\":%d},\"nodes\":["
        "{\"id\":\"a0\",\"on\":1,\"kernel\":\"scale\",\"args\":{\"a\":0.5,\"x\":\"x[0]\",\"y\":\"y[0]\"}},"
        "{\"id\":\"b0\",\"on\":1,\"kernel\":\"axpby\",\"args\":{\"a\":0.25,\"b\":0.5,\"x\":\"x[1]\",\"y\":\"y[0]\"}},"
        "{\"id\":\"a1\",\"on\":2,\"kernel\":\"scale\",\"args\":{\"a\":0.5,\"x\":\"x[1]\",\"y\":\"y[1]\"}},"
        "{\"id\":\"b1\",\"on\":2,\"kernel\":\"axpby\",\"args\":{\"a\":0.25,\"b\":0.5,\"x\":\"x[0]\",\"y\":\"y[1]\"}},"
        "{\"id\":\"count\",\"on\":2,\"kernel\":\"saxpy\",\"args\":{\"a\":1,\"x\":\"one\",\"y\":\"n\"}},"
        "{\"id\":\"room\",\"on\":2,\"kernel\":\"add\",\"args\":{\"x\":\"n\",\"y\":\"less\",\"z\":\"room\"}},"
        "{\"id\":\"done\",\"on\":2,\"kernel\":\"relu\",\"args\":{\"x\":\"room\",\"y\":\"done\"}}]}]}",
        1 - last, limit, every);
    ck_assert_int_lt(length, (int)sizeof text);
    MUST(gantry_graph_parse(&g, text, strlen(text), "text", NULL, NULL, MUST_ERR));
    return g;
}

static void bind_count(gantry_run *run, const gantry_graph *g)
{
    static const float none = 0;
    MUST(gantry_run_bind(run, gantry_graph_find_buffer(g, "n"), &none, sizeof none, MUST_ERR));
}

/* Starts of a loop that ends long before its limit, so in the middle of batches and pieces: as many iterations as on
 * the host, and what they leave is the same. */
START_TEST(until)
{
    static const int last[] = { 7, 61 };
    bool devices = _i % 2;
    fakeCudaDevices(2, "all", 0);
    fakeCudaSeed((uint64_t)_i + 1);
    resident_ms = devices ? 1 : 4000;
    world w = make(loop_of(100000, 1 + _i % 3, last[_i / 2]), ring_machine(2, 1 + _i % 2));
    for (int i = 0; i < 270 / last[_i / 2] + 3; i++) {
        bind_count(w.host, w.g);
        bind_count(w.run, w.g);
        compare_single(&w);
        ck_assert_uint_eq(info_of(w.run).iterations, info_of(w.host).iterations);
        ck_assert_uint_ge(info_of(w.run).iterations, (uint64_t)last[_i / 2]);
    }
    check_words(&w, devices ? "device (auto); series of starts by one launch" : "", figures);
    ck_assert_int_eq(strncmp(info_of(w.run).replay, "device", 6) == 0, devices);
    drop(&w);
}
END_TEST

static TCase *new_case(Suite *s, const char *name)
{
    TCase *c = tcase_create(name);
    tcase_set_timeout(c, 120);
    suite_add_tcase(s, c);
    return c;
}

int main(void)
{
    Suite *s = suite_create("trials");
    TCase *c = new_case(s, "kept");
    tcase_add_loop_test(c, devices_are_kept, 0, 3);
    tcase_add_loop_test(c, host_is_kept, 0, 2);
    tcase_add_loop_test(c, close, 0, 1);
    c = new_case(s, "cannot");
    tcase_add_loop_test(c, unreached, 0, 1);
    tcase_add_test(c, streams_would_copy);
    tcase_add_loop_test(c, no_room, 0, 2);
    tcase_add_test(c, no_memory);
    c = new_case(s, "fails");
    tcase_add_loop_test(c, launch_fails, 0, 3);
    tcase_add_loop_test(c, canceled, 0, 2);
    c = new_case(s, "loops");
    tcase_add_loop_test(c, until, 0, 4);
    return run_suite(s);
}
