/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives by NCCL, against the host back end, on the fake driver and a fake NCCL that ends the program where real
 * ones would hang or be wrong in silence. */
#include "control.h"
#include "nccl_suite.h"
#include "schedule/schedule.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Replays of `a_trace`: without its header there is no fake CUPTI. */
#if defined(__has_include) && __has_include(<cupti.h>)
enum { TRACES = 3 };
#else
enum { TRACES = 1 };
#endif

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
                if (variant && !c.in_place && !c.uneven)
                    continue;
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
        for (int d = 0; d <= GANTRY_U64; d++) {
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
    for (size_t i = 0; i < s->ops.count; i++)
        named += s->ops.at[i].kind == GY_OP_COLLECTIVE && s->ops.at[i].algorithm == GY_ALGORITHM_NCCL;
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

/* ---- several in one schedule ---- */

enum { CHAINS = 2, PARTS = 4, ROWS = 33, STEPS = 4 };

static void copy_part(gantry_graph *g, gantry_buffer from, gantry_buffer to, int part, int gpu)
{
    char where[24];
    snprintf(where, sizeof where, "gpu%d", gpu);
    gantry_node node = gantry_graph_kernel(g, NULL, "copy");
    gantry_node_arg(g, node, "x", gantry_part(from, part));
    gantry_node_arg(g, node, "y", gantry_part(to, part));
    gantry_node_on(g, node, where);
}

/* x -> a -> all_reduce over the GPUs first .. first + count - 1 -> b -> y. */
static void add_chain(gantry_graph *g, int number, int first, int count)
{
    gantry_buffer buffer[4];
    gantry_region in[PARTS], out[PARTS];
    for (int i = 0; i < 4; i++) {
        char name[24];
        snprintf(name, sizeof name, "%c%d", "xaby"[i], number);
        buffer[i] = gantry_graph_buffer(g, name, GANTRY_I64, 1, (int64_t[]){ count * ROWS });
        gantry_buffer_split(g, buffer[i], count);
    }
    gantry_buffer_init_iota(g, buffer[0]);
    gantry_buffer_output(g, buffer[3]);
    for (int i = 0; i < count; i++) {
        copy_part(g, buffer[0], buffer[1], i, first + i);
        in[i] = gantry_part(buffer[1], i);
        out[i] = gantry_part(buffer[2], i);
    }
    gantry_graph_collective(g, "sum", GANTRY_ALL_REDUCE, GANTRY_SUM, (size_t)count, in, (size_t)count, out, 0);
    for (int i = 0; i < count; i++)
        copy_part(g, buffer[2], buffer[3], i, first + i);
}

/* Lanes of its own for each collective, as no schedule of ours has them: nothing orders them but the back end. A batch
 * has the same lanes, so there is none. */
static void part_lanes(gantry_schedule *s)
{
    for (size_t i = 0; i < s->ops.count; i++) {
        gy_op *op = &s->ops.at[i];
        op->batch = 0;
        op->joined = false;
        for (uint32_t r = 0; op->kind == GY_OP_COLLECTIVE && r < op->lanes; r++) {
            gy_lane lane = s->lanes.at[s->op_lane.at[op->lane + r]];
            ck_assert(gy_vec_push(&s->lanes, lane));
            s->op_lane.at[op->lane + r] = (uint32_t)s->lanes.count - 1;
        }
    }
}

static void try_chains(const int first[CHAINS], const int count[CHAINS], const char *replay, int in_flight, bool part)
{
    fakeCudaDevices(PARTS, "all", 0);
    gantry_graph *g = gantry_graph_new("chains");
    for (int k = 0; k < CHAINS; k++)
        add_chain(g, k, first[k], count[k]);
    gantry_machine *m = gpu_machine(PARTS, false);
    gantry_schedule *s = NULL;
    gantry_schedule_options options = GANTRY_SCHEDULE_OPTIONS_INIT;
    options.replay = replay;
    options.policy = "round-robin";
    options.objective = in_flight > 1 ? "period" : NULL;
    options.in_flight = in_flight;
    MUST(gantry_schedule_new(&s, g, m, &options, MUST_ERR));
    gantry_run *host = open_run(s, "host");
    results want = run_results(host, g);
    gantry_run_free(host);
    ck_assert_int_eq(force_nccl(s), CHAINS);
    if (part)
        part_lanes(s);
    for (int seed = 1; seed <= 20; seed++) {
        fakeCudaSeed((uint64_t)seed);
        gantry_run *run = open_run(s, "cuda");
        uint64_t ticket[9] = { 0 };
        for (int start = 0; start < 9; start++) {
            MUST(gantry_run_start(run, &ticket[start], MUST_ERR));
            if (start >= in_flight)
                MUST(gantry_run_wait(run, ticket[start - in_flight], MUST_ERR));
        }
        MUST(gantry_run_wait(run, ticket[8], MUST_ERR));
        results got = outputs_of(run, g);
        ck_assert_msg(same(&got, &want), "replay %s, %d in flight, seed %d", replay, in_flight, seed);
        expect_text(run, "; NCCL 2.28.9 does 2 collectives", replay);
        gantry_run_free(run);
    }
    gantry_schedule_free(s);
    gantry_machine_free(m);
    gantry_graph_free(g);
    check_alive("chains");
    ck_assert_int_eq(fakeNcclAlive(), 0);
}

/* On the same GPUs, on some of the same, and apart. */
static const int firsts[][CHAINS] = { { 0, 0 }, { 0, 1 }, { 0, 2 } };
static const int counts_of[][CHAINS] = { { 4, 4 }, { 3, 3 }, { 2, 2 } };

START_TEST(two_collectives)
{
    for (int i = 0; i < 3; i++)
        try_chains(firsts[i], counts_of[i], replays[_i % 2], 1, _i / 2 == 1);
}
END_TEST

START_TEST(starts_overlap)
{
    for (int i = 0; i < 3; i++)
        try_chains(firsts[i], counts_of[i], replays[_i / 2], 3, _i % 2 == 1);
}
END_TEST

/* ---- batches ---- */

/* x -> a -> all_reduce -> b -> all_reduce -> c -> y, so often: the first sums may be one batch, the second ones another
 * behind it in the same lanes. */
static gantry_graph *alike_sums(int count)
{
    gantry_graph *g = gantry_graph_new("alike");
    for (int k = 0; k < count; k++) {
        gantry_buffer buffer[5];
        gantry_region part[3][PARTS];
        for (int i = 0; i < 5; i++) {
            char name[24];
            snprintf(name, sizeof name, "%c%d", "xabcy"[i], k);
            buffer[i] = gantry_graph_buffer(g, name, GANTRY_I64, 1, (int64_t[]){ PARTS * (ROWS + k) });
            gantry_buffer_split(g, buffer[i], PARTS);
            for (int p = 0; p < PARTS && i > 0 && i < 4; p++)
                part[i - 1][p] = gantry_part(buffer[i], p);
        }
        gantry_buffer_init_iota(g, buffer[0]);
        gantry_buffer_output(g, buffer[4]);
        for (int p = 0; p < PARTS; p++)
            copy_part(g, buffer[0], buffer[1], p, p);
        for (int i = 0; i < 2; i++)
            gantry_graph_collective(g, "sum", GANTRY_ALL_REDUCE, GANTRY_SUM, PARTS, part[i], PARTS, part[i + 1], 0);
        for (int p = 0; p < PARTS; p++)
            copy_part(g, buffer[3], buffer[4], p, p);
    }
    return g;
}

static const char slow[] =
    "{\"gantry_machine\":1,\"memories\":[{\"id\":\"host\",\"capacity\":\"1GiB\"},{\"id\":\"gpu0\",\"capacity\":"
    "\"64MiB\"},"
    "{\"id\":\"gpu1\",\"capacity\":\"64MiB\"},{\"id\":\"gpu2\",\"capacity\":\"64MiB\"},{\"id\":\"gpu3\",\"capacity\":"
    "\"64MiB\"}],\"devices\":[{\"id\":\"gpu0\",\"type\":\"gpu\",\"memory\":\"gpu0\",\"ordinal\":0},{\"id\":\"gpu1\","
    "\"type\":"
    "\"gpu\",\"memory\":\"gpu1\",\"ordinal\":1},{\"id\":\"gpu2\",\"type\":\"gpu\",\"memory\":\"gpu2\",\"ordinal\":2},{"
    "\"id\":"
    "\"gpu3\",\"type\":\"gpu\",\"memory\":\"gpu3\",\"ordinal\":3}],\"routes\":[{\"from\":\"*\",\"to\":\"*\",\"latency_"
    "us\":50,"
    "\"bandwidth_gbs\":100}]}";

/* How many group calls the last of three starts made, in each of some orders. */
static int groups_of(gantry_schedule *s, const gantry_graph *g, const results *want)
{
    int groups = 0;
    for (int seed = 1; seed <= 20; seed++) {
        fakeCudaSeed((uint64_t)seed);
        gantry_run *run = open_run(s, "cuda");
        for (int start = 0; start < 3; start++) {
            int before = fakeCudaCalls("ncclGroupStart");
            results got = run_results(run, g);
            groups = fakeCudaCalls("ncclGroupStart") - before;
            ck_assert_msg(same(&got, want), "seed %d, start %d: other results", seed, start);
        }
        gantry_run_free(run);
        ck_assert_int_eq(fakeNcclAlive(), 0);
    }
    check_alive("batches");
    return groups;
}

START_TEST(a_batch_is_one_group_call)
{
    enum { COUNT = 5 };
    fakeCudaDevices(PARTS, "all", 0);
    gantry_machine *m = NULL;
    gantry_graph *g = alike_sums(COUNT);
    MUST(gantry_machine_parse(&m, slow, sizeof slow - 1, "machine of the test", MUST_ERR));
    gantry_schedule *s = make_schedule(g, m, replays[_i], "round-robin");
    gantry_run *host = open_run(s, "host");
    results want = run_results(host, g);
    gantry_run_free(host);
    ck_assert_int_eq(force_nccl(s), 2 * COUNT);
    int batches = 0, members = 0;
    for (size_t i = 0; i < s->ops.count; i++) {
        batches += s->ops.at[i].kind == GY_OP_COLLECTIVE && s->ops.at[i].batch;
        members += s->ops.at[i].kind == GY_OP_COLLECTIVE && (s->ops.at[i].batch || s->ops.at[i].joined);
    }
    ck_assert_int_ge(batches, 2);
    int joined = groups_of(s, g, &want);
    for (size_t i = 0; i < s->ops.count; i++) {
        s->ops.at[i].batch = 0;
        s->ops.at[i].joined = false;
    }
    int single = groups_of(s, g, &want);
    if (_i == 0) /* a graph has them already */
        ck_assert_msg(single - joined == members - batches && single >= 2 * COUNT,
                      "%d group calls for %d collectives in %d batches, %d without", joined, members, batches, single);
    gantry_schedule_free(s);
    gantry_machine_free(m);
    gantry_graph_free(g);
}
END_TEST

/* ---- in a row ---- */

/* STEPS sums in place on the same GPUs, one behind the other in their lanes; after each, the other GPU of each pair
 * takes every part, so that all of a collective has to be over before some copy, and that copy before the next
 * collective. */
static gantry_graph *row_of_sums(void)
{
    gantry_graph *g = gantry_graph_new("row");
    gantry_region part[PARTS];
    gantry_buffer x = gantry_graph_buffer(g, "x", GANTRY_I64, 1, (int64_t[]){ PARTS * ROWS });
    gantry_buffer a = gantry_graph_buffer(g, "a", GANTRY_I64, 1, (int64_t[]){ PARTS * ROWS });
    gantry_buffer_split(g, x, PARTS);
    gantry_buffer_split(g, a, PARTS);
    gantry_buffer_init_iota(g, x);
    for (int i = 0; i < PARTS; i++) {
        copy_part(g, x, a, i, i);
        part[i] = gantry_part(a, i);
    }
    for (int k = 0; k < STEPS; k++) {
        char name[32];
        snprintf(name, sizeof name, "y%d", k);
        gantry_buffer y = gantry_graph_buffer(g, name, GANTRY_I64, 1, (int64_t[]){ PARTS * ROWS });
        gantry_buffer_split(g, y, PARTS);
        gantry_buffer_output(g, y);
        gantry_graph_collective(g, "sum", GANTRY_ALL_REDUCE, GANTRY_SUM, PARTS, part, PARTS, part, 0);
        for (int i = 0; i < PARTS; i++)
            copy_part(g, a, y, i, i ^ 1);
    }
    return g;
}

START_TEST(collectives_in_a_row)
{
    fakeCudaDevices(PARTS, "all", 0);
    gantry_graph *g = row_of_sums();
    gantry_machine *m = gpu_machine(PARTS, false);
    gantry_schedule *s = make_schedule(g, m, replays[_i], "round-robin");
    gantry_run *host = open_run(s, "host");
    results want = run_results(host, g);
    gantry_run_free(host);
    ck_assert_int_eq(force_nccl(s), STEPS);
    for (int seed = 1; seed <= 60; seed++) {
        fakeCudaSeed((uint64_t)seed);
        gantry_run *run = open_run(s, "cuda");
        for (int start = 0; start < 3; start++) {
            results got = run_results(run, g);
            ck_assert_msg(same(&got, &want), "replay %s, seed %d, start %d", replays[_i], seed, start);
        }
        gantry_run_free(run);
    }
    gantry_schedule_free(s);
    gantry_machine_free(m);
    gantry_graph_free(g);
    check_alive("row");
    ck_assert_int_eq(fakeNcclAlive(), 0);
}
END_TEST

/* With times: of events in streams, by CUPTI in a graph. */
START_TEST(a_trace)
{
    nccl_case c = { GANTRY_ALL_GATHER, GANTRY_F64, GANTRY_SUM, 4, 20, false, false };
    gantry_run_options options = GANTRY_RUN_OPTIONS_INIT;
    gantry_run *run = NULL;
    char *text = NULL;
    size_t length = 0;
    fakeCudaDevices(4, "all", 0);
    gantry_graph *g = nccl_graph(&c);
    gantry_machine *m = nccl_machine(4);
    gantry_schedule *s = make_schedule(g, m, _i == 1 ? "stream" : "graph", "round-robin");
    options.backend = "cuda";
    options.record_trace = 1;
    setenv("FAKE_CUPTI", _i ? "on" : "", 1);
    MUST(gantry_run_new(&run, s, &options, MUST_ERR));
    nccl_bind(run, g, &c);
    run_results(run, g);
    MUST(gantry_run_trace(run, &text, &length, MUST_ERR));
    const char *it = strstr(text, "\"it\""), *took = it ? strstr(it, "\"dur\":") : NULL;
    ck_assert(took && strtod(took + 6, NULL) > 0);
    static const char *const how[] = { "stream; times by events, CUPTI cannot be used", "stream; times by CUPTI",
                                       "graph; times by CUPTI" };
    ck_assert(strncmp(replay_of(run), how[_i], strlen(how[_i])) == 0);
    ck_assert_str_eq(replay_of(run) + strlen(how[_i]), "; NCCL 2.28.9 does 1 collective");
    gantry_free(text);
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

/* Questions asked from opening a run to the end of its first start. */
static int count_questions(const world *w, const char *spec, gantry_status *status, gantry_error *err)
{
    gantry_run *run = NULL;
    gantry_run_options options = GANTRY_RUN_OPTIONS_INIT;
    uint64_t ticket = 0;
    options.backend = "cuda";
    fakeCudaSeed(1);
    int before = fakeCudaCalls("ncclAsync");
    fakeCudaFail(spec);
    MUST(gantry_run_new(&run, w->s, &options, MUST_ERR));
    MUST(gantry_run_start(run, &ticket, MUST_ERR));
    *status = gantry_run_wait(run, ticket, err);
    int asked = fakeCudaCalls("ncclAsync") - before;
    fakeCudaFail(NULL);
    gantry_run_free(run);
    return asked;
}

/* Kernels that give up end as others do: the answer to the last question counts. */
START_TEST(an_error_at_the_end)
{
    world w = make_world(replays[_i]);
    gantry_error err = { 0 };
    gantry_status status;
    char spec[40];
    int last = count_questions(&w, NULL, &status, &err);
    ck_assert_int_eq(status, GANTRY_OK);
    snprintf(spec, sizeof spec, "ncclAsync:%d:6", last);
    count_questions(&w, spec, &status, &err);
    ck_assert_int_eq(status, GANTRY_E_DEVICE);
    ck_assert_int_eq(err.native, 6);
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

/* Fails the n-th call for n = 1, 2, ... until there is no n-th call. */
static void sweep(const world *w, const char *name, int code)
{
    for (int n = 1, reached = 1; reached; n++) {
        char spec[80];
        gantry_run *run = NULL;
        gantry_error err = { 0 };
        gantry_run_options options = GANTRY_RUN_OPTIONS_INIT;
        options.backend = "cuda";
        uint64_t ticket = 0;
        snprintf(spec, sizeof spec, "%s:%d:%d", name, n, code);
        int before = fakeCudaCalls(name);
        fakeCudaFail(spec);
        gantry_status status = gantry_run_new(&run, w->s, &options, &err);
        if (status == GANTRY_OK)
            nccl_bind(run, w->g, &w->c);
        for (int start = 0; start < 2 && status == GANTRY_OK; start++) {
            status = gantry_run_start(run, &ticket, &err);
            status = status ? status : gantry_run_wait(run, ticket, &err);
        }
        if (status == GANTRY_OK) {
            results got = outputs_of(run, w->g);
            ck_assert_msg(same(&got, &w->want), "%s: other results", spec);
        }
        ck_assert_msg(status == GANTRY_OK || (status == GANTRY_E_DEVICE && err.native == code), "%s: %s, %d: %s", spec,
                      gantry_status_name(status), err.native, err.text);
        gantry_run_free(run); /* calls of closing fail, too */
        reached = fakeCudaCalls(name) - before >= n;
        fakeCudaFail(NULL);
        check_alive(spec);
        ck_assert_msg(fakeNcclAlive() == 0, "%s: communicators are left", spec);
    }
}

START_TEST(every_call)
{
    static const char *const calls[] = { "ncclGetUniqueId", "ncclCommInitRankConfig", "ncclInit",      "ncclAsync",
                                         "ncclGroupStart",  "ncclGroupEnd",           "ncclAllReduce", "ncclLaunch",
                                         "ncclCommFinalize" };
    static const char *const of_driver[] = { "cuEventRecord", "cuStreamWaitEvent", "cuStreamBeginCapture",
                                             "cuStreamEndCapture", "cuGraphLaunch" };
    world w = make_world(replays[_i]);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        sweep(&w, calls[i], 3);
    for (size_t i = 0; i < sizeof of_driver / sizeof *of_driver; i++)
        sweep(&w, of_driver[i], CUDA_ERROR_INVALID_HANDLE);
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
        uint64_t first = 0, second = 0;
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

typedef struct starter {
    world *w;
    int failed;
} starter;

static void *start_often(void *data)
{
    starter *st = data;
    gantry_run *run = NULL;
    gantry_run_options options = GANTRY_RUN_OPTIONS_INIT;
    gantry_error err = { 0 };
    options.backend = "cuda";
    st->failed = gantry_run_new(&run, st->w->s, &options, &err) != GANTRY_OK;
    for (int start = 0; start < 30 && !st->failed; start++) {
        uint64_t ticket = 0;
        st->failed = gantry_run_start(run, &ticket, &err) || gantry_run_wait(run, ticket, &err);
    }
    if (st->failed)
        fprintf(stderr, "%s\n", err.text);
    return run;
}

/* Closed when both are done: the fake driver wants nothing queued when memory is freed. */
START_TEST(two_threads)
{
    world w = make_world(replays[_i]);
    starter st[2] = { { &w, 0 }, { &w, 0 } };
    pthread_t thread[2];
    void *run[2] = { NULL, NULL };
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(pthread_create(&thread[i], NULL, start_often, &st[i]), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(thread[i], &run[i]);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(st[i].failed, 0);
        gantry_run_free(run[i]);
    }
    free_world(&w);
}
END_TEST

/* ---- the library ---- */

static void expect_line(const char *line)
{
    char *text = NULL;
    size_t i = 0;
    while (strcmp(gantry_backend_name(i), "cuda") != 0)
        i++;
    MUST(gantry_backend_describe(i, &text, MUST_ERR));
    ck_assert_msg(strstr(text, line), "no \"%s\" in:\n%s", line, text);
    gantry_free(text);
}

/* A library that is too old: copies, and everybody is told. */
START_TEST(old_library)
{
    static const char *const folders[] = { GANTRY_ABSENT "/nccl_symbol", GANTRY_ABSENT "/nccl_version" };
    static const char *const whys[] = { "libnccl.so.2 has no function ncclCommInitRankConfig: it is too old",
                                        "libnccl.so.2 is version 2.10.3, and 2.14 or later is needed" };
    char line[120];
    world w = make_world("stream");
    setenv("GANTRY_CUDA_LIBRARIES", folders[_i], 1);
    gantry_run *run = nccl_open(w.s, w.g, &w.c, "cuda");
    results got = run_results(run, w.g);
    ck_assert(same(&got, &w.want));
    expect_text(run, "stream; 1 collective by copies instead of NCCL: ", "old");
    expect_text(run, whys[_i], "old");
    gantry_run_free(run);
    snprintf(line, sizeof line, "NCCL: %s; collectives are copies\n", whys[_i]);
    expect_line(line);
    free_world(&w);
}
END_TEST

START_TEST(description)
{
    fakeCudaDevices(2, "all", 0);
    expect_line("\nNCCL: libnccl.so.2, version 2.28.9\n");
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
    tcase_add_loop_test(tests, two_collectives, 0, 4);
    tcase_add_loop_test(tests, a_batch_is_one_group_call, 0, 2);
    tcase_add_loop_test(tests, collectives_in_a_row, 0, 2);
    tcase_add_loop_test(tests, starts_overlap, 0, 4);
    tcase_add_loop_test(tests, a_trace, 0, TRACES);
    tcase_add_test(tests, two_ranks_on_one_gpu);
    tcase_add_loop_test(tests, no_communicator, 0, 2);
    tcase_add_loop_test(tests, a_communicator_never_comes, 0, 2);
    tcase_add_test(tests, a_call_fails);
    tcase_add_test(tests, a_call_fails_in_a_capture);
    tcase_add_loop_test(tests, an_error_while_it_runs, 0, 2);
    tcase_add_loop_test(tests, an_error_at_the_end, 0, 2);
    tcase_add_loop_test(tests, kernels_hang, 0, 2);
    tcase_add_loop_test(tests, an_end_that_fails, 0, 2);
    tcase_add_loop_test(tests, every_call, 0, 2);
    tcase_add_loop_test(tests, two_runs_share_gpus, 0, 2);
    tcase_add_loop_test(tests, old_library, 0, 2);
    tcase_add_test(tests, description);
    suite_add_tcase(suite, tests);
    TCase *threads = tcase_create("threads");
    tcase_set_timeout(threads, 60);
    tcase_add_loop_test(threads, two_threads, 0, 2);
    suite_add_tcase(suite, threads);
    return run_suite(suite);
}
