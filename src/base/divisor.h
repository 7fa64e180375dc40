/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GY_BASE_DIVISOR_H
#define GY_BASE_DIVISOR_H

#include <stdint.h>

/* The greatest common divisor of two numbers that are not negative; of a number and 0 that number. */
static inline int64_t gy_common_divisor(int64_t a, int64_t b)
{
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

#endif
