/* SPDX-License-Identifier: Apache-2.0 */
/* Allocations of a whole search fail, one in each try: the answer is "out of memory", and nothing leaks. There are many
 * of them, so the first are all tried, and then fewer and fewer. */
#include "suite.h"

#include "support/faults.h"
#include <stdio.h>

START_TEST(allocations_may_fail)
{
    problem p = draw_problem(3 + (uint64_t)_i, 7, 3, false);
    gantry_graph *g = make_graph(&p);
    gantry_machine *m = _i ? NULL : make_machine(3);
    gantry_error err;
    ck_assert(m || !gantry_machine_virtual(&m, 3, NULL));
    if (!_i)
        gantry_node_apart(g, gantry_graph_find_node(g, "n5"), gantry_graph_find_node(g, "n2"));
    int n = 0, tries = 0;
    ck_assert(!gantry_graph_check(g, &err));
    for (bool failed = true; failed; n += 1 + n / 20, tries++) {
        gantry_schedule *s = NULL;
        faults_after(n);
        gantry_status status = gantry_schedule_new(&s, g, m, NULL, &err);
        failed = faults_off();
        ck_assert_msg(status == (failed ? GANTRY_E_NOMEM : GANTRY_OK), "allocation %d: %s: %s", n,
                      gantry_status_name(status), status ? err.text : "");
        ck_assert(failed == (s == NULL));
        gantry_schedule_free(s);
    }
    ck_assert_int_gt(tries, 100);
    printf("%d allocations\n", n);
    gantry_graph_free(g);
    gantry_machine_free(m);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("search without memory");
    TCase *c = tcase_create("nomem");
    tcase_set_timeout(c, 60);
    tcase_add_loop_test(c, allocations_may_fail, 0, 2);
    suite_add_tcase(s, c);
    return run_suite(s);
}
