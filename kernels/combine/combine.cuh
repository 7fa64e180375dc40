/* SPDX-License-Identifier: Apache-2.0 */
/* How collectives combine two elements, as src/run/reduce.c does. */
#ifndef GY_KERNELS_COMBINE_CUH
#define GY_KERNELS_COMBINE_CUH

#include "kernels/element.cuh"

#include <stdint.h>

/* DO(op, suffix, type, own, wide): combined in `own`; sums and products in `wide`, where they wrap. */
#define GY_COMBINED_BY_ALL(DO, ...)                                                                                    \
    DO(sum, __VA_ARGS__)                                                                                               \
    DO(min, __VA_ARGS__)                                                                                               \
    DO(max, __VA_ARGS__)                                                                                               \
    DO(prod, __VA_ARGS__)
#define GY_COMBINED(DO)                                                                                                \
    GY_COMBINED_BY_ALL(DO, f16, __half, float, float)                                                                  \
    GY_COMBINED_BY_ALL(DO, bf16, __nv_bfloat16, float, float)                                                          \
    GY_COMBINED_BY_ALL(DO, f32, float, float, float)                                                                   \
    GY_COMBINED_BY_ALL(DO, f64, double, double, double)                                                                \
    GY_COMBINED_BY_ALL(DO, i8, int8_t, int8_t, uint32_t)                                                               \
    GY_COMBINED_BY_ALL(DO, u8, uint8_t, uint8_t, uint32_t)                                                             \
    GY_COMBINED_BY_ALL(DO, i32, int32_t, int32_t, uint32_t)                                                            \
    GY_COMBINED_BY_ALL(DO, u32, uint32_t, uint32_t, uint32_t)                                                          \
    GY_COMBINED_BY_ALL(DO, i64, int64_t, int64_t, uint64_t)                                                            \
    GY_COMBINED_BY_ALL(DO, u64, uint64_t, uint64_t, uint64_t)

template <typename Own, typename Wide> struct with_sum {
    __device__ Own operator()(Own a, Own b) const { return (Own)((Wide)a + (Wide)b); }
};
template <typename Own, typename Wide> struct with_prod {
    __device__ Own operator()(Own a, Own b) const { return (Own)((Wide)a * (Wide)b); }
};
template <typename Own, typename Wide> struct with_min {
    __device__ Own operator()(Own a, Own b) const { return a != a || a < b ? a : b; }
};
template <typename Own, typename Wide> struct with_max {
    __device__ Own operator()(Own a, Own b) const { return a != a || a > b ? a : b; }
};

#endif
