/* SPDX-License-Identifier: Apache-2.0 */
/* Every allocation of cutting, scheduling and attaching fails once: "out of memory", nothing leaks, all is as before.
 */
#include "../scheduler/suite.h"

#include "scheduler/balance/guided.h"
#include "scheduler/options.h"
#include "support/faults.h"
#include <stdlib.h>
#include <string.h>

static gantry_graph *two_parts(void)
{
    gantry_graph *g = gantry_graph_new("parts");
    gantry_buffer x = buffer(g, "x", 90), y = buffer(g, "y", 90);
    gantry_error err;
    gantry_buffer_init_value(g, x, 1);
    gantry_buffer_output(g, y);
    gantry_buffer_split_auto(g, x, 2);
    gantry_buffer_split_auto(g, y, 2);
    for (int i = 0; i < 2; i++) {
        gantry_node n = gantry_graph_work(g, "work");
        gantry_node_read(g, n, gantry_part(x, i));
        gantry_node_write(g, n, gantry_part(y, i));
        gantry_node_time(g, n, "big", 100);
        gantry_node_time(g, n, "small", 200);
    }
    ck_assert_int_eq(gantry_graph_check(g, &err), GANTRY_OK);
    return g;
}

START_TEST(scheduling)
{
    static const char *const methods[] = { NULL, "dynamic", "memory" };
    gantry_machine *m = parse_machine(machine_shared_link);
    gantry_graph *g = two_parts();
    gantry_schedule_options o = GANTRY_SCHEDULE_OPTIONS_INIT;
    gantry_error err;
    o.balance = methods[_i];
    o.effort = 0;
    for (int n = 0, failed = 1; failed; n++) {
        gantry_schedule *s = NULL;
        faults_after(n);
        gantry_status status = gantry_schedule_new(&s, g, m, &o, &err);
        failed = faults_off();
        ck_assert_int_eq(status, failed ? GANTRY_E_NOMEM : GANTRY_OK);
        ck_assert(failed == (s == NULL));
        gantry_schedule_free(s);
    }
    ck_assert_int_eq(g->refs, 1);
    gantry_graph_free(g);
    gantry_machine_free(m);
}
END_TEST

START_TEST(attaching)
{
    gantry_machine *m = parse_machine(machine_shared_link);
    gantry_graph *g = two_parts();
    gantry_schedule_options o = GANTRY_SCHEDULE_OPTIONS_INIT;
    gantry_schedule *s = NULL;
    gantry_error err;
    o.balance = "dynamic";
    ck_assert_int_eq(gantry_schedule_new(&s, g, m, &o, &err), GANTRY_OK);
    ck_assert_int_eq(s->bounds.at[0].first[1], 60); /* twice as fast, twice the rows */
    for (int n = 0, failed = 1; failed; n++) {
        faults_after(n);
        gantry_status status = gantry_schedule_attach(s, g, &err);
        failed = faults_off();
        ck_assert_int_eq(status, failed ? GANTRY_E_NOMEM : GANTRY_OK);
    }
    gantry_schedule_free(s);
    ck_assert_int_eq(g->refs, 1);
    gantry_graph_free(g);
    gantry_machine_free(m);
}
END_TEST

/* By what was measured: "small" is three times as slow as it says, so 90 rows at 1 : 6. */
START_TEST(cutting_anew)
{
    gantry_machine *m = parse_machine(machine_shared_link);
    gantry_graph *g = two_parts();
    gantry_schedule_options o = GANTRY_SCHEDULE_OPTIONS_INIT;
    gantry_schedule *s = NULL;
    gantry_error err;
    o.balance = "guided";
    o.effort = 0;
    ck_assert_int_eq(gantry_schedule_new(&s, g, m, &o, &err), GANTRY_OK);
    gy_options read;
    ck_assert_int_eq(gy_options_read(&read, &o, &err), GANTRY_OK);
    gy_ticks *took = calloc(s->ops.count, sizeof *took);
    for (size_t i = 0; i < s->ops.count; i++) {
        const gy_op *op = &s->ops.at[i];
        uint32_t device = s->lanes.at[s->op_lane.at[op->lane]].device;
        took[i] = op->duration * (strcmp(s->machine->device[device].kind, "small") == 0 ? 3 : 1);
    }
    for (int n = 0, failed = 1; failed; n++) {
        gantry_schedule *next = NULL;
        gy_guided result;
        faults_after(n);
        gantry_status status = gy_guided_schedule(&next, s, took, &read, &result, &err);
        failed = faults_off();
        ck_assert_msg(status == (failed ? GANTRY_E_NOMEM : GANTRY_OK), "allocation %d: %s", n, err.text);
        ck_assert(failed == (next == NULL));
        if (!failed) {
            int64_t cut = next->bounds.at[0].first[1];
            ck_assert_int_ge(cut > 45 ? cut : 90 - cut, 76); /* 6 : 1 of 90 rows is 77.1 */
            ck_assert_int_le(cut > 45 ? cut : 90 - cut, 78);
            ck_assert_int_lt(result.then, result.now);
        }
        gantry_schedule_free(next);
    }
    free(took);
    gantry_schedule_free(s);
    ck_assert_int_eq(g->refs, 1);
    gantry_graph_free(g);
    gantry_machine_free(m);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("balance without memory");
    TCase *t = tcase_create("nomem");
    tcase_add_loop_test(t, scheduling, 0, 3);
    tcase_add_test(t, attaching);
    tcase_add_test(t, cutting_anew);
    suite_add_tcase(s, t);
    return run_suite(s);
}
