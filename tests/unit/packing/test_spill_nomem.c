/* SPDX-License-Identifier: Apache-2.0 */
/* Every allocation of a scheduling that spills fails once: the answer is "out of memory", nothing leaks, and the next
 * try works. */
#include "unit/scheduler/random_graph.h"
#include "unit/scheduler/suite.h"

#include "support/faults.h"
#include <stdio.h>

START_TEST(every_allocation_may_fail)
{
    static const uint64_t capacities[] = { 6144, 3072, 2048 };
    uint64_t capacity = capacities[_i];
    gantry_machine *m = small_machine(2, (long long)capacity);
    int graphs = 0, n = 0;
    for (uint64_t seed = 0; seed < 400 && graphs < 3; seed++) { /* three that spill */
        gantry_graph *g = random_graph(seed, 12);
        gantry_schedule *s = NULL;
        gantry_schedule_options o = GANTRY_SCHEDULE_OPTIONS_INIT;
        gantry_error err;
        o.policy = "round-robin";
        o.effort = 0;
        bool spills = gantry_graph_check(g, &err) == GANTRY_OK &&
                      gantry_schedule_new(&s, g, m, &o, &err) == GANTRY_OK && count_kind(s, GY_OP_EVICT) > 0;
        gantry_schedule_free(s);
        n = -1;
        int survived = 0;
        for (bool failed = spills; failed;) {
            s = NULL;
            faults_after(++n);
            gantry_status status = gantry_schedule_new(&s, g, m, &o, &err);
            failed = faults_off();
            /* One that fails while it says why a first way did not fit is lost with the message: the next way is gone.
             */
            ck_assert_msg(status == GANTRY_OK || (failed && status == GANTRY_E_NOMEM), "allocation %d: %s: %s", n,
                          gantry_status_name(status), status ? err.text : "");
            ck_assert((status == GANTRY_OK) == (s != NULL));
            survived += failed && s;
            gantry_schedule_free(s);
        }
        if (spills)
            printf("graph %llu: %d allocations, %d of them in messages\n", (unsigned long long)seed, n, survived);
        ck_assert(survived * 10 <= n || !spills);
        graphs += spills;
        gantry_graph_free(g);
    }
    ck_assert_int_eq(graphs, 3);
    gantry_machine_free(m);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("spill-nomem");
    TCase *c = tcase_create("spill-nomem");
    tcase_set_timeout(c, 60);
    tcase_add_loop_test(c, every_allocation_may_fail, 0, 3);
    suite_add_tcase(s, c);
    return run_suite(s);
}
