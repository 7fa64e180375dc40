/* SPDX-License-Identifier: Apache-2.0 */
/* Replay "auto": streams first, a graph once nothing changes from start to start, streams again when something does. */
#include "control.h"
#include "suite.h"

#include <stdio.h>
#include <string.h>

enum { N = 100 };

static const char scaled[] =
    "{\"gantry\":1,\"buffers\":{\"x\":{\"dtype\":\"f32\",\"shape\":[100],\"split\":2,\"init\":\"iota\"},"
    "\"y\":{\"dtype\":\"f32\",\"shape\":[100],\"split\":2,\"output\":true}},"
    "\"nodes\":[{\"id\":\"s[i]\",\"for\":{\"i\":2},\"kernel\":\"scale\",\"args\":{\"a\":{\"dynamic\":2},\"x\":\"x[i]\","
    "\"y\":\"y[i]\"}}]}";

/* Nothing in the loop depends on the iteration but, with %s, the scalar. */
static const char looped[] =
    "{\"gantry\":1,\"buffers\":{\"x\":{\"dtype\":\"f32\",\"shape\":[100],\"class\":\"state\",\"init\":1},"
    "\"y\":{\"dtype\":\"f32\",\"shape\":[100],\"class\":\"state\",\"init\":1,\"output\":true},\"stop\":{\"dtype\":"
    "\"i32\",\"shape\":[1],\"init\":0,\"class\":\"state\"}},"
    "\"nodes\":[{\"repeat\":64,\"carry\":{\"x\":\"y\"},\"until\":{\"buffer\":\"stop\",\"every\":4},\"nodes\":["
    "{\"id\":\"s\",\"kernel\":\"scale\",\"args\":{\"a\":%s,\"x\":\"x\",\"y\":\"y\"}}]}]}";

typedef struct world {
    gantry_graph *g;
    gantry_machine *m;
    gantry_schedule *s;
    gantry_run *run;
} world;

static world make(gantry_graph *g, int gpus, int record)
{
    world w = { .g = g, .m = gpu_machine(gpus, false) };
    gantry_run_options options = GANTRY_RUN_OPTIONS_INIT;
    options.backend = "cuda";
    options.record_trace = record;
    w.s = make_schedule(w.g, w.m, NULL, "round-robin");
    MUST(gantry_run_new(&w.run, w.s, &options, MUST_ERR));
    return w;
}

static gantry_graph *parse(const char *text)
{
    gantry_graph *g = NULL;
    MUST(gantry_graph_parse(&g, text, strlen(text), "text", NULL, NULL, MUST_ERR));
    return g;
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

static void start(const world *w)
{
    uint64_t ticket;
    MUST(gantry_run_start(w->run, &ticket, MUST_ERR));
    MUST(gantry_run_wait(w->run, ticket, MUST_ERR));
}

/* y = a x of the last start, and how many graphs were launched and made by it. */
static void start_and_look(const world *w, float a, int launches, int captures)
{
    const void *at;
    uint64_t bytes;
    int launched = fakeCudaCalls("cuGraphLaunch"), made = fakeCudaCalls("cuGraphInstantiateWithFlags");
    start(w);
    MUST(gantry_run_output(w->run, gantry_graph_find_buffer(w->g, "y"), &at, &bytes, MUST_ERR));
    for (int i = 0; i < N; i++)
        ck_assert_float_eq(((const float *)at)[i], a * (float)i);
    ck_assert_int_eq(fakeCudaCalls("cuGraphLaunch") - launched, launches);
    ck_assert_int_eq(fakeCudaCalls("cuGraphInstantiateWithFlags") - made, captures);
}

START_TEST(a_graph_once_nothing_changes)
{
    fakeCudaDevices(2, "all", 0);
    world w = make(parse(scaled), 2, 0);
    for (int i = 0; i < 3; i++) {
        start_and_look(&w, 2, 0, 0);
        ck_assert_str_eq(replay_of(w.run), "stream");
    }
    start_and_look(&w, 2, 1, 1);
    ck_assert_str_eq(replay_of(w.run), "graph (auto)");
    start_and_look(&w, 2, 1, 0);
    MUST(gantry_run_set_scalar(w.run, gantry_graph_find_node(w.g, "s[0]"), "a", 3, MUST_ERR));
    MUST(gantry_run_set_scalar(w.run, gantry_graph_find_node(w.g, "s[1]"), "a", 3, MUST_ERR));
    for (int i = 0; i < 3; i++)
        start_and_look(&w, 3, 0, 0);
    start_and_look(&w, 3, 1, 1);
    float x[N];
    for (int i = 0; i < N; i++)
        x[i] = (float)(2 * i);
    MUST(gantry_run_bind(w.run, gantry_graph_find_buffer(w.g, "x"), x, sizeof x, MUST_ERR));
    for (int i = 0; i < 3; i++)
        start_and_look(&w, 6, 0, 0);
    start_and_look(&w, 6, 1, 1);
    drop(&w);
}
END_TEST

/* A frame bound before each start: captures would cost more than they save. */
START_TEST(streams_while_bindings_change)
{
    fakeCudaDevices(1, "all", 0);
    world w = make(parse(scaled), 1, 0);
    float x[2][N];
    for (int i = 0; i < 20; i++) {
        for (int k = 0; k < N; k++)
            x[i % 2][k] = (float)(k * (i + 1));
        MUST(gantry_run_bind(w.run, gantry_graph_find_buffer(w.g, "x"), x[i % 2], sizeof x[0], MUST_ERR));
        start_and_look(&w, (float)(2 * (i + 1)), 0, 0);
    }
    drop(&w);
}
END_TEST

/* Whichever is found faster, results stay, and it is decided once. */
START_TEST(decided_once)
{
    fakeCudaDevices(2, "all", 0);
    world w = make(parse(scaled), 2, 0);
    int made = fakeCudaCalls("cuGraphInstantiateWithFlags");
    for (int i = 0; i < 40; i++)
        start(&w);
    bool graph = strcmp(replay_of(w.run), "graph (auto)") == 0;
    ck_assert(graph || strcmp(replay_of(w.run), "stream (auto: faster than a graph)") == 0);
    ck_assert_int_eq(fakeCudaCalls("cuGraphInstantiateWithFlags") - made, 1);
    start_and_look(&w, 2, graph, 0);
    drop(&w);
}
END_TEST

START_TEST(capture_refused)
{
    fakeCudaDevices(1, "all", 0);
    world w = make(parse(scaled), 1, 0);
    fakeCudaFail("cuStreamBeginCapture:1:900");
    for (int i = 0; i < 8; i++)
        start_and_look(&w, 2, 0, 0);
    ck_assert_str_eq(replay_of(w.run), "stream (capture refused)");
    fakeCudaFail(NULL);
    drop(&w);
}
END_TEST

START_TEST(times_are_recorded)
{
    fakeCudaDevices(1, "all", 0);
    world w = make(parse(scaled), 1, 1);
    for (int i = 0; i < 8; i++)
        start_and_look(&w, 2, 0, 0);
    drop(&w);
}
END_TEST

static int called;

static gantry_status count(const gantry_launch *l)
{
    called++;
    return l->stream ? GANTRY_OK : GANTRY_E_INVALID;
}

/* A function of the program is called at every start. */
START_TEST(functions_of_the_program)
{
    int64_t n = N;
    gantry_graph *g = gantry_graph_new("own");
    gantry_buffer x = gantry_graph_buffer(g, "x", GANTRY_F32, 1, &n);
    gantry_buffer_init_value(g, x, 1);
    gantry_buffer_set_class(g, x, GANTRY_STATE);
    gantry_node node = gantry_graph_launch(g, "own", count, NULL);
    gantry_node_readwrite(g, node, gantry_all(x));
    gantry_node_on(g, node, "gpu0");
    fakeCudaDevices(1, "all", 0);
    world w = make(g, 1, 0);
    called = 0;
    for (int i = 0; i < 8; i++)
        start(&w);
    ck_assert_int_eq(called, 8);
    ck_assert_str_eq(replay_of(w.run), "stream");
    drop(&w);
}
END_TEST

/* A body of a loop in phases is captured once, unless a scalar follows the iteration. */
START_TEST(bodies_of_loops)
{
    char text[1024];
    fakeCudaDevices(1, "all", 0);
    snprintf(text, sizeof text, looped, _i ? "\"1 + it % 2\"" : "1");
    world w = make(parse(text), 1, 0);
    int made = fakeCudaCalls("cuGraphInstantiateWithFlags");
    start(&w);
    made = fakeCudaCalls("cuGraphInstantiateWithFlags") - made;
    ck_assert_msg(_i ? made == 0 : made == 1, "%d graphs", made);
    const void *at;
    uint64_t bytes;
    MUST(gantry_run_output(w.run, gantry_graph_find_buffer(w.g, "y"), &at, &bytes, MUST_ERR));
    ck_assert_float_eq(((const float *)at)[N - 1], _i ? 4294967296.0F : 1.0F); /* 2 in 32 of 64 iterations */
    drop(&w);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("replay");
    TCase *tests = tcase_create("all");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, a_graph_once_nothing_changes);
    tcase_add_test(tests, streams_while_bindings_change);
    tcase_add_test(tests, decided_once);
    tcase_add_test(tests, capture_refused);
    tcase_add_test(tests, times_are_recorded);
    tcase_add_test(tests, functions_of_the_program);
    tcase_add_loop_test(tests, bodies_of_loops, 0, 2);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
