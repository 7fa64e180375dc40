/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers that every test program of this folder needs besides Check. */
#ifndef TEST_UNIT_BASE_SUITE_H
#define TEST_UNIT_BASE_SUITE_H

#include <check.h>
#include <stdint.h>

#include "support/run_suite.h"

/* For loops of millions: Check writes down every assertion that it passes. */
#define assert_quietly(condition)                                                                                      \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            ck_abort_msg("not true: %s", #condition);                                                                  \
        }                                                                                                              \
    } while (0)

/* A fixed sequence of numbers that look random (xorshift64star): the same in every run. */
static inline uint64_t next_random(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * UINT64_C(0x2545F4914F6CDD1D);
}

#endif
