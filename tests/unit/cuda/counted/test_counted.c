/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collectives that meet by counters, with the kernels of gantry-cuda.so on the CPU, in random orders, against the host
 * back end, bit for bit.
 *
 *   test_cuda_counted            all of it
 *   test_cuda_counted mistake    kernels make one (FAKE_CUDA_MISTAKE): some seed has to show it
 *   test_cuda_counted nccl       kernels that meet are around ops of NCCL
 *
 * GANTRY_CUDA_MEETINGS=two: GPUs meet as ops begin and as they end.
 */
#include "chain.h"
#include "control.h"
#include "mistakes.h"
#include "mixed.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check_alive(const char *what)
{
    char text[160];
    ck_assert_msg(fakeCudaAlive(text, sizeof text) == 0, "%s: left behind: %s", what, text);
}

static int meetings(void)
{
    return fakeCudaWaiting();
}

static chain_problem pose(const chain *c, const char *replay)
{
    fakeCudaDevices(c->ranks, "all", 0);
    return chain_pose(c, replay);
}

static void try_chain(const chain *c, const char *replay, int seeds, int starts)
{
    chain_problem p = pose(c, replay);
    for (int seed = 1; seed <= seeds; seed++) {
        int before = meetings();
        fakeCudaSeed((uint64_t)seed);
        chain_try(c, &p, replay, starts, true);
        ck_assert_msg(meetings() > before, "%s: they do not meet", chain_name(c, replay));
        check_alive(chain_name(c, replay));
    }
    chain_put_away(&p);
}

/* Odd sizes that ranks do not divide, also fewer than there are GPUs. */
START_TEST(bits)
{
    static const int64_t rows[] = { 3, 37, 701 };
    for (int ranks = 2; ranks <= 8; ranks += ranks < 4 ? 1 : 2) {
        for (int r = 0; r < 3; r++) {
            chain c = {
                chain_types[(ranks + r + _i) % 5], ranks, 4, 1, rows[r], (ranks + r) % 2, (ranks / 2 + _i) % 2, false
            };
            try_chain(&c, _i % 2 ? "graph" : "stream", 2, 3);
        }
    }
}
END_TEST

/* Memory is weak, counters go on from start to start. */
START_TEST(weak)
{
    setenv("FAKE_CUDA_WEAK", "1", 1);
    for (int k = 0; k < 6; k++) {
        chain c = { chain_types[(k + _i) % 5], 2 + k % 4, 3, 1, k % 3 ? 29 : 400, k % 2, k < 3, false };
        try_chain(&c, k / 2 % 2 ? "graph" : "stream", 4, 3);
    }
    unsetenv("FAKE_CUDA_WEAK");
}
END_TEST

START_TEST(many_starts)
{
    for (int k = 0; k < 4; k++) {
        chain c = { GANTRY_F32, 3, 3, 1, 11, false, k / 2, false };
        try_chain(&c, k % 2 ? "graph" : "stream", 1, 60);
    }
}
END_TEST

/* Several of them at once, on lanes of their own: on each GPU they take turns. */
START_TEST(at_once)
{
    for (int k = 0; k < 8; k++) {
        chain c = { chain_types[(k + _i) % 5], 2 + k % 3, 6, 3, _i % 2 ? 701 : 23, k % 2, k / 4, false };
        try_chain(&c, k / 2 % 2 ? "graph" : "stream", 2, 2);
    }
}
END_TEST

/* With room for few blocks on a GPU, each of them combines more. */
START_TEST(little_room)
{
    setenv("FAKE_CUDA_PLACES", "2", 1);
    for (int k = 0; k < 2; k++) {
        chain c = { GANTRY_F64, 4, 3, 1, 5003, k, !k, false };
        try_chain(&c, k ? "graph" : "stream", 1, 2);
    }
    unsetenv("FAKE_CUDA_PLACES");
}
END_TEST

/* A kernel would never end, as the driver launches no other before it has, or has room for a part of its blocks. */
START_TEST(nobody_meets)
{
    static const char *const set[2][2] = { { "CUDA_LAUNCH_BLOCKING", "1" },
                                           { "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "50" } };
    chain c = { GANTRY_F32, 3, 3, 1, 37, false, true, false };
    setenv(set[_i][0], set[_i][1], 1);
    chain_problem p = pose(&c, "stream");
    chain_try(&c, &p, "stream", 2, false);
    unsetenv(set[_i][0]);
    chain_try(&c, &p, "stream", 2, true);
    chain_put_away(&p);
}
END_TEST

/* Each GPU waits for nothing but counters and its own work: no kernel of a graph waits for one of another GPU. */
START_TEST(no_edges)
{
    for (int ranks = 2; ranks <= 8; ranks += 2) {
        chain c = { GANTRY_F32, ranks, 5, 1, 64, _i % 2, true, false };
        chain_problem p = pose(&c, "graph");
        int before = fakeCudaCalls("wait between devices"), meet = meetings();
        chain_try(&c, &p, "graph", 2, true);
        ck_assert_int_eq(fakeCudaCalls("wait between devices"), before);
        ck_assert_int_eq((meetings() - meet) % (ranks * c.ops), 0); /* a kernel for each op and GPU */
        chain_put_away(&p);
    }
}
END_TEST

/* Among copies from GPU to GPU: an op may come behind a collective by way of another GPU alone. */
START_TEST(mixed)
{
    enum { GRAPHS = 4 };
    int gpus = 2 + _i % 3, before = meetings();
    for (uint64_t seed = 1; seed <= GRAPHS; seed++) {
        const char *replay = seed % 2 ? "graph" : "stream";
        gantry_graph *g = mixed_graph(100 * (uint64_t)_i + seed, gpus);
        fakeCudaDevices(gpus, "all", 0);
        fakeCudaSeed(seed);
        gantry_machine *m = gpu_machine(gpus, false);
        gantry_schedule *s = make_schedule(g, m, replay, NULL);
        mixed_by_counters(s);
        gantry_run *host = open_run(s, "host"), *run = open_run(s, "cuda");
        for (int i = 0; i < 3; i++) {
            results want = run_results(host, g), got = run_results(run, g);
            ck_assert_msg(same(&got, &want), "graph %d, replay %s, start %d: other results", (int)seed, replay, i);
        }
        gantry_run_free(run);
        gantry_run_free(host);
        gantry_schedule_free(s);
        gantry_machine_free(m);
        gantry_graph_free(g);
    }
    ck_assert_int_gt(meetings(), before);
}
END_TEST

/* Sums of rows that each GPU has written itself, and maxima of rows that another GPU has sent it: a batch of each. */
enum { ARRAYS = 5 };
static gantry_graph *reduced_of(int gpus)
{
    char text[4096];
    gantry_graph *g = NULL;
    size_t at = (size_t)snprintf(text, sizeof text, "{\"gantry\":1,\"params\":{\"p\":%d},\"buffers\":{", gpus);
    for (int k = 0; k < ARRAYS; k++)
        at += (size_t)snprintf(text + at, sizeof text - at,
                               "%s\"x%d\":{\"dtype\":\"i32\",\"shape\":[\"p\",%d],\"split\":\"p\",\"init\":\"iota\"},"
                               "\"s%d\":{\"dtype\":\"i32\",\"shape\":[\"p\",%d],\"split\":\"p\",\"class\":\"state\","
                               "\"init\":0,\"output\":true}",
                               k ? "," : "", k, 8 + k, k, 8 + k);
    at += (size_t)snprintf(text + at, sizeof text - at, "},\"nodes\":[");
    for (int k = 0; k < ARRAYS; k++) {
        at += (size_t)snprintf(text + at, sizeof text - at,
                               "%s{\"id\":\"give%d[i]\",\"for\":{\"i\":\"p\"},\"kernel\":\"copy\",\"on\":\"i\","
                               "\"args\":{\"x\":\"x%d[i]\",\"y\":\"s%d[(i + %d) %% p]\"}}",
                               k ? "," : "", k, k, k, k % 2);
        at += (size_t)snprintf(text + at, sizeof text - at,
                               ",{\"id\":\"sum%d\",\"collective\":\"all_reduce\",\"op\":\"%s\","
                               "\"on\":[{\"for\":{\"i\":\"p\"},\"on\":\"i\"}],"
                               "\"in\":[{\"for\":{\"i\":\"p\"},\"ref\":\"s%d[i]\"}],"
                               "\"out\":[{\"for\":{\"i\":\"p\"},\"ref\":\"s%d[i]\"}]}",
                               k, k % 2 ? "max" : "sum", k, k);
    }
    snprintf(text + at, sizeof text - at, "]}");
    MUST(gantry_graph_parse(&g, text, strlen(text), "text", NULL, NULL, MUST_ERR));
    return g;
}

/* That a lane of one GPU has ended says nothing of another one's, whose rows a copy from the first GPU may touch: what
 * reduces such rows meets twice. */
START_TEST(once)
{
    const char *two = getenv("GANTRY_CUDA_MEETINGS"); /* all do */
    const char *meet =
        two ? "; 5 collectives meet by counters, 0 of them once" : "; 5 collectives meet by counters, 3 of them once";
    int gpus = 2 + _i;
    gantry_graph *g = reduced_of(gpus);
    fakeCudaDevices(gpus, "all", 0);
    gantry_machine *m = gpu_machine(gpus, false);
    gantry_schedule *s = make_schedule(g, m, "graph", "round-robin");
    mixed_by_counters(s);
    gantry_run *host = open_run(s, "host"), *run = open_run(s, "cuda");
    results want = run_results(host, g), got = run_results(run, g);
    ck_assert(same(&got, &want));
    ck_assert_msg(strstr(replay_of(run), meet), "%s", replay_of(run));
    gantry_run_free(run);
    gantry_run_free(host);
    gantry_schedule_free(s);
    gantry_machine_free(m);
    gantry_graph_free(g);
}
END_TEST

/* ---- starts that fail ---- */

static gantry_status start(gantry_run *run, gantry_error *err)
{
    uint64_t ticket = 0;
    gantry_status status = gantry_run_start(run, &ticket, err);
    return status ? status : gantry_run_wait(run, ticket, err);
}

/* Some GPUs have been given a kernel that waits for one that is refused: it is let go, and the next start is well. */
START_TEST(half_a_start)
{
    int meeting = 0;
    for (int n = 1; n <= 18; n++) {
        chain c = { GANTRY_F32, 3, 4, 1, 37, false, n % 4 == 1, false };
        chain_problem p = pose(&c, "stream");
        fakeCudaSeed((uint64_t)n);
        gantry_run *run = open_run(p.schedule, "cuda");
        for (int well = 0; well < 2; well++) {
            results got = run_results(run, p.graph);
            ck_assert(same(&got, &p.want));
            char spec[80];
            gantry_error err = { 0 };
            snprintf(spec, sizeof spec, "cuLaunchKernel:%d:%d", n, CUDA_ERROR_INVALID_VALUE);
            fakeCudaFail(spec);
            int before = meetings();
            ck_assert_int_ne(start(run, &err), GANTRY_OK);
            meeting += meetings() - before > 0 && strstr(err.text, "combine or move its share");
            fakeCudaFail(NULL);
        }
        results got = run_results(run, p.graph);
        ck_assert_msg(same(&got, &p.want), "other results behind a start that failed at launch %d", n);
        gantry_run_free(run);
        check_alive("half a start");
        chain_put_away(&p);
    }
    ck_assert_int_gt(meeting, 8);
}
END_TEST

/* The n-th call fails, while a run is opened or while it starts: nothing is left behind. */
START_TEST(failing_calls)
{
    static const char *const calls[] = { "cuMemAlloc", "cuMemHostAlloc", "cuStreamCreate", "cuMemsetD8Async",
                                         "cuLaunchKernel" };
    chain c = { GANTRY_F32, 2, 3, 1, 11, true, _i % 2, false };
    chain_problem p = pose(&c, "stream");
    int failed = 0;
    for (int n = 1; n <= 24; n++) {
        char spec[80];
        gantry_error err = { 0 };
        gantry_run *run = NULL;
        gantry_run_options options = GANTRY_RUN_OPTIONS_INIT;
        options.backend = "cuda";
        snprintf(spec, sizeof spec, "%s:%d:%d", calls[_i], n, CUDA_ERROR_INVALID_VALUE);
        fakeCudaFail(spec);
        gantry_status status = gantry_run_new(&run, p.schedule, &options, &err);
        status = status ? status : start(run, &err);
        failed += status != GANTRY_OK;
        fakeCudaFail(NULL);
        if (run) {
            results got = run_results(run, p.graph);
            ck_assert_msg(same(&got, &p.want), "%s: other results behind that", spec);
        }
        gantry_run_free(run);
        check_alive(spec);
    }
    ck_assert_msg(failed, "%s never mattered", calls[_i]);
    chain_put_away(&p);
}
END_TEST

/* Nobody tells that it has come: the watchdog names the op and the GPUs, lets all go, and the run is over. */
START_TEST(nobody_comes)
{
    chain c = { GANTRY_F32, 3, 4, 1, 37, false, false, false };
    chain_problem p = pose(&c, _i ? "graph" : "stream");
    gantry_run_options options = GANTRY_RUN_OPTIONS_INIT;
    gantry_error err = { 0 };
    gantry_run *run = NULL;
    options.backend = "cuda";
    options.timeout_us = 300000;
    fakeCudaPatience(-1);
    MUST(gantry_run_new(&run, p.schedule, &options, MUST_ERR));
    setenv("FAKE_CUDA_MISTAKE", "never", 1);
    ck_assert_int_eq(start(run, &err), GANTRY_E_TIMEOUT);
    ck_assert_msg(strstr(err.text, "\"it0_0\": gpu") && strstr(err.text, " waits for gpu") &&
                      strstr(err.text, ": its counter is 0, and 1 is awaited"),
                  "%s", err.text);
    unsetenv("FAKE_CUDA_MISTAKE");
    ck_assert_int_eq(start(run, &err), GANTRY_E_TIMEOUT);
    ck_assert_msg(strstr(err.text, "the run is over since an earlier failure"), "%s", err.text);
    gantry_run_free(run);
    check_alive("nobody comes");
    chain_put_away(&p);
}
END_TEST

/* The first GPU waits for the second one, which waits for the third: the op of those two is told, whose position is the
 * lower one. */
START_TEST(first_still)
{
    static const char text[] =
        "{\"gantry\":1,\"buffers\":{\"a\":{\"dtype\":\"i32\",\"shape\":[3,8],\"split\":3,\"class\":\"state\",\"init\":"
        "1}},"
        "\"nodes\":[{\"id\":\"late\",\"collective\":\"all_reduce\",\"op\":\"sum\",\"on\":[1,2],\"in\":[\"a[1]\",\"a[2]"
        "\"],"
        "\"out\":[\"a[1]\",\"a[2]\"]},{\"id\":\"behind\",\"collective\":\"all_reduce\",\"op\":\"sum\",\"on\":[0,1],"
        "\"in\":[\"a[0]\",\"a[1]\"],\"out\":[\"a[0]\",\"a[1]\"]}]}";
    gantry_run_options options = GANTRY_RUN_OPTIONS_INIT;
    gantry_error err = { 0 };
    gantry_graph *g = NULL;
    gantry_run *run = NULL;
    MUST(gantry_graph_parse(&g, text, strlen(text), "text", NULL, NULL, MUST_ERR));
    fakeCudaDevices(3, "all", 0);
    gantry_machine *m = gpu_machine(3, false);
    gantry_schedule *s = make_schedule(g, m, _i ? "graph" : "stream", "round-robin");
    mixed_by_counters(s);
    options.backend = "cuda";
    options.timeout_us = 300000;
    fakeCudaPatience(-1);
    MUST(gantry_run_new(&run, s, &options, MUST_ERR));
    setenv("FAKE_CUDA_MISTAKE", "never", 1);
    ck_assert_int_eq(start(run, &err), GANTRY_E_TIMEOUT);
    unsetenv("FAKE_CUDA_MISTAKE");
    ck_assert_msg(strstr(err.text, "\"late\": gpu") && !strstr(err.text, "\"behind\""), "%s", err.text);
    gantry_run_free(run);
    gantry_schedule_free(s);
    gantry_machine_free(m);
    gantry_graph_free(g);
}
END_TEST

/* ---- beside NCCL, and mistakes ---- */

/* Sums of integers, as NCCL adds in an order of its own. Two kernels meet for an op on a GPU where it is alone. */
START_TEST(around_nccl)
{
    for (int k = 0; k < 16; k++) {
        chain c = { GANTRY_I32, 2 + k % 4, 4, 1 + k / 8 * 2, k % 3 ? 37 : 400, k % 2, k / 2 % 2, true };
        const char *replay = k / 4 % 2 ? "stream" : "graph";
        chain_problem p = pose(&c, replay);
        fakeCudaSeed((uint64_t)k);
        int before = fakeCudaCalls("wait between devices"), meet = meetings();
        chain_try(&c, &p, replay, 3, false);
        int met = meetings() - meet, alone = 2 * c.ranks * c.ops * (k / 4 % 2 ? 3 : 1);
        if (c.chains == 1 && c.apart)
            ck_assert_int_eq(met, alone);
        else
            ck_assert_int_gt(met, 0);
        if (c.chains == 1)
            ck_assert_int_eq(fakeCudaCalls("wait between devices"), before);
        check_alive(chain_name(&c, replay));
        chain_put_away(&p);
    }
}
END_TEST

static bool well_with(uint64_t seed)
{
    int k = (int)seed;
    chain c = { GANTRY_F32, 2 + k % 3, 4, 1, k % 2 ? 37 : 301, k % 4 > 1, k % 8 > 3, false };
    chain_problem p = pose(&c, k % 2 ? "graph" : "stream");
    bool well = true;
    fakeCudaSeed(seed);
    gantry_run *run = open_run(p.schedule, "cuda");
    for (int i = 0; i < 3; i++) {
        results got = run_results(run, p.graph);
        well = well && same(&got, &p.want);
    }
    return well;
}

START_TEST(mistake)
{
    some_seed_shows(well_with, 60);
}
END_TEST

static void add_mistake(TCase *tests)
{
    tcase_add_test(tests, mistake);
}

static void add_nccl(TCase *tests)
{
    tcase_add_test(tests, around_nccl);
}

static void add_all(TCase *tests)
{
    tcase_add_loop_test(tests, bits, 0, 5);
    tcase_add_loop_test(tests, weak, 0, 2);
    tcase_add_test(tests, many_starts);
    tcase_add_loop_test(tests, at_once, 0, 5);
    tcase_add_test(tests, little_room);
    tcase_add_loop_test(tests, nobody_meets, 0, 2);
    tcase_add_loop_test(tests, no_edges, 0, 2);
    tcase_add_loop_test(tests, mixed, 0, 6);
    tcase_add_loop_test(tests, once, 0, 3);
    tcase_add_test(tests, half_a_start);
    tcase_add_loop_test(tests, failing_calls, 0, 5);
    tcase_add_loop_test(tests, nobody_comes, 0, 2);
    tcase_add_loop_test(tests, first_still, 0, 2);
}

int main(int count, char **word)
{
    static const program_part parts[] = { { "mistake", add_mistake }, { "nccl", add_nccl }, { NULL, add_all } };
    return run_part("counted collectives", parts, count, word);
}
