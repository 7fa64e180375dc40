/* SPDX-License-Identifier: Apache-2.0 */
/* Every allocation of cutting, scheduling and attaching fails once: "out of memory", nothing leaks, all is as before.
 */
#include "../scheduler/suite.h"

#include "support/faults.h"

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

int main(void)
{
    Suite *s = suite_create("balance without memory");
    TCase *t = tcase_create("nomem");
    tcase_add_loop_test(t, scheduling, 0, 3);
    tcase_add_test(t, attaching);
    suite_add_tcase(s, t);
    return run_suite(s);
}
