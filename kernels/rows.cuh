/* SPDX-License-Identifier: Apache-2.0 */
/* A warp for each row, in blocks of 32 x GY_ROW_WARPS threads: lane c % 32 has column c. Additions come in the order of
 * rows.h. */
#ifndef GY_KERNELS_ROWS_CUH
#define GY_KERNELS_ROWS_CUH

#include "kernels/element.cuh"

enum { GY_LANES = 32, GY_ROW_WARPS = 8 };

#define GY_FOR_EACH_ROW(r, rows)                                                                                       \
    for (int64_t r = (int64_t)blockIdx.x * blockDim.y + threadIdx.y; r < (rows); r += (int64_t)gridDim.x * blockDim.y)

/* The sum of all lanes, to each of them. */
static __device__ inline double gy_lanes_sum(double x)
{
    for (int by = GY_LANES / 2; by > 0; by /= 2)
        x += __shfl_xor_sync(~0u, x, by);
    return x;
}

#endif
