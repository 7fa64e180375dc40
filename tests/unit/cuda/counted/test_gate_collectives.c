/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs of GPUs with collectives that meet by counters: their kernels are gates that come with data. Bits against one
 * graph and against the host, in random orders.
 *
 *   test_cuda_gate_collectives            all of it
 *   test_cuda_gate_collectives mistake    kernels make one (FAKE_CUDA_MISTAKE), or what a capture puts kernels that
 *                                         wait behind is lost (FAKE_CUDA_LOOSE): some seed has to show it
 */
#include "chain.h"
#include "control.h"
#include "gated.h"
#include "mistakes.h"
#include "mixed.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool meet(gantry_run *run)
{
    return strstr(replay_of(run), " collectives meet by counters");
}

/* One graph has the bits of the host, then graphs of GPUs have. Do collectives meet? */
static bool try_graph(gantry_graph *g, int gpus, int seeds)
{
    fakeCudaDevices(gpus, "all", 0);
    gantry_machine *m = gpu_machine(gpus, false);
    gantry_schedule *s = make_schedule(g, m, "graph", NULL);
    mixed_by_counters(s);
    gantry_run *host = open_run(s, "host"), *one;
    unsetenv("GANTRY_CUDA_GRAPHS");
    one = open_run(s, "cuda");
    for (int i = 0; i < STARTS; i++) {
        results want = run_results(host, g), got = run_results(one, g);
        ck_assert_msg(same(&got, &want), "start %d as one graph: other results than the host's", i);
    }
    bool met = meet(one);
    gantry_run_free(host);
    gantry_run_free(one);
    setenv("GANTRY_CUDA_GRAPHS", "gpu", 1);
    for (int way = 0; way < 2; way++) {
        copies_by(way);
        compare_with_host(g, s, seeds);
    }
    copies_by(0);
    gantry_schedule_free(s);
    gantry_machine_free(m);
    return met;
}

/* ---- graphs of the gallery ---- */

/* Those without formulas, for which there is no compiler here. */
static const graph_case sum = { "reduce_sum", { "n=10007" }, 0 };
static const graph_case train = { "mlp_step", { "batch=8", "inputs=5", "hidden=7", "classes=3" }, 0 };

/* Products of libraries are not those of the host: against one graph. */
START_TEST(gallery)
{
    const graph_case *c = _i < 3 ? &sum : &train;
    int gpus = 2 + _i % 3;
    fakeCudaDevices(gpus, "all", 0);
    problem p = { .graph = load_graph(c), .machine = gpu_machine(gpus, false) };
    p.schedule = make_schedule(p.graph, p.machine, "graph", "round-robin");
    mixed_by_counters(p.schedule);
    unsetenv("GANTRY_CUDA_GRAPHS");
    gantry_run *one = open_run(p.schedule, "cuda");
    for (int i = 0; i < STARTS; i++)
        p.want[i] = run_results(one, p.graph);
    ck_assert_msg(meet(one) && !has_gates(one), "%s: %s", c->file, replay_of(one));
    gantry_run_free(one);
    setenv("GANTRY_CUDA_GRAPHS", "gpu", 1);
    for (int seed = 1; seed <= 2; seed++) {
        copies_by(seed);
        fakeCudaSeed((uint64_t)seed);
        gantry_run *run = open_run(p.schedule, "cuda");
        ck_assert_msg(as_wanted(&p, run), "%s on %d GPUs, seed %d: other results", c->file, gpus, seed);
        ck_assert_msg(has_gates(run) && meet(run), "%s: %s", c->file, replay_of(run));
        gantry_run_free(run);
    }
    copies_by(0);
    put_away(&p);
}
END_TEST

/* ---- chains of collectives ---- */

/* No kernel begins beside one that waits, for every second one, and stores are seen late. */
START_TEST(chains)
{
    setenv("FAKE_CUDA_WEAK", "1", 1);
    setenv("FAKE_CUDA_HOLD", _i % 2 ? "1" : "0", 1);
    for (int k = 0; k < 4; k++) {
        chain c = { chain_types[(k + _i) % 5], 2 + k % 3, 4, 1 + k % 2, k % 3 ? 37 : 301, k % 2, k < 3, false };
        fakeCudaDevices(c.ranks, "all", 0);
        chain_problem p = chain_pose(&c, "graph");
        fakeCudaSeed((uint64_t)(10 * _i + k));
        gantry_run *run = open_run(p.schedule, "cuda");
        for (int i = 0; i < 4; i++) {
            results got = run_results(run, p.graph);
            ck_assert_msg(same(&got, &p.want), "%s, start %d: other results", chain_name(&c, "graph"), i);
        }
        ck_assert_msg(has_gates(run) && meet(run), "%s: %s", chain_name(&c, "graph"), replay_of(run));
        gantry_run_free(run);
        chain_put_away(&p);
    }
    unsetenv("FAKE_CUDA_WEAK");
    unsetenv("FAKE_CUDA_HOLD");
}
END_TEST

/* ---- random graphs ---- */

enum { GRAPHS = 3 };

START_TEST(random_graphs)
{
    int gpus = 2 + _i % 3, met = 0;
    setenv("FAKE_CUDA_WEAK", "1", 1);
    setenv("FAKE_CUDA_HOLD", _i % 2 ? "1" : "0", 1);
    for (uint64_t seed = 1; seed <= GRAPHS; seed++) {
        gantry_graph *g = mixed_graph(100 * (uint64_t)_i + seed, gpus);
        met += try_graph(g, gpus, 1);
        gantry_graph_free(g);
    }
    ck_assert_int_gt(met, 0);
    unsetenv("FAKE_CUDA_WEAK");
    unsetenv("FAKE_CUDA_HOLD");
}
END_TEST

/* ---- starts that fail ---- */

/* GPUs pass rows to their neighbours, and sum other rows up: gates and collectives beside each other. What is
 * `kept` changes from start to start. */
static gantry_graph *both(int gpus, bool kept)
{
    const char *class = kept ? "\"class\":\"state\"," : "";
    char text[1600];
    gantry_graph *g = NULL;
    int length = snprintf(
        text, sizeof text,
        "{\"gantry\":1,\"params\":{\"p\":%d},\"buffers\":{"
        "\"a\":{\"dtype\":\"f32\",\"shape\":[\"p\",1024],\"split\":\"p\",%s\"init\":\"iota\",\"output\":true},"
        "\"b\":{\"dtype\":\"f32\",\"shape\":[\"p\",1024],\"split\":\"p\",%s\"init\":0},"
        "\"s\":{\"dtype\":\"f32\",\"shape\":[\"p\",64],\"split\":\"p\",%s\"init\":\"iota\",\"output\":true}},"
        "\"nodes\":[{\"repeat\":5,\"nodes\":["
        "{\"id\":\"to[i]\",\"for\":{\"i\":\"p\"},\"kernel\":\"jacobi2d\",\"args\":{\"x\":\"a[i]~1\",\"y\":\"b[i]\"},"
        "\"on\":\"i\"},"
        "{\"id\":\"fro[i]\",\"for\":{\"i\":\"p\"},\"kernel\":\"jacobi2d\",\"args\":{\"x\":\"b[i]~1\",\"y\":\"a[i]\"},"
        "\"on\":\"i\"},"
        "{\"id\":\"sum\",\"collective\":\"all_reduce\",\"op\":\"sum\",\"in\":[{\"for\":{\"i\":\"p\"},\"ref\":"
        "\"s[i]\"}],\"out\":[{\"for\":{\"i\":\"p\"},\"ref\":\"s[i]\"}]}]}]}",
        gpus, class, class, class);
    ck_assert_int_lt(length, (int)sizeof text);
    MUST(gantry_graph_parse(&g, text, (size_t)length, "text", NULL, NULL, MUST_ERR));
    return g;
}

static problem pose_both(int gpus, bool kept)
{
    problem p = { .graph = both(gpus, kept) };
    fakeCudaDevices(gpus, "all", 0);
    p.machine = gpu_machine(gpus, false);
    p.schedule = make_schedule(p.graph, p.machine, "graph", "round-robin");
    mixed_by_counters(p.schedule);
    gantry_run *host = open_run(p.schedule, "host");
    for (int i = 0; i < STARTS; i++)
        p.want[i] = run_results(host, p.graph);
    gantry_run_free(host);
    return p;
}

/* Some GPUs have been given their graphs, whose gates and collectives wait for one that is refused. */
START_TEST(half_a_start)
{
    int gpus = 2 + _i;
    problem p = pose_both(gpus, false);
    gantry_run *run = open_run(p.schedule, "cuda");
    for (int n = 0; n < gpus; n++) {
        char spec[80];
        gantry_error err = { 0 };
        fakeCudaSeed((uint64_t)n + 1);
        results got = run_results(run, p.graph);
        ck_assert(has_gates(run) && meet(run) && same(&got, &p.want[0]));
        snprintf(spec, sizeof spec, "cuGraphLaunch:%d:%d", 1 + n, CUDA_ERROR_INVALID_VALUE);
        fakeCudaFail(spec);
        ck_assert_int_eq(start(run, &err), GANTRY_E_DEVICE);
        fakeCudaFail(NULL);
        ck_assert_msg(as_wanted(&p, run), "other results behind a start that failed at GPU %d", n);
    }
    gantry_run_free(run);
    put_away(&p);
}
END_TEST

/* Nobody tells others that a kernel has come, or that a word is set, but for some: all are let go. */
START_TEST(nobody_comes)
{
    static const char *const spared[] = { NULL, "3", "9" };
    problem p = pose_both(3, true);
    gantry_run_options options = GANTRY_RUN_OPTIONS_INIT;
    gantry_error err = { 0 };
    gantry_run *run = NULL;
    options.backend = "cuda";
    options.timeout_us = 300000;
    fakeCudaPatience(-1);
    MUST(gantry_run_new(&run, p.schedule, &options, MUST_ERR));
    if (spared[_i])
        setenv("FAKE_CUDA_SPARED", spared[_i], 1);
    setenv("FAKE_CUDA_MISTAKE", "never", 1);
    ck_assert_int_eq(start(run, &err), GANTRY_E_TIMEOUT);
    unsetenv("FAKE_CUDA_MISTAKE");
    unsetenv("FAKE_CUDA_SPARED");
    const char *op = strstr(err.text, "; op ");
    ck_assert_msg(op && strstr(op, " is awaited") && !strstr(op + 1, "; op ") && !strstr(op, "no GPU waits"), "%s",
                  err.text);
    gantry_run_free(run);
    run = open_run(p.schedule, "cuda");
    ck_assert(as_wanted(&p, run) && has_gates(run) && meet(run));
    gantry_run_free(run);
    put_away(&p);
}
END_TEST

/* ---- mistakes ---- */

static bool well_with(uint64_t seed)
{
    const char *mistake = getenv("FAKE_CUDA_MISTAKE");
    char kept[16] = "";
    if (mistake)
        snprintf(kept, sizeof kept, "%s", mistake);
    unsetenv("FAKE_CUDA_MISTAKE");
    problem p = pose_both(2 + (int)(seed % 3), true);
    if (kept[0])
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
    tcase_add_loop_test(tests, gallery, 0, 4);
    tcase_add_loop_test(tests, chains, 0, 4);
    tcase_add_loop_test(tests, random_graphs, 0, 6);
    tcase_add_loop_test(tests, half_a_start, 0, 3);
    tcase_add_loop_test(tests, nobody_comes, 0, 3);
}

int main(int count, char **word)
{
    static const program_part parts[] = { { "mistake", add_mistake }, { NULL, add_all } };
    return run_part("collectives in graphs of GPUs", parts, count, word);
}
