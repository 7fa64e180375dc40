/* SPDX-License-Identifier: Apache-2.0 */
/* Floating point of 8 bits, with the bits of src/base/f8.h. */
#ifndef GY_KERNELS_F8_CUH
#define GY_KERNELS_F8_CUH

#include "kernels/element.cuh"

/* As a float the exponent counts from 127: subnormal numbers, too, are right when they are multiplied by what lacks. */
struct gy_f8e4m3 {
    uint8_t bits;
    __device__ operator float() const
    {
        const unsigned magnitude = bits & 0x7fu, sign = (bits & 0x80u) << 24;
        const float value = __fmul_rn(__uint_as_float(magnitude << 20), 0x1p120f);
        return __uint_as_float(sign | (magnitude == 0x7fu ? 0x7fc00000u : __float_as_uint(value)));
    }
};
struct gy_f8e5m2 {
    uint8_t bits;
    __device__ operator float() const
    {
        const unsigned magnitude = bits & 0x7fu, sign = (bits & 0x80u) << 24, top = 0x7f800000u | (magnitude & 3u) << 21;
        const float value = __fmul_rn(__uint_as_float(magnitude << 21), 0x1p112f);
        return __uint_as_float(sign | (magnitude >= 0x7cu ? top : __float_as_uint(value)));
    }
};

#define GY_CUDA_F8_TYPES(DO)                                                                                           \
    DO(f8e4m3, gy_f8e4m3, float)                                                                                       \
    DO(f8e5m2, gy_f8e5m2, float)

static __device__ inline uint8_t gy_to_f8(float x, int fraction, unsigned zero, float grid, unsigned most, unsigned nan)
{
    const unsigned bits = __float_as_uint(x), sign = (bits >> 24) & 0x80u, magnitude = bits & 0x7fffffffu;
    const int shift = 23 - fraction;
    if (magnitude > 0x7f800000u)
        return (uint8_t)(sign | nan);
    if (magnitude < (zero + 1) << 23)
        return (uint8_t)(sign | (__float_as_uint(__fadd_rn(__uint_as_float(magnitude), grid)) - __float_as_uint(grid)));
    const unsigned near = (magnitude - (zero << 23) + (1u << (shift - 1)) - 1 + ((magnitude >> shift) & 1u)) >> shift;
    return (uint8_t)(sign | (near < most ? near : most));
}

static __device__ inline gy_f8e4m3 gy_to_f8(float x, gy_f8e4m3) { return { gy_to_f8(x, 3, 120, 16384.0f, 0x7e, 0x7f) }; }
static __device__ inline gy_f8e5m2 gy_to_f8(float x, gy_f8e5m2) { return { gy_to_f8(x, 2, 112, 128.0f, 0x7b, 0x7e) }; }

#endif
