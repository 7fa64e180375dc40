/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Properties of every graph on every machine: the checker (which shares no code with the scheduler) passes the
 * schedule, nothing is faster than the bound, the same input gives the same bytes, and a graph that is refused is
 * refused for lack of memory.
 */
#include "random_graph.h"
#include "schedule/check/verify.h"
#include "suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GRAPHS 400

static gantry_machine *machine_of(int i)
{
    switch (i) {
    case 0:
        return virtual_machine(1);
    case 1:
        return virtual_machine(2);
    case 2:
        return virtual_machine(4);
    case 3:
        return parse_machine(machine_shared_link);
    case 4:
        return parse_machine(machine_relay);
    case 5:
        return parse_machine(machine_host_cpu);
    case 6:
        return parse_machine(machine_twins);
    case 7:
        return parse_machine(machine_launches);
    case 8:
        return small_machine(3, 8192);
    default:
        return small_machine(2, 6144);
    }
}
#define MACHINES 10

static void check_one(gantry_graph *g, const gantry_machine *m, const char *policy, uint64_t seed, int *fits)
{
    gantry_schedule_options o = GANTRY_SCHEDULE_OPTIONS_INIT;
    gantry_schedule *s = NULL, *again = NULL;
    gantry_error err = { 0 };
    o.policy = policy;
    gantry_status status = gantry_schedule_new(&s, g, m, &o, &err);
    if (status) {
        ck_assert_msg(status == GANTRY_E_CAPACITY && strstr(m->name, "small"), "graph %llu on %s by %s: %s",
                      (unsigned long long)seed, m->name, policy, err.text);
        return;
    }
    ++*fits;
    if (gy_schedule_verify(s, g, &err))
        ck_abort_msg("graph %llu on %s by %s: %s", (unsigned long long)seed, m->name, policy, err.text);
    ck_assert_msg(s->makespan >= s->bound, "graph %llu on %s by %s: makespan %lld, bound %lld",
                  (unsigned long long)seed, m->name, policy, (long long)s->makespan, (long long)s->bound);
    for (uint32_t i = 0; i < m->memories; i++)
        ck_assert(gantry_schedule_peak_bytes(s, i) <= m->memory[i].capacity);
    if (gantry_schedule_new(&again, g, m, &o, &err))
        ck_abort_msg("%s", err.text);
    char *a = schedule_text(s), *b = schedule_text(again);
    ck_assert_str_eq(a, b);
    gantry_free(a);
    gantry_free(b);
    gantry_schedule_free(s);
    gantry_schedule_free(again);
}

START_TEST(every_schedule_is_right)
{
    static const char *const policies[] = { "heft", "round-robin", "single" };
    int valid = 0, tried = 0, fits = 0,
        graphs = getenv("GANTRY_TEST_GRAPHS") ? atoi(getenv("GANTRY_TEST_GRAPHS")) : GRAPHS;
    gantry_machine *m = machine_of(_i);
    for (int i = 0; i < graphs; i++) {
        uint64_t seed = (uint64_t)i * MACHINES + (uint64_t)_i;
        gantry_graph *g = random_graph(seed, 4 + i % 37);
        gantry_error err;
        if (gantry_graph_check(g, &err) == GANTRY_OK) {
            valid++;
            tried++;
            check_one(g, m, policies[i % 3 == 2 ? (i / 3) % 3 : i % 2], seed, &fits);
        }
        gantry_graph_free(g);
    }
    printf("%s: %d of %d graphs are valid, %d fit\n", m->name, valid, graphs, fits);
    ck_assert_msg(valid * 3 > graphs, "only %d of %d graphs are valid", valid, graphs);
    if (!strstr(m->name, "small"))
        ck_assert_int_eq(fits, tried);
    else if (graphs == GRAPHS)
        ck_assert_msg(fits > 0 && fits < tried, "%d of %d fit", fits, tried);
    gantry_machine_free(m);
}
END_TEST

/* The table is a transitive reduction: without any one row something is no longer ordered, and the checker says so.
 * (Reuse is judged by whole instances: an op may wait for users of bytes that it does not touch itself.) */
START_TEST(no_row_of_the_sync_table_is_idle)
{
    gantry_machine *m = machine_of(_i);
    int rows = 0;
    for (uint64_t seed = 0; seed < 40; seed++) {
        gantry_graph *g = random_graph(seed * 31 + (uint64_t)_i, 12);
        gantry_schedule *s = NULL;
        gantry_error err;
        if (gantry_graph_check(g, &err) == GANTRY_OK && gantry_schedule_new(&s, g, m, NULL, &err) == GANTRY_OK)
            for (size_t i = 0; i < s->sync.count; i++) {
                if (s->sync.at[i].reason == GY_WHY_REUSE)
                    continue;
                rows++;
                gy_sync row = s->sync.at[i], *last = gy_vec_last(&s->sync);
                s->sync.at[i] = *last; /* the order of the rows means nothing */
                s->sync.count--;
                ck_assert_msg(gy_schedule_verify(s, g, &err) == GANTRY_E_SCHEDULE,
                              "row %zu of graph %llu on %s is idle", i, (unsigned long long)seed, m->name);
                s->sync.count++;
                *last = s->sync.at[i];
                s->sync.at[i] = row;
            }
        gantry_schedule_free(s);
        gantry_graph_free(g);
    }
    ck_assert(_i == 0 || rows > 100);
    gantry_machine_free(m);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("property");
    TCase *c = tcase_create("property");
    tcase_set_timeout(c, 60);
    tcase_add_loop_test(c, every_schedule_is_right, 0, MACHINES);
    tcase_add_loop_test(c, no_row_of_the_sync_table_is_idle, 0, MACHINES);
    suite_add_tcase(s, c);
    return run_suite(s);
}
