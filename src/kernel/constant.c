/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/constant.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#define MOST_EXACT 0x1p53 /* whole doubles between this and its negative are what was calculated */

/* A whole double modulo 2^64. */
static uint64_t bits_of(double whole)
{
    return whole < 0 ? (uint64_t)(int64_t)whole : whole < 0x1p64 ? (uint64_t)whole : 0;
}

gy_constant gy_constant_whole(int64_t value)
{
    double real = (double)value;
    return (gy_constant){ .real = real, .rest = (int64_t)((uint64_t)value - bits_of(real)) };
}

gy_constant gy_constant_unsigned(uint64_t value)
{
    double real = (double)value; /* 2^64 for the largest */
    return (gy_constant){ .real = real, .rest = (int64_t)(value - bits_of(real)) };
}

gantry_status gy_constant_evaluate(gy_constant *out, const gy_expr *e, gy_expr_lookup lookup, void *context,
                                   gantry_status status, gantry_error *err)
{
    double real;
    int64_t whole;
    uint64_t large;
    if (gy_expr_is_unsigned(e, &large)) {
        *out = gy_constant_unsigned(large);
        return GANTRY_OK;
    }
    if (gy_expr_real(e, lookup, context, &real, status, NULL, err))
        return status;
    if (gy_expr_integer(e, lookup, context, &whole, status, NULL, NULL) == GANTRY_OK) {
        *out = gy_constant_whole(whole);
        out->real = out->real == real ? real : out->real; /* a zero keeps its sign */
    } else {
        *out = (gy_constant){ .real = real, .rounded = fabs(real) >= MOST_EXACT };
    }
    return GANTRY_OK;
}

bool gy_constant_is_whole(gy_constant c)
{
    return !c.rounded && c.real == floor(c.real) && c.real >= -0x1p63 &&
           (c.real < 0x1p64 || (c.real == 0x1p64 && c.rest < 0));
}

uint64_t gy_constant_bits(gy_constant c)
{
    return gy_constant_is_whole(c) ? bits_of(c.real) + (uint64_t)c.rest : 0;
}

/* ---- ranges of integers ---- */

static bool is_signed(gantry_dtype dtype)
{
    return dtype == GANTRY_I8 || dtype == GANTRY_I32 || dtype == GANTRY_I64;
}

static unsigned width_of(gantry_dtype dtype)
{
    return 8 * (unsigned)gantry_dtype_size(dtype);
}

/* The smallest number of a signed type of that size. */
static int64_t lowest(gantry_dtype dtype)
{
    return -(int64_t)(UINT64_MAX >> (65 - width_of(dtype))) - 1;
}

static uint64_t highest(gantry_dtype dtype)
{
    return UINT64_MAX >> (64 - width_of(dtype) + is_signed(dtype));
}

bool gy_constant_fits(gy_constant c, gantry_dtype dtype, bool wraps)
{
    uint64_t bits = gy_constant_bits(c);
    if (gy_dtype_is_float(dtype))
        return true;
    if (!gy_constant_is_whole(c))
        return false;
    return c.real < 0 ? (is_signed(dtype) || wraps) && (int64_t)bits >= lowest(dtype) : bits <= highest(dtype);
}

const char *gy_constant_range(char *to, gantry_dtype dtype, bool wraps)
{
    snprintf(to, GY_CONSTANT_TEXT, "a whole number from %" PRId64 " to %" PRIu64,
             is_signed(dtype) || wraps ? lowest(dtype) : 0, highest(dtype));
    return to;
}

const char *gy_constant_text(char *to, gy_constant c)
{
    char digits[GY_DOUBLE_TEXT];
    if (c.rounded) {
        snprintf(to, GY_CONSTANT_TEXT, "%s, calculated in doubles, which are exact below 2^53 only",
                 gy_double_text(digits, sizeof digits, c.real));
    } else if (gy_constant_is_whole(c) && c.real < 0) {
        snprintf(to, GY_CONSTANT_TEXT, "%" PRId64, (int64_t)gy_constant_bits(c));
    } else if (gy_constant_is_whole(c)) {
        snprintf(to, GY_CONSTANT_TEXT, "%" PRIu64, gy_constant_bits(c));
    } else {
        snprintf(to, GY_CONSTANT_TEXT, "%s", gy_double_text(digits, sizeof digits, c.real));
    }
    return to;
}
