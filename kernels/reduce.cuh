/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reductions in two launches: a block for each chunk (src/kernel/chunks.h), then one block for what they found. The
 * order is that of the host version, whatever the GPU. Blocks have 256 threads, so that a row is a pack for each.
 */
#ifndef GY_KERNELS_REDUCE_CUH
#define GY_KERNELS_REDUCE_CUH

#include "kernels/element.cuh"

enum { GY_REDUCE_THREADS = 256, GY_REDUCE_PARTIALS = 2048 };

/* Neighbours first, then neighbouring pairs, and so on; thread 0 has the result. */
template <typename W, typename Op> static __device__ W gy_fold(W value, const Op &op)
{
    const int warps = GY_REDUCE_THREADS / 32;
    __shared__ W of_warp[warps];
    for (int by = 1; by < 32; by *= 2)
        value = op(value, __shfl_down_sync(~0u, value, by));
    if (threadIdx.x % 32 == 0)
        of_warp[threadIdx.x / 32] = value;
    __syncthreads();
    value = of_warp[threadIdx.x % warps];
    for (int by = 1; by < warps; by *= 2)
        value = op(value, __shfl_down_sync(~0u, value, by));
    return value;
}

/* One chunk: a thread has as many columns as a pack has elements, which begin as `first`. add(so far, x[i], y[i]); with
 * one input y is not read. */
template <int INPUTS, typename T, typename W, typename Add, typename Op>
static __device__ void gy_reduce_chunk(const T *x, const T *y, W *partial, int64_t n, int64_t chunk, int aligned, W first,
                                       const Add &add, const Op &op)
{
    const int count = gy_pack<T>::COUNT, flight = 4;
    const int64_t row = (int64_t)GY_REDUCE_THREADS * count, begin = blockIdx.x * chunk;
    const int64_t end = n - begin < chunk ? n : begin + chunk;
    W column[count];
#pragma unroll
    for (int j = 0; j < count; j++)
        column[j] = first;
    int64_t i = begin + (int64_t)threadIdx.x * count;
    for (; aligned && i + (flight - 1) * row + count <= end; i += flight * row) {
        gy_pack<T> a[flight], b[flight];
#pragma unroll
        for (int k = 0; k < flight; k++) {
            a[k] = gy_load((const gy_pack<T> *)(x + i + k * row));
            b[k] = INPUTS == 2 ? gy_load((const gy_pack<T> *)(y + i + k * row)) : a[k];
        }
#pragma unroll
        for (int k = 0; k < flight; k++)
#pragma unroll
            for (int j = 0; j < count; j++)
                column[j] = add(column[j], a[k].at[j], b[k].at[j]);
    }
    for (; i < end; i += row) {
#pragma unroll
        for (int j = 0; j < count; j++)
            if (i + j < end)
                column[j] = add(column[j], x[i + j], INPUTS == 2 ? y[i + j] : x[i + j]);
    }
#pragma unroll
    for (int by = 1; by < count; by *= 2)
#pragma unroll
        for (int j = 0; j < count; j += 2 * by)
            column[j] = op(column[j], column[j + by]);
    const W total = gy_fold(column[0], op);
    if (threadIdx.x == 0)
        partial[blockIdx.x] = total;
}

/* All chunks, at most GY_REDUCE_PARTIALS; each thread begins with `first`. Thread 0 has the result. */
template <typename W, typename Op>
static __device__ W gy_reduce_partials(const W *partial, int64_t count, W first, const Op &op)
{
    const int most = GY_REDUCE_PARTIALS / GY_REDUCE_THREADS;
    W value[most];
#pragma unroll
    for (int k = 0; k < most; k++) {
        const int64_t i = threadIdx.x + k * GY_REDUCE_THREADS;
        value[k] = i < count ? partial[i] : first;
    }
#pragma unroll
    for (int k = 0; k < most; k++)
        if (threadIdx.x + k * GY_REDUCE_THREADS < count)
            first = op(first, value[k]);
    return gy_fold(first, op);
}

/* ---- sums: floats in double, integers in 64 bits that wrap ---- */

template <typename Wide> struct gy_sum {
    typedef uint64_t total;
    template <typename T> static __device__ uint64_t load(T x) { return (uint64_t)x; }
};
template <> struct gy_sum<float> {
    typedef double total;
    template <typename T> static __device__ double load(T x) { return (double)gy_element<float>::load(x); }
};
template <> struct gy_sum<double> {
    typedef double total;
    static __device__ double load(double x) { return x; }
};
struct gy_plus {
    template <typename W> __device__ W operator()(W a, W b) const { return a + b; }
};

/* *out += what the chunks found */
template <typename T, typename Wide> static __device__ void gy_sum_finish(const void *partial, int64_t count, T *out)
{
    typedef gy_sum<Wide> sum;
    typedef typename sum::total total;
    const total all = gy_reduce_partials((const total *)partial, count, (total)0, gy_plus());
    if (threadIdx.x == 0)
        *out = gy_element<Wide>::template store<T>((Wide)(sum::load(*out) + all));
}

#endif
