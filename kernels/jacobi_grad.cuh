/* SPDX-License-Identifier: Apache-2.0 */
/* An element a thread, of boxes of the grid, of which x has what is around y. */
#ifndef GY_KERNELS_JACOBI_GRAD_CUH
#define GY_KERNELS_JACOBI_GRAD_CUH

#include "kernels/begin.cuh"
#include "kernels/jacobi_grad.h"

enum { LANES = 32, WARPS = 8 }; /* the launcher knows them as well */

GY_JACOBI_GRAD(gy_jacobi_grad, float, static __device__ __forceinline__)
GY_JACOBI_GRAD(gy_jacobi_grad, double, static __device__ __forceinline__)

template <int AXES, typename T>
static __device__ void jacobi_grad(const T *__restrict__ x, T *__restrict__ y, const gy_grid_boxes *g)
{
    const int64_t column = (int64_t)blockIdx.x * LANES + threadIdx.x, lines = g->count[0] * g->count[1];
    if (column >= g->count[2])
        return;
    for (int64_t i = (int64_t)blockIdx.y * WARPS + threadIdx.y; i < lines; i += (int64_t)gridDim.y * WARPS) {
        const int64_t plane = i / g->count[1], row = i % g->count[1];
        const int64_t at[3] = { g->first[0] + plane, g->first[1] + row, g->first[2] + column };
        y[i * g->count[2] + column] = gy_jacobi_grad(x + g->skip + plane * g->plane + row * g->row + column, g, AXES, at);
    }
}

#define GY_JACOBI_GRAD_KERNEL(NAME, AXES, TYPE)                                                                        \
    extern "C" __global__ void __launch_bounds__(LANES *WARPS) NAME(const TYPE *x, TYPE *y, gy_grid_boxes boxes)       \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        jacobi_grad<AXES, TYPE>(x, y, &boxes);                                                                         \
    }

#endif
