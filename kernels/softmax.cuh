/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code of softmax_xent and its gradient. The threads of one threadIdx.y, a warp or the block, go over a row once: they
 * keep the largest element so far and the sum of exp(x - largest), which they scale when a larger element comes.
 *
 * Exponentials are taken in float, or in double of f64, where the host version takes them in double; sums are in double.
 * So what differs is the rounding of x - largest and of the exponential, by at most |x - largest| + 4 units (2^-24, or
 * 2^-53 for f64) of each term. As terms that are far below the largest count for little, 64 units times |scale| bound what
 * an element of the gradient differs by before it is rounded to its type, and, for each row, what the loss does.
 */
#ifndef GY_KERNELS_SOFTMAX_CUH
#define GY_KERNELS_SOFTMAX_CUH

#include "kernels/rows.cuh"

#include <cfloat>

static __device__ inline float gy_exp(float x) { return expf(x); }
static __device__ inline double gy_exp(double x) { return exp(x); }
static __device__ inline float gy_lowest(float) { return -FLT_MAX; }
static __device__ inline double gy_lowest(double) { return -DBL_MAX; }

/* Nothing yet is the lowest number that is finite and a sum of 0, so that what is masked by -infinity adds nothing. */
template <typename Wide> struct gy_softmax {
    Wide largest;
    double sum;
};

/* Of the packs of a row that this thread has. */
template <bool PACKED, typename Wide, typename T>
static __device__ inline gy_softmax<Wide> gy_softmax_part(const T *__restrict__ row, int64_t width)
{
    typedef gy_element<Wide> e;
    gy_softmax<Wide> s = { gy_lowest(Wide()), 0 };
    gy_each_pack<PACKED>(row, width, [&](int64_t, const gy_pack<T> &v, int count) {
        Wide top = s.largest, part = 0; /* of a pack: converting each would take longer than computing it */
#pragma unroll
        for (int j = 0; j < gy_pack<T>::COUNT; j++)
            top = j < count ? fmax(top, (Wide)e::load(v.at[j])) : top;
        if (top > s.largest) {
            s.sum *= (double)gy_exp(s.largest - top);
            s.largest = top;
        }
#pragma unroll
        for (int j = 0; j < gy_pack<T>::COUNT; j++)
            part += j < count ? gy_exp((Wide)e::load(v.at[j]) - top) : (Wide)0;
        s.sum += (double)part;
    });
    return s;
}

/* Of a row, to all of its threads. Where these are the block, all of it must come here. */
template <bool PACKED, typename Wide, typename T>
static __device__ inline gy_softmax<Wide> gy_softmax_of(const T *__restrict__ row, int64_t width)
{
    const gy_softmax<Wide> mine = gy_softmax_part<PACKED, Wide>(row, width);
    const Wide largest = gy_lanes_join(mine.largest, [](Wide a, Wide b) { return fmax(a, b); });
    return { largest, gy_lanes_sum(mine.sum * (double)gy_exp(mine.largest - largest)) };
}

#endif
