/* SPDX-License-Identifier: Apache-2.0 */
/* Running sums in the order of scan.h: a warp for each chunk, which goes along its rows. Warps need nothing of each other. */
#ifndef GY_KERNELS_SCAN_CUH
#define GY_KERNELS_SCAN_CUH

#include "kernels/chunk.cuh"
#include "kernels/element.cuh"
#include "kernels/scan.h"

enum { GY_SCAN_AHEAD = 4 }; /* rows whose loads are in flight */

/* The type that sums are taken in. */
template <typename Wide> struct gy_scan_of {
    typedef Wide in;
};
template <> struct gy_scan_of<float> {
    typedef double in;
};

/* Elements of the lane in a row that begins at x[at]; behind `end` they are 0. A `step` of -1 goes back from x, which is the
 * last element then and not aligned. */
template <typename T>
static __device__ __forceinline__ gy_chunk<T, GY_SCAN_PACK> gy_scan_load(const T *x, int64_t at, int64_t end, int aligned,
                                                                             int step)
{
    const int64_t mine = at + (threadIdx.x & 31) * GY_SCAN_PACK;
    gy_chunk<T, GY_SCAN_PACK> v;
    if (aligned && mine + GY_SCAN_PACK <= end)
        return gy_load_chunk<GY_SCAN_PACK>(x, mine / GY_SCAN_PACK);
#pragma unroll
    for (int j = 0; j < GY_SCAN_PACK; j++)
        v.at[j] = mine + j < end ? x[(mine + j) * step] : (T)0;
    return v;
}

template <typename T>
static __device__ __forceinline__ void gy_scan_store(T *y, int64_t at, int64_t end, int aligned, int step,
                                                     const gy_chunk<T, GY_SCAN_PACK> &v)
{
    const int64_t mine = at + (threadIdx.x & 31) * GY_SCAN_PACK;
    if (aligned && mine + GY_SCAN_PACK <= end) {
        gy_store_chunk(y, mine / GY_SCAN_PACK, v);
        return;
    }
#pragma unroll
    for (int j = 0; j < GY_SCAN_PACK; j++)
        if (mine + j < end)
            y[(mine + j) * step] = v.at[j];
}

/* The sum of x[begin] to x[end - 1], to all lanes. */
template <typename Wide, typename T>
static __device__ typename gy_scan_of<Wide>::in gy_scan_total(const T *x, int64_t begin, int64_t end, int aligned,
                                                           int step = 1)
{
    typedef typename gy_scan_of<Wide>::in sum;
    sum total = 0;
    for (int64_t at = begin; at < end; at += GY_SCAN_AHEAD * GY_SCAN_ROW) {
        gy_chunk<T, GY_SCAN_PACK> v[GY_SCAN_AHEAD];
#pragma unroll
        for (int k = 0; k < GY_SCAN_AHEAD; k++)
            v[k] = gy_scan_load(x, at + k * GY_SCAN_ROW, end, aligned, step);
#pragma unroll
        for (int k = 0; k < GY_SCAN_AHEAD; k++)
#pragma unroll
            for (int j = 0; j < GY_SCAN_PACK; j++)
                total += (sum)gy_element<Wide>::load(v[k].at[j]);
    }
    for (int by = GY_SCAN_LANES / 2; by > 0; by /= 2)
        total += __shfl_xor_sync(~0u, total, by);
    return total;
}

/* The sum of all lanes up to this one. */
template <typename W> static __device__ __forceinline__ W gy_scan_lanes(W value)
{
#pragma unroll
    for (int by = 1; by < GY_SCAN_LANES; by *= 2) {
        const W before = __shfl_up_sync(~0u, value, by);
        value = (int)(threadIdx.x & 31) >= by ? before + value : value;
    }
    return value;
}

/* One row; returns the start of the next. */
template <typename Wide, typename T, typename W>
static __device__ __forceinline__ W gy_scan_row(gy_chunk<T, GY_SCAN_PACK> &v, W start, int exclusive)
{
    W upto[GY_SCAN_PACK + 1] = { 0 };
#pragma unroll
    for (int j = 0; j < GY_SCAN_PACK; j++)
        upto[j + 1] = upto[j] + (W)gy_element<Wide>::load(v.at[j]);
    const W lanes = gy_scan_lanes(upto[GY_SCAN_PACK]), before = __shfl_up_sync(~0u, lanes, 1);
    const W own = start + ((threadIdx.x & 31) ? before : (W)0);
#pragma unroll
    for (int j = 0; j < GY_SCAN_PACK; j++)
        v.at[j] = gy_element<Wide>::template store<T>((Wide)(own + (exclusive ? upto[j] : upto[j + 1])));
    return start + __shfl_sync(~0u, lanes, GY_SCAN_LANES - 1);
}

/* y[i] = start + x[begin] + ... up to x[i], or what is before it, for all i from begin to end - 1. y may be x. Returns the
 * start of what follows. */
template <typename Wide, typename T, typename W>
static __device__ W gy_scan(const T *x, T *y, int64_t begin, int64_t end, W start, int exclusive, int aligned,
                        int step = 1)
{
    for (int64_t at = begin; at < end; at += GY_SCAN_AHEAD * GY_SCAN_ROW) {
        gy_chunk<T, GY_SCAN_PACK> v[GY_SCAN_AHEAD];
#pragma unroll
        for (int k = 0; k < GY_SCAN_AHEAD; k++)
            v[k] = gy_scan_load(x, at + k * GY_SCAN_ROW, end, aligned, step);
#pragma unroll
        for (int k = 0; k < GY_SCAN_AHEAD; k++)
            if (k == 0 || at + k * GY_SCAN_ROW < end)
                start = gy_scan_row<Wide>(v[k], start, exclusive);
#pragma unroll
        for (int k = 0; k < GY_SCAN_AHEAD; k++)
            gy_scan_store(y, at + k * GY_SCAN_ROW, end, aligned, step, v[k]);
    }
    return start;
}

#endif
