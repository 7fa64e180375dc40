/* SPDX-License-Identifier: Apache-2.0 */
/* Branch and bound against all orders and devices, and against proved optima; bounds against both. */
#include "suite.h"

#include <stdio.h>

static gy_ticks solve(const bench *b, gy_candidate *c, uint64_t budget, bool *proved)
{
    uint64_t states;
    ck_assert(!gy_exact_run(&b->model, c, budget, &states, proved, NULL));
    ck_assert_uint_le(states, budget);
    return c->model;
}

/* The first placement is one at random, or none at all: the largest makespan that counts as known. */
START_TEST(all_placements_of_small_graphs)
{
    for (uint64_t seed = 0; seed < 120; seed++) {
        uint64_t state = seed;
        int tasks = 2 + pick(&state, 5), start[MOST_TASKS], finish[MOST_TASKS], worse = 0;
        problem p = draw_problem(seed + 77, tasks, tasks < 6 ? 3 : 2, seed % 5 == 4);
        bench b;
        bench_open(&b, &p);
        gy_candidate c;
        placement at = draw_placement(&p, &state);
        candidate_of(&c, &b, &at);
        for (int t = 0; t < tasks; t++) /* one after the other, each with all that it could wait for */
            worse += p.time[t][at.device[t]] + 15 * MOST_TASKS;
        c.model = us(worse);
        bool proved = false;
        int best = brute_force(&p);
        ck_assert(gy_exact_can(&b.model));
        ck_assert_int_eq(solve(&b, &c, UINT64_C(1) << 40, &proved), us(best));
        ck_assert(proved);
        ck_assert(is_topological(&p, c.order));
        at = placement_of(&c);
        ck_assert_int_eq(time_of(&p, &at, start, finish), best);
        ck_assert_int_le(b.model.bound, us(best));
        ck_assert_int_gt(b.model.bound, 0);
        gy_candidate_free(&c);
        bench_close(&b);
    }
}
END_TEST

/* Whatever the schedule: no task begins before its head, and what must follow it does. */
START_TEST(heads_and_tails_hold_for_every_schedule)
{
    for (uint64_t seed = 0; seed < 200; seed++) {
        uint64_t state = seed;
        int start[MOST_TASKS], finish[MOST_TASKS];
        problem p = draw_problem(seed + 999, 2 + pick(&state, 13), 2 + pick(&state, 3), false);
        bench b;
        bench_open(&b, &p);
        for (int i = 0; i < 30; i++) {
            placement at = draw_placement(&p, &state);
            gy_ticks makespan = us(time_of(&p, &at, start, finish));
            ck_assert_int_le(b.model.bound, makespan);
            ck_assert_int_eq(makespan % b.model.step, 0);
            for (uint32_t t = 0; t < b.model.tasks; t++) {
                ck_assert_int_ge(us(start[t]), b.model.head[t]);
                ck_assert_int_le(us(finish[t]) + b.model.tail[t * b.model.devices + at.device[t]], makespan);
            }
        }
        bench_close(&b);
    }
}
END_TEST

/* Few times and sizes, so that much is alike. */
static problem draw_alike(uint64_t seed, int tasks, int devices)
{
    uint64_t state = seed;
    problem p = draw_problem(seed, tasks, devices, false);
    for (int t = 0; t < tasks; t++) {
        int time = 4 + 3 * (pick(&state, 3) == 0);
        for (int d = 0; d < devices; d++)
            p.time[t][d] = time;
        for (int to = t + 1; to < tasks; to++)
            p.bytes[t][to] = pick(&state, 5) < 2 ? 3 : 0;
        p.input[t] = pick(&state, 4) ? 0 : 2;
        p.output[t] = 0;
    }
    return p;
}

/* Is the graph the same with task t at place[t]? */
static bool is_same_graph(const problem *p, const int *place)
{
    for (int t = 0; t < p->tasks; t++) {
        if (p->time[t][0] != p->time[place[t]][0] || p->input[t] != p->input[place[t]])
            return false;
        for (int to = t + 1; to < p->tasks; to++) {
            int from = place[t], there = place[to];
            if (p->bytes[t][to] && (there < from || p->bytes[from][there] != p->bytes[t][to]))
                return false;
        }
    }
    return true;
}

/* Some way to rename all tasks puts the two at each other's places. */
static bool may_change_places(const problem *p, int *place, int placed, int one, int other)
{
    if (placed == p->tasks)
        return place[one] == other && place[other] == one && is_same_graph(p, place);
    for (int i = placed; i < p->tasks; i++) {
        int mine = place[i];
        place[i] = place[placed];
        place[placed] = mine;
        bool found = may_change_places(p, place, placed + 1, one, other);
        place[placed] = place[i];
        place[i] = mine;
        if (found)
            return true;
    }
    return false;
}

/* Checks the twins that were found, and returns how many there are. */
static int check_twins(const problem *p, const gy_model *m)
{
    uint64_t before[GY_EXACT_TASKS];
    int place[MOST_TASKS], twins = 0;
    gy_exact_find_twins(m, before);
    for (int t = 0; t < p->tasks; t++) {
        ck_assert_uint_eq(before[t] >> t, 0);
        for (int u = 0; u < t; u++) {
            for (int i = 0; i < p->tasks; i++)
                place[i] = i;
            bool alike = before[t] >> u & 1;
            ck_assert(!alike || may_change_places(p, place, 0, t, u));
            twins += alike;
        }
    }
    return twins;
}

START_TEST(tasks_that_are_alike)
{
    int twins = 0;
    for (uint64_t seed = 0; seed < 250; seed++) {
        problem p = draw_alike(seed, 3 + (int)(seed % 4), seed % 4 == 3 || seed % 3 ? 2 : 3);
        uint64_t state = seed;
        bool proved = false;
        bench b;
        gy_candidate c;
        bench_open(&b, &p);
        placement at = draw_placement(&p, &state);
        candidate_of(&c, &b, &at);
        c.model = us(100000);
        ck_assert_int_eq(solve(&b, &c, UINT64_C(1) << 40, &proved), us(brute_force(&p)));
        ck_assert(proved);
        twins += check_twins(&p, &b.model);
        gy_candidate_free(&c);
        bench_close(&b);
    }
    ck_assert_int_gt(twins, 40);
}
END_TEST

/* One task, seven chains of two behind it, and one behind all: the chains may change places, whichever are where. A
 * search that tries them all looks at millions of states. */
START_TEST(chains_that_are_alike)
{
    problem p = { .tasks = 16, .devices = 3 };
    uint64_t before[GY_EXACT_TASKS], state = 0, states;
    bool proved;
    bench b;
    gy_candidate c;
    for (int t = 0; t < 16; t++)
        for (int d = 0; d < 3; d++)
            p.time[t][d] = t == 0 || t == 15 ? 2 : t % 2 ? 7 : 5;
    for (int i = 1; i < 15; i += 2) {
        p.bytes[0][i] = 1;
        p.bytes[i][i + 1] = 4;
        p.bytes[i + 1][15] = 2;
    }
    bench_open(&b, &p);
    placement at = draw_placement(&p, &state);
    candidate_of(&c, &b, &at);
    gy_exact_find_twins(&b.model, before);
    for (int i = 1; i < 15; i += 2)
        for (int k = 1; k < i; k += 2)
            ck_assert(before[i] >> k & 1);
    c.model = us(100000);
    ck_assert_int_eq(gy_exact_run(&b.model, &c, 200000, &states, &proved, NULL), GANTRY_OK);
    ck_assert(proved);
    gy_candidate_free(&c);
    bench_close(&b);
}
END_TEST

START_TEST(a_search_that_is_cut_off_proves_nothing)
{
    problem p = draw_problem(3, 12, 3, false);
    uint64_t state = 1;
    int start[MOST_TASKS], finish[MOST_TASKS];
    bench b;
    bench_open(&b, &p);
    gy_candidate c;
    placement at = draw_placement(&p, &state);
    candidate_of(&c, &b, &at);
    c.model = us(time_of(&p, &at, start, finish));
    gy_ticks before = c.model;
    bool proved = true;
    ck_assert_int_le(solve(&b, &c, 5, &proved), before);
    ck_assert(!proved);
    gy_candidate_free(&c);
    bench_close(&b);
}
END_TEST

/* Optima that were proved elsewhere (an integer program): REFERENCE of each example. */
START_TEST(published_graphs)
{
    static const struct {
        const char *name;
        int optimum;
    } cases[] = { { "topcuoglu2002", 73 }, { "peft2014", 113 }, { "bittencourt2010", 87 }, { "daoud", 56 } };
    char path[300];
    const char *json, *file;
    gantry_graph *g = NULL;
    gantry_machine *m = NULL;
    gantry_error err;
    snprintf(path, sizeof path, "%s/graphs/reference/%s.json", GANTRY_SOURCE_DIR, cases[_i].name);
    ck_assert(!gantry_graph_load(&g, path, NULL, &err));
    gantry_graph_machine_hint(g, &json, &file);
    ck_assert(!gantry_machine_parse(&m, json, strlen(json), "machine", &err));
    bench b;
    bench_of(&b, g, m);
    gy_candidate c;
    bool proved = false;
    ck_assert(gy_candidate_init(&c, b.model.tasks));
    c.model = us(1000);
    ck_assert_int_eq(solve(&b, &c, UINT64_C(1) << 26, &proved), us(cases[_i].optimum));
    ck_assert(proved);
    gy_candidate_free(&c);
    bench_close(&b);
}
END_TEST

/* Nothing proved: what was found, and how far from the optimum that may be. */
START_TEST(what_is_not_proved_is_told)
{
    gantry_error err;
    ck_assert_int_eq(gy_exact_refuse(40, 123456, us(150), us(120), &err), GANTRY_E_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(err.text, "40 tasks was not proved within 123456 states"));
    ck_assert_ptr_nonnull(strstr(err.text, "takes 150.000 us"));
    ck_assert_ptr_nonnull(strstr(err.text, "less than 120.000 us, so it is at most 25.0 % over the optimum"));
    ck_assert_ptr_nonnull(strstr(err.text, "leave \"optimal\" off to have a schedule"));
    ck_assert_int_eq(gy_exact_refuse(2, 1, 0, 0, &err), GANTRY_E_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(err.text, "at most 0.0 %"));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("exact");
    TCase *c = tcase_create("exact");
    tcase_set_timeout(c, 60);
    tcase_add_test(c, all_placements_of_small_graphs);
    tcase_add_test(c, heads_and_tails_hold_for_every_schedule);
    tcase_add_test(c, tasks_that_are_alike);
    tcase_add_test(c, chains_that_are_alike);
    tcase_add_test(c, a_search_that_is_cut_off_proves_nothing);
    tcase_add_loop_test(c, published_graphs, 0, 4);
    tcase_add_test(c, what_is_not_proved_is_told);
    suite_add_tcase(s, c);
    return run_suite(s);
}
