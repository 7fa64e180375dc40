/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loops over any element type, the counterpart of element.h: the same widening and rounding, so that results are those
 * of the host versions bit by bit, but for the bits of a NaN (no contraction: the compiler is told so). A kernel is
 * named NAME_DTYPE.
 */
#ifndef GY_KERNELS_ELEMENT_CUH
#define GY_KERNELS_ELEMENT_CUH

#include "kernels/multiplier.h"
#include "kernels/store.cuh"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdint.h>

/* DO(suffix, type, wide). Integers of up to 32 bits are computed in 32, whose low bits are those of the host's 64. */
#define GY_CUDA_FLOAT_TYPES(DO)                                                                                        \
    DO(f16, __half, float)                                                                                             \
    DO(bf16, __nv_bfloat16, float)                                                                                     \
    DO(f32, float, float)                                                                                              \
    DO(f64, double, double)
#define GY_CUDA_TYPES(DO)                                                                                              \
    GY_CUDA_FLOAT_TYPES(DO)                                                                                            \
    DO(i8, int8_t, uint32_t)                                                                                           \
    DO(u8, uint8_t, uint32_t)                                                                                          \
    DO(i32, int32_t, uint32_t)                                                                                         \
    DO(u32, uint32_t, uint32_t)                                                                                        \
    DO(i64, int64_t, uint64_t)                                                                                         \
    DO(u64, uint64_t, uint64_t)

template <typename Wide> struct gy_element {
    template <typename T> static __device__ Wide load(T x) { return (Wide)x; }
    template <typename T> static __device__ T store(Wide x) { return (T)x; }
    static __device__ Wide scalar(gy_multiplier x) { return (Wide)x.integer; }
};
template <> struct gy_element<double> {
    static __device__ double load(double x) { return x; }
    template <typename T> static __device__ T store(double x) { return x; }
    static __device__ double scalar(gy_multiplier x) { return x.number; }
};
template <> struct gy_element<float> {
    static __device__ float load(float x) { return x; }
    static __device__ float load(__half x) { return __half2float(x); }
    static __device__ float load(__nv_bfloat16 x) { return __bfloat162float(x); }
    template <typename T> static __device__ T store(float x);
    static __device__ float scalar(gy_multiplier x) { return (float)x.number; }
};
template <> __device__ inline float gy_element<float>::store<float>(float x) { return x; }
template <> __device__ inline __half gy_element<float>::store<__half>(float x) { return __float2half_rn(x); }
template <> __device__ inline __nv_bfloat16 gy_element<float>::store<__nv_bfloat16>(float x) { return __float2bfloat16_rn(x); }

#define GY_FOR_EACH(i, n)                                                                                              \
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < (n); i += (int64_t)gridDim.x * blockDim.x)

/* Elements that are loaded and stored at once. */
template <typename T> union gy_pack {
    enum { COUNT = 16 / sizeof(T) };
    uint4 bits;
    T at[COUNT];
};

/* A pack in one load, also where it is taken apart at once. */
template <typename T> static __device__ T gy_load(const T *x) { return *x; }
template <typename T> static __device__ gy_pack<T> gy_load(const gy_pack<T> *x)
{
    gy_pack<T> pack;
    pack.bits = x->bits;
    return pack;
}

/* f for each element of a pack. */
template <typename T, typename F> struct gy_each {
    F f;
    __device__ gy_pack<T> operator()(const gy_pack<T> &x, const gy_pack<T> &y) const
    {
        gy_pack<T> z;
#pragma unroll
        for (int i = 0; i < gy_pack<T>::COUNT; i++)
            z.at[i] = f(x.at[i], y.at[i]);
        return z;
    }
};

/* z[i] = f(x[i], y[i]), 4 loads of a thread in flight. With one input y is not read. z may be x or y. */
template <int INPUTS, typename P, typename F>
static __device__ void gy_tiles(const P *x, const P *y, P *z, uint64_t n, const F &f)
{
    const int rows = 4 / INPUTS;
    const uint64_t tile = (uint64_t)blockDim.x * rows, whole = n / tile * tile;
    for (uint64_t first = blockIdx.x * tile + threadIdx.x; first < whole; first += gridDim.x * tile) {
        P a[rows], b[rows];
#pragma unroll
        for (int k = 0; k < rows; k++) {
            a[k] = gy_load(&x[first + k * blockDim.x]);
            b[k] = INPUTS == 2 ? gy_load(&y[first + k * blockDim.x]) : a[k];
        }
#pragma unroll
        for (int k = 0; k < rows; k++)
            GY_STORE(&z[first + k * blockDim.x], f(a[k], b[k]));
    }
    GY_FOR_EACH (i, (int64_t)(n - whole)) {
        const P a = gy_load(&x[whole + i]);
        GY_STORE(&z[whole + i], f(a, INPUTS == 2 ? gy_load(&y[whole + i]) : a));
    }
}

/* The same by `each` in packs P of 16 bytes, but for the elements before `head`, at which all pointers are aligned to 16 bytes, and
 * the last few, which f takes. A `head` of n means that they never are. */
template <int INPUTS, typename P, typename T, typename E, typename F>
static __device__ void gy_stream_of(const T *x, const T *y, T *z, int64_t n, int64_t head, const E &each, const F &f)
{
    enum { COUNT = sizeof(P) / sizeof(T) };
    const uint64_t packs = (uint64_t)(n - head) / COUNT, tail = head + packs * COUNT;
    gy_tiles<INPUTS>((const P *)(x + head), (const P *)(y + head), (P *)(z + head), packs, each);
    if (packs * COUNT == (uint64_t)n)
        return;
#pragma unroll 1
    for (int end = 0; end < 2; end++) {
        const uint64_t first = end ? tail : 0, count = end ? n - tail : head;
        if (count == 0)
            continue;
        gy_tiles<INPUTS>(x + first, y + first, z + first, count, f);
    }
}

/* z[i] = f(x[i], y[i]) */
template <typename T, typename F>
static __device__ void gy_stream(const T *x, const T *y, T *z, int64_t n, int64_t head, const F &f)
{
    gy_stream_of<2, gy_pack<T>>(x, y, z, n, head, gy_each<T, F>{ f }, f);
}

/* z[i] = f(x[i]) */
template <typename T, typename F>
static __device__ void gy_stream(const T *x, T *z, int64_t n, int64_t head, const F &f)
{
    const auto g = [&](T a, T) { return f(a); };
    gy_stream_of<1, gy_pack<T>>(x, x, z, n, head, gy_each<T, decltype(g)>{ g }, g);
}

/* z[i] = x[i], whole packs at a time: bytes that are taken out of a pack and put in again take longer than the pack. */
template <typename T> static __device__ void gy_stream(const T *x, T *z, int64_t n, int64_t head)
{
    const auto same = [](const auto &a, const auto &) { return a; };
    gy_stream_of<1, uint4>(x, x, z, n, head, same, same);
}

#endif
