/* SPDX-License-Identifier: Apache-2.0 */
/* Objective "period": starts that overlap, as far as devices, states and memories let them. 64 rows are 256 bytes. */
#include "suite.h"

#include <gantry/gantry.h>
#include <stdio.h>
#include <string.h>

#define UNIT 256

/* s0 on d0 -> s1 on d1 -> ..., 10 us each, buffers of a unit in between. `circle`: the first reads a state that the
 * last writes. */
static gantry_graph *line(int stages, bool circle)
{
    gantry_graph *g = gantry_graph_new("line");
    gantry_buffer state = { .id = GANTRY_NONE }, before = buffer(g, "in", 64);
    gantry_buffer_set_class(g, before, GANTRY_INPUT);
    if (circle) {
        state = buffer(g, "state", 64);
        gantry_buffer_set_class(g, state, GANTRY_STATE);
        gantry_buffer_init_value(g, state, 0);
    }
    for (int i = 0; i < stages; i++) {
        char name[16], device[16];
        snprintf(name, sizeof name, "s%d", i);
        snprintf(device, sizeof device, "%d", i);
        gantry_node n = work(g, name, 10);
        gantry_node_on(g, n, device);
        gantry_node_read(g, n, gantry_all(before));
        if (circle && i == 0)
            gantry_node_read(g, n, gantry_all(state));
        snprintf(name, sizeof name, "b%d", i);
        before = buffer(g, name, 64);
        gantry_node_write(g, n, gantry_all(before));
        if (circle && i == stages - 1)
            gantry_node_write(g, n, gantry_all(state));
    }
    return g;
}

static gantry_schedule *overlap(gantry_graph *g, const gantry_machine *m, int in_flight)
{
    gantry_schedule_options o = GANTRY_SCHEDULE_OPTIONS_INIT;
    gantry_schedule *s = NULL;
    gantry_error err = { 0 };
    o.objective = "period";
    o.in_flight = in_flight;
    ck_assert_msg(gantry_schedule_new(&s, g, m, &o, &err) == GANTRY_OK, "%s", err.text);
    return s;
}

static uint32_t joints(const gantry_schedule *s)
{
    uint32_t count = 0;
    for (size_t i = 0; i < s->sync.count; i++)
        count += s->sync.at[i].distance == 1;
    return count;
}

START_TEST(stages_work_on_starts_of_their_own)
{
    gantry_machine *m = small_machine(3, 1 << 20);
    gantry_graph *g = line(3, false);
    gantry_schedule *s = overlap(g, m, 0);
    gantry_schedule_summary sum = GANTRY_SCHEDULE_SUMMARY_INIT;
    ck_assert_int_eq(gantry_schedule_summarize(s, &sum, NULL), GANTRY_OK);
    ck_assert_double_eq_tol(sum.period_us, 10, 1e-3); /* one stage: transfers go on meanwhile */
    ck_assert_double_eq_tol(sum.period_bound_us, 10, 1e-6);
    ck_assert(sum.makespan_us >= 30 && sum.in_flight >= 4 && sum.in_flight == s->in_flight);
    ck_assert_uint_eq(joints(s), 0); /* nothing is shared */
    ck_assert_uint_eq(s->window.at[2], s->slab.at[2] / s->in_flight);
    gantry_schedule_free(s);
    gantry_graph_free(g);
    gantry_machine_free(m);
}
END_TEST

/* Six stages and fewer starts in flight than hide them: start i + n begins when start i has ended, so n starts end in
 * the time that one takes, some of them soon after each other and then none for long. */
START_TEST(starts_that_come_in_bunches)
{
    gantry_machine *m = small_machine(6, 1 << 20);
    gantry_graph *g = line(6, false);
    gantry_schedule *s = overlap(g, m, _i);
    ck_assert_uint_eq(s->in_flight, (unsigned)_i);
    ck_assert_int_ge(s->makespan, 60 * GY_TICKS_PER_US);
    ck_assert_int_eq(s->period, (s->makespan + _i - 1) / _i);
    gantry_schedule_free(s);
    gantry_graph_free(g);
    gantry_machine_free(m);
}
END_TEST

/* The next start's first stage needs what this start's last stage leaves: three stages and the transfers between. */
START_TEST(a_state_puts_starts_behind_each_other)
{
    gantry_machine *m = small_machine(3, 1 << 20);
    gantry_graph *g = line(3, true);
    gantry_schedule *s = overlap(g, m, 4);
    ck_assert_int_ge(s->period_bound, 30 * GY_TICKS_PER_US);
    ck_assert_int_ge(s->period, s->period_bound);
    ck_assert_uint_ge(joints(s), 1);
    ck_assert_uint_eq(s->in_flight, 4);
    gantry_schedule_free(s);
    gantry_graph_free(g);
    gantry_machine_free(m);
}
END_TEST

/* A start has two units on each device: what comes in and what goes out. */
START_TEST(memory_limits_the_starts_in_flight)
{
    gantry_graph *g = line(3, false);
    gy_ticks period[3];
    for (int i = 0; i < 3; i++) {
        static const int room[] = { 2, 4, 10 };
        gantry_machine *m = small_machine(3, room[i] * UNIT);
        gantry_schedule *s = overlap(g, m, 0);
        ck_assert_uint_le(s->in_flight, (unsigned)room[i] / 2);
        ck_assert(i == 0 || s->in_flight > 1);
        period[i] = s->period;
        for (size_t k = 1; k < s->slab.count; k++)
            ck_assert_uint_le(s->slab.at[k], (unsigned)(room[i] * UNIT));
        gantry_schedule_free(s);
        gantry_machine_free(m);
    }
    ck_assert(period[0] > period[1] && period[1] > period[2]);
    gantry_machine *m = small_machine(3, 4 * UNIT);
    gantry_schedule_options o = GANTRY_SCHEDULE_OPTIONS_INIT;
    o.objective = "period";
    o.in_flight = 3;
    const char *text = refusal(g, m, &o, GANTRY_E_CAPACITY);
    ck_assert_msg(strstr(text, "3 starts in flight do not fit (d0 needs 512 B at node \"s0\" and has 256 B") == text,
                  "%s", text);
    gantry_machine_free(m);
    gantry_graph_free(g);
}
END_TEST

START_TEST(other_objectives_do_not_overlap)
{
    gantry_machine *m = small_machine(3, 1 << 20);
    gantry_graph *g = line(3, true);
    gantry_schedule *s = schedule(g, m, NULL);
    char *text = schedule_text(s);
    ck_assert_uint_eq(s->in_flight, 1);
    ck_assert_uint_eq(joints(s), 0);
    ck_assert(!strstr(text, "windows") && !strstr(text, "period_ps") && strstr(text, "\"in_flight\": 1"));
    gantry_free(text);
    gantry_schedule_free(s);
    gantry_graph_free(g);
    gantry_machine_free(m);
}
END_TEST

START_TEST(the_same_again_and_from_its_file)
{
    gantry_machine *m = small_machine(3, 1 << 20);
    gantry_graph *g = line(3, true);
    gantry_schedule *a = overlap(g, m, 0), *b = overlap(g, m, 0), *c = NULL;
    gantry_error err = { 0 };
    char *x = schedule_text(a), *y = schedule_text(b), *z;
    ck_assert(strcmp(x, y) == 0);
    ck_assert_msg(!gantry_schedule_parse(&c, x, strlen(x), "again", &err), "%s", err.text);
    ck_assert_msg(!gantry_schedule_check(c, g, &err), "%s", err.text);
    z = schedule_text(c);
    ck_assert(strcmp(x, z) == 0);
    ck_assert(c->period == a->period && c->period_bound == a->period_bound);
    gantry_free(x);
    gantry_free(y);
    gantry_free(z);
    gantry_schedule_free(a);
    gantry_schedule_free(b);
    gantry_schedule_free(c);
    gantry_graph_free(g);
    gantry_machine_free(m);
}
END_TEST

/* A captured graph follows itself: windows are there if asked for, but nothing is gained. */
START_TEST(captured_graphs_follow_each_other)
{
    gantry_machine *m = small_machine(3, 1 << 20);
    gantry_graph *g = line(3, true);
    for (int in_flight = 0; in_flight < 3; in_flight += 2) {
        gantry_schedule_options o = GANTRY_SCHEDULE_OPTIONS_INIT;
        gantry_schedule *s = NULL;
        gantry_error err = { 0 };
        o.objective = "period";
        o.replay = "graph";
        o.in_flight = in_flight;
        ck_assert_msg(gantry_schedule_new(&s, g, m, &o, &err) == GANTRY_OK, "%s", err.text);
        ck_assert_int_eq(s->period, s->makespan);
        ck_assert_uint_eq(s->in_flight, in_flight ? 2 : 1);
        ck_assert_uint_eq(joints(s) > 0, in_flight > 0);
        gantry_schedule_free(s);
    }
    gantry_graph_free(g);
    gantry_machine_free(m);
}
END_TEST

/* Everything on one device: its work is the period, and nothing is gained by more starts. */
START_TEST(one_device_is_busy_all_the_time)
{
    gantry_machine *m = small_machine(1, 1 << 20);
    gantry_graph *g = gantry_graph_new("one");
    gantry_buffer x = buffer(g, "x", 64), y = buffer(g, "y", 64);
    gantry_buffer_set_class(g, x, GANTRY_INPUT);
    gantry_node a = work(g, "a", 7), b = work(g, "b", 5);
    gantry_node_read(g, a, gantry_all(x));
    gantry_node_write(g, a, gantry_all(y));
    gantry_node_readwrite(g, b, gantry_all(y));
    gantry_schedule *s = overlap(g, m, 0);
    ck_assert_int_ge(s->period, 12 * GY_TICKS_PER_US);
    ck_assert_int_lt(s->period, s->makespan + 1);
    ck_assert_double_eq_tol(gy_ticks_to_us(s->period), 12, 0.1);
    gantry_schedule_free(s);
    gantry_graph_free(g);
    gantry_machine_free(m);
}
END_TEST

/* The time that a start takes by itself is hidden by another start alone. */
START_TEST(a_start_is_given_out_while_another_runs)
{
    gantry_machine *m = small_machine(1, 1 << 20);
    gantry_graph *g = line(1, false);
    m->start = 11 * GY_TICKS_PER_US;
    gantry_schedule *one = overlap(g, m, 1), *many = overlap(g, m, 0);
    ck_assert_int_eq(one->period, one->makespan);
    ck_assert_int_ge(one->makespan, 21 * GY_TICKS_PER_US);
    ck_assert_double_eq_tol(gy_ticks_to_us(many->period), 10, 0.1);
    ck_assert_uint_ge(many->in_flight, 3); /* one that runs, and so many that begin, or are seen to have ended */
    gantry_schedule_free(one);
    gantry_schedule_free(many);
    gantry_graph_free(g);
    gantry_machine_free(m);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("period");
    TCase *tc = tcase_create("period");
    tcase_add_test(tc, stages_work_on_starts_of_their_own);
    tcase_add_loop_test(tc, starts_that_come_in_bunches, 2, 6);
    tcase_add_test(tc, a_state_puts_starts_behind_each_other);
    tcase_add_test(tc, memory_limits_the_starts_in_flight);
    tcase_add_test(tc, other_objectives_do_not_overlap);
    tcase_add_test(tc, the_same_again_and_from_its_file);
    tcase_add_test(tc, captured_graphs_follow_each_other);
    tcase_add_test(tc, one_device_is_busy_all_the_time);
    tcase_add_test(tc, a_start_is_given_out_while_another_runs);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
