/* SPDX-License-Identifier: Apache-2.0 */
#include "run/number.h"

#include "base/f8.h"
#include <math.h>

/* Towards zero, with the last bit set if anything was cut off ("round to odd"): rounding that once more to a format
 * with at least two bits less gives the same as rounding the double directly. */
static float narrow_to_odd(double value)
{
    float near = (float)value;
    if ((double)near == value || value != value)
        return near;
    uint32_t bits = gy_float_bits(near);
    if (fabs((double)near) > fabs(value))
        bits--; /* magnitude is what the low 31 bits count */
    return gy_bits_float(bits | 1u);
}

uint16_t gy_f16_from_f64(double value)
{
    return gy_float_to_f16(narrow_to_odd(value));
}

uint16_t gy_bf16_from_f64(double value)
{
    return gy_float_to_bf16(narrow_to_odd(value));
}

static int64_t to_signed(double value, int64_t low, int64_t high)
{
    if (value != value)
        return 0;
    return value <= (double)low ? low : value >= (double)high ? high : (int64_t)value;
}

static uint64_t to_unsigned(double value, uint64_t high)
{
    if (!(value > 0))
        return 0;
    return value >= (double)high ? high : (uint64_t)value;
}

double gy_element_load(const void *array, gantry_dtype dtype, uint64_t i)
{
    switch (dtype) {
    case GANTRY_F16:
        return (double)gy_f16_to_float(((const uint16_t *)array)[i]);
    case GANTRY_BF16:
        return (double)gy_bf16_to_float(((const uint16_t *)array)[i]);
    case GANTRY_F8E4M3:
        return (double)gy_f8e4m3_to_float(((const uint8_t *)array)[i]);
    case GANTRY_F8E5M2:
        return (double)gy_f8e5m2_to_float(((const uint8_t *)array)[i]);
    case GANTRY_F32:
        return (double)((const float *)array)[i];
    case GANTRY_F64:
        return ((const double *)array)[i];
    case GANTRY_I8:
        return ((const int8_t *)array)[i];
    case GANTRY_U8:
        return ((const uint8_t *)array)[i];
    case GANTRY_I32:
        return ((const int32_t *)array)[i];
    case GANTRY_U32:
        return ((const uint32_t *)array)[i];
    case GANTRY_I64:
        return (double)((const int64_t *)array)[i];
    case GANTRY_U64:
        return (double)((const uint64_t *)array)[i];
    default:
        return 0;
    }
}

void gy_element_store(void *array, gantry_dtype dtype, uint64_t i, double value)
{
    switch (dtype) {
    case GANTRY_F16:
        ((uint16_t *)array)[i] = gy_f16_from_f64(value);
        break;
    case GANTRY_BF16:
        ((uint16_t *)array)[i] = gy_bf16_from_f64(value);
        break;
    case GANTRY_F8E4M3:
        ((uint8_t *)array)[i] = gy_float_to_f8e4m3(narrow_to_odd(value));
        break;
    case GANTRY_F8E5M2:
        ((uint8_t *)array)[i] = gy_float_to_f8e5m2(narrow_to_odd(value));
        break;
    case GANTRY_F32:
        ((float *)array)[i] = (float)value;
        break;
    case GANTRY_F64:
        ((double *)array)[i] = value;
        break;
    case GANTRY_I8:
        ((int8_t *)array)[i] = (int8_t)to_signed(value, INT8_MIN, INT8_MAX);
        break;
    case GANTRY_U8:
        ((uint8_t *)array)[i] = (uint8_t)to_unsigned(value, UINT8_MAX);
        break;
    case GANTRY_I32:
        ((int32_t *)array)[i] = (int32_t)to_signed(value, INT32_MIN, INT32_MAX);
        break;
    case GANTRY_U32:
        ((uint32_t *)array)[i] = (uint32_t)to_unsigned(value, UINT32_MAX);
        break;
    case GANTRY_I64:
        ((int64_t *)array)[i] = to_signed(value, INT64_MIN, INT64_MAX);
        break;
    case GANTRY_U64:
        ((uint64_t *)array)[i] = to_unsigned(value, UINT64_MAX);
        break;
    default:
        break;
    }
}
