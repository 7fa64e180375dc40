/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives that GPUs share out, against the host back end, bit for bit, on the fake driver: orders that nothing
 * forbids, memory of peers that no access was enabled to, and work that one GPU does for all would show. */
#include "backends/cuda/collective/share.h"
#include "control.h"
#include "nccl/nccl_suite.h"

#include "base/text.h"
#include <stdio.h>
#include <string.h>

static const char *const replays[] = { "stream", "graph" };

static void check_alive(const char *what)
{
    char text[160];
    ck_assert_msg(fakeCudaAlive(text, sizeof text) == 0, "%s: left behind: %s", what, text);
}

/* All collectives, whatever the scheduler chose. */
static void force(gantry_schedule *s, gy_algorithm algorithm)
{
    for (size_t i = 0; i < s->ops.count; i++)
        if (s->ops.at[i].kind == GY_OP_COLLECTIVE)
            s->ops.at[i].algorithm = (uint8_t)algorithm;
}

/* ---- how often each GPU ran a kernel ---- */

enum { MOST = 8 };
typedef struct tally {
    int kernels[MOST], copies;
} tally;

static tally count(void)
{
    tally t = { .copies = fakeCudaCalls("cuMemcpyDtoDAsync") };
    for (int i = 0; i < MOST; i++) {
        char name[24];
        snprintf(name, sizeof name, "kernel on %d", i);
        t.kernels[i] = fakeCudaCalls(name);
    }
    return t;
}

static bool is_rooted(const nccl_case *c, bool in)
{
    return in ? c->kind == GANTRY_BROADCAST || c->kind == GANTRY_SCATTER
              : c->kind == GANTRY_REDUCE || c->kind == GANTRY_GATHER;
}

/* The collective's own in one start, with those taken off that put its input there and get its output. */
static tally since(tally before, const nccl_case *c)
{
    tally t = count();
    t.copies -= before.copies;
    for (int i = 0; i < MOST; i++) {
        t.kernels[i] -= before.kernels[i];
        for (int in = 0; in < 2 && i < c->ranks; in++)
            t.kernels[i] -= !is_rooted(c, in) || i == c->ranks - 1;
    }
    return t;
}

/* ---- one case ---- */

/* GPUs as the shared machine has them, in islands of so many, of two halves each where they have four: routes between
 * islands are a tenth as fast, those between halves half. */
static gantry_machine *island_machine(int devices, int gpus, int island)
{
    gy_text t = { 0 };
    gy_text_add(&t, "{\"gantry_machine\":1,\"memories\":[{\"id\":\"host\",\"capacity\":\"2GiB\"}");
    for (int i = 0; i < devices; i++)
        gy_text_printf(&t, ",{\"id\":\"gpu%d\",\"capacity\":\"256MiB\"}", i);
    gy_text_add(&t, "],\"devices\":[");
    for (int i = 0; i < devices; i++)
        gy_text_printf(&t,
                       "{\"id\":\"gpu%d\",\"type\":\"gpu\",\"memory\":\"gpu%d\",\"lanes\":3,\"copy_engines\":2,"
                       "\"launch_us\":0.1,\"ordinal\":%d},",
                       i, i, i % gpus);
    gy_text_add(
        &t, "{\"id\":\"cpu\",\"type\":\"cpu\",\"use\":\"host\",\"memory\":\"host\",\"launch_us\":0.1}],"
            "\"routes\":[{\"from\":\"host\",\"to\":\"gpu*\",\"both\":true,\"latency_us\":0.2,\"bandwidth_gbs\":10}");
    for (int i = 0; i < devices; i++)
        for (int k = 0; k < devices; k++)
            if (i != k)
                gy_text_printf(&t, ",{\"from\":\"gpu%d\",\"to\":\"gpu%d\",\"latency_us\":0.2,\"bandwidth_gbs\":%d}", i,
                               k,
                               i / island != k / island       ? 10
                               : island > 3 && i / 2 != k / 2 ? 50
                                                              : 100);
    gy_text_add(&t, "]}");
    gantry_machine *m = NULL;
    MUST(gantry_machine_parse(&m, t.at, strlen(t.at), "machine of the test", MUST_ERR));
    gy_text_free(&t);
    return m;
}

typedef struct way {
    gy_algorithm algorithm;
    const char *replay, *peer;
    int seeds, starts, gpus; /* gpus: fewer than ranks, which share them; 0: as many */
    int island;              /* of so many GPUs; 0: there are none */
} way;

/* Of the last start. */
static tally try_case(const nccl_case *c, const way *w)
{
    char what[200];
    tally t = { .copies = 0 };
    int gpus = w->gpus ? w->gpus : c->ranks;
    fakeCudaDevices(gpus, w->peer, 0);
    gantry_graph *g = nccl_graph(c);
    gantry_machine *m = w->island ? island_machine(c->ranks, gpus, w->island) : shared_machine(c->ranks, gpus);
    gantry_schedule *s = make_schedule(g, m, w->replay, "round-robin");
    force(s, w->algorithm);
    gantry_run *host = open_run(s, "host");
    nccl_bind_any(host, g, c);
    results want = run_results(host, g);
    gantry_run_free(host);
    for (int seed = 1; seed <= w->seeds; seed++) {
        snprintf(what, sizeof what, "%s, algorithm %d, peers %s, replay %s, seed %d", nccl_name(c), (int)w->algorithm,
                 w->peer, w->replay, seed);
        fakeCudaSeed((uint64_t)seed);
        gantry_run *run = open_run(s, "cuda");
        nccl_bind_any(run, g, c);
        for (int start = 0; start < w->starts; start++) {
            tally before = count();
            results got = run_results(run, g);
            ck_assert_msg(same(&got, &want), "%s, start %d: other results", what, start);
            t = since(before, c);
        }
        ck_assert_msg(strcmp(replay_of(run), w->replay) == 0, "%s: %s", what, replay_of(run));
        gantry_run_free(run);
        check_alive(what);
    }
    gantry_schedule_free(s);
    gantry_machine_free(m);
    gantry_graph_free(g);
    return t;
}

/* Data that is sent on has arrived by then: in 20 orders. */
static void try_orders(gantry_collective kind, int ranks, int64_t rows, const char *peer)
{
    nccl_case c = { .kind = kind, .dtype = GANTRY_F32, .op = GANTRY_SUM, .ranks = ranks, .rows = rows };
    for (int k = 0; k < 2; k++) {
        way w = { GY_ALGORITHM_TWO_SHOT, replays[k], peer, 20, 1, 0, 0 };
        try_case(&c, &w);
    }
}

static bool has_in_place(gantry_collective kind)
{
    return kind == GANTRY_ALL_REDUCE || kind == GANTRY_REDUCE || kind == GANTRY_BROADCAST || kind == GANTRY_ALL_TO_ALL;
}

static bool has_uneven(gantry_collective kind)
{
    return kind == GANTRY_SCATTER || kind == GANTRY_GATHER || kind == GANTRY_ALL_GATHER ||
           kind == GANTRY_REDUCE_SCATTER;
}

/* Those that the kind has: even, in place or uneven, with an empty part. */
static bool vary(nccl_case *c, int variant)
{
    c->in_place = variant == 1 && has_in_place(c->kind);
    c->uneven = has_uneven(c->kind) ? variant : 0;
    return variant == 0 || c->in_place || c->uneven;
}

/* Rows of a part that are so many that one GPU does not do it alone. */
static int64_t much_of(gantry_collective kind, gantry_dtype dtype, int ranks)
{
    bool square = kind == GANTRY_ALL_GATHER || kind == GANTRY_REDUCE_SCATTER;
    uint64_t times = (uint64_t)(square ? ranks : 1) * NCCL_COLUMNS * gantry_dtype_size(dtype);
    return (int64_t)(GY_SHARE_LITTLE / times) + 1;
}

/* `rows` 0: much. */
static nccl_case case_of(int kind, gantry_dtype dtype, gantry_access op, int ranks, int64_t rows)
{
    nccl_case c = { .kind = nccl_kinds[kind], .dtype = dtype, .op = op, .ranks = ranks, .rows = rows };
    c.rows = c.rows ? c.rows : much_of(c.kind, dtype, ranks);
    c.rows = c.kind != GANTRY_ALL_TO_ALL ? c.rows : rows ? c.rows * ranks : (c.rows / ranks + 1) * ranks;
    return c;
}

/* Much takes most of the time: every other case has it. */
static bool has_turn(int64_t rows, int number)
{
    return rows > 0 || number % 2 == 0;
}

/* ---- results ---- */

static const gy_algorithm algorithms[] = { GY_ALGORITHM_NONE, GY_ALGORITHM_ONE_SHOT, GY_ALGORITHM_TWO_SHOT,
                                           GY_ALGORITHM_COPY };

/* Little, with odd sizes, and so much that every GPU has a share. */
START_TEST(every_collective)
{
    static const int64_t rows[] = { 1, 37, 0 };
    int n = 0;
    for (int ranks = 2; ranks <= MOST; ranks++) {
        for (int variant = 0; variant < 3; variant++) {
            for (int r = 0; r < 3; r++, n++) {
                nccl_case c = case_of(_i, GANTRY_F32, GANTRY_SUM, ranks, rows[r]);
                way w = {
                    algorithms[n % (nccl_reduces(c.kind) ? 3 : 4)], replays[n / 2 % 2], "all", r < 2 ? 2 : 1, 2, 0, 0
                };
                if (has_turn(rows[r], ranks + variant) && vary(&c, variant))
                    try_case(&c, &w);
            }
        }
    }
}
END_TEST

START_TEST(every_type_and_operator)
{
    static const gantry_access ops[] = { GANTRY_SUM, GANTRY_PROD, GANTRY_MIN, GANTRY_MAX };
    for (int d = 0; d <= GANTRY_U64; d++) {
        for (int o = 0; o < (nccl_reduces(nccl_kinds[_i]) ? 4 : 1); o++) {
            for (int much = 0; much < 2; much++) {
                nccl_case c = case_of(_i, (gantry_dtype)d, ops[o], 2 + (d + o) % 3, much ? 0 : 43);
                way w = { GY_ALGORITHM_NONE, replays[(d + o) % 2], "all", 1, 2, 0, 0 };
                vary(&c, (d + o) % 2);
                try_case(&c, &w);
            }
        }
    }
}
END_TEST

/* None, one pair, all but one pair, access in one direction only. */
START_TEST(missing_access)
{
    static const char *const peers[] = { "none", "01,10", "01,10,02,20,12,21,03,30,13,31",
                                         "01,10,02,12,21,03,30,13,31,23", "30,03,31,13,32,23" };
    static const int64_t rows[] = { 5, 0 };
    for (int p = 0; p < 5; p++) {
        for (int variant = 0; variant < 2; variant++) {
            for (int r = 0; r < 2; r++) {
                nccl_case c = case_of(_i, GANTRY_F64, GANTRY_SUM, 4, rows[r]);
                way w = { algorithms[(p + r) % 3], replays[(p + variant) % 2], peers[p], 2, 2, 0, 0 };
                if (has_turn(rows[r], p + variant) && vary(&c, variant))
                    try_case(&c, &w);
            }
        }
    }
}
END_TEST

/* Several ranks on a GPU. */
START_TEST(shared_gpus)
{
    for (int k = 0; k < 4; k++) {
        nccl_case c = case_of(_i, GANTRY_F32, GANTRY_SUM, k % 2 ? 5 : 3, k / 2 ? 0 : 11);
        way w = { algorithms[k % 3], replays[k / 2], k % 2 ? "all" : "01,10,12,21", 2, 2, 2 + k % 2, 0 };
        try_case(&c, &w);
    }
}
END_TEST

/* More ends than a kernel takes: the host combines, and what is moved is copied. */
START_TEST(many_ranks)
{
    for (int k = 0; k < 2; k++) {
        nccl_case c = case_of(k ? 2 : 0, GANTRY_F32, GANTRY_SUM, 66, 11);
        way w = { GY_ALGORITHM_NONE, replays[k], "all", 1, 2, 2, 0 };
        try_case(&c, &w);
    }
}
END_TEST

START_TEST(orders)
{
    try_orders(GANTRY_BROADCAST, 3 + _i, much_of(GANTRY_BROADCAST, GANTRY_F32, 3 + _i), "all");
    try_orders(GANTRY_ALL_REDUCE, 3 + _i, much_of(GANTRY_ALL_REDUCE, GANTRY_F32, 3 + _i), "all");
    /* Some ends are staged, one after the other; what is combined is so by the host. */
    try_orders(GANTRY_BROADCAST, 4, 5500, "03,30");
    try_orders(GANTRY_REDUCE_SCATTER, 4, 5500, "01,10,02,20,03,30,12,21");
}
END_TEST

/* ---- who does what ---- */

static int ranks = 4;

static void expect_kernels(gantry_collective kind, int64_t rows, gy_algorithm algorithm, const int *kernels, int copies)
{
    nccl_case c = { .kind = kind, .dtype = GANTRY_I32, .op = GANTRY_SUM, .ranks = ranks, .rows = rows };
    int busy = 0;
    for (int i = 0; i < ranks; i++)
        busy += kernels[i] > 0;
    for (int k = 0; k < 2; k++) {
        way w = { algorithm, replays[k], "all", 2, k ? 2 : 1, 0, 0 };
        tally t = try_case(&c, &w);
        t.kernels[0] -= k && (busy > 1 || copies > ranks) ? 2 : 0; /* where they meet */
        for (int i = 0; i < ranks; i++) {
            ck_assert_msg(t.kernels[i] == kernels[i], "%s, replay %s: %d kernels on GPU %d, not %d", nccl_name(&c),
                          replays[k], t.kernels[i], i, kernels[i]);
        }
        ck_assert_msg(k || t.copies == copies, "%s: %d copies, not %d", nccl_name(&c), t.copies, copies);
    }
}

/* On 4 GPUs, the root being the last. */
START_TEST(who_does_what)
{
    int64_t each = much_of(GANTRY_BROADCAST, GANTRY_I32, 4), square = much_of(GANTRY_ALL_GATHER, GANTRY_I32, 4);
    const int one[] = { 1, 0, 0, 0 }, root[] = { 0, 0, 0, 1 }, all[] = { 1, 1, 1, 1 }, none[4] = { 0 };
    /* Little: one launch of one GPU, that of the root where there is one. */
    expect_kernels(GANTRY_ALL_REDUCE, 100, GY_ALGORITHM_NONE, one, 0);
    expect_kernels(GANTRY_ALL_REDUCE, each - 1, GY_ALGORITHM_TWO_SHOT, one, 0);
    expect_kernels(GANTRY_ALL_GATHER, square - 1, GY_ALGORITHM_NONE, one, 0);
    expect_kernels(GANTRY_ALL_TO_ALL, 100, GY_ALGORITHM_ONE_SHOT, one, 0);
    expect_kernels(GANTRY_REDUCE_SCATTER, square - 1, GY_ALGORITHM_NONE, one, 0);
    expect_kernels(GANTRY_REDUCE, each - 1, GY_ALGORITHM_NONE, root, 0);
    expect_kernels(GANTRY_BROADCAST, 100, GY_ALGORITHM_NONE, root, 0);
    expect_kernels(GANTRY_SCATTER, 100, GY_ALGORITHM_NONE, root, 0);
    expect_kernels(GANTRY_GATHER, each - 1, GY_ALGORITHM_NONE, root, 0);
    /* Shares for all, those that only give too. */
    expect_kernels(GANTRY_ALL_REDUCE, each, GY_ALGORITHM_TWO_SHOT, all, 0);
    expect_kernels(GANTRY_REDUCE, each, GY_ALGORITHM_NONE, all, 0);
    expect_kernels(GANTRY_REDUCE_SCATTER, square, GY_ALGORITHM_NONE, all, 0);
    /* The rank that has it sends it. */
    expect_kernels(GANTRY_ALL_GATHER, square, GY_ALGORITHM_NONE, all, 0);
    expect_kernels(GANTRY_ALL_TO_ALL, each / 4 * 4 + 4, GY_ALGORITHM_NONE, all, 0);
    expect_kernels(GANTRY_GATHER, each, GY_ALGORITHM_NONE, all, 0);
    expect_kernels(GANTRY_SCATTER, each, GY_ALGORITHM_NONE, root, 0);
    expect_kernels(GANTRY_BROADCAST, each, GY_ALGORITHM_ONE_SHOT, root, 0);
    /* In two rounds, the root in both. */
    expect_kernels(GANTRY_BROADCAST, each, GY_ALGORITHM_TWO_SHOT, (const int[]){ 1, 1, 1, 2 }, 0);
    expect_kernels(GANTRY_BROADCAST, each, GY_ALGORITHM_NONE, (const int[]){ 1, 1, 1, 2 }, 0);
    /* By copy engines. */
    expect_kernels(GANTRY_ALL_GATHER, 100, GY_ALGORITHM_COPY, none, 16);
    expect_kernels(GANTRY_BROADCAST, each, GY_ALGORITHM_COPY, none, 4);
    ranks = 2;
    expect_kernels(GANTRY_SCATTER, (int64_t)(GY_SHARE_ENGINE / 4 / NCCL_COLUMNS) + 1, GY_ALGORITHM_NONE, none, 2);
}
END_TEST

/* Of kernels that put something there, through those that have a share, to kernels that get it: all meet before and
 * behind. One GPU that does it all is where they meet. */
START_TEST(waits_in_a_graph)
{
    for (int count = 3; count <= MOST; count += 5) {
        for (int much = 0; much < 2; much++) {
            nccl_case c = case_of(0, GANTRY_F32, GANTRY_SUM, count, much ? 0 : 10);
            way w = { GY_ALGORITHM_NONE, "graph", "all", 1, 2, 0, 0 };
            int before = fakeCudaCalls("wait between devices");
            try_case(&c, &w);
            ck_assert_int_eq(fakeCudaCalls("wait between devices") - before, (much ? 4 : 2) * (count - 1));
        }
    }
}
END_TEST

/* Each level is a round; what it sends on has arrived by then, in every order that nothing forbids. */
START_TEST(islands)
{
    static const int shape[][2] = { { 4, 2 }, { 6, 3 }, { 8, 4 }, { 5, 2 } };
    static const int64_t rows[] = { 37, 0 };
    static const char *const peers[] = { "all", "01,10,02,20,12,21" };
    for (int k = 0; k < 4; k++) {
        for (int variant = 0; variant < 3; variant++) {
            for (int r = 0; r < 2; r++) {
                nccl_case c =
                    case_of(_i, (r + variant) % 2 ? GANTRY_F32 : GANTRY_BF16, GANTRY_SUM, shape[k][0], rows[r]);
                way w = { GY_ALGORITHM_ISLANDS, replays[(k + r) % 2], peers[(k + variant) % 4 == 3], r ? 1 : 3, 2,
                          (k + r) % 5 ? 0 : 3,  shape[k][1] };
                bool goes = c.kind == GANTRY_ALL_REDUCE || c.kind == GANTRY_BROADCAST || c.kind == GANTRY_ALL_GATHER;
                if (goes && vary(&c, variant))
                    try_case(&c, &w);
            }
        }
    }
}
END_TEST

/* Ring, tree and recursive, step by step; some kinds and ranks go at once. */
START_TEST(steps)
{
    static const gy_algorithm by[] = { GY_ALGORITHM_RING, GY_ALGORITHM_TREE, GY_ALGORITHM_RECURSIVE };
    static const int64_t rows[] = { 37, 0 };
    for (int count = 2; count <= MOST; count += 1 + (count > 2)) {
        for (int a = 0; a < 3; a++) {
            for (int r = 0; r < 2; r++) {
                nccl_case c = case_of(_i, (count + a) % 2 ? GANTRY_F32 : GANTRY_F16, GANTRY_SUM, count, rows[r]);
                way w = {
                    by[a], replays[(count + r) % 2], (count + a) % 4 ? "all" : "01,10,12,21,23,32", r < 2 ? 2 : 1, 2, 0,
                    0
                };
                if (has_turn(rows[r], count / 2 + a) && vary(&c, (count + a + r) % 3))
                    try_case(&c, &w);
            }
        }
    }
}
END_TEST

/* ---- batches ---- */

enum { RANKS = 4, ARRAYS = 6 };

static gantry_buffer split_array(gantry_graph *g, const char *name, int number, int64_t rows, int parts)
{
    char id[24];
    snprintf(id, sizeof id, "%s%d", name, number);
    gantry_buffer b = gantry_graph_buffer(g, id, GANTRY_F32, 1, (int64_t[]){ rows });
    gantry_buffer_split(g, b, parts);
    return b;
}

static void copy_parts(gantry_graph *g, gantry_buffer from, gantry_buffer to)
{
    for (int r = 0; r < RANKS; r++) {
        char where[24];
        snprintf(where, sizeof where, "gpu%d", r);
        gantry_node n = gantry_graph_kernel(g, NULL, "copy");
        gantry_node_arg(g, n, "x", gantry_part(from, r));
        gantry_node_arg(g, n, "y", gantry_part(to, r));
        gantry_node_on(g, n, where);
    }
}

/* x -> a -> the collective -> b -> y, a few times, of `rows` and more for each rank. */
static gantry_graph *alike_graph(gantry_collective kind, int64_t rows)
{
    gantry_graph *g = gantry_graph_new("alike");
    for (int i = 0; i < ARRAYS; i++) {
        int64_t n = (rows + i) * RANKS * RANKS, few = n / RANKS;
        bool gathers = kind == GANTRY_ALL_GATHER, scatters = kind == GANTRY_REDUCE_SCATTER;
        gantry_buffer x = split_array(g, "x", i, gathers ? few : n, RANKS);
        gantry_buffer a = split_array(g, "a", i, gathers ? few : n, RANKS);
        gantry_buffer b = split_array(g, "b", i, scatters ? few : n, RANKS);
        gantry_buffer y = split_array(g, "y", i, scatters ? few : n, RANKS);
        gantry_region in[RANKS], out[RANKS];
        gantry_buffer_init_uniform(g, x, (uint64_t)i + 1, -1, 1);
        gantry_buffer_output(g, y);
        copy_parts(g, x, a);
        for (int r = 0; r < RANKS; r++) {
            in[r] = gantry_part(a, r);
            out[r] = gantry_part(b, r);
        }
        gantry_graph_collective(g, "c", kind, gathers ? 0 : GANTRY_SUM, RANKS, in, RANKS, out, 0);
        copy_parts(g, b, y);
    }
    return g;
}

/* Latencies are so long that a batch is always faster. */
static gantry_machine *slow_machine(void)
{
    gy_text t = { 0 };
    gy_text_add(&t, "{\"gantry_machine\":1,\"memories\":[{\"id\":\"host\",\"capacity\":\"1GiB\"}");
    for (int i = 0; i < RANKS; i++)
        gy_text_printf(&t, ",{\"id\":\"gpu%d\",\"capacity\":\"64MiB\"}", i);
    for (int i = 0; i < RANKS; i++)
        gy_text_printf(&t, "%s{\"id\":\"gpu%d\",\"type\":\"gpu\",\"memory\":\"gpu%d\",\"ordinal\":%d}",
                       i ? "," : "],\"devices\":[", i, i, i);
    gy_text_add(&t, "],\"routes\":[{\"from\":\"*\",\"to\":\"*\",\"latency_us\":50,\"bandwidth_gbs\":100}]}");
    gantry_machine *m = NULL;
    MUST(gantry_machine_parse(&m, t.at, t.length, "machine of the test", MUST_ERR));
    gy_text_free(&t);
    return m;
}

static uint32_t members_of(const gantry_schedule *s)
{
    uint32_t count = 0;
    for (size_t i = 0; i < s->ops.count; i++)
        count += s->ops.at[i].kind == GY_OP_COLLECTIVE && (s->ops.at[i].batch || s->ops.at[i].joined);
    return count;
}

/* The same order, every collective by itself. */
static void part_batches(gantry_schedule *s)
{
    for (size_t i = 0; i < s->ops.count; i++) {
        s->ops.at[i].batch = 0;
        s->ops.at[i].joined = false;
    }
}

static int kernels_of(gantry_schedule *s, const gantry_graph *g, const results *want, const char *replay)
{
    tally before, after = { .copies = 0 };
    int kernels = 0;
    for (int seed = 1; seed <= 5; seed++) {
        fakeCudaSeed((uint64_t)seed);
        gantry_run *run = open_run(s, "cuda");
        for (int start = 0; start < 3; start++) {
            before = count();
            results got = run_results(run, g);
            after = count();
            ck_assert_msg(same(&got, want), "replay %s, seed %d, start %d: other results", replay, seed, start);
        }
        gantry_run_free(run);
        check_alive(replay);
    }
    for (int i = 0; i < RANKS; i++)
        kernels += after.kernels[i] - before.kernels[i];
    return kernels;
}

/* The host, the batch and each by itself agree bit by bit; small ones are fewer launches. */
static void try_batches(gantry_collective kind, int64_t rows, gy_algorithm algorithm, const char *replay)
{
    fakeCudaDevices(RANKS, "all", 0);
    gantry_graph *g = alike_graph(kind, rows);
    gantry_machine *m = slow_machine();
    gantry_schedule *s = make_schedule(g, m, replay, "round-robin");
    ck_assert_uint_ge(members_of(s), ARRAYS / 2);
    force(s, algorithm);
    gantry_run *host = open_run(s, "host");
    results want = run_results(host, g);
    gantry_run_free(host);
    int joined = kernels_of(s, g, &want, replay);
    part_batches(s);
    host = open_run(s, "host");
    results alone = run_results(host, g);
    gantry_run_free(host);
    ck_assert_msg(same(&alone, &want), "replay %s: a batch on the host gives other results", replay);
    int single = kernels_of(s, g, &want, replay);
    ck_assert_msg(rows > 100 || joined < single, "%d launches in batches, %d without", joined, single);
    gantry_schedule_free(s);
    gantry_machine_free(m);
    gantry_graph_free(g);
}

START_TEST(batches_are_one_exchange)
{
    static const gantry_collective kinds[] = { GANTRY_ALL_REDUCE, GANTRY_ALL_GATHER, GANTRY_REDUCE_SCATTER };
    static const int64_t rows[] = { 1, 37, 5000 };
    for (int i = 0; i < 3; i++) {
        try_batches(kinds[_i % 3], rows[i], GY_ALGORITHM_ONE_SHOT, replays[_i / 3]);
        try_batches(kinds[_i % 3], rows[i], GY_ALGORITHM_RING, replays[_i / 3]);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cuda collectives");
    TCase *tests = tcase_create("all");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, every_collective, 0, 8);
    tcase_add_loop_test(tests, every_type_and_operator, 0, 8);
    tcase_add_loop_test(tests, missing_access, 0, 8);
    tcase_add_loop_test(tests, shared_gpus, 0, 8);
    tcase_add_test(tests, many_ranks);
    tcase_add_loop_test(tests, orders, 0, 2);
    tcase_add_test(tests, who_does_what);
    tcase_add_test(tests, waits_in_a_graph);
    suite_add_tcase(suite, tests);
    TCase *batches = tcase_create("batches");
    tcase_set_timeout(batches, 120);
    tcase_add_loop_test(batches, batches_are_one_exchange, 0, 6);
    suite_add_tcase(suite, batches);
    TCase *rounds = tcase_create("rounds");
    tcase_set_timeout(rounds, 120);
    tcase_add_loop_test(rounds, islands, 0, 8);
    tcase_add_loop_test(rounds, steps, 0, 8);
    suite_add_tcase(suite, rounds);
    return run_suite(suite);
}
