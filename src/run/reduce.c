/* SPDX-License-Identifier: Apache-2.0 */
#include "run/reduce.h"

#include "base/half.h"
#include "kernel/identity.h"
#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { BLOCK = 512 };

/* One function per type: acc (op)= x for n elements. `W` is the type the arithmetic is done in: unsigned for integers,
 * so that overflow wraps instead of being undefined. */
#define DEFINE_COMBINE(name, T, W, is_nan)                                                                             \
    static void combine_##name(gantry_access op, T *acc, const T *x, size_t n)                                         \
    {                                                                                                                  \
        switch (op) {                                                                                                  \
        case GANTRY_SUM:                                                                                               \
            for (size_t i = 0; i < n; i++)                                                                             \
                acc[i] = (T)((W)acc[i] + (W)x[i]);                                                                     \
            break;                                                                                                     \
        case GANTRY_PROD:                                                                                              \
            for (size_t i = 0; i < n; i++)                                                                             \
                acc[i] = (T)((W)acc[i] * (W)x[i]);                                                                     \
            break;                                                                                                     \
        case GANTRY_MIN:                                                                                               \
            for (size_t i = 0; i < n; i++)                                                                             \
                acc[i] = is_nan(acc[i]) || acc[i] < x[i] ? acc[i] : x[i];                                              \
            break;                                                                                                     \
        default:                                                                                                       \
            for (size_t i = 0; i < n; i++)                                                                             \
                acc[i] = is_nan(acc[i]) || acc[i] > x[i] ? acc[i] : x[i];                                              \
            break;                                                                                                     \
        }                                                                                                              \
    }
#define NEVER(x) 0
DEFINE_COMBINE(f32, float, float, isnan)
DEFINE_COMBINE(f64, double, double, isnan)
DEFINE_COMBINE(i8, int8_t, uint32_t, NEVER)
DEFINE_COMBINE(u8, uint8_t, uint32_t, NEVER)
DEFINE_COMBINE(i32, int32_t, uint32_t, NEVER)
DEFINE_COMBINE(u32, uint32_t, uint32_t, NEVER)
DEFINE_COMBINE(i64, int64_t, uint64_t, NEVER)
DEFINE_COMBINE(u64, uint64_t, uint64_t, NEVER)
#undef NEVER
#undef DEFINE_COMBINE

static void combine(gantry_dtype dtype, gantry_access op, void *acc, const void *x, size_t n)
{
    switch (dtype) {
    case GANTRY_F32:
        combine_f32(op, acc, x, n);
        break;
    case GANTRY_F64:
        combine_f64(op, acc, x, n);
        break;
    case GANTRY_I8:
        combine_i8(op, acc, x, n);
        break;
    case GANTRY_U8:
        combine_u8(op, acc, x, n);
        break;
    case GANTRY_I32:
        combine_i32(op, acc, x, n);
        break;
    case GANTRY_U32:
        combine_u32(op, acc, x, n);
        break;
    case GANTRY_I64:
        combine_i64(op, acc, x, n);
        break;
    case GANTRY_U64:
        combine_u64(op, acc, x, n);
        break;
    default:
        break;
    }
}

static void widen(gantry_dtype dtype, float *to, const void *from, size_t n)
{
    const uint16_t *half = from;
    for (size_t i = 0; i < n; i++)
        to[i] = dtype == GANTRY_F16 ? gy_f16_to_float(half[i]) : gy_bf16_to_float(half[i]);
}

static void narrow(gantry_dtype dtype, void *to, const float *from, size_t n)
{
    uint16_t *half = to;
    for (size_t i = 0; i < n; i++)
        half[i] = dtype == GANTRY_F16 ? gy_float_to_f16(from[i]) : gy_float_to_bf16(from[i]);
}

static void reduce_half_block(gantry_dtype dtype, gantry_access op, void *to, const void *const *from, size_t sources,
                              size_t at, size_t n)
{
    float acc[BLOCK], x[BLOCK];
    widen(dtype, acc, (const uint16_t *)from[0] + at, n);
    for (size_t s = 1; s < sources; s++) {
        widen(dtype, x, (const uint16_t *)from[s] + at, n);
        combine_f32(op, acc, x, n);
    }
    narrow(dtype, (uint16_t *)to + at, acc, n);
}

/* The block is built aside: `to` may be a source that is read later than first. */
static void reduce_block(gantry_dtype dtype, gantry_access op, void *to, const void *const *from, size_t sources,
                         size_t at, size_t n)
{
    uint64_t acc[BLOCK]; /* aligned for, and large enough for, any dtype */
    size_t size = gantry_dtype_size(dtype);
    memcpy(acc, (const char *)from[0] + at * size, n * size);
    for (size_t s = 1; s < sources; s++)
        combine(dtype, op, acc, (const char *)from[s] + at * size, n);
    memcpy((char *)to + at * size, acc, n * size);
}

void gy_reduce(gantry_dtype dtype, gantry_access op, void *to, const void *const *from, size_t sources, uint64_t count)
{
    bool half = dtype == GANTRY_F16 || dtype == GANTRY_BF16;
    for (uint64_t at = 0; at < count; at += BLOCK) {
        size_t n = count - at < BLOCK ? (size_t)(count - at) : BLOCK;
        (half ? reduce_half_block : reduce_block)(dtype, op, to, from, sources, (size_t)at, n);
    }
}

void gy_fill_identity(void *to, gantry_dtype dtype, gantry_access op, uint64_t count)
{
    size_t size = gantry_dtype_size(dtype);
    unsigned char element[8] = { 0 };
    gy_identity(dtype, op, element);
    for (uint64_t i = 0; i < count; i++)
        memcpy((char *)to + i * size, element, size);
}
