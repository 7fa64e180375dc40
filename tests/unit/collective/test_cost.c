/* SPDX-License-Identifier: Apache-2.0 */
/* Times of algorithms, and which can be used: by hand, and measured ones of a machine with eight GPUs. */
#include "suite.h"

#include "base/map.h"
#include "support/run_suite.h"

#include <stdio.h>
#include <string.h>

#define DEVICES                                                                                                        \
    "{\"gantry_machine\":1,\"memories\":[{\"id\":\"host\",\"capacity\":\"1GiB\"},{\"id\":\"m1\",\"capacity\":"         \
    "\"1MiB\"},"                                                                                                       \
    "{\"id\":\"m2\",\"capacity\":\"1MiB\"},{\"id\":\"m3\",\"capacity\":\"1MiB\"},{\"id\":\"m4\",\"capacity\":"         \
    "\"1MiB\"}],"                                                                                                      \
    "\"devices\":[{\"id\":\"d1\",\"memory\":\"m1\"},{\"id\":\"d2\",\"memory\":\"m2\"},{\"id\":\"d3\",\"memory\":"      \
    "\"m3\","                                                                                                          \
    "\"launch_us\":5},{\"id\":\"d4\",\"memory\":\"m4\"}],"

/* Every two memories have a link of their own, 1 us and 1 GB/s: 1000 bytes take 2 us. Launches take 5 us. */
static const char links[] = DEVICES "\"routes\":[{\"from\":\"*\",\"to\":\"*\",\"latency_us\":1,\"bandwidth_gbs\":1}]}";
/* The same over one bus. */
static const char bus[] = DEVICES "\"resources\":{\"bus\":1},\"routes\":[{\"from\":\"*\",\"to\":\"*\",\"latency_us\":1,"
                                  "\"bandwidth_gbs\":1,\"via\":[\"bus\"]}]}";
/* Links between neighbours of a chain only, and to the host. */
static const char line[] =
    DEVICES "\"routes\":[{\"from\":\"m1\",\"to\":\"m2\",\"both\":true,\"latency_us\":1,\"bandwidth_gbs\":1},"
            "{\"from\":\"m2\",\"to\":\"m3\",\"both\":true,\"latency_us\":1,\"bandwidth_gbs\":1},"
            "{\"from\":\"m3\",\"to\":\"m4\",\"both\":true,\"latency_us\":1,\"bandwidth_gbs\":1},"
            "{\"from\":\"host\",\"to\":\"m*\",\"both\":true,\"latency_us\":9,\"bandwidth_gbs\":1}]}";

/* Four ranks. A step is: a launch (5), a signal (1), the latency (1), the bytes; of a scatter, a launch before all. */
static const struct by_hand {
    gantry_collective kind;
    int64_t bytes;
    gy_algorithm algorithm;
    double links, bus;
} by_hand[] = {
    /* 6 steps of 1000; on the bus 4000 at once */
    { GANTRY_ALL_REDUCE, 4000, GY_ALGORITHM_RING, 6 * (5 + 3), 6 * (5 + 6) },
    /* 1000, 2000 and back; bus: 4 ranks send at once */
    { GANTRY_ALL_REDUCE, 4000, GY_ALGORITHM_RECURSIVE, 2 * (5 + 3 + 5 + 4), 2 * (5 + 6 + 5 + 10) },
    /* 2 halvings of 4000 up and down; bus: 2 pairs, then 1 */
    { GANTRY_ALL_REDUCE, 4000, GY_ALGORITHM_TREE, 4 * (5 + 6), 2 * (5 + 10 + 5 + 6) },
    /* signals 2, latency 1, each from 3 others: 4000 on each link, 48,000 on the bus */
    { GANTRY_ALL_REDUCE, 4000, GY_ALGORITHM_ONE_SHOT, 5 + 2 + 1 + 4, 5 + 2 + 1 + 48 },
    /* 62 or 63 vectors of 16 bytes a rank, there and back: 1008 on the slowest link, 12,000 on the bus */
    { GANTRY_ALL_REDUCE, 4000, GY_ALGORITHM_TWO_SHOT, 5 + 2 + 2 * 2.008, 5 + 2 + 2 * 13 },
    { GANTRY_ALL_GATHER, 4000, GY_ALGORITHM_RING, 3 * (5 + 3), 3 * (5 + 6) },
    /* each device sends 3 copies of 2 us by its one engine; bus: 1 + 12 */
    { GANTRY_ALL_GATHER, 4000, GY_ALGORITHM_COPY, 6, 13 },
    { GANTRY_ALL_GATHER, 4000, GY_ALGORITHM_RECURSIVE, 5 + 3 + 5 + 4, 5 + 6 + 5 + 10 },
    { GANTRY_REDUCE_SCATTER, 4000, GY_ALGORITHM_ONE_SHOT, 5 + 2 + 2, 5 + 2 + 13 },
    /* root to 1, then both to 2 more */
    { GANTRY_BROADCAST, 4000, GY_ALGORITHM_TREE, 2 * (5 + 6), 5 + 6 + 5 + 10 },
    /* a chain of 3 hops in one piece, as it is less than 256 KiB; on the bus all hops are reckoned to be busy */
    { GANTRY_BROADCAST, 4000, GY_ALGORITHM_RING, 3 * (5 + 6), 3 * (5 + 2 + 12) },
    /* to the root in k pieces: (2 + k) (2 + 4/k), best of 1, 2, 4 ..: 2 of them, 4 * 4; on the bus 4, 6 * 5 */
    { GANTRY_REDUCE, 4000, GY_ALGORITHM_RING, 5 + 16, 5 + 30 },
    /* the root's engine takes one copy of 5 us after the other: longer than the bus needs for 12,000 */
    { GANTRY_BROADCAST, 4000, GY_ALGORITHM_COPY, 15, 15 },
    /* half of the parts, then a quarter twice; bus: 2000, then 2000 */
    { GANTRY_SCATTER, 4000, GY_ALGORITHM_TREE, 5 + 4 + 3, 5 + 4 + 4 },
    /* each sends its part; bus: 1 + 3 */
    { GANTRY_GATHER, 4000, GY_ALGORITHM_COPY, 2, 4 },
    /* 3 steps of a block of 1000 a rank */
    { GANTRY_ALL_TO_ALL, 16000, GY_ALGORITHM_RING, 3 * (5 + 3), 3 * (5 + 6) },
};

START_TEST(times_by_hand)
{
    const struct by_hand *h = &by_hand[_i];
    gantry_machine *m[2] = { parse(links), parse(bus) };
    gy_group g = group(h->kind, 4, h->bytes);
    for (int i = 0; i < 2; i++) {
        gy_way way = look(m[i], &g, h->algorithm);
        ck_assert_ptr_null(way.refused);
        ck_assert_double_eq_tol(us(way.time), i ? h->bus : h->links, 1e-6);
        ck_assert_uint_eq(way.provenance, GY_COST_ROOFLINE);
        gantry_machine_free(m[i]);
    }
    gy_group_free(&g);
}
END_TEST

/* ---- who can ---- */

static const char *refusal(const char *machine, const gy_group *g, gy_algorithm a)
{
    gantry_machine *m = parse(machine);
    const char *why = look(m, g, a).refused;
    gantry_machine_free(m);
    return why ? why : "";
}

START_TEST(who_can_not)
{
    gy_group gather = group(GANTRY_GATHER, 4, 4096), sum = group(GANTRY_ALL_REDUCE, 4, 4096),
             three = group(GANTRY_ALL_REDUCE, 3, 4096), odd = group(GANTRY_ALL_REDUCE, 4, 4100);
    ck_assert_str_eq(refusal(links, &gather, GY_ALGORITHM_RING), "there is none for this kind");
    ck_assert_str_eq(refusal(links, &sum, GY_ALGORITHM_COPY), "copy engines cannot combine");
    ck_assert_str_eq(refusal(links, &three, GY_ALGORITHM_RECURSIVE), "the number of ranks is no power of two");
    ck_assert_str_eq(refusal(links, &three, GY_ALGORITHM_RING), "");
    ck_assert_str_eq(refusal(links, &odd, GY_ALGORITHM_TWO_SHOT), "parts are no multiples of 16 bytes");
    ck_assert_str_eq(refusal(links, &odd, GY_ALGORITHM_ONE_SHOT), "");
    ck_assert_str_eq(refusal(line, &sum, GY_ALGORITHM_ONE_SHOT), "some ranks have no direct route");
    ck_assert_str_eq(refusal(line, &sum, GY_ALGORITHM_RING), "");
    ck_assert_str_eq(refusal(links, &sum, GY_ALGORITHM_NCCL), "the machine has no measured times for these devices");
    gy_group_free(&gather);
    gy_group_free(&sum);
    gy_group_free(&three);
    gy_group_free(&odd);
}
END_TEST

/* In place, others read what one_shot is about to write: it needs a copy of all, and a memory has 1 MiB. */
START_TEST(in_place_needs_scratch)
{
    gy_group small = group(GANTRY_ALL_REDUCE, 4, 1 << 19), large = group(GANTRY_ALL_REDUCE, 4, 1 << 21);
    ck_assert_str_eq(refusal(links, &large, GY_ALGORITHM_ONE_SHOT), "");
    small.in_place = large.in_place = true;
    ck_assert_str_eq(refusal(links, &small, GY_ALGORITHM_ONE_SHOT), "");
    ck_assert_str_eq(refusal(links, &large, GY_ALGORITHM_ONE_SHOT), "its scratch does not fit in the memory of a rank");
    ck_assert_str_eq(refusal(links, &large, GY_ALGORITHM_TWO_SHOT), "");
    gy_group_free(&small);
    gy_group_free(&large);
}
END_TEST

/* Two give, the other two take. */
START_TEST(not_all_take_part)
{
    gy_group g;
    gy_group_span span[] = { { 1, 0, 0, 64 }, { 2, 1, 0, 64 }, { 3, 2, 0, 64 }, { 4, 3, 0, 64 } };
    ck_assert(gy_group_of_rows(&g, GANTRY_ALL_REDUCE, GANTRY_SUM, span, 2, 2));
    ck_assert(!gy_group_is_full(&g));
    ck_assert_str_eq(refusal(links, &g, GY_ALGORITHM_RING), "some ranks only give or only take");
    ck_assert_str_eq(refusal(links, &g, GY_ALGORITHM_ONE_SHOT), "");
    ck_assert_int_eq(gy_group_need(&g, 0, 2), 64);
    ck_assert_int_eq(gy_group_need(&g, 2, 0), 0);
    gy_group_free(&g);
}
END_TEST

/* Collectives that NCCL would do in another way, or not at all. */
START_TEST(not_by_nccl)
{
    static const gantry_dtype types[] = { GANTRY_F32, GANTRY_F64, GANTRY_F16, GANTRY_BF16, GANTRY_I32, GANTRY_U8 };
    for (int i = 0; i < 6; i++) {
        for (int op = GANTRY_SUM; op <= GANTRY_PROD; op++) {
            gy_group g;
            gy_group_span span[] = { { 1, 0, 0, 64 }, { 2, 1, 0, 64 }, { 1, 2, 0, 64 }, { 2, 3, 0, 64 } };
            ck_assert(gy_group_of_rows(&g, GANTRY_ALL_REDUCE, (uint8_t)op, span, 2, 2));
            gy_group_type(&g, types[i]);
            bool nan = i < 4 && (op == GANTRY_MIN || op == GANTRY_MAX);
            ck_assert_str_eq(refusal(links, &g, GY_ALGORITHM_NCCL),
                             nan ? "its min and max pass over NaN"
                                 : "the machine has no measured times for these devices");
            ck_assert_str_eq(refusal(links, &g, GY_ALGORITHM_ONE_SHOT), "");
            gy_group_free(&g);
        }
    }
    gy_group swap = group(GANTRY_ALL_TO_ALL, 4, 16000);
    swap.in_place = true;
    ck_assert_str_eq(refusal(links, &swap, GY_ALGORITHM_NCCL), "it swaps nothing in place");
    gy_group_free(&swap);
}
END_TEST

/* Memory 1 has two contributions to rows 32 to 64; in the second case they are to other rows. NCCL takes one. */
START_TEST(two_values_of_a_row)
{
    for (int apart = 0; apart < 2; apart++) {
        gy_group g;
        gy_group_span span[] = { { 1, 0, 0, 64 },
                                 { 1, 1, 64 * apart + 32 * !apart, 64 + 64 * apart },
                                 { 2, 2, 0, 128 },
                                 { 1, 3, 0, 128 },
                                 { 2, 4, 0, 128 } };
        ck_assert(gy_group_of_rows(&g, GANTRY_ALL_REDUCE, GANTRY_SUM, span, 3, 2));
        ck_assert_int_eq(g.twice, !apart);
        const char *why = refusal(links, &g, GY_ALGORITHM_NCCL);
        ck_assert_str_eq(why, apart ? "the machine has no measured times for these devices"
                                    : "a rank has two values of one row");
        ck_assert_str_eq(refusal(links, &g, GY_ALGORITHM_ONE_SHOT), "");
        gy_group_free(&g);
    }
    gy_group g;
    gy_group_end end[] = { { 1, 64, 0, 0, 64 }, { 1, 64, 0, 64, 128 }, { 2, 64, 1, 0, 64 }, { 1, 64, 2, 0, 64 } };
    ck_assert(gy_group_of_node(&g, GANTRY_REDUCE, GANTRY_SUM, end, 3, 1));
    ck_assert(g.twice);
    gy_group_free(&g);
}
END_TEST

/* The slowest of uneven parts is what every step of a ring waits for: 3 steps of 2800 bytes. */
START_TEST(uneven_parts)
{
    static const int64_t part[] = { 2800, 400, 400, 400 };
    gy_group g = uneven(GANTRY_ALL_GATHER, 4, part), even = group(GANTRY_ALL_GATHER, 4, 4000);
    gantry_machine *m = parse(links);
    ck_assert(!gy_group_is_even(&g) && gy_group_is_even(&even));
    ck_assert_int_eq(g.bytes, 4000);
    ck_assert_double_eq_tol(us(look(m, &g, GY_ALGORITHM_RING).time), 3 * (5 + 4.8), 1e-6);
    gantry_machine_free(m);
    gy_group_free(&g);
    gy_group_free(&even);
}
END_TEST

/* ---- orders and choices ---- */

/* DGX-1: 0 1 3 2 6 7 5 4 is a ring of double links (50 GB/s); in order of numbers it would go over single links and by
 * relay. */
START_TEST(rings_follow_the_links)
{
    gantry_machine *m = load("dgx1-v100", false);
    gy_group g = group(GANTRY_ALL_GATHER, 8, 8 * 50000000);
    gy_net net;
    static const uint32_t want[] = { 0, 1, 3, 2, 6, 7, 5, 4 };
    ck_assert(gy_net_init(&net, m) && gy_net_begin(&net, &g));
    for (int i = 0; i < 8; i++)
        ck_assert_uint_eq(net.order.at[i], want[i]);
    /* 7 steps: signal 2, latency 2, 1000 us at 50 GB/s and a quarter more; launch 4 */
    ck_assert_double_eq_tol(us(gy_collective_look(&net, &g, GY_ALGORITHM_RING).time), 7 * (4 + 4 + 1250), 1e-3);
    gy_net_free(&net);
    gy_group_free(&g);
    gantry_machine_free(m);
}
END_TEST

START_TEST(the_cheapest_is_chosen_or_what_is_asked_for)
{
    gantry_machine *m = parse(links);
    gy_group g = group(GANTRY_ALL_REDUCE, 4, 4000);
    gy_net net;
    gy_way way;
    gantry_error err;
    ck_assert(gy_net_init(&net, m));
    ck_assert_int_eq(gy_collective_obey(&net, &g, NULL, "n", &way, &err), GANTRY_OK);
    ck_assert_int_eq(way.algorithm, GY_ALGORITHM_TWO_SHOT); /* 11.016 us; see above */
    ck_assert_int_eq(gy_collective_obey(&net, &g, "tree", "n", &way, &err), GANTRY_OK);
    ck_assert_int_eq(way.algorithm, GY_ALGORITHM_TREE);
    ck_assert_double_eq_tol(us(way.time), 44, 1e-6);
    ck_assert_int_eq(gy_collective_obey(&net, &g, "copy_engine", "n", &way, &err), GANTRY_E_GRAPH);
    ck_assert_str_eq(err.text, "all_reduce \"n\" asks for algorithm \"copy_engine\": copy engines cannot combine; here "
                               "there are auto, ring, tree, recursive, one_shot, two_shot, counters");
    ck_assert_int_eq(gy_collective_obey(&net, &g, "rign", "n", &way, &err), GANTRY_E_GRAPH);
    ck_assert_str_eq(err.text, "all_reduce \"n\" asks for algorithm \"rign\": nobody knows it (did you mean "
                               "\"ring\"?); here there are auto, ring, "
                               "tree, recursive, one_shot, two_shot, counters");
    gy_net_free(&net);
    gy_group_free(&g);
    gantry_machine_free(m);
}
END_TEST

/* ---- measured ---- */

#define KIB 1024.0
#define MIB (1024 * KIB)
/* us per all_reduce on 8 H200, 20 in one CUDA graph; 0: not measured. */
static const struct measured {
    double bytes, nccl, one_shot, two_shot;
} measured[] = {
    { 1 * KIB, 17.1, 8.6, 11.3 },      { 8 * KIB, 17.8, 9.1, 11.9 },   { 64 * KIB, 19.9, 10.2, 12.9 },
    { 256 * KIB, 20.3, 14.9, 13.3 },   { 1 * MIB, 25.9, 32.5, 16.6 },  { 4 * MIB, 48.7, 102.8, 31.7 },
    { 16 * MIB, 116.5, 380.0, 105.7 }, { 128 * MIB, 714.8, 0, 824.7 }, { 1024 * MIB, 5251.4, 0, 6324.6 },
};

static gy_algorithm winner(const struct measured *w)
{
    double one = w->one_shot > 0 ? w->one_shot : 1e9;
    return one < w->two_shot && one < w->nccl ? GY_ALGORITHM_ONE_SHOT
           : w->two_shot < w->nccl            ? GY_ALGORITHM_TWO_SHOT
                                              : GY_ALGORITHM_NCCL;
}

/* Within 15 % of what was measured, and the same algorithm wins at every size. */
START_TEST(model_of_eight_h200)
{
    const struct measured *w = &measured[_i];
    gantry_machine *m = load("hgx-h200-8", false), *full = load("hgx-h200-8", true);
    gy_group g = group(GANTRY_ALL_REDUCE, 8, (int64_t)w->bytes);
    double one = us(look(m, &g, GY_ALGORITHM_ONE_SHOT).time), two = us(look(m, &g, GY_ALGORITHM_TWO_SHOT).time);
    if (w->one_shot > 0)
        ck_assert_double_eq_tol(one / w->one_shot, 1, 0.15);
    ck_assert_double_eq_tol(two / w->two_shot, 1, 0.15);
    struct measured model = { w->bytes, w->nccl, one, two };
    ck_assert_int_eq(winner(&model), winner(w));
    gy_way best = choose(full, &g);
    ck_assert_int_eq(best.algorithm, winner(w));
    ck_assert_uint_eq(best.provenance, GY_COST_MEASURED);
    gy_group_free(&g);
    gantry_machine_free(m);
    gantry_machine_free(full);
}
END_TEST

/* By the model one_shot is faster than those that were measured, by less than half. Another collective or number of
 * ranks is not measured; a measured one that cannot do it is no candidate; a node may ask for any. */
START_TEST(measured_ones_come_first)
{
    static const char table[] =
        ",\"collectives\":[{\"collective\":\"all_reduce\",\"algorithm\":\"tree\",\"kind\":\"cpu\",\"ranks\":4,"
        "\"points\":[[1,50],[1000000,1100]]},{\"collective\":\"all_reduce\",\"algorithm\":\"two_shot\",\"kind\":"
        "\"cpu\",\"ranks\":4,\"points\":[[1,30],[1000000,1300]]}]}";
    char text[4096];
    snprintf(text, sizeof text, "%.*s%s", (int)sizeof links - 2, links, table);
    gantry_machine *m = parse(text), *plain = parse(links);
    gy_group sum = group(GANTRY_ALL_REDUCE, 4, 64 << 10), large = group(GANTRY_ALL_REDUCE, 4, 900 << 10);
    gy_group odd = group(GANTRY_ALL_REDUCE, 4, 40001), three = group(GANTRY_ALL_REDUCE, 3, 64 << 10);
    gy_group other = group(GANTRY_ALL_GATHER, 4, 64 << 10);
    gy_net net;
    gy_way way;
    ck_assert_int_eq(choose(m, &sum).algorithm, GY_ALGORITHM_TWO_SHOT);
    ck_assert_int_eq(choose(m, &large).algorithm, GY_ALGORITHM_TREE);
    ck_assert_int_eq(choose(m, &odd).algorithm, GY_ALGORITHM_TREE);
    ck_assert_int_eq(choose(m, &three).algorithm, choose(plain, &three).algorithm);
    ck_assert_int_eq(choose(m, &other).algorithm, choose(plain, &other).algorithm);
    ck_assert(choose(m, &sum).time > look(plain, &sum, GY_ALGORITHM_ONE_SHOT).time);
    ck_assert(gy_net_init(&net, m));
    ck_assert_int_eq(gy_collective_obey(&net, &sum, "ring", "n", &way, NULL), GANTRY_OK);
    ck_assert_int_eq(way.algorithm, GY_ALGORITHM_RING);
    ck_assert(way.provenance != GY_COST_MEASURED && way.time == look(plain, &sum, GY_ALGORITHM_RING).time);
    gy_net_free(&net);
    gy_group *const all[] = { &sum, &large, &odd, &three, &other };
    for (int i = 0; i < 5; i++)
        gy_group_free(all[i]);
    gantry_machine_free(m);
    gantry_machine_free(plain);
}
END_TEST

/* A tree that takes far longer than a ring should is left, though nothing else was measured. */
START_TEST(a_poor_one_is_left)
{
    static const char poor[] =
        ",\"collectives\":[{\"collective\":\"all_reduce\",\"algorithm\":\"tree\",\"kind\":\"cpu\","
        "\"ranks\":4,\"points\":[[1,%d],[1000000,%d]]}]}";
    gantry_machine *plain = parse(links);
    gy_group sum = group(GANTRY_ALL_REDUCE, 4, 64 << 10);
    gy_way best = choose(plain, &sum);
    for (int near = 0; near < 2; near++) {
        int us_measured = (int)us(best.time) * 2 + (near ? -2 : 2);
        char text[4096], table[512];
        snprintf(table, sizeof table, poor, us_measured, us_measured + 1);
        snprintf(text, sizeof text, "%.*s%s", (int)sizeof links - 2, links, table);
        gantry_machine *m = parse(text);
        ck_assert_int_eq(choose(m, &sum).algorithm, near ? GY_ALGORITHM_TREE : best.algorithm);
        gantry_machine_free(m);
    }
    gy_group_free(&sum);
    gantry_machine_free(plain);
}
END_TEST

/* Tables are for as many devices as were measured. */
START_TEST(tables_want_their_ranks)
{
    gantry_machine *m = load("hgx-h200-8", true);
    gy_group eight = group(GANTRY_ALL_GATHER, 8, 1 << 30), four = group(GANTRY_ALL_GATHER, 4, 1 << 30);
    gy_way nccl = look(m, &eight, GY_ALGORITHM_NCCL), copies = look(m, &eight, GY_ALGORITHM_COPY);
    ck_assert_double_eq_tol(us(nccl.time), 2781.6, 1e-6);
    ck_assert_double_eq_tol(us(copies.time), 2605.3, 1e-6);
    ck_assert_ptr_nonnull(look(m, &four, GY_ALGORITHM_NCCL).refused);
    ck_assert_uint_eq(look(m, &four, GY_ALGORITHM_COPY).provenance, GY_COST_ROOFLINE);
    gy_group_free(&eight);
    gy_group_free(&four);
    gantry_machine_free(m);
}
END_TEST

static bool do_overlap(const gy_group_span *a, const gy_group_span *b)
{
    return a->first < b->last && b->first < a->last && a->first < a->last && b->first < b->last;
}

/* In place, and twice in a memory: each two of random rows are looked at. */
START_TEST(rows_that_meet)
{
    int places = 0, twices = 0;
    for (uint64_t seed = 0, state = 1; seed < 4000; seed++) {
        gy_group_span span[8];
        uint32_t drawn[3], ins, outs;
        bool in_place = false, twice = false;
        for (uint32_t i = 0; i < 8; i++) {
            for (int k = 0; k < 3; k++)
                drawn[k] = (uint32_t)(gy_hash64(state++) % (k ? 12 : 6));
            span[i] = (gy_group_span){ drawn[0] / 2, drawn[0], drawn[1], drawn[1] + drawn[2] / 3 };
        }
        ins = 1 + (uint32_t)(seed % 4);
        outs = 1 + (uint32_t)(seed / 4 % 4);
        for (uint32_t i = 0; i < ins + outs; i++)
            for (uint32_t k = 0; k < i; k++) {
                bool meet = do_overlap(&span[i], &span[k]), apart = i >= ins && k < ins;
                in_place = in_place || (meet && apart && span[i].instance == span[k].instance);
                twice = twice || (meet && !apart && span[i].memory == span[k].memory);
            }
        gy_group g;
        ck_assert(gy_group_of_rows(&g, GANTRY_ALL_GATHER, 0, span, ins, outs));
        ck_assert_int_eq(g.in_place, in_place);
        ck_assert_int_eq(g.twice, twice);
        gy_group_free(&g);
        places += in_place;
        twices += twice;
    }
    ck_assert(places > 100 && places < 3900 && twices > 100 && twices < 3900);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("collective cost");
    TCase *c = tcase_create("cost");
    tcase_add_loop_test(c, times_by_hand, 0, sizeof by_hand / sizeof *by_hand);
    tcase_add_test(c, who_can_not);
    tcase_add_test(c, in_place_needs_scratch);
    tcase_add_test(c, not_all_take_part);
    tcase_add_test(c, not_by_nccl);
    tcase_add_test(c, two_values_of_a_row);
    tcase_add_test(c, uneven_parts);
    tcase_add_test(c, rings_follow_the_links);
    tcase_add_test(c, the_cheapest_is_chosen_or_what_is_asked_for);
    tcase_add_loop_test(c, model_of_eight_h200, 0, sizeof measured / sizeof *measured);
    tcase_add_test(c, measured_ones_come_first);
    tcase_add_test(c, a_poor_one_is_left);
    tcase_add_test(c, tables_want_their_ranks);
    tcase_add_test(c, rows_that_meet);
    suite_add_tcase(suite, c);
    return run_suite(suite);
}
