/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loops over any element type, the counterpart of element.h: the same widening and rounding, so that results are those
 * of the host versions bit by bit (no contraction: the compiler is told so). A kernel is named NAME_DTYPE.
 */
#ifndef GY_KERNELS_ELEMENT_CUH
#define GY_KERNELS_ELEMENT_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdint.h>

/* DO(suffix, type, wide) */
#define GY_CUDA_TYPES(DO)                                                                                              \
    DO(f16, __half, float)                                                                                             \
    DO(bf16, __nv_bfloat16, float)                                                                                     \
    DO(f32, float, float)                                                                                              \
    DO(f64, double, double)                                                                                            \
    DO(i8, int8_t, uint64_t)                                                                                           \
    DO(u8, uint8_t, uint64_t)                                                                                          \
    DO(i32, int32_t, uint64_t)                                                                                         \
    DO(u32, uint32_t, uint64_t)                                                                                        \
    DO(i64, int64_t, uint64_t)                                                                                         \
    DO(u64, uint64_t, uint64_t)

template <typename Wide> struct gy_element {
    template <typename T> static __device__ Wide load(T x) { return (Wide)x; }
    template <typename T> static __device__ T store(Wide x) { return (T)x; }
    static __device__ Wide scalar(double x) { return (Wide)(int64_t)x; }
};
template <> struct gy_element<double> {
    static __device__ double load(double x) { return x; }
    template <typename T> static __device__ T store(double x) { return x; }
    static __device__ double scalar(double x) { return x; }
};
template <> struct gy_element<float> {
    static __device__ float load(float x) { return x; }
    static __device__ float load(__half x) { return __half2float(x); }
    static __device__ float load(__nv_bfloat16 x) { return __bfloat162float(x); }
    template <typename T> static __device__ T store(float x);
    static __device__ float scalar(double x) { return (float)x; }
};
template <> __device__ inline float gy_element<float>::store<float>(float x) { return x; }
template <> __device__ inline __half gy_element<float>::store<__half>(float x) { return __float2half_rn(x); }
template <> __device__ inline __nv_bfloat16 gy_element<float>::store<__nv_bfloat16>(float x) { return __float2bfloat16_rn(x); }

#define GY_FOR_EACH(i, n)                                                                                              \
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < (n); i += (int64_t)gridDim.x * blockDim.x)

#endif
