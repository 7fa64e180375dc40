/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SUPPORT_SURVIVE_H
#define TESTS_SUPPORT_SURVIVE_H

#include "support/faults.h"
#include <check.h>

/* Runs `work` with ever more memory. It returns whether it got through, and must tell the truth. */
static void assert_survives(bool (*work)(void), int at_least)
{
    for (int n = 0;; n++) {
        ck_assert_int_lt(n, 1000000);
        long before = faults_alive();
        faults_from(n);
        bool fine = work();
        ck_assert_msg(fine == !faults_off(), "allocation %d: %s", n,
                      fine ? "its failure was not noticed" : "failed without a reason");
        ck_assert_msg(faults_alive() == before, "allocation %d: %ld pieces were not freed", n, faults_alive() - before);
        if (fine) {
            ck_assert_int_ge(n, at_least);
            return;
        }
    }
}

#endif
