/* SPDX-License-Identifier: Apache-2.0 */
/* Running out of memory at each allocation in turn: the right status, and (under AddressSanitizer) no leak. */
#include "base/memory.h"
#include "support/faults.h"
#include "support/run_suite.h"
#include "unit/schedule/hand.h"
#include <check.h>
#include <gantry/gantry.h>
#include <string.h>

enum { ENOUGH = 100000 };

START_TEST(test_parse)
{
    char *text = hand_text(NULL, NULL);
    gantry_status status = GANTRY_E_NOMEM;
    int n = 0;
    for (; status && n < ENOUGH; n++) {
        gantry_schedule *s = NULL;
        gantry_error err = { 0 };
        faults_after(n);
        status = gantry_schedule_parse(&s, text, strlen(text), "right.json", &err);
        faults_off();
        ck_assert_msg(status == GANTRY_OK || status == GANTRY_E_NOMEM, "allocation %d: %s", n, err.text);
        gantry_schedule_free(s);
    }
    ck_assert_int_gt(n, 30);
    ck_assert_int_lt(n, ENOUGH);
    gy_free(text);
}
END_TEST

START_TEST(test_json_and_check)
{
    gantry_graph *g = hand_graph();
    gantry_error err = { 0 };
    gantry_schedule *s = hand_schedule(NULL, NULL, &err);
    gantry_status written = GANTRY_E_NOMEM, checked = GANTRY_E_NOMEM;
    s->graph_hash = g->hash;
    for (int n = 0; (written || checked) && n < ENOUGH; n++) {
        char *text = NULL;
        faults_after(n);
        written = gantry_schedule_json(s, &text, NULL, &err);
        faults_off();
        faults_after(n);
        checked = gantry_schedule_check(s, g, &err);
        faults_off();
        ck_assert_msg((!written || written == GANTRY_E_NOMEM) && (!checked || checked == GANTRY_E_NOMEM),
                      "allocation %d: %s", n, err.text);
        gantry_free(text);
    }
    ck_assert_int_eq(written, GANTRY_OK);
    ck_assert_int_eq(checked, GANTRY_OK);
    gantry_schedule_free(s);
    gantry_graph_free(g);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("schedule without memory");
    TCase *tc = tcase_create("nomem");
    tcase_add_test(tc, test_parse);
    tcase_add_test(tc, test_json_and_check);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
