/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes that run by a flag, on GPUs: kernels, fills and copies, as streams and as graphs, with flags that change from
 * start to start, and what stays where they do not run. */
#include "control.h"
#include "suite.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { N = 12, PARTS = 3 };

/* By `flag`: y = 2 x, z = 7 in its middle part, c = x; by `made`, which a node computes from it: s += the sum of x. */
static const char graph[] =
    "{\"gantry\":1,\"buffers\":{"
    "\"flag\":{\"dtype\":\"%s\",\"shape\":[1],\"class\":\"input\"},"
    "\"made\":{\"dtype\":\"%s\",\"shape\":[1]},"
    "\"x\":{\"dtype\":\"f32\",\"shape\":[12],\"split\":3,\"init\":\"iota\"},"
    "\"y\":{\"dtype\":\"f32\",\"shape\":[12],\"split\":3,\"init\":-1,\"output\":true},"
    "\"z\":{\"dtype\":\"f32\",\"shape\":[12],\"split\":3,\"init\":-2,\"output\":true},"
    "\"c\":{\"dtype\":\"f32\",\"shape\":[12],\"split\":3,\"init\":-3,\"output\":true},"
    "\"s\":{\"dtype\":\"f32\",\"shape\":[1],\"init\":5,\"output\":true}},\"nodes\":["
    "{\"id\":\"made\",\"kernel\":\"scale\",\"args\":{\"a\":1,\"x\":\"flag\",\"y\":\"made\"}},"
    "{\"when\":{\"buffer\":\"flag\"},\"for\":{\"i\":3},\"nodes\":["
    "{\"id\":\"y[i]\",\"kernel\":\"scale\",\"args\":{\"a\":{\"dynamic\":2},\"x\":\"x[i]\",\"y\":\"y[i]\"}},"
    "{\"id\":\"c[i]\",\"copy\":{\"from\":\"x[i]\",\"to\":\"c[i]\"}}]},"
    "{\"id\":\"z\",\"when\":{\"buffer\":\"flag\"},\"fill\":{\"to\":\"z[1]\",\"value\":7}},"
    "{\"id\":\"s[i]\",\"for\":{\"i\":3},\"when\":{\"buffer\":\"made\"},\"kernel\":\"reduce_sum\",\"args\":{\"x\":\"x[i]"
    "\","
    "\"out\":\"s\"}}]}";

typedef struct world {
    gantry_graph *g;
    gantry_machine *m;
    gantry_schedule *s;
    gantry_run *run;
} world;

static gantry_graph *parse(const char *dtype)
{
    char text[sizeof graph + 32];
    gantry_graph *g = NULL;
    snprintf(text, sizeof text, graph, dtype, dtype);
    MUST(gantry_graph_parse(&g, text, strlen(text), "text", NULL, NULL, MUST_ERR));
    return g;
}

static world make(const char *dtype, int gpus, bool mixed, const char *replay, const char *policy)
{
    world w = { .g = parse(dtype), .m = gpu_machine(gpus, mixed) };
    w.s = make_schedule(w.g, w.m, replay, policy);
    w.run = open_run(w.s, "cuda");
    return w;
}

static void drop(world *w)
{
    char alive[160];
    gantry_run_free(w->run);
    gantry_schedule_free(w->s);
    gantry_machine_free(w->m);
    gantry_graph_free(w->g);
    ck_assert_msg(fakeCudaAlive(alive, sizeof alive) == 0, "left behind: %s", alive);
}

static const float *output(const world *w, const char *name)
{
    const void *at;
    uint64_t bytes;
    MUST(gantry_run_output(w->run, gantry_graph_find_buffer(w->g, name), &at, &bytes, MUST_ERR));
    return at;
}

/* One start, and what it has to leave. */
static void check_start(const world *w, bool on, float factor)
{
    uint64_t ticket;
    MUST(gantry_run_start(w->run, &ticket, MUST_ERR));
    MUST(gantry_run_wait(w->run, ticket, MUST_ERR));
    const float *y = output(w, "y"), *z = output(w, "z"), *c = output(w, "c"), *s = output(w, "s");
    for (int i = 0; i < N; i++) {
        bool middle = i >= N / PARTS && i < 2 * N / PARTS;
        ck_assert_float_eq(y[i], on ? factor * (float)i : -1);
        ck_assert_float_eq(z[i], on && middle ? 7 : -2);
        ck_assert_float_eq(c[i], on ? (float)i : -3);
    }
    ck_assert_float_eq(*s, on ? 5 + N * (N - 1) / 2 : 5);
}

static void bind(const world *w, const void *flag, size_t bytes)
{
    MUST(gantry_run_bind(w->run, gantry_graph_find_buffer(w->g, "flag"), flag, bytes, MUST_ERR));
}

static const char *const replays[] = { "stream", "graph", "auto", "device" };
static const char *const policies[] = { "round-robin", "heft", "single" };
enum { REPLAYS = 4, POLICIES = 3, MOST_GPUS = 3 };

/* The array stays where it is, so a graph that was made with one flag is launched with the other. */
START_TEST(both_ways_from_start_to_start)
{
    const char *replay = replays[_i % REPLAYS], *policy = policies[_i / REPLAYS % POLICIES];
    int gpus = 1 + _i / (REPLAYS * POLICIES) % MOST_GPUS;
    bool mixed = _i / (REPLAYS * POLICIES * MOST_GPUS);
    fakeCudaDevices(gpus, "all", 0);
    int32_t flag = 0;
    world w = make("i32", gpus, mixed, replay, policy);
    bind(&w, &flag, sizeof flag);
    static const int32_t flags[] = { 0, 1, 1, 0, -5, 0, 0, 256, 0, 1 };
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        flag = flags[i];
        check_start(&w, flag != 0, 2);
    }
    drop(&w);
}
END_TEST

/* Graphs of ops by themselves have the numbers and addresses that they were made with. */
START_TEST(what_changes_is_captured_anew)
{
    fakeCudaDevices(2, "all", 0);
    int32_t one[2] = { 1, 0 }, two[2] = { 0, 1 };
    world w = make("i32", 2, false, replays[_i], "round-robin");
    bind(&w, &one[0], sizeof *one);
    check_start(&w, true, 2);
    for (int i = 0; i < PARTS; i++) {
        const char *const id[] = { "y[0]", "y[1]", "y[2]" };
        MUST(gantry_run_set_scalar(w.run, gantry_graph_find_node(w.g, id[i]), "a", 3, MUST_ERR));
    }
    check_start(&w, true, 3);
    bind(&w, &two[0], sizeof *two);
    check_start(&w, false, 3);
    bind(&w, &two[1], sizeof *two);
    check_start(&w, true, 3);
    drop(&w);
}
END_TEST

/* A NaN is not 0, -0 is. */
START_TEST(flags_that_are_real_numbers)
{
    fakeCudaDevices(1, "all", 0);
    float flag = 0;
    world w = make("f32", 1, false, replays[_i], "single");
    bind(&w, &flag, sizeof flag);
    static const float flags[] = { 0.0F, 0.5F, -0.0F, 1e-40F, (float)NAN, 0.0F };
    static const bool on[] = { false, true, false, true, true, false };
    for (size_t i = 0; i < sizeof on / sizeof *on; i++) {
        flag = flags[i];
        check_start(&w, on[i], 2);
    }
    drop(&w);
}
END_TEST

/* Without graphs of starts no more is launched than an op each, and nothing is made twice. */
START_TEST(a_graph_of_an_op_is_made_once)
{
    fakeCudaDevices(1, "all", 0);
    int32_t flag = 1;
    world w = make("i32", 1, false, "stream", "single");
    bind(&w, &flag, sizeof flag);
    check_start(&w, true, 2);
    int made = fakeCudaCalls("cuGraphInstantiateWithFlags"), launched = fakeCudaCalls("cuGraphLaunch");
    ck_assert_int_eq(made, 3 * PARTS + 1);
    for (int i = 0; i < 3; i++)
        check_start(&w, true, 2);
    ck_assert_int_eq(fakeCudaCalls("cuGraphInstantiateWithFlags"), made);
    ck_assert_int_eq(fakeCudaCalls("cuGraphLaunch"), launched + 3 * (3 * PARTS + 1));
    drop(&w);
}
END_TEST

/* With times recorded, which events or the driver's tools tell of streams and graphs. */
START_TEST(times_are_recorded)
{
    fakeCudaDevices(2, "all", 0);
    int32_t flag = 0;
    gantry_run_options options = GANTRY_RUN_OPTIONS_INIT;
    options.backend = "cuda";
    options.record_trace = 1;
    world w = { .g = parse("i32"), .m = gpu_machine(2, true) };
    w.s = make_schedule(w.g, w.m, replays[_i], "round-robin");
    MUST(gantry_run_new(&w.run, w.s, &options, MUST_ERR));
    bind(&w, &flag, sizeof flag);
    for (int i = 0; i < 6; i++) {
        flag = i % 2;
        check_start(&w, flag != 0, 2);
    }
    drop(&w);
}
END_TEST

/* Each call of the driver that makes it, once refused: a failed start says so, and a later one is right. */
START_TEST(calls_that_fail)
{
    static const char *const calls[] = {
        "cuGraphConditionalHandleCreate",    "cuStreamGetCaptureInfo", "cuGraphAddNode",
        "cuStreamUpdateCaptureDependencies", "cuStreamBeginCapture",   "cuStreamEndCapture",
        "cuGraphInstantiateWithFlags"
    };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        fakeCudaDevices(1, "all", 0);
        int32_t flag = 1;
        uint64_t ticket;
        gantry_error err;
        world w = make("i32", 1, false, "stream", "single");
        bind(&w, &flag, sizeof flag);
        char spec[80];
        snprintf(spec, sizeof spec, "%s:1:2", calls[i]);
        fakeCudaFail(spec);
        ck_assert_msg(gantry_run_start(w.run, &ticket, &err) != GANTRY_OK, "%s", calls[i]);
        ck_assert_msg(strstr(err.text, "(2)") != NULL, "%s", err.text);
        fakeCudaFail(NULL);
        check_start(&w, true, 2);
        drop(&w);
    }
}
END_TEST

/* With the real module: whichever kernel has no code for the GPU, a run is refused with a node and what to do, or
 * others do its work. */
START_TEST(no_code_for_the_gpu)
{
    enum { MODULES = 8 };
    const char *real = getenv("FAKE_CUDA_KERNELS");
    bool told = false;
    for (int i = 1; i <= MODULES; i++) {
        gantry_graph *g = parse("i32");
        gantry_machine *m = gpu_machine(1, false);
        gantry_schedule *s = make_schedule(g, m, "stream", "single");
        gantry_run *run = NULL;
        gantry_run_options options = GANTRY_RUN_OPTIONS_INIT;
        gantry_error err = { 0 };
        char spec[60];
        fakeCudaDevices(1, "all", 0);
        snprintf(spec, sizeof spec, "cuModuleLoadData:%d:209", i);
        fakeCudaFail(spec);
        options.backend = "cuda";
        gantry_status status = gantry_run_new(&run, s, &options, &err);
        fakeCudaFail(NULL);
        ck_assert_msg(!status || strstr(err.text, "node \""), "%s", err.text);
        told = told ||
               (status == GANTRY_E_UNSUPPORTED &&
                strstr(err.text, "has a `when` and cannot run on device \"gpu0\": what asks a flag was compiled for "
                                 "no GPU like this one: use the back end \"host\""));
        drop(&(world){ g, m, s, run });
    }
    ck_assert_int_eq(told, real != NULL);
}
END_TEST

/* By `flag`: m is the sum of the parts of g = 2 x, which it alone knows, y += m; then, in place, y is the largest of
 * its parts. */
static const char collectives[] =
    "{\"gantry\":1,\"buffers\":{\"flag\":{\"dtype\":\"i32\",\"shape\":[1],\"class\":\"input\"},"
    "\"x\":{\"dtype\":\"f32\",\"shape\":[12],\"split\":3,\"init\":\"iota\"},"
    "\"g\":{\"dtype\":\"f32\",\"shape\":[12],\"split\":3},\"m\":{\"dtype\":\"f32\",\"shape\":[12],\"split\":3},"
    "\"y\":{\"dtype\":\"f32\",\"shape\":[12],\"split\":3,\"init\":\"iota\",\"output\":true}},"
    "\"nodes\":[{\"when\":{\"buffer\":\"flag\"},\"nodes\":["
    "{\"id\":\"g[i]\",\"for\":{\"i\":3},\"kernel\":\"scale\",\"args\":{\"a\":2,\"x\":\"x[i]\",\"y\":\"g[i]\"}},"
    "{\"id\":\"m\",\"collective\":\"all_reduce\",\"op\":\"sum\",\"in\":[\"g[0]\",\"g[1]\",\"g[2]\"],"
    "\"out\":[\"m[0]\",\"m[1]\",\"m[2]\"]},"
    "{\"id\":\"y[i]\",\"for\":{\"i\":3},\"kernel\":\"axpby\",\"args\":{\"a\":1,\"x\":\"m[i]\",\"b\":1,\"y\":\"y[i]\"}},"
    "{\"id\":\"top\",\"collective\":\"all_reduce\",\"op\":\"max\",\"in\":[\"y[0]\",\"y[1]\",\"y[2]\"],"
    "\"out\":[\"y[0]\",\"y[1]\",\"y[2]\"]}]}]}";

START_TEST(collectives_are_taken_by_a_flag)
{
    const char *replay = replays[_i % REPLAYS], *policy = policies[_i / REPLAYS % POLICIES];
    int gpus = 1 + _i / (REPLAYS * POLICIES);
    int32_t flag = 0;
    world w = { .m = gpu_machine(gpus, false) };
    fakeCudaDevices(gpus, "all", 0);
    MUST(gantry_graph_parse(&w.g, collectives, strlen(collectives), "text", NULL, NULL, MUST_ERR));
    w.s = make_schedule(w.g, w.m, replay, policy);
    w.run = open_run(w.s, "cuda");
    bind(&w, &flag, sizeof flag);
    for (int start = 0; start < 6; start++) {
        uint64_t ticket;
        flag = start % 3; /* 0, 1, 2, 0, ... */
        MUST(gantry_run_start(w.run, &ticket, MUST_ERR));
        MUST(gantry_run_wait(w.run, ticket, MUST_ERR));
        const float *y = output(&w, "y");
        for (int i = 0; i < N; i++) { /* x is j, 4 + j, 8 + j; the last part of y is the largest */
            int j = i % (N / PARTS);
            ck_assert_float_eq(y[i], flag ? (float)(8 + j + 2 * (12 + 3 * j)) : (float)i);
        }
    }
    drop(&w);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("nodes by a flag on GPUs");
    TCase *all = tcase_create("all");
    tcase_set_timeout(all, 120);
    tcase_add_loop_test(all, both_ways_from_start_to_start, 0, 2 * REPLAYS * POLICIES * MOST_GPUS);
    tcase_add_loop_test(all, what_changes_is_captured_anew, 0, REPLAYS);
    tcase_add_loop_test(all, flags_that_are_real_numbers, 0, REPLAYS);
    tcase_add_loop_test(all, times_are_recorded, 0, REPLAYS);
    tcase_add_loop_test(all, collectives_are_taken_by_a_flag, 0, REPLAYS * POLICIES * MOST_GPUS);
    tcase_add_test(all, a_graph_of_an_op_is_made_once);
    tcase_add_test(all, calls_that_fail);
    tcase_add_test(all, no_code_for_the_gpu);
    suite_add_tcase(suite, all);
    return run_suite(suite);
}
