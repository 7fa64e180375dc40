/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Properties of every policy on every graph and machine: the checker (which shares no code with the scheduler) passes
 * the schedule, nothing is faster than the bound, and the same input gives the same bytes.
 */
#include "../scheduler/random_graph.h"
#include "../scheduler/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GRAPHS   40
#define MACHINES 4

static gantry_machine *machine_of(int i)
{
    switch (i) {
    case 0:
        return virtual_machine(3);
    case 1:
        return parse_machine(machine_shared_link);
    case 2:
        return parse_machine(machine_relay);
    default:
        return parse_machine(machine_twins);
    }
}

static void check_one(gantry_graph *g, const gantry_machine *m, const char *policy, int seed)
{
    gantry_schedule *s = schedule(g, m, policy), *again = schedule(g, m, policy);
    ck_assert_msg(s->makespan >= s->bound, "graph %d on %s by %s: makespan %lld, bound %lld", seed, m->name, policy,
                  (long long)s->makespan, (long long)s->bound);
    char *a = schedule_text(s), *b = schedule_text(again);
    ck_assert_msg(strcmp(a, b) == 0, "graph %d on %s by %s: another schedule the second time", seed, m->name, policy);
    gantry_free(a);
    gantry_free(b);
    gantry_schedule_free(s);
    gantry_schedule_free(again);
}

START_TEST(every_policy_is_right)
{
    int valid = 0, graphs = getenv("GANTRY_TEST_GRAPHS") ? atoi(getenv("GANTRY_TEST_GRAPHS")) : GRAPHS;
    gantry_machine *m = machine_of(_i);
    for (int seed = 0; seed < graphs; seed++) {
        gantry_graph *g = random_graph((uint64_t)seed + 50000, 4 + seed % 37);
        gantry_error err;
        if (gantry_graph_check(g, &err) == GANTRY_OK) {
            valid++;
            for (size_t i = 0; gantry_policy_name(i); i++)
                check_one(g, m, gantry_policy_name(i), seed);
        }
        gantry_graph_free(g);
    }
    printf("%s: %d of %d graphs are valid\n", m->name, valid, graphs);
    ck_assert_msg(valid * 3 > graphs, "only %d of %d graphs are valid", valid, graphs);
    gantry_machine_free(m);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("property");
    TCase *c = tcase_create("property");
    tcase_set_timeout(c, 60);
    tcase_add_loop_test(c, every_policy_is_right, 0, MACHINES);
    suite_add_tcase(s, c);
    return run_suite(s);
}
