/* SPDX-License-Identifier: Apache-2.0 */
/* IEEE binary16 and bfloat16 as 16-bit patterns; conversions from float round to nearest, ties to even. */
#ifndef GY_BASE_HALF_H
#define GY_BASE_HALF_H

#include <stdint.h>
#include <string.h>

static inline uint32_t gy_float_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float gy_bits_float(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline float gy_bf16_to_float(uint16_t h)
{
    return gy_bits_float((uint32_t)h << 16);
}

static inline uint16_t gy_float_to_bf16(float x)
{
    uint32_t bits = gy_float_bits(x);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)((bits >> 16) | 0x40u); /* a NaN stays one, made quiet */
    return (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

static inline float gy_f16_to_float(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16, exponent = (h >> 10) & 0x1fu, fraction = h & 0x3ffu;
    if (exponent == 0x1fu)
        return gy_bits_float(sign | 0x7f800000u | (fraction << 13));
    if (exponent == 0) { /* zero or subnormal: fraction x 2^-24, exact in float */
        float magnitude = (float)fraction * 5.9604644775390625e-8f;
        return sign ? -magnitude : magnitude;
    }
    return gy_bits_float(sign | ((exponent + 112u) << 23) | (fraction << 13));
}

static inline uint16_t gy_float_to_f16(float x)
{
    uint32_t bits = gy_float_bits(x), sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00u);
    if (magnitude >= 0x477ff000u) /* 65520 and above round to infinity */
        return (uint16_t)(sign | 0x7c00u);
    if (magnitude <
        0x38800000u) { /* below 2^-14: a subnormal; adding 0.5 leaves the rounded fraction in the low bits */
        float shifted = gy_bits_float(magnitude) + 0.5f;
        return (uint16_t)(sign | (gy_float_bits(shifted) - 0x3f000000u));
    }
    return (uint16_t)(sign | ((magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13));
}

#endif
