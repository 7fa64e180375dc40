/* SPDX-License-Identifier: Apache-2.0 */
/* Every graph of graphs/ on 1, 2 and 4 GPUs of the fake driver, in both replay modes, with and without peer access,
 * over many orders of the fake: bit for bit what the host back end gives for the same schedule. */
#include "control.h"
#include "suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check_alive(void)
{
    char text[160];
    ck_assert_msg(fakeCudaAlive(text, sizeof text) == 0, "left behind: %s", text);
}

static void expect(const graph_case *c, int gpus, gantry_run *run, const gantry_graph *g, const results *want,
                   uint64_t seed)
{
    results got = run_results(run, g);
    ck_assert_msg(same(&got, want), "%s on %d GPUs, replay %s: other results with seed %llu", c->file, gpus,
                  replay_of(run), (unsigned long long)seed);
}

/* A new run for each seed: memory begins as garbage again. */
static void try_seeds(const graph_case *c, int gpus, const char *replay, bool mixed, int seeds)
{
    gantry_graph *g = load_graph(c);
    gantry_machine *m = gpu_machine(gpus, mixed);
    gantry_schedule *s = make_schedule(g, m, replay, NULL);
    gantry_run *host = open_run(s, "host");
    results first = run_results(host, g), second = run_results(host, g);
    gantry_run_free(host);
    for (int seed = 1; seed <= seeds; seed++) {
        fakeCudaSeed((uint64_t)seed);
        gantry_run *run = open_run(s, "cuda");
        expect(c, gpus, run, g, &first, (uint64_t)seed);
        expect(c, gpus, run, g, &second, (uint64_t)seed);
        ck_assert_str_eq(replay_of(run), replay);
        gantry_run_free(run);
        check_alive();
    }
    gantry_schedule_free(s);
    gantry_machine_free(m);
    gantry_graph_free(g);
}

static void try_all(const char *replay, const char *peer, bool mixed, int seeds)
{
    static const int counts[] = { 1, 2, 4 };
    for (const graph_case *c = graph_cases; c->file; c++) {
        for (int i = 0; i < 3; i++) {
            fakeCudaDevices(counts[i], peer, 0);
            try_seeds(c, counts[i], replay, mixed, seeds);
        }
    }
}

START_TEST(streams)
{
    try_all("stream", "all", false, 8);
}
END_TEST

START_TEST(graphs)
{
    try_all("graph", "all", false, 8);
}
END_TEST

START_TEST(streams_without_peers)
{
    try_all("stream", "none", false, 3);
}
END_TEST

/* The driver would allow it. */
START_TEST(graphs_with_peers_off)
{
    int before = fakeCudaCalls("cuCtxEnablePeerAccess");
    char *text = NULL;
    setenv("GANTRY_CUDA_PEERS", "off", 1);
    try_all("graph", "all", false, 2);
    ck_assert_int_eq(fakeCudaCalls("cuCtxEnablePeerAccess"), before);
    fakeCudaDevices(2, "all", 0);
    size_t i = 0;
    while (strcmp(gantry_backend_name(i), "cuda") != 0)
        i++;
    MUST(gantry_backend_describe(i, &text, MUST_ERR));
    ck_assert_msg(strstr(text, "peer access: kept off by GANTRY_CUDA_PEERS") != NULL, "%s", text);
    gantry_free(text);
    unsetenv("GANTRY_CUDA_PEERS");
    try_all("graph", "all", false, 2);
    ck_assert_int_gt(fakeCudaCalls("cuCtxEnablePeerAccess"), before);
}
END_TEST

START_TEST(graphs_with_some_peers)
{
    try_all("graph", "01,10,12", false, 3);
}
END_TEST

/* The CPU takes nodes, too: host functions in stream order. */
START_TEST(streams_with_cpu)
{
    try_all("stream", "all", true, 3);
}
END_TEST

START_TEST(graphs_with_cpu)
{
    try_all("graph", "all", true, 3);
}
END_TEST

/* Several devices of the machine on one GPU. */
START_TEST(one_gpu_as_several)
{
    static const char text[] = "{\"gantry_machine\":1,\"memories\":[{\"id\":\"host\",\"capacity\":\"1GiB\"},{\"id\":"
                               "\"a\",\"capacity\":\"64MiB\"},"
                               "{\"id\":\"b\",\"capacity\":\"64MiB\"}],\"devices\":[{\"id\":\"a\",\"type\":\"gpu\","
                               "\"memory\":\"a\",\"ordinal\":0},"
                               "{\"id\":\"b\",\"type\":\"gpu\",\"memory\":\"b\",\"ordinal\":0}],"
                               "\"routes\":[{\"from\":\"*\",\"to\":\"*\",\"latency_us\":0.2,\"bandwidth_gbs\":10}]}";
    fakeCudaDevices(1, "all", 0);
    for (const graph_case *c = graph_cases; c->file; c++) {
        gantry_machine *m = NULL;
        gantry_graph *g = load_graph(c);
        MUST(gantry_machine_parse(&m, text, strlen(text), "two on one", MUST_ERR));
        gantry_schedule *s = make_schedule(g, m, "stream", "round-robin");
        gantry_run *host = open_run(s, "host"), *run = open_run(s, "cuda");
        results want = run_results(host, g);
        expect(c, 2, run, g, &want, 0);
        gantry_run_free(host);
        gantry_run_free(run);
        gantry_schedule_free(s);
        gantry_machine_free(m);
        gantry_graph_free(g);
    }
    check_alive();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cuda graphs");
    TCase *tests = tcase_create("all");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, streams);
    tcase_add_test(tests, graphs);
    tcase_add_test(tests, streams_without_peers);
    tcase_add_test(tests, graphs_with_peers_off);
    tcase_add_test(tests, graphs_with_some_peers);
    tcase_add_test(tests, streams_with_cpu);
    tcase_add_test(tests, graphs_with_cpu);
    tcase_add_test(tests, one_gpu_as_several);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
