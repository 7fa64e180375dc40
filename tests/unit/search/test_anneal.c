/* SPDX-License-Identifier: Apache-2.0 */
/* Annealing: the same twice, never worse than its start, consistent with the definition, obedient, and near the best.
 */
#include "suite.h"

#include <string.h>

static gy_candidate anneal(const bench *b, const placement *at, uint64_t seed, uint64_t budget)
{
    gy_anneal a;
    gy_candidate c;
    ck_assert(!gy_anneal_init(&a, &b->model, seed, NULL));
    candidate_of(&c, b, at);
    gy_anneal_run(&a, &c, budget, b->model.mean / 2);
    ck_assert_uint_le(a.evaluations, budget + 1);
    gy_anneal_free(&a);
    return c;
}

START_TEST(the_same_twice_and_never_worse)
{
    int improved = 0, other = 0;
    for (uint64_t seed = 0; seed < 120; seed++) {
        uint64_t state = seed;
        int start[MOST_TASKS], finish[MOST_TASKS];
        problem p = draw_problem(seed + 31, 4 + pick(&state, 12), 2 + pick(&state, 3), false);
        bench b;
        bench_open(&b, &p);
        placement at = draw_placement(&p, &state);
        gy_ticks before = us(time_of(&p, &at, start, finish));
        gy_candidate c = anneal(&b, &at, 5, 300), again = anneal(&b, &at, 5, 300), differs = anneal(&b, &at, 6, 300);
        ck_assert(gy_candidate_is_same(&c, &again) && c.model == again.model);
        ck_assert_int_le(c.model, before);
        improved += c.model < before;
        other += !gy_candidate_is_same(&c, &differs);
        ck_assert(is_topological(&p, c.order));
        at = placement_of(&c);
        ck_assert_int_eq(us(time_of(&p, &at, start, finish)), c.model);
        gy_candidate_free(&c);
        gy_candidate_free(&again);
        gy_candidate_free(&differs);
        bench_close(&b);
    }
    ck_assert_int_gt(improved, 100);
    ck_assert_int_gt(other, 20); /* the seed means something */
}
END_TEST

START_TEST(small_graphs_are_solved)
{
    int solved = 0;
    for (uint64_t seed = 0; seed < 60; seed++) {
        uint64_t state = seed;
        problem p = draw_problem(seed + 400, 6, 2, false);
        bench b;
        bench_open(&b, &p);
        placement at = draw_placement(&p, &state);
        gy_candidate c = anneal(&b, &at, 1, 3000);
        gy_ticks best = us(brute_force(&p));
        ck_assert_int_ge(c.model, best);
        solved += c.model == best;
        gy_candidate_free(&c);
        bench_close(&b);
    }
    ck_assert_int_ge(solved, 50);
}
END_TEST

/* Two devices of each of two kinds, and nothing to move: decodes choose between the two of a kind, whatever steps were
 * taken back before. What is saved has the times of the definition, and small graphs are solved. */
START_TEST(kinds_are_searched)
{
    int solved = 0;
    for (uint64_t seed = 0; seed < 120; seed++) {
        uint64_t state = seed;
        int start[MOST_TASKS], finish[MOST_TASKS], small = seed % 2;
        problem p = draw_problem(seed + 77, small ? 5 : 6 + pick(&state, 10), 4, true);
        for (int t = 0; t < p.tasks; t++)
            p.time[t][2] = p.time[t][3] = 1 + p.time[t][0] * (1 + pick(&state, 9)) / 4;
        bench b;
        bench_open(&b, &p);
        ck_assert(!b.model.pool && b.model.like && b.model.kinds_of_device == 2);
        placement at = draw_placement(&p, &state);
        gy_candidate c = anneal(&b, &at, 5, 3000);
        ck_assert(is_topological(&p, c.order));
        at = placement_of(&c);
        ck_assert_int_eq(us(time_of(&p, &at, start, finish)), c.model);
        solved += small && c.model == us(brute_force(&p));
        gy_candidate_free(&c);
        bench_close(&b);
    }
    ck_assert_int_ge(solved, 54);
}
END_TEST

/* A step away: one task elsewhere in the order, and one or two on another device; its time is that of the definition.
 */
START_TEST(neighbours_are_near)
{
    int changed = 0;
    for (uint64_t seed = 0; seed < 200; seed++) {
        uint64_t state = seed;
        int start[MOST_TASKS], finish[MOST_TASKS], moved = 0;
        problem p = draw_problem(seed, 12, 3, false);
        bench b;
        bench_open(&b, &p);
        gy_anneal a;
        gy_candidate c, to;
        placement at = draw_placement(&p, &state);
        candidate_of(&c, &b, &at);
        ck_assert(gy_candidate_init(&to, c.tasks) && !gy_anneal_init(&a, &b.model, seed, NULL));
        ck_assert(gy_anneal_neighbour(&a, &c, 1 + (uint32_t)seed % 3, &to));
        ck_assert(is_topological(&p, to.order));
        for (uint32_t t = 0; t < c.tasks; t++)
            moved += to.device[t] != c.device[t];
        ck_assert_int_le(moved, 2);
        ck_assert(!gy_candidate_is_same(&c, &to));
        ck_assert(!memcmp(c.order, at.order, c.tasks * sizeof *c.order));
        at = placement_of(&to);
        ck_assert_int_eq(us(time_of(&p, &at, start, finish)), to.model);
        changed += moved;
        gy_candidate_free(&c);
        gy_candidate_free(&to);
        gy_anneal_free(&a);
        bench_close(&b);
    }
    ck_assert_int_gt(changed, 50);
}
END_TEST

/* n0 with n1, n2 apart from n3, n4 on d1: from a start that obeys, everything it finds does. */
START_TEST(wishes_are_kept)
{
    for (uint64_t seed = 0; seed < 60; seed++) {
        problem p = draw_problem(seed + 60, 10, 3, false);
        gantry_graph *g = make_graph(&p);
        gantry_node_with(g, gantry_graph_find_node(g, "n1"), gantry_graph_find_node(g, "n0"));
        gantry_node_apart(g, gantry_graph_find_node(g, "n3"), gantry_graph_find_node(g, "n2"));
        gantry_node_on(g, gantry_graph_find_node(g, "n4"), "d1");
        bench b;
        bench_of(&b, g, make_machine(3));
        uint64_t state = seed;
        placement at = draw_placement(&p, &state);
        at.device[1] = at.device[0];
        at.device[3] = (at.device[2] + 1) % 3;
        at.device[4] = 1;
        gy_candidate c = anneal(&b, &at, seed, 500);
        ck_assert_uint_eq(c.device[0], c.device[1]);
        ck_assert_uint_ne(c.device[2], c.device[3]);
        ck_assert_uint_eq(c.device[4], 1);
        gy_candidate_free(&c);
        bench_close(&b);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("anneal");
    TCase *c = tcase_create("anneal");
    tcase_set_timeout(c, 60);
    tcase_add_test(c, the_same_twice_and_never_worse);
    tcase_add_test(c, small_graphs_are_solved);
    tcase_add_test(c, kinds_are_searched);
    tcase_add_test(c, neighbours_are_near);
    tcase_add_test(c, wishes_are_kept);
    suite_add_tcase(s, c);
    return run_suite(s);
}
