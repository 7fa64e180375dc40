/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches that come early in graphs: the kernels of the real gantry-cuda.so, emulated. The fake driver ends the
 * program where such a launch depends on anything but one kernel ahead of it, and the emulator where a thread touches
 * memory before it has waited, or never waits.
 */
#include "control.h"
#include "suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT = 65536 };

static void check_alive(void)
{
    char text[160];
    ck_assert_msg(fakeCudaAlive(text, sizeof text) == 0, "left behind: %s", text);
}

static gantry_graph *parse(const char *text)
{
    gantry_graph *g = NULL;
    MUST(gantry_graph_parse(&g, text, strlen(text), "text", NULL, NULL, MUST_ERR));
    return g;
}

static unsigned draw(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(*state >> 33);
}

/* Nodes over a few arrays, so that some follow each other and others do not. All numbers stay finite. */
static gantry_graph *random_graph(uint64_t seed, int nodes, unsigned arrays)
{
    char text[TEXT];
    int at = snprintf(text, sizeof text,
                      "{\"gantry\":1,\"buffers\":{\"s\":{\"dtype\":\"f32\",\"shape\":[1],\"init\":0,"
                      "\"output\":true}");
    for (unsigned i = 0; i < arrays; i++) {
        at += snprintf(text + at, sizeof text - (size_t)at,
                       ",\"b%u\":{\"dtype\":\"f32\",\"shape\":[300],\"init\":\"iota\",\"output\":true}", i);
    }
    at += snprintf(text + at, sizeof text - (size_t)at, "},\"nodes\":[");
    for (int i = 0; i < nodes; i++) {
        unsigned x = draw(&seed) % arrays, y = (x + 1 + draw(&seed) % (arrays - 1)) % arrays, kind = draw(&seed) % 5;
        const char *separator = i ? "," : "";
        at += kind == 0 ? snprintf(text + at, sizeof text - (size_t)at,
                                   "%s{\"id\":\"n%d\",\"kernel\":\"scale\",\"args\":{\"a\":0.5,\"x\":\"b%u\",\"y\":"
                                   "\"b%u\"}}",
                                   separator, i, x, y)
              : kind == 1
                  ? snprintf(text + at, sizeof text - (size_t)at,
                             "%s{\"id\":\"n%d\",\"kernel\":\"reduce_sum\",\"args\":{\"x\":\"b%u\",\"out\":\"s\"}}",
                             separator, i, x)
                  : snprintf(text + at, sizeof text - (size_t)at,
                             "%s{\"id\":\"n%d\",\"kernel\":\"axpby\",\"args\":{\"a\":0.5,\"x\":\"b%u\",\"b\":0.25,"
                             "\"y\":\"b%u\"}}",
                             separator, i, x, y);
    }
    snprintf(text + at, sizeof text - (size_t)at, "]}");
    return parse(text);
}

static gantry_graph *chain(void)
{
    return parse("{\"gantry\":1,\"buffers\":{\"x\":{\"dtype\":\"f32\",\"shape\":[300],\"class\":\"state\",\"init\":1},"
                 "\"y\":{\"dtype\":\"f32\",\"shape\":[300],\"class\":\"state\",\"init\":\"iota\",\"output\":true}},"
                 "\"nodes\":[{\"id\":\"s[i]\",\"for\":{\"i\":20},\"kernel\":\"saxpy\",\"args\":{\"a\":0.5,\"x\":\"x\","
                 "\"y\":\"y\"}}]}");
}

/* The bits of two starts are the host's, if `exact`. The number of launches that came early. */
static int compare(gantry_graph *g, gantry_schedule *s, const char *replay, bool exact)
{
    gantry_run *host = open_run(s, "host"), *run = open_run(s, "cuda");
    int before = fakeCudaCalls("early");
    for (int start = 0; start < 2; start++) {
        results wanted = run_results(host, g), got = run_results(run, g);
        ck_assert(!exact || same(&wanted, &got));
    }
    ck_assert_str_eq(replay_of(run), replay);
    gantry_run_free(host);
    gantry_run_free(run);
    check_alive();
    return fakeCudaCalls("early") - before;
}

static int try_policy(gantry_graph *g, int gpus, const char *replay, const char *policy, bool exact)
{
    gantry_machine *m = gpu_machine(gpus, false);
    gantry_schedule *s = make_schedule(g, m, replay, policy);
    int early = compare(g, s, replay, exact);
    gantry_schedule_free(s);
    gantry_machine_free(m);
    return early;
}

static int try_graph(gantry_graph *g, int gpus, const char *replay)
{
    return try_policy(g, gpus, replay, NULL, true);
}

/* Each of a chain but the first, in the one capture that there is. */
START_TEST(a_chain_comes_early)
{
    gantry_graph *g = chain();
    fakeCudaDevices(1, "all", 0);
    ck_assert_int_eq(try_graph(g, 1, "graph"), 19);
    ck_assert_int_eq(try_graph(g, 1, "stream"), 0);
    gantry_graph_free(g);
}
END_TEST

/* Where GPUs, the driver or the user do not want it. */
START_TEST(nothing_comes_early)
{
    static const char *const settings[][2] = { { "FAKE_CUDA_CAPABILITY", "80" },
                                               { "FAKE_CUDA_VERSION", "12020" },
                                               { "GANTRY_CUDA_EARLY", "off" } };
    gantry_graph *g = chain();
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        setenv(settings[i][0], settings[i][1], 1);
        fakeCudaDevices(1, "all", 0);
        ck_assert_int_eq(try_graph(g, 1, "graph"), 0);
        unsetenv(settings[i][0]);
        setenv("FAKE_CUDA_VERSION", "13000", 1);
    }
    gantry_graph_free(g);
}
END_TEST

/* Nodes that wait for other lanes or GPUs, for copies, or for more than one node do not. */
START_TEST(random_graphs)
{
    static const char *const policies[] = { NULL, "round-robin", "heft" };
    int early = 0;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        int gpus = 1 + (int)(seed % 3);
        fakeCudaDevices(gpus, seed % 5 ? "all" : "none", 0);
        fakeCudaSeed(seed);
        gantry_graph *g = random_graph(seed, 10 + (int)(seed % 4) * 10, 2 + (unsigned)(seed % 5));
        early += try_policy(g, gpus, "graph", policies[seed % 3], true);
        gantry_graph_free(g);
    }
    ck_assert_int_gt(early, 100);
}
END_TEST

/* Kernels of libraries, copies, collectives and host functions are between. */
START_TEST(graphs_of_the_gallery)
{
    for (const graph_case *c = graph_cases; c->file; c++) {
        int gpus = 1 + (int)(c - graph_cases) % 2;
        fakeCudaDevices(gpus, "all", 0);
        gantry_graph *g = load_graph(c);
        try_policy(g, gpus, "graph", NULL, c->near == 0);
        gantry_graph_free(g);
    }
}
END_TEST

/* Tokens, one a start: appended to a cache and then attended to, and both at once for another cache. Outputs are pairs.
 */
static gantry_graph *tokens(const char *dtype, int queries, int heads, int dim)
{
    static const char form[] =
        "{\"gantry\":1,\"params\":{\"queries\":%d,\"heads\":%d,\"dim\":%d},\"buffers\":{"
        "\"place\":{\"dtype\":\"i32\",\"shape\":[1],\"class\":\"state\",\"init\":0},"
        "\"one\":{\"dtype\":\"i32\",\"shape\":[1],\"init\":1},\"count\":{\"dtype\":\"i32\",\"shape\":[1]},"
        "\"q\":{\"dtype\":\"%s\",\"shape\":[\"queries\",1,\"dim\"],\"init\":{\"random\":{\"seed\":1}}},"
        "\"k\":{\"dtype\":\"%s\",\"shape\":[\"heads * dim\"],\"init\":{\"random\":{\"seed\":2}}},"
        "\"v\":{\"dtype\":\"%s\",\"shape\":[\"heads * dim\"],\"init\":{\"random\":{\"seed\":3}}},"
        "\"turned\":{\"dtype\":\"%s\",\"shape\":[\"queries\",1,\"dim\"]}%s},\"nodes\":["
        "{\"id\":\"count\",\"kernel\":\"add\",\"args\":{\"x\":\"place\",\"y\":\"one\",\"z\":\"count\"}},"
        "{\"id\":\"append\",\"kernel\":\"cache_append\",\"args\":{\"place\":\"place\",\"q\":\"q\",\"k\":\"k\",\"v\":"
        "\"v\","
        "\"turned\":\"turned\",\"keys\":\"a0\",\"values\":\"b0\"}},"
        "{\"id\":\"attend\",\"kernel\":\"attention_cached\",\"args\":{\"q\":\"turned\",\"k\":\"a0\",\"v\":\"b0\","
        "\"length\":\"count\",\"y\":\"y0\"}},"
        "{\"id\":\"both\",\"kernel\":\"attention_append\",\"args\":{\"place\":\"place\",\"q\":\"q\",\"k\":\"k\",\"v\":"
        "\"v\","
        "\"keys\":\"a1\",\"values\":\"b1\",\"y\":\"y1\"}},"
        "{\"id\":\"on\",\"kernel\":\"saxpy\",\"args\":{\"a\":1,\"x\":\"one\",\"y\":\"place\"}}]}";
    char outputs[1024], text[8192];
    int at = 0;
    for (int i = 0; i < 6; i++)
        at += snprintf(outputs + at, sizeof outputs - (size_t)at,
                       ",\"%c%d\":{\"dtype\":\"%s\",\"shape\":[\"%s\",%s,\"dim\"],%s\"output\":true}", "aby"[i / 2],
                       i % 2, dtype, i < 4 ? "heads" : "queries", i < 4 ? "90" : "1",
                       i < 4 ? "\"class\":\"state\",\"init\":0," : "");
    snprintf(text, sizeof text, form, queries, heads, dim, dtype, dtype, dtype, dtype, outputs);
    return parse(text);
}

/* On the host and on GPUs; so many starts that warps have several keys, in two batches. */
START_TEST(a_token_by_one_call_or_two)
{
    static const char *const dtypes[] = { "f32", "f16", "bf16", "f64" }, *const backends[] = { "host", "cuda" };
    static const int heads[][3] = { { 4, 4, 16 }, { 6, 2, 34 }, { 2, 1, 130 }, { 3, 3, 64 } };
    gantry_graph *g = tokens(dtypes[_i], heads[_i][0], heads[_i][1], heads[_i][2]);
    fakeCudaDevices(1, "all", 0);
    gantry_machine *m = gpu_machine(1, false);
    gantry_schedule *s = make_schedule(g, m, "graph", NULL);
    for (int b = 0; b < 2; b++) {
        gantry_run *run = open_run(s, backends[b]);
        for (int start = 0; start < 70; start++) {
            results got = run_results(run, g);
            ck_assert_int_eq(got.count, 6);
            for (int i = 0; i < 6; i += 2)
                ck_assert_msg(got.hash[i] == got.hash[i + 1], "%s, %s, start %d: outputs %d and %d differ", dtypes[_i],
                              backends[b], start, i, i + 1);
        }
        gantry_run_free(run);
    }
    gantry_schedule_free(s);
    gantry_machine_free(m);
    gantry_graph_free(g);
}
END_TEST

/* A driver that takes no such graph is given one without. */
START_TEST(refused)
{
    static const char *const calls[] = { "cuLaunchKernelEx:3:801", "cuGraphInstantiateWithFlags:1:801",
                                         "cuStreamEndCapture:1:900" };
    gantry_graph *g = chain();
    fakeCudaDevices(1, "all", 0);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        int launches = fakeCudaCalls("cuLaunchKernel");
        fakeCudaFail(calls[i]);
        ck_assert_int_le(try_graph(g, 1, "graph"), 19);
        ck_assert_int_ge(fakeCudaCalls("cuLaunchKernel") - launches, 20);
        fakeCudaFail(NULL);
    }
    gantry_graph_free(g);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("early");
    TCase *tests = tcase_create("all");
    setenv("FAKE_CUDA_VERSION", "13000", 1);
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, a_chain_comes_early);
    tcase_add_test(tests, nothing_comes_early);
    tcase_add_test(tests, random_graphs);
    tcase_add_test(tests, graphs_of_the_gallery);
    tcase_add_test(tests, refused);
    tcase_add_loop_test(tests, a_token_by_one_call_or_two, 0, 4);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
