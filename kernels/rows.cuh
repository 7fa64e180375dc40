/* SPDX-License-Identifier: Apache-2.0 */
/* A warp for each row, in blocks of 32 x GY_ROW_WARPS threads: lane c % 32 has column c. Additions come in the order of
 * rows.h. */
#ifndef GY_KERNELS_ROWS_CUH
#define GY_KERNELS_ROWS_CUH

#include "kernels/element.cuh"

enum { GY_LANES = 32, GY_ROW_WARPS = 8 };

#define GY_FOR_EACH_ROW(r, rows)                                                                                       \
    for (int64_t r = (int64_t)blockIdx.x * blockDim.y + threadIdx.y; r < (rows); r += (int64_t)gridDim.x * blockDim.y)

/* Calls f(c, x[c]) for the columns of this lane, in their order. Some are loaded ahead: sums in a stated order wait for
 * each other, and loads need not. */
template <typename T, typename F>
static __device__ inline void gy_each_column(const T *__restrict__ x, int64_t width, const F &f)
{
    const int ahead = 8;
    int64_t c = threadIdx.x;
    for (; c + (ahead - 1) * GY_LANES < width; c += ahead * GY_LANES) {
        T v[ahead];
#pragma unroll
        for (int k = 0; k < ahead; k++)
            v[k] = x[c + k * GY_LANES];
#pragma unroll
        for (int k = 0; k < ahead; k++)
            f(c + k * GY_LANES, v[k]);
    }
    for (; c < width; c += GY_LANES)
        f(c, x[c]);
}

/* The sum of all lanes, to each of them. */
static __device__ inline double gy_lanes_sum(double x)
{
    for (int by = GY_LANES / 2; by > 0; by /= 2)
        x += __shfl_xor_sync(~0u, x, by);
    return x;
}

#endif
