/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic of the fake NCCL: halves are rounded after each addition, and min and max pass over NaN. */
#include "fake.h"

#include "base/half.h"
#include <math.h>

size_t size_of(ncclDataType_t type)
{
    static const size_t sizes[] = { 1, 1, 4, 4, 8, 8, 2, 4, 8, 2 };
    return sizes[type];
}

#define COMBINE(T, W, larger, smaller)                                                                                 \
    for (size_t i = 0; i < count; i++) {                                                                               \
        T a, b;                                                                                                        \
        memcpy(&a, to + i * sizeof a, sizeof a);                                                                       \
        memcpy(&b, from + i * sizeof b, sizeof b);                                                                     \
        a = op == ncclSum ? (T)((W)a + (W)b) : op == ncclProd ? (T)((W)a * (W)b) : op == ncclMax ? larger : smaller;   \
        memcpy(to + i * sizeof a, &a, sizeof a);                                                                       \
    }                                                                                                                  \
    break
#define WHOLE(T, W) COMBINE(T, W, a > b ? a : b, a < b ? a : b)
#define LARGER      fmaxf(a, b)
#define SMALLER     fminf(a, b)

static float widen(ncclDataType_t type, const char *at)
{
    uint16_t half;
    memcpy(&half, at, sizeof half);
    return type == ncclFloat16 ? gy_f16_to_float(half) : gy_bf16_to_float(half);
}

static void combine_halves(ncclDataType_t type, ncclRedOp_t op, char *to, const char *from, size_t count)
{
    for (size_t i = 0; i < 2 * count; i += 2) {
        float a = widen(type, to + i), b = widen(type, from + i);
        a = op == ncclSum ? a + b : op == ncclProd ? a * b : op == ncclMax ? LARGER : SMALLER;
        uint16_t half = type == ncclFloat16 ? gy_float_to_f16(a) : gy_float_to_bf16(a);
        memcpy(to + i, &half, sizeof half);
    }
}

void combine(ncclDataType_t type, ncclRedOp_t op, char *to, const char *from, size_t count)
{
    switch (type) {
    case ncclInt8:
        WHOLE(int8_t, uint32_t);
    case ncclUint8:
        WHOLE(uint8_t, uint32_t);
    case ncclInt32:
        WHOLE(int32_t, uint32_t);
    case ncclUint32:
        WHOLE(uint32_t, uint32_t);
    case ncclInt64:
        WHOLE(int64_t, uint64_t);
    case ncclUint64:
        WHOLE(uint64_t, uint64_t);
    case ncclFloat32:
        COMBINE(float, float, LARGER, SMALLER);
    case ncclFloat64:
        COMBINE(double, double, fmax(a, b), fmin(a, b));
    case ncclFloat16:
    case ncclBfloat16:
        combine_halves(type, op, to, from, count);
        break;
    }
}
