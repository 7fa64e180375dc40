/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives by NCCL, against the host back end, on the fake driver and a fake NCCL that ends the program where real
 * ones would hang or be wrong in silence. */
#include "control.h"
#include "nccl_suite.h"
#include "schedule/schedule.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int fakeNcclAlive(void);

static const char *const replays[] = { "stream", "graph" };

static void check_alive(const char *what)
{
    char text[160];
    ck_assert_msg(fakeCudaAlive(text, sizeof text) == 0, "%s: left behind: %s", what, text);
}

/* All collectives, whatever the scheduler chose. Schedules with phases are left as they are. */
static int force_nccl(gantry_schedule *s)
{
    int count = 0;
    for (size_t i = 0; i < s->ops.count; i++) {
        gy_op *op = &s->ops.at[i];
        if (op->kind == GY_OP_COLLECTIVE) {
            op->algorithm = GY_ALGORITHM_NCCL;
            count++;
        }
    }
    return count;
}

static void expect_text(gantry_run *run, const char *part, const char *what)
{
    ck_assert_msg(strstr(replay_of(run), part), "%s: no \"%s\" in \"%s\"", what, part, replay_of(run));
}

/* `call`: the function of NCCL that is to be used; NULL: none, and the report says `why`. */
static void try_case(const nccl_case *c, const char *call, const char *why, int seeds)
{
    gantry_graph *g = nccl_graph(c);
    gantry_machine *m = nccl_machine(c->ranks);
    char what[160];
    for (int k = 0; k < 2; k++) {
        gantry_schedule *s = make_schedule(g, m, replays[k], "round-robin");
        ck_assert_int_eq(force_nccl(s), 1);
        gantry_run *host = nccl_open(s, g, c, "host");
        results want = run_results(host, g);
        gantry_run_free(host);
        for (int seed = 1; seed <= seeds; seed++) {
            snprintf(what, sizeof what, "%s, replay %s, seed %d", nccl_name(c), replays[k], seed);
            fakeCudaSeed((uint64_t)seed);
            int before = call ? fakeCudaCalls(call) : 0;
            gantry_run *run = nccl_open(s, g, c, "cuda");
            for (int start = 0; start < 3; start++) {
                results got = run_results(run, g);
                ck_assert_msg(same(&got, &want), "%s, start %d: other results", what, start);
            }
            ck_assert_msg(!call || fakeCudaCalls(call) > before, "%s: no %s", what, call);
            ck_assert_msg(strncmp(replay_of(run), replays[k], strlen(replays[k])) == 0, "%s: %s", what, replay_of(run));
            expect_text(run, why ? why : "; NCCL 2.28.9 does 1 collective", what);
            gantry_run_free(run);
            check_alive(what);
            ck_assert_int_eq(fakeNcclAlive(), 0);
        }
        gantry_schedule_free(s);
    }
    gantry_machine_free(m);
    gantry_graph_free(g);
}

/* ---- results ---- */

static const char *call_of(const nccl_case *c)
{
    return c->kind == GANTRY_ALL_REDUCE       ? "ncclAllReduce"
           : c->kind == GANTRY_REDUCE         ? "ncclReduce"
           : c->kind == GANTRY_REDUCE_SCATTER ? (c->uneven ? "ncclReduce" : "ncclReduceScatter")
           : c->kind == GANTRY_BROADCAST      ? "ncclBroadcast"
           : c->kind == GANTRY_ALL_GATHER     ? (c->uneven ? "ncclSend" : "ncclAllGather")
                                              : "ncclRecv";
}

static bool is_real(gantry_dtype dtype)
{
    return dtype == GANTRY_F16 || dtype == GANTRY_BF16 || dtype == GANTRY_F32 || dtype == GANTRY_F64;
}

START_TEST(every_collective)
{
    static const int counts[] = { 2, 4, 8 };
    for (int k = 0; k < 8; k++) {
        for (int r = 0; r < 3; r++) {
            for (int variant = 0; variant < 3; variant++) {
                nccl_case c = { .kind = nccl_kinds[k], .dtype = GANTRY_I32, .op = GANTRY_SUM, .ranks = counts[r] };
                c.rows = c.kind == GANTRY_ALL_TO_ALL ? 3 * c.ranks : 7;
                c.in_place = variant == 1 && (c.kind == GANTRY_ALL_REDUCE || c.kind == GANTRY_REDUCE ||
                                              c.kind == GANTRY_BROADCAST || c.kind == GANTRY_ALL_TO_ALL);
                c.uneven = variant == 2 && (c.kind == GANTRY_SCATTER || c.kind == GANTRY_GATHER ||
                                            c.kind == GANTRY_ALL_GATHER || c.kind == GANTRY_REDUCE_SCATTER);
                if (variant && !c.in_place && !c.uneven) {
                    continue;
                }
                bool swaps = c.kind == GANTRY_ALL_TO_ALL && c.in_place;
                fakeCudaDevices(c.ranks, r % 2 ? "none" : "all", 0);
                try_case(&c, swaps ? NULL : call_of(&c), swaps ? "; 1 collective by copies instead of NCCL: op " : NULL,
                         3);
            }
        }
    }
}
END_TEST

START_TEST(every_type_and_operator)
{
    static const gantry_access ops[] = { GANTRY_SUM, GANTRY_PROD, GANTRY_MIN, GANTRY_MAX };
    static const int64_t rows[] = { 1, 43 };
    fakeCudaDevices(4, "all", 0);
    for (int k = 0; k < 8; k++) {
        for (int d = 0; d < GANTRY_DTYPE_COUNT; d++) {
            for (int o = 0; o < (nccl_reduces(nccl_kinds[k]) ? 4 : 1); o++) {
                nccl_case c = { nccl_kinds[k], (gantry_dtype)d, ops[o], 4, rows[(d + o) % 2], false, false };
                c.rows *= c.kind == GANTRY_ALL_TO_ALL ? 4 : 1;
                bool passes = nccl_reduces(c.kind) && is_real(c.dtype) && o > 1;
                bool rounds = nccl_reduces(c.kind) && is_real(c.dtype);
                try_case(&c, passes ? NULL : call_of(&c),
                         passes   ? "\"it\": its min and max pass over NaN"
                         : rounds ? "; NCCL 2.28.9 does 1 collective, adding in its own order"
                                  : NULL,
                         1);
            }
        }
    }
}
END_TEST

/* The scheduler names NCCL on its own where the machine's times say so. */
START_TEST(the_scheduler_chooses_it)
{
    nccl_case c = { GANTRY_ALL_REDUCE, GANTRY_F32, GANTRY_SUM, 4, 100, false, false };
    fakeCudaDevices(4, "all", 0);
    gantry_graph *g = nccl_graph(&c);
    gantry_machine *m = nccl_machine(4);
    gantry_schedule *s = make_schedule(g, m, "stream", NULL);
    int named = 0;
    for (size_t i = 0; i < s->ops.count; i++) {
        named += s->ops.at[i].kind == GY_OP_COLLECTIVE && s->ops.at[i].algorithm == GY_ALGORITHM_NCCL;
    }
    ck_assert_int_eq(named, 1);
    gantry_run *run = nccl_open(s, g, &c, "cuda");
    run_results(run, g);
    expect_text(run, "stream; NCCL 2.28.9 does 1 collective, adding in its own order", "chosen");
    gantry_run_free(run);
    gantry_schedule_free(s);
    gantry_machine_free(m);
    gantry_graph_free(g);
}
END_TEST

/* ---- what NCCL cannot do ---- */

/* Two devices of the machine are one GPU. */
START_TEST(two_ranks_on_one_gpu)
{
    nccl_case c = { GANTRY_ALL_REDUCE, GANTRY_I32, GANTRY_SUM, 4, 5, false, false };
    fakeCudaDevices(2, "all", 0);
    gantry_graph *g = nccl_graph(&c);
    gantry_machine *m = shared_machine(4, 2);
    gantry_schedule *s = make_schedule(g, m, "stream", "round-robin");
    force_nccl(s);
    gantry_run *host = nccl_open(s, g, &c, "host");
    results want = run_results(host, g);
    gantry_run_free(host);
    gantry_run *run = nccl_open(s, g, &c, "cuda");
    results got = run_results(run, g);
    ck_assert(same(&got, &want));
    expect_text(run, "stream; 1 collective by copies instead of NCCL: op ", "one GPU");
    expect_text(run, "\"it\": two ranks are on one GPU", "one GPU");
    gantry_run_free(run);
    gantry_schedule_free(s);
    gantry_machine_free(m);
    gantry_graph_free(g);
}
END_TEST

/* ---- errors ---- */

typedef struct world {
    nccl_case c;
    gantry_graph *g;
    gantry_machine *m;
    gantry_schedule *s;
    results want;
} world;

static world make_world(const char *replay)
{
    world w = { .c = { GANTRY_ALL_REDUCE, GANTRY_I32, GANTRY_SUM, 4, 50, false, false } };
    fakeCudaDevices(4, "all", 0);
    w.g = nccl_graph(&w.c);
    w.m = nccl_machine(4);
    w.s = make_schedule(w.g, w.m, replay, "round-robin");
    ck_assert_int_eq(force_nccl(w.s), 1);
    gantry_run *host = nccl_open(w.s, w.g, &w.c, "host");
    w.want = run_results(host, w.g);
    gantry_run_free(host);
    return w;
}

static void free_world(world *w)
{
    gantry_schedule_free(w->s);
    gantry_machine_free(w->m);
    gantry_graph_free(w->g);
    check_alive("world");
    ck_assert_int_eq(fakeNcclAlive(), 0);
}

/* Communicators that cannot be made: copies, with the reason. */
START_TEST(no_communicator)
{
    static const char *const specs[] = {
        "ncclGetUniqueId:1:2", "ncclCommInitRankConfig:1:2", "ncclCommInitRankConfig:3:2",
        "ncclGroupStart:1:2",  "ncclGroupEnd:1:2",           "ncclInit:1:2",
        "ncclInit:4:2"
    };
    world w = make_world(replays[_i]);
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        fakeCudaFail(specs[i]);
        gantry_run *run = nccl_open(w.s, w.g, &w.c, "cuda");
        results got = run_results(run, w.g);
        fakeCudaFail(NULL);
        ck_assert_msg(same(&got, &w.want), "%s", specs[i]);
        expect_text(run,
                    "; 1 collective by copies instead of NCCL: no communicator for GPUs gpu0, gpu1, gpu2, gpu3: NCCL: "
                    "unhandled system error (2): as the fake was told",
                    specs[i]);
        gantry_run_free(run);
        check_alive(specs[i]);
    }
    free_world(&w);
}
END_TEST

/* It never comes: the deadline says so, and so does the next; closing does not hang. */
START_TEST(a_communicator_never_comes)
{
    world w = make_world(replays[_i]);
    gantry_run *run = NULL;
    gantry_error err = { 0 };
    gantry_run_options options = GANTRY_RUN_OPTIONS_INIT;
    uint64_t ticket = 0;
    options.backend = "cuda";
    options.deadline_us = 20000;
    fakeCudaFail("ncclInit:2:7");
    MUST(gantry_run_new(&run, w.s, &options, MUST_ERR));
    gantry_status status = gantry_run_start(run, &ticket, &err);
    status = status ? status : gantry_run_wait(run, ticket, &err);
    ck_assert_int_eq(status, GANTRY_E_TIMEOUT);
    ck_assert_str_eq(err.text,
                     "the deadline of 20.000 ms passed; NCCL is still making the communicator for GPUs gpu0, gpu1, "
                     "gpu2, gpu3");
    gantry_run_free(run);
    fakeCudaFail(NULL);
    free_world(&w);
}
END_TEST

/* Calls that fail while streams are given work: the run is over, with the op, the code and NCCL's words. */
START_TEST(a_call_fails)
{
    static const char *const specs[] = { "ncclAllReduce:1:5", "ncclAllReduce:4:5", "ncclGroupStart:2:5",
                                         "ncclGroupEnd:2:5", "ncclLaunch:1:5" };
    world w = make_world("stream");
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        gantry_error err = { 0 };
        uint64_t ticket = 0;
        fakeCudaFail(specs[i]);
        gantry_run *run = nccl_open(w.s, w.g, &w.c, "cuda");
        gantry_status status = gantry_run_start(run, &ticket, &err);
        status = status ? status : gantry_run_wait(run, ticket, &err);
        ck_assert_msg(status == GANTRY_E_DEVICE, "%s: %s", specs[i], gantry_status_name(status));
        ck_assert_msg(err.native == 5, "%s: %d", specs[i], err.native);
        ck_assert_msg(strstr(err.text, "op ") == err.text &&
                          strstr(err.text, "\"it\": NCCL: invalid usage (5): as the fake"),
                      "%s: %s", specs[i], err.text);
        ck_assert_int_eq(gantry_run_start(run, &ticket, &err), GANTRY_E_DEVICE);
        ck_assert_msg(strncmp(err.text, "the run is over since an earlier failure", 40) == 0, "%s", err.text);
        gantry_run_free(run);
        fakeCudaFail(NULL);
        check_alive(specs[i]);
        ck_assert_int_eq(fakeNcclAlive(), 0);
    }
    free_world(&w);
}
END_TEST

/* The same while a graph is captured: streams, with new communicators. */
START_TEST(a_call_fails_in_a_capture)
{
    static const char *const specs[] = { "ncclAllReduce:1:5",
                                         "ncclAllReduce:4:5",
                                         "ncclGroupEnd:2:5",
                                         "ncclLaunch:1:5",
                                         "cuGraphInstantiateWithFlags:1:801",
                                         "cuStreamEndCapture:1:901" };
    world w = make_world("graph");
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        fakeCudaFail(specs[i]);
        gantry_run *run = nccl_open(w.s, w.g, &w.c, "cuda");
        for (int start = 0; start < 2; start++) {
            results got = run_results(run, w.g);
            ck_assert_msg(same(&got, &w.want), "%s", specs[i]);
        }
        ck_assert_str_eq(replay_of(run), "stream (capture refused); NCCL 2.28.9 does 1 collective");
        gantry_run_free(run);
        fakeCudaFail(NULL);
        check_alive(specs[i]);
    }
    free_world(&w);
}
END_TEST

/* NCCL says later that it failed. */
START_TEST(an_error_while_it_runs)
{
    world w = make_world(replays[_i]);
    gantry_error err = { 0 };
    uint64_t ticket = 0;
    gantry_run *run = nccl_open(w.s, w.g, &w.c, "cuda");
    MUST(gantry_run_start(run, &ticket, MUST_ERR));
    fakeCudaStall(1);
    fakeCudaFail("ncclAsync:9:6");
    ck_assert_int_eq(gantry_run_wait(run, ticket, &err), GANTRY_E_DEVICE);
    fakeCudaStall(0);
    ck_assert_int_eq(err.native, 6);
    ck_assert_msg(strstr(err.text, "\"it\", or an earlier one, failed: NCCL: remote process error (6)"), "%s",
                  err.text);
    ck_assert_int_eq(gantry_run_start(run, &ticket, &err), GANTRY_E_DEVICE);
    gantry_run_free(run);
    fakeCudaFail(NULL);
    free_world(&w);
}
END_TEST

/* Kernels that never end: the deadline, and what waits is let go. */
START_TEST(kernels_hang)
{
    world w = make_world(replays[_i]);
    gantry_error err = { 0 };
    gantry_run_options options = GANTRY_RUN_OPTIONS_INIT;
    gantry_run *run = NULL;
    uint64_t ticket = 0;
    options.backend = "cuda";
    options.deadline_us = 40000;
    fakeCudaFail("ncclHang:1:1");
    MUST(gantry_run_new(&run, w.s, &options, MUST_ERR));
    MUST(gantry_run_start(run, &ticket, MUST_ERR));
    ck_assert_int_eq(gantry_run_wait(run, ticket, &err), GANTRY_E_TIMEOUT);
    ck_assert_msg(strncmp(err.text, "the deadline of 40.000 ms passed; ", 34) == 0, "%s", err.text);
    ck_assert_msg(strstr(err.text, _i ? "a graph of" : "is the first not known to have ended"), "%s", err.text);
    ck_assert_int_eq(fakeNcclAlive(), 0);
    ck_assert_int_eq(gantry_run_start(run, &ticket, &err), GANTRY_E_TIMEOUT);
    gantry_run_free(run); /* everything is freed: nothing hangs any more */
    fakeCudaFail(NULL);
    free_world(&w);
}
END_TEST

/* Closing does not depend on NCCL. */
START_TEST(an_end_that_fails)
{
    world w = make_world(replays[_i]);
    gantry_run *run = nccl_open(w.s, w.g, &w.c, "cuda");
    results got = run_results(run, w.g);
    ck_assert(same(&got, &w.want));
    fakeCudaFail("ncclCommFinalize:2:3");
    gantry_run_free(run);
    fakeCudaFail(NULL);
    free_world(&w);
}
END_TEST

/* ---- two runs ---- */

/* Starts of both in flight on the same GPUs: what a fake kernel holds, no other has. */
START_TEST(two_runs_share_gpus)
{
    world w = make_world(replays[_i]);
    for (int seed = 1; seed <= 40; seed++) {
        fakeCudaSeed((uint64_t)seed);
        gantry_run *a = nccl_open(w.s, w.g, &w.c, "cuda"), *b = open_run(w.s, "cuda");
        const void *x = NULL;
        uint64_t first = 0, second = 0;
        (void)x;
        for (int start = 0; start < 3; start++) {
            MUST(gantry_run_start(a, &first, MUST_ERR));
            MUST(gantry_run_start(b, &second, MUST_ERR));
            if (start % 2) {
                MUST(gantry_run_wait(b, second, MUST_ERR));
                MUST(gantry_run_wait(a, first, MUST_ERR));
            } else {
                MUST(gantry_run_wait(a, first, MUST_ERR));
                MUST(gantry_run_wait(b, second, MUST_ERR));
            }
            results got = outputs_of(a, w.g);
            ck_assert(same(&got, &w.want));
        }
        gantry_run_free(seed % 2 ? a : b);
        gantry_run_free(seed % 2 ? b : a);
        check_alive("two runs");
    }
    free_world(&w);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cuda nccl");
    TCase *tests = tcase_create("all");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, every_collective);
    tcase_add_test(tests, every_type_and_operator);
    tcase_add_test(tests, the_scheduler_chooses_it);
    tcase_add_test(tests, two_ranks_on_one_gpu);
    tcase_add_loop_test(tests, no_communicator, 0, 2);
    tcase_add_loop_test(tests, a_communicator_never_comes, 0, 2);
    tcase_add_test(tests, a_call_fails);
    tcase_add_test(tests, a_call_fails_in_a_capture);
    tcase_add_loop_test(tests, an_error_while_it_runs, 0, 2);
    tcase_add_loop_test(tests, kernels_hang, 0, 2);
    tcase_add_loop_test(tests, an_end_that_fails, 0, 2);
    tcase_add_loop_test(tests, two_runs_share_gpus, 0, 2);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
