/* SPDX-License-Identifier: Apache-2.0 */
/* Allocations of every policy fail: the answer is "out of memory", nothing leaks, and the next try works. */
#include "../scheduler/random_graph.h"
#include "../scheduler/suite.h"

#include "support/faults.h"
#include <stdio.h>

#define GRAPHS 3

static int fail_each(gantry_graph *g, const gantry_machine *m, const char *policy, int turn)
{
    gantry_schedule_options o = GANTRY_SCHEDULE_OPTIONS_INIT;
    gantry_error err;
    int n = 0;
    o.policy = policy;
    for (bool failed = true; failed; n = faults_next(n, turn)) {
        gantry_schedule *s = NULL;
        faults_after(n);
        gantry_status status = gantry_schedule_new(&s, g, m, &o, &err);
        failed = faults_off();
        ck_assert_msg(status == (failed ? GANTRY_E_NOMEM : GANTRY_OK), "%s, allocation %d: %s: %s", policy, n,
                      gantry_status_name(status), status ? err.text : "");
        ck_assert(failed == (s == NULL));
        gantry_schedule_free(s);
    }
    return n;
}

START_TEST(allocations_may_fail)
{
    gantry_machine *m = _i % 2 ? parse_machine(machine_shared_link) : parse_machine(machine_twins);
    gantry_error err;
    gantry_graph *g = NULL;
    for (uint64_t seed = 0; !g || gantry_graph_check(g, &err) != GANTRY_OK; seed++) {
        gantry_graph_free(g);
        g = random_graph(seed + 100 * (uint64_t)_i, 12 + 4 * _i);
    }
    for (size_t i = 0; gantry_policy_name(i); i++)
        printf("%s: %d allocations\n", gantry_policy_name(i), fail_each(g, m, gantry_policy_name(i), (int)i));
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
    return run_suite(s);
}
