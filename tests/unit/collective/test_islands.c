/* SPDX-License-Identifier: Apache-2.0 */
/* Islands of ranks as routes say, the moves of collectives that heed them, and their times. */
#include "suite.h"
#include "support/run_suite.h"

#include "base/text.h"
#include <string.h>

enum { MOST = 32, CELLS = 96 };

/* ---- machines: rates between ranks by a function of two ranks ---- */

typedef double rate_of(uint32_t a, uint32_t b);

static gantry_machine *machine_of(uint32_t ranks, rate_of *rate)
{
    gy_text t = { 0 };
    gy_text_add(&t, "{\"gantry_machine\":1,\"memories\":[{\"id\":\"host\",\"capacity\":\"1GiB\"}");
    for (uint32_t i = 0; i < ranks; i++)
        gy_text_printf(&t, ",{\"id\":\"m%u\",\"capacity\":\"1GiB\"}", i);
    gy_text_add(&t, "],\"devices\":[");
    for (uint32_t i = 0; i < ranks; i++)
        gy_text_printf(&t, "%s{\"id\":\"d%u\",\"memory\":\"m%u\",\"launch_us\":5}", i ? "," : "", i, i);
    gy_text_add(&t, "],\"routes\":[{\"from\":\"host\",\"to\":\"m*\",\"both\":true,\"bandwidth_gbs\":1}");
    for (uint32_t i = 0; i < ranks; i++)
        for (uint32_t k = 0; k < ranks; k++)
            if (i != k)
                gy_text_printf(&t, ",{\"from\":\"m%u\",\"to\":\"m%u\",\"latency_us\":1,\"bandwidth_gbs\":%g}", i, k,
                               rate(i, k));
    gy_text_add(&t, "]}");
    ck_assert(!t.failed);
    gantry_machine *m = parse(t.at);
    gy_text_free(&t);
    return m;
}

static double fours(uint32_t a, uint32_t b)
{
    return a / 4 == b / 4 ? 100 : 10;
}

static double pairs_in_fours(uint32_t a, uint32_t b)
{
    return a / 2 == b / 2 ? 1000 : fours(a, b);
}

static double dealt(uint32_t a, uint32_t b)
{
    return a % 2 == b % 2 ? 100 : 10;
}

/* Rails join 0 with 5, 1 with 4, 2 with 7, 3 with 6: quicker than other ways out, but no island. */
static double rails(uint32_t a, uint32_t b)
{
    return a / 4 == b / 4 ? 100 : (a ^ 5) == b ? 12 : 10;
}

static double three_and_five(uint32_t a, uint32_t b)
{
    return (a < 3) == (b < 3) ? 100 : 10;
}

static double all_alike(uint32_t a, uint32_t b)
{
    return a < b ? 60 : 100;
}

/* Each is near to its neighbours in a ring only. */
static double ring(uint32_t a, uint32_t b)
{
    return (a + 1) % 8 == b || (b + 1) % 8 == a ? 100 : 10;
}

static const struct layout {
    rate_of *rate;
    uint32_t ranks, levels, size[3], place[8];
} layouts[] = {
    { fours, 8, 2, { 4, 2, 0 }, { 0, 1, 2, 3, 4, 5, 6, 7 } },
    { fours, 16, 2, { 4, 4, 0 }, { 0, 1, 2, 3, 4, 5, 6, 7 } },
    { pairs_in_fours, 16, 3, { 2, 2, 4 }, { 0, 1, 2, 3, 4, 5, 6, 7 } },
    { dealt, 8, 2, { 4, 2, 0 }, { 0, 2, 4, 6, 1, 3, 5, 7 } },
    { rails, 8, 2, { 4, 2, 0 }, { 0, 1, 2, 3, 5, 4, 7, 6 } },
    { three_and_five, 8, 1, { 8, 0, 0 }, { 0, 1, 2, 3, 4, 5, 6, 7 } },
    { all_alike, 8, 1, { 8, 0, 0 }, { 0, 1, 2, 3, 4, 5, 6, 7 } },
    { ring, 8, 1, { 8, 0, 0 }, { 0, 1, 2, 3, 4, 5, 6, 7 } },
};

START_TEST(islands_are_read_from_the_routes)
{
    const struct layout *want = &layouts[_i];
    gantry_machine *m = machine_of(want->ranks, want->rate);
    gy_group g = group(GANTRY_ALL_REDUCE, want->ranks, 4096);
    gy_islands got = { 0 };
    for (int again = 0; again < 2; again++) {
        ck_assert(gy_islands_find(&got, m, &g));
        ck_assert_uint_eq(got.levels, want->levels);
        for (uint32_t i = 0; i < want->levels; i++)
            ck_assert_uint_eq(got.size[i], want->size[i]);
        for (uint32_t i = 0; i < 8; i++)
            ck_assert_uint_eq(got.rank[i], want->place[i]);
    }
    gy_islands_free(&got);
    gy_group_free(&g);
    gantry_machine_free(m);
}
END_TEST

/* ---- moves, carried out on sets: what a rank has of a cell is a set of those that gave ---- */

typedef struct world {
    int64_t cell; /* bytes */
    uint32_t own[MOST], has[MOST][CELLS], next[MOST][CELLS];
    bool read[MOST][CELLS], written[MOST][CELLS];
    bool in_place;
    int rounds;
} world;

static void carry(void *context, const gy_step_move *move)
{
    world *w = context;
    ck_assert_int_lt(move->first, move->last);
    ck_assert_uint_ne(move->from, move->to);
    bool wrong = false;
    for (int64_t c = move->first / w->cell; c * w->cell < move->last; c++) {
        uint32_t sent = move->given && !w->in_place ? w->own[move->from] : w->has[move->from][c];
        uint32_t kept = w->written[move->to][c]          ? w->next[move->to][c]
                        : move->to_given && !w->in_place ? w->own[move->to]
                                                         : w->has[move->to][c];
        wrong = wrong || !sent || (move->combines && (!kept || kept & sent));
        w->next[move->to][c] = (move->combines ? kept : 0) | sent;
        w->read[move->from][c] = w->read[move->from][c] || !move->given || w->in_place;
        w->written[move->to][c] = true;
    }
    ck_assert(!wrong);
}

/* Within a round nobody reads what another writes. */
static void end_round(void *context, int64_t times)
{
    world *w = context;
    ck_assert_int_eq(times, 1);
    bool clash = false;
    for (int r = 0; r < MOST; r++)
        for (int c = 0; c < CELLS; c++)
            clash = clash || (w->read[r][c] && w->written[r][c]);
    ck_assert(!clash);
    memcpy(w->has, w->next, sizeof w->has);
    memset(w->read, 0, sizeof w->read);
    memset(w->written, 0, sizeof w->written);
    w->rounds++;
}

/* In place, what a rank gives lies where it takes. */
static void begin_world(world *w, uint32_t ranks, gantry_collective kind, uint32_t root, bool in_place)
{
    memset(w, 0, sizeof *w);
    w->cell = 256;
    w->in_place = in_place;
    for (uint32_t r = 0; r < ranks; r++)
        w->own[r] = kind == GANTRY_ALL_REDUCE || r == root ? 1U << r : 0;
    for (uint32_t r = 0; r < ranks && in_place; r++)
        for (int c = 0; c < CELLS; c++)
            w->has[r][c] = w->next[r][c] = w->own[r];
}

/* The root need not take what it has. */
static void expect_all(world *w, uint32_t ranks, int64_t bytes, gantry_collective kind, uint32_t root)
{
    uint32_t want = kind == GANTRY_ALL_REDUCE ? (uint32_t)((UINT64_C(1) << ranks) - 1) : 1U << root;
    bool all = true;
    for (uint32_t r = 0; r < ranks; r++)
        for (int64_t c = 0; c * w->cell < bytes && (kind == GANTRY_ALL_REDUCE || r != root); c++)
            all = all && w->has[r][c] == want;
    ck_assert(all);
}

static void try_moves(const gy_islands *at, gantry_collective kind, uint32_t root, int64_t bytes)
{
    static world w;
    gy_move_walk walk = { carry, end_round, &w, false };
    begin_world(&w, at->ranks, kind, root, bytes % 3 == 0);
    gy_islands_moves(at, kind, root, &bytes, &walk);
    expect_all(&w, at->ranks, bytes, kind, root);
    ck_assert_int_eq(w.rounds, (int)at->levels * (kind == GANTRY_ALL_GATHER ? 1 : 2));
}

START_TEST(every_rank_gets_all_once)
{
    static const uint32_t sizes[][3] = { { 2, 2, 1 }, { 4, 2, 1 }, { 2, 3, 1 }, { 3, 2, 2 }, { 2, 2, 3 }, { 5, 1, 1 } };
    static const int64_t bytes[] = { 1, 255, 256, 300, 1024, 4000, 24576 };
    const uint32_t *size = sizes[_i];
    uint32_t n = size[0] * size[1] * size[2], rank[MOST];
    gy_islands at = { .levels = size[2] > 1 ? 3 : size[1] > 1 ? 2 : 1, .ranks = n, .rank = rank };
    memcpy(at.size, size, 3 * sizeof *size);
    for (uint32_t i = 0; i < n; i++)
        rank[i] = n % 5 ? (5 * i + 3) % n : n - 1 - i;
    for (int b = 0; b < 7; b++)
        for (uint32_t root = 0; root < n; root++) {
            try_moves(&at, GANTRY_BROADCAST, root, bytes[b]);
            try_moves(&at, GANTRY_ALL_GATHER, root, bytes[b]);
            if (root == 0)
                try_moves(&at, GANTRY_ALL_REDUCE, 0, bytes[b]);
        }
}
END_TEST

/* From 64 MiB on, pieces of 32 MiB one step behind the other: so many rounds more as there are pieces more. */
START_TEST(large_amounts_go_in_pieces)
{
    static const uint32_t sizes[][3] = { { 2, 2, 1 }, { 4, 2, 1 }, { 2, 2, 2 }, { 4, 4, 1 } };
    static world w;
    gy_move_walk walk = { carry, end_round, &w, false };
    const uint32_t *size = sizes[_i];
    uint32_t n = size[0] * size[1] * size[2], rank[MOST];
    gy_islands at = { .levels = size[2] > 1 ? 3 : 2, .ranks = n, .rank = rank };
    memcpy(at.size, size, 3 * sizeof *size);
    for (uint32_t i = 0; i < n; i++)
        rank[i] = n - 1 - i;
    for (int64_t pieces = 1; pieces <= 3; pieces++)
        for (int k = 0; k < 4; k++) {
            gantry_collective kind = k / 2 ? GANTRY_BROADCAST : GANTRY_ALL_REDUCE;
            int64_t bytes = pieces << 25;
            begin_world(&w, n, kind, 0, k % 2);
            w.cell = 1 << 20;
            gy_islands_moves(&at, kind, 0, &bytes, &walk);
            expect_all(&w, n, bytes, kind, 0);
            ck_assert_int_eq(w.rounds, (int)(2 * at.levels + pieces - 1));
        }
}
END_TEST

typedef struct sums {
    int64_t step, all, rounds;
} sums;

static void add_move(void *context, const gy_step_move *move)
{
    ((sums *)context)->step += move->last - move->first;
}

static void add_rounds(void *context, int64_t times)
{
    sums *s = context;
    s->all += s->step * times;
    s->rounds += times;
    s->step = 0;
}

/* Told in brief, there are as many rounds and bytes. */
START_TEST(brief_walks_add_up_alike)
{
    uint32_t rank[8] = { 0, 1, 2, 3, 4, 5, 6, 7 };
    gy_islands at = { .levels = 2, .ranks = 8, .size = { 4, 2 }, .rank = rank };
    for (int64_t bytes = 1; bytes < INT64_C(1) << 33; bytes = bytes * 3 + 77) {
        sums whole = { 0 }, brief = { 0 };
        gy_move_walk walk = { add_move, add_rounds, &whole, false };
        gy_islands_moves(&at, GANTRY_ALL_REDUCE, 0, &bytes, &walk);
        walk.context = &brief;
        walk.brief = true;
        gy_islands_moves(&at, GANTRY_ALL_REDUCE, 0, &bytes, &walk);
        ck_assert(whole.all == brief.all && whole.rounds == brief.rounds);
        ck_assert_int_eq(whole.all, 14 * bytes); /* 2 (n - 1) of all ranks together */
    }
}
END_TEST

/* Ring, tree and recursive, of any number of ranks, along any ring. */
START_TEST(every_algorithm_gets_all_to_all)
{
    static const gantry_collective kinds[] = { GANTRY_ALL_REDUCE, GANTRY_BROADCAST, GANTRY_ALL_GATHER };
    static const gy_algorithm algorithms[] = { GY_ALGORITHM_RING, GY_ALGORITHM_TREE, GY_ALGORITHM_RECURSIVE };
    static const int64_t bytes[] = { 1, 255, 300, 4000, 24576 };
    static world w;
    gy_move_walk walk = { carry, end_round, &w, false };
    uint32_t n = (uint32_t)_i, order[MOST], known = 0;
    for (uint32_t i = 0; i < n; i++)
        order[i] = n % 3 ? (3 * i + 1) % n : n - 1 - i;
    for (int k = 0; k < 9; k++)
        for (uint32_t root = 0; root < (kinds[k % 3] == GANTRY_ALL_REDUCE ? 1 : n); root++)
            for (int b = 0; b < 5; b++) {
                gy_group g = { .kind = kinds[k % 3], .ranks = n };
                begin_world(&w, n, g.kind, root, b % 2);
                if (!gy_algorithm_moves(&g, algorithms[k / 3], order, NULL, root, bytes[b], &walk))
                    continue;
                expect_all(&w, n, bytes[b], g.kind, root);
                known |= 1U << k;
            }
    ck_assert_uint_eq(known, n & (n - 1) ? 077 : 0577);
}
END_TEST

/* ---- times ---- */

/* Two islands of two: 8192 bytes cut in two, 4096 within an island; these in two, 2048 between; and back. A step is a
 * launch (5), a signal (1), a latency (1), and the bytes: 4096 at 100 GB/s, 2048 at 10. */
static double twos(uint32_t a, uint32_t b)
{
    return a / 2 == b / 2 ? 100 : 10;
}

START_TEST(times_by_hand)
{
    gantry_machine *m = machine_of(4, twos);
    const struct {
        gantry_collective kind;
        int64_t bytes;
        double us;
    } hand[] = {
        { GANTRY_ALL_REDUCE, 8192, 2 * (7 + .04096) + 2 * (7 + .2048) },
        { GANTRY_BROADCAST, 8192, 2 * (7 + .04096) + 2 * (7 + .2048) },
        /* 2048 from each to the one that has its place on the other island, then 4096 to the other of this */
        { GANTRY_ALL_GATHER, 8192, 7 + .2048 + 7 + .04096 },
    };
    for (int i = 0; i < 3; i++) {
        gy_group g = group(hand[i].kind, 4, hand[i].bytes);
        gy_way way = look(m, &g, GY_ALGORITHM_ISLANDS);
        ck_assert_msg(!way.refused, "%s", way.refused);
        ck_assert_double_eq_tol(us(way.time), hand[i].us, 1e-6);
        gy_group_free(&g);
    }
    gantry_machine_free(m);
}
END_TEST

START_TEST(who_can_not)
{
    gantry_machine *islands = machine_of(8, fours), *alike = machine_of(8, all_alike);
    gy_group sum = group(GANTRY_ALL_REDUCE, 8, 4096), half = group(GANTRY_ALL_REDUCE, 4, 4096),
             swap = group(GANTRY_ALL_TO_ALL, 8, 4096);
    ck_assert_ptr_null(look(islands, &sum, GY_ALGORITHM_ISLANDS).refused);
    ck_assert_str_eq(look(alike, &sum, GY_ALGORITHM_ISLANDS).refused, "the machine has no islands of these ranks");
    ck_assert_str_eq(look(islands, &half, GY_ALGORITHM_ISLANDS).refused, "the machine has no islands of these ranks");
    ck_assert_str_eq(look(islands, &swap, GY_ALGORITHM_ISLANDS).refused, "there is none for this kind");
    gy_group_free(&sum);
    gy_group_free(&half);
    gy_group_free(&swap);
    gantry_machine_free(islands);
    gantry_machine_free(alike);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("islands");
    TCase *c = tcase_create("islands");
    tcase_add_loop_test(c, islands_are_read_from_the_routes, 0, sizeof layouts / sizeof *layouts);
    tcase_add_loop_test(c, every_rank_gets_all_once, 0, 6);
    tcase_add_loop_test(c, large_amounts_go_in_pieces, 0, 4);
    tcase_add_test(c, brief_walks_add_up_alike);
    tcase_add_loop_test(c, every_algorithm_gets_all_to_all, 2, 18);
    tcase_add_test(c, times_by_hand);
    tcase_add_test(c, who_can_not);
    suite_add_tcase(suite, c);
    return run_suite(suite);
}
