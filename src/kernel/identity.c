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
    for (size_t i = 0; i < gantry_dtype_size(dtype); i++) {
        ((unsigned char *)element)[i] = (unsigned char)(bits >> (8 * i));
    }
    return true;
}

static bool is_extreme(gantry_dtype dtype, double value, bool high)
{
    static const double lows[] = {
        [GANTRY_I8] = INT8_MIN, [GANTRY_I32] = INT32_MIN, [GANTRY_I64] = -0x1p63, [GANTRY_U64] = 0
    };
    static const double highs[] = { [GANTRY_I8] = INT8_MAX,
                                    [GANTRY_U8] = UINT8_MAX,
                                    [GANTRY_I32] = INT32_MAX,
                                    [GANTRY_U32] = UINT32_MAX,
                                    [GANTRY_U64] = 0 };
    if (dtype <= GANTRY_F64) {
        return isinf(value) && (value > 0) == high;
    }
    /* The largest 64-bit integers are no doubles: no value that a graph can state is one. */
    if (high && (dtype == GANTRY_I64 || dtype == GANTRY_U64)) {
        return false;
    }
    return value == (high ? highs[dtype] : lows[dtype]);
}

bool gy_is_identity(gantry_dtype dtype, gantry_access op, double value)
{
    switch (op) {
    case GANTRY_SUM:
        return value == 0;
    case GANTRY_PROD:
        return value == 1;
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
