/* SPDX-License-Identifier: Apache-2.0 */
/* Families as units of search: gathered, dealt out, and devices that change places. */
#include "suite.h"

#include "scheduler/search/folding.h"
#include <string.h>

/* Chains of three that never meet, so that families are known: task t goes on with t - CHAINS. */
enum { CHAINS = 5, LINKS = 3, ALL = CHAINS * LINKS, DEVICES = 3 };

static problem chains(uint64_t seed, bool alike)
{
    problem p = draw_problem(seed, ALL, DEVICES, false);
    memset(p.bytes, 0, sizeof p.bytes);
    memset(p.input, 0, sizeof p.input);
    for (int t = 0; t < ALL; t++)
        for (int d = 0; d < DEVICES && alike; d++)
            p.time[t][d] = p.time[t][0];
    for (int t = CHAINS; t < ALL; t++)
        p.bytes[t - CHAINS][t] = 3;
    return p;
}

static gy_folding fold(const bench *b)
{
    gy_folding f;
    ck_assert_int_eq(gy_folding_make(&f, &b->model, NULL), GANTRY_OK);
    ck_assert_uint_eq(f.units, CHAINS);
    for (uint32_t t = 0; t < ALL; t++)
        ck_assert_uint_eq(f.unit[t], t % CHAINS);
    for (uint32_t u = 0; u < CHAINS; u++)
        for (size_t i = f.first_member[u]; i < f.first_member[u + 1]; i++)
            ck_assert_uint_eq(f.member[i], u + CHAINS * (i - f.first_member[u]));
    return f;
}

START_TEST(families_gather_where_most_of_them_are)
{
    for (uint64_t seed = 0; seed < 50; seed++) {
        uint64_t state = seed;
        problem p = chains(seed, false);
        bench b;
        bench_open(&b, &p);
        gy_folding f = fold(&b);
        placement at = draw_placement(&p, &state);
        gy_candidate c;
        candidate_of(&c, &b, &at);
        gy_folding_gather(&f, &b.model, &c);
        for (uint32_t u = 0; u < CHAINS; u++) {
            uint32_t count[DEVICES] = { 0 }, here = c.device[u];
            for (uint32_t i = 0; i < LINKS; i++) {
                ck_assert_uint_eq(c.device[u + i * CHAINS], here);
                count[at.device[u + i * CHAINS]]++;
            }
            for (uint32_t d = 0; d < DEVICES; d++)
                ck_assert(count[d] < count[here] || (count[d] == count[here] && d >= here));
        }
        ck_assert(!memcmp(c.order, at.order, ALL * sizeof *c.order));
        gy_candidate_free(&c);
        gy_folding_free(&f);
        bench_close(&b);
    }
}
END_TEST

/* Neighbours are in one lot, lots differ by one unit at most, and no lot would have been done sooner elsewhere. */
START_TEST(lots_are_dealt_to_who_is_done_first)
{
    for (uint64_t seed = 0; seed < 60; seed++) {
        uint32_t lots = 1 + (uint32_t)seed % CHAINS;
        uint64_t state = seed;
        int load[DEVICES] = { 0 };
        problem p = chains(seed, seed % 2);
        bench b;
        bench_open(&b, &p);
        gy_folding f = fold(&b);
        placement at = draw_placement(&p, &state);
        gy_candidate c;
        candidate_of(&c, &b, &at);
        gy_folding_deal(&f, &b.model, lots, &c);
        for (uint32_t lot = 0, u = 0; lot < lots; lot++) {
            uint32_t first = u, d = c.device[u];
            int with[DEVICES], size = 0;
            memcpy(with, load, sizeof with);
            for (; u < CHAINS && u * lots < (lot + 1) * CHAINS; u++, size++)
                for (uint32_t i = 0; i < LINKS; i++) {
                    ck_assert_uint_eq(c.device[u + i * CHAINS], d);
                    for (uint32_t e = 0; e < DEVICES; e++)
                        with[e] += p.time[u + i * CHAINS][e];
                }
            ck_assert(u > first && size >= (int)(CHAINS / lots) && size <= (int)((CHAINS + lots - 1) / lots));
            for (uint32_t e = 0; e < DEVICES; e++)
                ck_assert(with[e] > with[d] || (with[e] == with[d] && e >= d));
            load[d] = with[d];
        }
        gy_candidate_free(&c);
        gy_folding_free(&f);
        bench_close(&b);
    }
}
END_TEST

/* The result is the placement with devices renamed, has the time of the definition, and no further pair helps. */
START_TEST(devices_change_places)
{
    int helped = 0;
    for (uint64_t seed = 0; seed < 80; seed++) {
        uint64_t state = seed;
        int start[MOST_TASKS], finish[MOST_TASKS];
        uint32_t now[DEVICES] = { GY_NONE, GY_NONE, GY_NONE };
        problem p = draw_problem(seed + 9, 12, DEVICES, false);
        bench b;
        bench_open(&b, &p);
        placement at = draw_placement(&p, &state), swapped;
        gy_candidate c;
        gy_decode d;
        candidate_of(&c, &b, &at);
        ck_assert_int_eq(gy_decode_init(&d, &b.model, NULL), GANTRY_OK);
        c.model = us(time_of(&p, &at, start, finish));
        gy_ticks before = c.model;
        ck_assert_uint_le(gy_folding_exchange(&d, &c, 100), 100);
        ck_assert_int_le(c.model, before);
        helped += c.model < before;
        for (uint32_t t = 0; t < c.tasks; t++) {
            ck_assert(now[at.device[t]] == GY_NONE || now[at.device[t]] == c.device[t]);
            now[at.device[t]] = c.device[t];
        }
        at = placement_of(&c);
        ck_assert_int_eq(us(time_of(&p, &at, start, finish)), c.model);
        for (uint32_t x = 0; x < DEVICES; x++)
            for (uint32_t y = x + 1; y < DEVICES; y++) {
                swapped = at;
                for (uint32_t t = 0; t < c.tasks; t++)
                    if (at.device[t] == x || at.device[t] == y)
                        swapped.device[t] = x + y - at.device[t];
                ck_assert_int_ge(us(time_of(&p, &swapped, start, finish)), c.model);
            }
        gy_decode_free(&d);
        gy_candidate_free(&c);
        bench_close(&b);
    }
    ck_assert_int_gt(helped, 40);
}
END_TEST

/* Annealing over families leaves them together, and is never worse than where it began. */
START_TEST(annealing_keeps_families_together)
{
    int improved = 0;
    for (uint64_t seed = 0; seed < 40; seed++) {
        uint64_t state = seed;
        int start[MOST_TASKS], finish[MOST_TASKS];
        problem p = chains(seed, seed % 2);
        bench b;
        bench_open(&b, &p);
        gy_folding f = fold(&b);
        gy_anneal a;
        ck_assert(!gy_anneal_init(&a, &b.model, seed, NULL));
        placement at = draw_placement(&p, &state);
        gy_candidate c;
        candidate_of(&c, &b, &at);
        gy_folding_gather(&f, &b.model, &c);
        at = placement_of(&c);
        gy_ticks before = us(time_of(&p, &at, start, finish));
        gy_anneal_fold(&a, &f);
        gy_anneal_run(&a, &c, 300, b.model.mean);
        gy_anneal_unfold(&a);
        for (uint32_t t = 0; t < ALL; t++)
            ck_assert_uint_eq(c.device[t], c.device[t % CHAINS]);
        ck_assert(is_topological(&p, c.order) && c.model <= before);
        improved += c.model < before;
        at = placement_of(&c);
        ck_assert_int_eq(us(time_of(&p, &at, start, finish)), c.model);
        gy_candidate_free(&c);
        gy_anneal_free(&a);
        gy_folding_free(&f);
        bench_close(&b);
    }
    ck_assert_int_gt(improved, 30);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("folding");
    TCase *c = tcase_create("folding");
    tcase_set_timeout(c, 60);
    tcase_add_test(c, families_gather_where_most_of_them_are);
    tcase_add_test(c, lots_are_dealt_to_who_is_done_first);
    tcase_add_test(c, devices_change_places);
    tcase_add_test(c, annealing_keeps_families_together);
    suite_add_tcase(s, c);
    return run_suite(s);
}
