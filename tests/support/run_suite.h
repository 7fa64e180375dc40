/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SUPPORT_RUN_SUITE_H
#define TESTS_SUPPORT_RUN_SUITE_H

#include <check.h>

/* Frees the suite. 0 if nothing failed, else 1: what the program returns. */
static inline int run_suite(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

#endif
