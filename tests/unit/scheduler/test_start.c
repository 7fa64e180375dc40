/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The time that the host takes (start_us, submit_us, issue_us of a machine), for random graphs: a start that takes
 * longer by itself moves everything by as much, the bound too, and changes nothing else; and nothing is faster than its
 * bound.
 */
#include "random_graph.h"
#include "suite.h"

#include <stdlib.h>
#include <string.h>

#define GRAPHS 40
#define START  (11 * GY_TICKS_PER_US)
#define SUBMIT (3 * GY_TICKS_PER_US)
#define ISSUE  (2 * GY_TICKS_PER_US)

static gantry_machine *machine_of(int i)
{
    static const char *const written[] = { machine_shared_link, machine_relay, machine_host_cpu, machine_twins,
                                           machine_launches };
    return i < 5 ? parse_machine(written[i]) : virtual_machine(i == 5 ? 1 : 3);
}
#define MACHINES 7

/* The host's times go in here. */
static gantry_schedule *plan(gantry_graph *g, gantry_machine *m, const char *policy, const char *replay,
                             const gy_ticks host[3])
{
    gantry_schedule_options o = GANTRY_SCHEDULE_OPTIONS_INIT;
    gantry_schedule *s = NULL;
    gantry_error err;
    o.policy = policy;
    o.replay = replay;
    m->start = host[0];
    m->submit = host[1];
    m->issue = host[2];
    ck_assert_msg(gantry_schedule_new(&s, g, m, &o, &err) == GANTRY_OK, "%s", err.text);
    ck_assert_msg(s->makespan >= s->bound, "%s on %s: makespan %lld, bound %lld", s->policy, m->name,
                  (long long)s->makespan, (long long)s->bound);
    return s;
}

/* Plans within a thousandth of each other count as equal (scheduler/search/better.h), of which a start is a part. */
static bool is_another_choice(const gantry_schedule *a, const gantry_schedule *b)
{
    gy_ticks apart = a->makespan + START - b->makespan;
    return a->ops.count && apart != 0 && llabs(apart) <= b->makespan / 1000;
}

static void check_moved(const gantry_schedule *a, const gantry_schedule *b)
{
    if (is_another_choice(a, b))
        return;
    ck_assert_uint_eq(a->ops.count, b->ops.count);
    for (size_t i = 0; i < a->ops.count; i++) {
        ck_assert_int_eq(a->ops.at[i].start + START, b->ops.at[i].start);
        ck_assert_int_eq(a->ops.at[i].end + START, b->ops.at[i].end);
    }
    ck_assert_int_eq(b->bound, a->bound ? a->bound + START : 0);
    ck_assert_int_eq(b->makespan, a->ops.count ? a->makespan + START : 0);
}

static void check_graph(gantry_graph *g, gantry_machine *m, const char *policy)
{
    static const gy_ticks none[3] = { 0 }, start[] = { START, 0, 0 }, all[] = { START, SUBMIT, ISSUE };
    gantry_schedule *a = plan(g, m, policy, "graph", none), *b = plan(g, m, policy, "graph", start);
    gantry_schedule *c = plan(g, m, policy, "stream", all), *d = plan(g, m, policy, "graph", all);
    check_moved(a, b);
    gy_ticks given_out = 0; /* a batch by one call */
    for (size_t i = 0; i < c->ops.count; i++) {
        given_out += !c->ops.at[i].joined;
        ck_assert_int_ge(c->ops.at[i].start, START + SUBMIT * given_out);
    }
    gantry_schedule_free(a);
    gantry_schedule_free(b);
    gantry_schedule_free(c);
    gantry_schedule_free(d);
}

START_TEST(a_start_moves_everything)
{
    gantry_machine *m = machine_of(_i);
    int valid = 0;
    for (int i = 0; i < GRAPHS; i++) {
        gantry_graph *g = random_graph((uint64_t)i * MACHINES + (uint64_t)_i, 4 + i % 23);
        const char *policy;
        if (gantry_graph_check(g, NULL) == GANTRY_OK) {
            valid++;
            for (size_t k = 0; (policy = gantry_policy_name(k)); k++)
                if (strcmp(policy, "split") != 0)
                    check_graph(g, m, policy);
            if (i % 4 == 0) /* the default, which searches */
                check_graph(g, m, NULL);
        }
        gantry_graph_free(g);
    }
    ck_assert_int_gt(valid, GRAPHS / 3);
    gantry_machine_free(m);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("start");
    TCase *c = tcase_create("start");
    tcase_set_timeout(c, 60);
    tcase_add_loop_test(c, a_start_moves_everything, 0, MACHINES);
    suite_add_tcase(s, c);
    return run_suite(s);
}
