/* SPDX-License-Identifier: Apache-2.0 */
/**
 * A number that a graph states: a scalar argument, what a fill writes, what a buffer holds at first. Doubles hold whole
 * numbers exactly up to 2^53 only, so a constant keeps what a larger whole number has beyond its nearest double. Which
 * type it has to fit into is known where it is used.
 */
#ifndef GY_KERNEL_CONSTANT_H
#define GY_KERNEL_CONSTANT_H

#include "base/expr.h"
#include "kernel/dtype.h"

/* { x } alone is the double x. */
typedef struct gy_constant {
    double real;  /* the nearest double */
    int64_t rest; /* the whole number that was stated, less `real` */
    bool rounded; /* beyond 2^53 and evaluated in doubles: nobody knows the last digits */
} gy_constant;

enum { GY_CONSTANT_TEXT = 128 };

gy_constant gy_constant_whole(int64_t value);
gy_constant gy_constant_unsigned(uint64_t value);
/* The value of an expression: exact if it can be evaluated in whole numbers, else in doubles throughout. */
gantry_status gy_constant_evaluate(gy_constant *out, const gy_expr *e, gy_expr_lookup lookup, void *context,
                                   gantry_status status, gantry_error *err);
/* True if the number is a whole one that fits 64 bits, with sign or without. */
bool gy_constant_is_whole(gy_constant c);
/* Such a number modulo 2^64; 0 for any other. */
uint64_t gy_constant_bits(gy_constant c);
/* True if `dtype` can hold the number: floating types round, integers hold whole numbers in their range. `wraps`: of
 * unsigned types negative numbers too, as far as the signed type of that size has them (-1 is the largest number). */
bool gy_constant_fits(gy_constant c, gantry_dtype dtype, bool wraps);
/* "a whole number from -128 to 127": what fits. Returns `to`, which has GY_CONSTANT_TEXT bytes. */
const char *gy_constant_range(char *to, gantry_dtype dtype, bool wraps);
/* The number as a person would write it. Returns `to`, which has GY_CONSTANT_TEXT bytes. */
const char *gy_constant_text(char *to, gy_constant c);

#endif
