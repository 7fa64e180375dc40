/* SPDX-License-Identifier: Apache-2.0 */
/* Between elements and the values that they are computed as: f16, bf16, f32 and f8 as float, f64 as double, whole
 * numbers as int64_t. */
#include "maths/steps.h"

#include "base/f8.h"
#include <string.h>

bool gy_maths_is_native(gantry_dtype dtype)
{
    return dtype == GANTRY_F32 || dtype == GANTRY_F64 || dtype == GANTRY_I64;
}

#define EACH(to_type, from_type, expression)                                                                           \
    {                                                                                                                  \
        to_type *restrict t = to;                                                                                      \
        const from_type *restrict f = from;                                                                            \
        for (size_t i = 0; i < n; i++)                                                                                 \
            t[i] = expression;                                                                                         \
        return;                                                                                                        \
    }

void gy_maths_load(void *to, const void *from, gantry_dtype dtype, size_t n)
{
    switch (dtype) {
    case GANTRY_F16:
        EACH(float, uint16_t, gy_f16_to_float(f[i]))
    case GANTRY_BF16:
        EACH(float, uint16_t, gy_bf16_to_float(f[i]))
    case GANTRY_F8E4M3:
        EACH(float, uint8_t, gy_f8e4m3_to_float(f[i]))
    case GANTRY_F8E5M2:
        EACH(float, uint8_t, gy_f8e5m2_to_float(f[i]))
    case GANTRY_I8:
        EACH(int64_t, int8_t, f[i])
    case GANTRY_U8:
        EACH(int64_t, uint8_t, f[i])
    case GANTRY_I32:
        EACH(int64_t, int32_t, f[i])
    case GANTRY_U32:
        EACH(int64_t, uint32_t, f[i])
    default:
        memcpy(to, from, n * gantry_dtype_size(dtype));
    }
}

/* ---- storing ---- */

static void store_floats(void *to, const void *from, gantry_dtype dtype, size_t n)
{
    switch (dtype) {
    case GANTRY_F16:
        EACH(uint16_t, float, gy_float_to_f16(f[i]))
    case GANTRY_BF16:
        EACH(uint16_t, float, gy_float_to_bf16(f[i]))
    case GANTRY_F8E4M3:
        EACH(uint8_t, float, gy_float_to_f8e4m3(f[i]))
    case GANTRY_F8E5M2:
        EACH(uint8_t, float, gy_float_to_f8e5m2(f[i]))
    case GANTRY_F64:
        EACH(double, float, (double)f[i])
    default:
        memcpy(to, from, n * sizeof(float));
    }
}

/* To 16 and 8 bits by way of float. */
static void store_doubles(void *to, const void *from, gantry_dtype dtype, size_t n)
{
    switch (dtype) {
    case GANTRY_F16:
        EACH(uint16_t, double, gy_float_to_f16((float)f[i]))
    case GANTRY_BF16:
        EACH(uint16_t, double, gy_float_to_bf16((float)f[i]))
    case GANTRY_F8E4M3:
        EACH(uint8_t, double, gy_float_to_f8e4m3((float)f[i]))
    case GANTRY_F8E5M2:
        EACH(uint8_t, double, gy_float_to_f8e5m2((float)f[i]))
    case GANTRY_F32:
        EACH(float, double, (float)f[i])
    default:
        memcpy(to, from, n * sizeof(double));
    }
}

/* The low bits are kept, as C does. */
static void store_whole(void *to, const void *from, gantry_dtype dtype, size_t n)
{
    switch (dtype) {
    case GANTRY_F16:
        EACH(uint16_t, int64_t, gy_float_to_f16((float)f[i]))
    case GANTRY_BF16:
        EACH(uint16_t, int64_t, gy_float_to_bf16((float)f[i]))
    case GANTRY_F8E4M3:
        EACH(uint8_t, int64_t, gy_float_to_f8e4m3((float)f[i]))
    case GANTRY_F8E5M2:
        EACH(uint8_t, int64_t, gy_float_to_f8e5m2((float)f[i]))
    case GANTRY_F32:
        EACH(float, int64_t, (float)f[i])
    case GANTRY_F64:
        EACH(double, int64_t, (double)f[i])
    case GANTRY_I8:
    case GANTRY_U8:
        EACH(uint8_t, int64_t, (uint8_t)f[i])
    case GANTRY_I32:
    case GANTRY_U32:
        EACH(uint32_t, int64_t, (uint32_t)f[i])
    default:
        memcpy(to, from, n * sizeof(int64_t));
    }
}

void gy_maths_store(void *to, const void *from, gantry_dtype dtype, gy_maths_type type, size_t n)
{
    if (type == GY_MATHS_F32)
        store_floats(to, from, dtype, n);
    else if (type == GY_MATHS_F64)
        store_doubles(to, from, dtype, n);
    else
        store_whole(to, from, dtype, n);
}

/* ---- casts ---- */

int64_t gy_maths_truncate(double x, gantry_dtype dtype)
{
    bool is_signed = dtype == GANTRY_I8 || dtype == GANTRY_I32 || dtype == GANTRY_I64;
    int bits = 8 * (int)gantry_dtype_size(dtype) - is_signed;
    int64_t most = (int64_t)((UINT64_C(1) << bits) - 1), least = is_signed ? -most - 1 : 0;
    if (!(x > (double)least)) /* NaN, too */
        return x <= (double)least ? least : 0;
    /* 2^bits, which a double holds, is the first that is too large. */
    return x >= (double)(UINT64_C(1) << bits) ? most : (int64_t)x;
}

static void cast_whole(void *to, const void *from, gantry_dtype dtype, size_t n)
{
    switch (dtype) {
    case GANTRY_I8:
        EACH(int64_t, int64_t, (int8_t)(uint8_t)f[i])
    case GANTRY_U8:
        EACH(int64_t, int64_t, (uint8_t)f[i])
    case GANTRY_I32:
        EACH(int64_t, int64_t, (int32_t)(uint32_t)f[i])
    case GANTRY_U32:
        EACH(int64_t, int64_t, (uint32_t)f[i])
    case GANTRY_F16:
        EACH(float, int64_t, gy_f16_to_float(gy_float_to_f16((float)f[i])))
    case GANTRY_BF16:
        EACH(float, int64_t, gy_bf16_to_float(gy_float_to_bf16((float)f[i])))
    case GANTRY_F8E4M3:
        EACH(float, int64_t, gy_f8e4m3_to_float(gy_float_to_f8e4m3((float)f[i])))
    case GANTRY_F8E5M2:
        EACH(float, int64_t, gy_f8e5m2_to_float(gy_float_to_f8e5m2((float)f[i])))
    case GANTRY_F32:
        EACH(float, int64_t, (float)f[i])
    case GANTRY_F64:
        EACH(double, int64_t, (double)f[i])
    default:
        memcpy(to, from, n * sizeof(int64_t));
    }
}

static void cast_floats(void *to, const void *from, gantry_dtype dtype, size_t n)
{
    switch (dtype) {
    case GANTRY_F16:
        EACH(float, float, gy_f16_to_float(gy_float_to_f16(f[i])))
    case GANTRY_BF16:
        EACH(float, float, gy_bf16_to_float(gy_float_to_bf16(f[i])))
    case GANTRY_F8E4M3:
        EACH(float, float, gy_f8e4m3_to_float(gy_float_to_f8e4m3(f[i])))
    case GANTRY_F8E5M2:
        EACH(float, float, gy_f8e5m2_to_float(gy_float_to_f8e5m2(f[i])))
    case GANTRY_F32:
        EACH(float, float, f[i])
    case GANTRY_F64:
        EACH(double, float, (double)f[i])
    default:
        EACH(int64_t, float, gy_maths_truncate((double)f[i], dtype))
    }
}

static void cast_doubles(void *to, const void *from, gantry_dtype dtype, size_t n)
{
    switch (dtype) {
    case GANTRY_F16:
        EACH(float, double, gy_f16_to_float(gy_float_to_f16((float)f[i])))
    case GANTRY_BF16:
        EACH(float, double, gy_bf16_to_float(gy_float_to_bf16((float)f[i])))
    case GANTRY_F8E4M3:
        EACH(float, double, gy_f8e4m3_to_float(gy_float_to_f8e4m3((float)f[i])))
    case GANTRY_F8E5M2:
        EACH(float, double, gy_f8e5m2_to_float(gy_float_to_f8e5m2((float)f[i])))
    case GANTRY_F32:
        EACH(float, double, (float)f[i])
    case GANTRY_F64:
        EACH(double, double, f[i])
    default:
        EACH(int64_t, double, gy_maths_truncate(f[i], dtype))
    }
}

void gy_maths_cast(void *to, const void *from, gantry_dtype cast, gy_maths_type type, size_t n)
{
    if (type == GY_MATHS_F32)
        cast_floats(to, from, cast, n);
    else if (type == GY_MATHS_F64)
        cast_doubles(to, from, cast, n);
    else
        cast_whole(to, from, cast, n);
}
