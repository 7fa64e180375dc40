/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two 8-bit formats of "OCP 8-bit Floating Point Specification (OFP8)", revision 1.0. E4M3 has 4 bits of exponent,
 * biased by 7, no infinities, and NaN where all bits but the sign are set; its largest number is 448. E5M2 is the upper
 * half of binary16, with infinities; its largest number is 57344. Conversions from float round to nearest, ties to
 * even, and saturate: what is too large, infinities too, becomes the largest number, as in that specification's
 * saturating mode and in the cvt.rn.satfinite of GPUs. A NaN stays one and keeps its sign.
 */
#ifndef GY_BASE_F8_H
#define GY_BASE_F8_H

#include "base/half.h"

/* `fraction`: bits of it; `zero`: what the exponent of a float is higher by; `most`, `nan`: bits. The sum of what is
 * less than the smallest normal number and of `grid`, whose last bit counts as much as the smallest number, is
 * rounded to a multiple of that. */
static inline uint8_t gy_float_to_f8(float x, int fraction, uint32_t zero, float grid, uint32_t most, uint32_t nan)
{
    uint32_t bits = gy_float_bits(x), sign = (bits >> 24) & 0x80u, magnitude = bits & 0x7fffffffu;
    int shift = 23 - fraction;
    if (magnitude > 0x7f800000u)
        return (uint8_t)(sign | nan);
    if (magnitude < (zero + 1) << 23)
        return (uint8_t)(sign | (gy_float_bits(gy_bits_float(magnitude) + grid) - gy_float_bits(grid)));
    uint32_t near = (magnitude - (zero << 23) + (1u << (shift - 1)) - 1 + ((magnitude >> shift) & 1u)) >> shift;
    return (uint8_t)(sign | (near < most ? near : most));
}

static inline uint8_t gy_float_to_f8e4m3(float x)
{
    return gy_float_to_f8(x, 3, 120, 16384.0f, 0x7e, 0x7f);
}

static inline uint8_t gy_float_to_f8e5m2(float x)
{
    return gy_float_to_f8(x, 2, 112, 128.0f, 0x7b, 0x7e);
}

static inline float gy_f8e4m3_to_float(uint8_t b)
{
    uint32_t sign = (uint32_t)(b & 0x80u) << 24, exponent = (b >> 3) & 0xfu, fraction = b & 7u;
    if ((b & 0x7fu) == 0x7fu)
        return gy_bits_float(sign | 0x7fc00000u);
    if (exponent == 0) { /* zero or subnormal: fraction x 2^-9 */
        float magnitude = (float)fraction * 0.001953125f;
        return sign ? -magnitude : magnitude;
    }
    return gy_bits_float(sign | ((exponent + 120u) << 23) | (fraction << 20));
}

static inline float gy_f8e5m2_to_float(uint8_t b)
{
    return gy_f16_to_float((uint16_t)(b << 8));
}

#endif
