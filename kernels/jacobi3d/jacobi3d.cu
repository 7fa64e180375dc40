/* SPDX-License-Identifier: Apache-2.0 */
/* A thread computes PLANES elements behind each other along axis 0: it loads these, what is before and behind them, and what is above
 * and below of each at once, so that much is under way. What is left and right comes from its neighbours in the warp, and is loaded at
 * the warp's ends only. x and y may be boxes of the volume: x has what is around y. */
#include "kernels/begin.cuh"
#include "kernels/grid.h"

enum { LANES = 32, WARPS = 8, PLANES = 8 }; /* the launcher knows them as well */

template <typename T> static __device__ void jacobi3d(const T *__restrict__ x, T *__restrict__ y, const gy_grid_boxes *g)
{
    const int lane = threadIdx.x;
    const int64_t column = (int64_t)blockIdx.x * LANES + lane, row = (int64_t)blockIdx.y * WARPS + threadIdx.y;
    const int64_t first = (int64_t)blockIdx.z * PLANES, beside = lane == 0 ? -1 : 1;
    if (row >= g->count[1])
        return; /* with all of the warp */
    const bool left_end = g->first[2] + column == 0, right_end = g->first[2] + column >= g->whole[2] - 1;
    const bool top = g->first[1] + row == 0, bottom = g->first[1] + row == g->whole[1] - 1, mine = column < g->count[2];
    /* The element right of the part is loaded for the lane before it. */
    const bool loads = column <= g->count[2] && g->first[2] + column < g->whole[2];
    const bool end = mine && (lane == 0 ? !left_end : lane == LANES - 1 && !right_end);
    const T *u = x + g->skip + first * g->plane + row * g->row + column;
    T here[PLANES + 2] = {}, up[PLANES] = {}, down[PLANES] = {}, side[PLANES] = {};
#pragma unroll
    for (int i = 0; i < PLANES + 2; i++) {
        const int64_t p = first + i - 1;
        if (loads && p <= g->count[0] && g->first[0] + p >= 0 && g->first[0] + p < g->whole[0])
            here[i] = u[(i - 1) * g->plane];
    }
#pragma unroll
    for (int i = 0; i < PLANES; i++) {
        const bool inside = mine && first + i < g->count[0];
        if (inside && !top)
            up[i] = u[i * g->plane - g->row];
        if (inside && !bottom)
            down[i] = u[i * g->plane + g->row];
        if (inside && end)
            side[i] = u[i * g->plane + beside];
    }
    T *v = y + (first * g->count[1] + row) * g->count[2] + column;
#pragma unroll
    for (int i = 0; i < PLANES; i++) {
        T left = __shfl_up_sync(~0u, here[i + 1], 1), right = __shfl_down_sync(~0u, here[i + 1], 1);
        left = lane == 0 ? side[i] : left;
        right = lane == LANES - 1 ? side[i] : right;
        const int64_t p = g->first[0] + first + i;
        const bool border = left_end || right_end || top || bottom || p == 0 || p == g->whole[0] - 1;
        if (mine && first + i < g->count[0])
            v[i * g->count[1] * g->count[2]] =
                border ? here[i + 1] : (((here[i] + here[i + 2]) + (up[i] + down[i])) + (left + right)) / (T)6;
    }
}

#define KERNEL(name, type)                                                                                             \
    extern "C" __global__ void __launch_bounds__(LANES *WARPS)                                                         \
        jacobi3d##name(const type *x, type *y, gy_grid_boxes boxes)                                                    \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        jacobi3d<type>(x, y, &boxes);                                                                                  \
    }
KERNEL(_f32, float)
KERNEL(_f64, double)
