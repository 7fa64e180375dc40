/* SPDX-License-Identifier: Apache-2.0 */
/* Allocations of scheduling fail: the answer is "out of memory", nothing leaks, and the next try works. */
#include "random_graph.h"
#include "suite.h"

#include "support/faults.h"
#include <stdio.h>
#include <string.h>

#define GRAPHS 24

START_TEST(allocations_may_fail)
{
    gantry_machine *m = _i % 2 ? parse_machine(machine_shared_link) : virtual_machine(3);
    gantry_graph *g = random_graph((uint64_t)_i, 6 + _i);
    gantry_schedule_options o = GANTRY_SCHEDULE_OPTIONS_INIT;
    gantry_error err;
    int n = 0;
    o.policy = _i < 2 ? NULL : "heft"; /* all policies, of which each has allocations of its own, for small graphs */
    o.effort = 1;
    if (_i % 4 == 3) { /* starts that overlap */
        o.objective = "period";
        o.in_flight = 2;
    }
    if (gantry_graph_check(g, &err) == GANTRY_OK)
        for (bool failed = true; failed; n = faults_next(n, _i)) {
            gantry_schedule *s = NULL;
            faults_after(n);
            gantry_status status = gantry_schedule_new(&s, g, m, &o, &err);
            failed = faults_off();
            ck_assert_msg(status == (failed ? GANTRY_E_NOMEM : GANTRY_OK), "allocation %d: %s: %s", n,
                          gantry_status_name(status), status ? err.text : "");
            ck_assert(failed == (s == NULL));
            gantry_schedule_free(s);
        }
    printf("graph %d: %d allocations\n", _i, n);
    gantry_graph_free(g);
    gantry_machine_free(m);
}
END_TEST

/* Three batches forward and backward where there is room for one and a half: the policy for such cases runs. */
START_TEST(being_short_of_memory_may_fail_too)
{
    gantry_machine *m = small_machine(1, 3 * 256);
    gantry_graph *g = gantry_graph_new("short");
    gantry_schedule_options o = GANTRY_SCHEDULE_OPTIONS_INIT;
    gantry_error err;
    for (int b = 0; b < 3; b++) {
        gantry_node forward = work(g, "forward", 1), backward = work(g, "backward", 2);
        gantry_buffer kept = buffer(g, (const char *[]){ "k0", "k1", "k2" }[b], 64);
        gantry_buffer sent = buffer(g, (const char *[]){ "s0", "s1", "s2" }[b], 64);
        gantry_node_write(g, forward, gantry_all(kept));
        gantry_node_write(g, forward, gantry_all(sent));
        gantry_node_read(g, backward, gantry_all(kept));
        gantry_node_readwrite(g, backward, gantry_all(sent));
    }
    ck_assert_int_eq(gantry_graph_check(g, &err), GANTRY_OK);
    o.effort = 1;
    o.spill = "off";
    for (int n = 0, failed = 1; failed; n++) {
        gantry_schedule *s = NULL;
        faults_after(n);
        gantry_status status = gantry_schedule_new(&s, g, m, &o, &err);
        failed = faults_off();
        /* A refusal that is not the last word may go without the list of what is largest. */
        ck_assert_msg(status == GANTRY_E_NOMEM || (status == GANTRY_OK && s), "allocation %d: %s", n,
                      gantry_status_name(status));
        bool ran = false;
        for (size_t i = 0; s && i < s->tried.count; i++)
            ran = ran || strcmp(s->tried.at[i].policy, "frugal") == 0;
        ck_assert(status || ran);
        gantry_schedule_free(s);
    }
    gantry_graph_free(g);
    gantry_machine_free(m);
}
END_TEST

START_TEST(explaining_may_fail_too)
{
    gantry_machine *m = virtual_machine(2);
    gantry_graph *g = gantry_graph_new("why");
    gantry_buffer x = buffer(g, "x", 8);
    gantry_error err;
    gantry_node_write(g, work(g, "a", 1), gantry_all(x));
    gantry_node_read(g, work(g, "b", 1), gantry_all(x));
    gantry_schedule *s = schedule(g, m, NULL);
    for (int n = 0, failed = 1; failed; n++) {
        char *text = NULL;
        size_t length;
        faults_after(n);
        gantry_status status = gantry_schedule_explain(s, (gantry_node){ .id = 1 }, &text, &length, &err);
        failed = faults_off();
        ck_assert(status == GANTRY_E_NOMEM || (status == GANTRY_OK && text));
        gantry_free(text);
    }
    gantry_schedule_free(s);
    gantry_graph_free(g);
    gantry_machine_free(m);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("nomem");
    TCase *c = tcase_create("nomem");
    tcase_set_timeout(c, 240);
    tcase_add_loop_test(c, allocations_may_fail, 0, GRAPHS);
    suite_add_tcase(s, c);
    c = tcase_create("explain");
    tcase_set_timeout(c, 240);
    tcase_add_test(c, being_short_of_memory_may_fail_too);
    tcase_add_test(c, explaining_may_fail_too);
    suite_add_tcase(s, c);
    return run_suite(s);
}
