/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/identity.h"

#include <math.h>
#include <string.h>

/* The bits of 0, 1, +infinity and -infinity, and of the largest and smallest integers, in the low bytes. */
typedef struct constants {
    uint64_t one, high, low;
} constants;

static constants constants_of(gantry_dtype dtype)
{
    switch (dtype) {
    case GANTRY_F16:
        return (constants){ 0x3C00, 0x7C00, 0xFC00 };
    case GANTRY_BF16:
        return (constants){ 0x3F80, 0x7F80, 0xFF80 };
    case GANTRY_F32:
        return (constants){ 0x3F800000, 0x7F800000, 0xFF800000 };
    case GANTRY_F64:
        return (constants){ 0x3FF0000000000000, 0x7FF0000000000000, 0xFFF0000000000000 };
    case GANTRY_I8:
        return (constants){ 1, INT8_MAX, 0x80 };
    case GANTRY_I32:
        return (constants){ 1, INT32_MAX, 0x80000000 };
    case GANTRY_I64:
        return (constants){ 1, INT64_MAX, 0x8000000000000000 };
    case GANTRY_U8:
        return (constants){ 1, UINT8_MAX, 0 };
    case GANTRY_U32:
        return (constants){ 1, UINT32_MAX, 0 };
    case GANTRY_U64:
    case GANTRY_F8E4M3: /* nothing is reduced in them */
    case GANTRY_F8E5M2:
    case GANTRY_DTYPE_COUNT:
        break;
    }
    return (constants){ 1, UINT64_MAX, 0 };
}

bool gy_identity(gantry_dtype dtype, gantry_access op, void *element)
{
    constants c = constants_of(dtype);
    uint64_t bits = 0;
    switch (op) {
    case GANTRY_SUM:
        break;
    case GANTRY_PROD:
        bits = c.one;
        break;
    case GANTRY_MIN:
        bits = c.high;
        break;
    case GANTRY_MAX:
        bits = c.low;
        break;
    case GANTRY_READ:
    case GANTRY_WRITE:
    case GANTRY_READWRITE:
    default:
        return false;
    }
    for (size_t i = 0; i < gantry_dtype_size(dtype); i++)
        ((unsigned char *)element)[i] = (unsigned char)(bits >> (8 * i));
    return true;
}

gy_constant gy_identity_constant(gantry_dtype dtype, gantry_access op)
{
    bool is_signed = dtype == GANTRY_I8 || dtype == GANTRY_I32 || dtype == GANTRY_I64;
    unsigned unused = 64 - 8 * (unsigned)gantry_dtype_size(dtype);
    uint64_t bits = 0;
    if (gy_dtype_is_float(dtype) || !gy_identity(dtype, op, &bits))
        return (gy_constant){ op == GANTRY_PROD, 0, false };
    int64_t value;
    bits <<= unused;
    memcpy(&value, &bits, sizeof value);
    return is_signed ? gy_constant_whole(value / (INT64_C(1) << unused)) : gy_constant_unsigned(bits >> unused);
}

/* Integers that the type can hold: its bits are the low ones of the number's. */
static bool has_bits(gantry_dtype dtype, gy_constant value, uint64_t bits)
{
    uint64_t mask = UINT64_MAX >> (64 - 8 * gantry_dtype_size(dtype));
    return gy_constant_fits(value, dtype, false) && ((gy_constant_bits(value) ^ bits) & mask) == 0;
}

static bool is_extreme(gantry_dtype dtype, gy_constant value, bool high)
{
    constants c = constants_of(dtype);
    return gy_dtype_is_float(dtype) ? isinf(value.real) && (value.real > 0) == high
                                    : has_bits(dtype, value, high ? c.high : c.low);
}

bool gy_is_identity(gantry_dtype dtype, gantry_access op, gy_constant value)
{
    switch (op) {
    case GANTRY_SUM:
        return value.real == 0;
    case GANTRY_PROD:
        return value.real == 1;
    case GANTRY_MIN:
    case GANTRY_MAX:
        return is_extreme(dtype, value, op == GANTRY_MIN);
    case GANTRY_READ:
    case GANTRY_WRITE:
    case GANTRY_READWRITE:
    default:
        return false;
    }
}
