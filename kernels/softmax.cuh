/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code of softmax_xent and its gradient. The threads of one threadIdx.y, a warp or the block, go over a row once: they
 * keep the largest element so far and the sum of exp(x - largest), which they scale when a larger element comes.
 *
 * Exponentials are taken in the element type, where the host version takes them in double; sums are in double. So what
 * differs is the rounding of x - largest and of the exponential, by at most |x - largest| + 4 units (2^-24 for f32, 2^-53
 * for f64) of each term. As terms that are far below the largest count for little, 64 units times |scale| bound what an
 * element of the gradient differs by, and, for each row, what the loss does.
 */
#ifndef GY_KERNELS_SOFTMAX_CUH
#define GY_KERNELS_SOFTMAX_CUH

#include <cfloat>
#include <stdint.h>

enum { GY_SOFTMAX_WARPS = 8, GY_SOFTMAX_THREADS = 32 * GY_SOFTMAX_WARPS };

static __device__ inline float gy_exp(float x) { return expf(x); }
static __device__ inline double gy_exp(double x) { return exp(x); }
static __device__ inline float gy_lowest(float) { return -FLT_MAX; }
static __device__ inline double gy_lowest(double) { return -DBL_MAX; }

/* Nothing yet is the lowest number that is finite and a sum of 0, so that what is masked by -infinity adds nothing. */
template <typename T> struct gy_softmax {
    T largest;
    double sum;
};

template <typename T> static __device__ inline gy_softmax<T> gy_softmax_merge(gy_softmax<T> a, gy_softmax<T> b)
{
    T largest = fmax(a.largest, b.largest);
    return { largest, a.sum * (double)gy_exp(a.largest - largest) + b.sum * (double)gy_exp(b.largest - largest) };
}

/* Of every blockDim.x-th element of a row from `first` on. */
template <typename T> static __device__ inline gy_softmax<T> gy_softmax_part(const T *__restrict__ row, int64_t width)
{
    enum { AT_ONCE = 4 };
    gy_softmax<T> s = { gy_lowest(T()), 0 };
    for (int64_t i = threadIdx.x; i < width; i += AT_ONCE * blockDim.x) {
        T x[AT_ONCE], top = s.largest;
#pragma unroll
        for (int j = 0; j < AT_ONCE; j++)
            x[j] = i + j * blockDim.x < width ? row[i + j * blockDim.x] : -(T)INFINITY;
#pragma unroll
        for (int j = 0; j < AT_ONCE; j++)
            top = fmax(top, x[j]);
        if (top > s.largest) {
            s.sum *= (double)gy_exp(s.largest - top);
            s.largest = top;
        }
        s.sum += (double)((gy_exp(x[0] - top) + gy_exp(x[1] - top)) + (gy_exp(x[2] - top) + gy_exp(x[3] - top)));
    }
    return s;
}

/* Of a row, to all of its threads. Where these are the block, all of it must come here. */
template <typename T> static __device__ inline gy_softmax<T> gy_softmax_of(const T *__restrict__ row, int64_t width)
{
    __shared__ T largest[GY_SOFTMAX_WARPS];
    __shared__ double sum[GY_SOFTMAX_WARPS];
    gy_softmax<T> s = gy_softmax_part(row, width);
    for (int by = 16; by > 0; by /= 2)
        s = gy_softmax_merge(s, { __shfl_xor_sync(~0u, s.largest, by), __shfl_xor_sync(~0u, s.sum, by) });
    if (blockDim.x > 32) {
        __syncthreads(); /* the row before has been read */
        if (threadIdx.x % 32 == 0) {
            largest[threadIdx.x / 32] = s.largest;
            sum[threadIdx.x / 32] = s.sum;
        }
        __syncthreads();
        s = { largest[0], sum[0] };
        for (unsigned i = 1; i < blockDim.x / 32; i++)
            s = gy_softmax_merge(s, { largest[i], sum[i] });
    }
    return s;
}

#endif
