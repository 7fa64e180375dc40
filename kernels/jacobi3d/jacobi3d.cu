/* SPDX-License-Identifier: Apache-2.0 */
/* A thread goes along axis 0 through PLANES planes and keeps the elements before and behind in registers; its neighbours in the
 * plane come through the cache. x and y may be boxes of the volume: x has what is around y. */
#include "kernels/begin.cuh"
#include "kernels/grid.h"

enum { LANES = 32, WARPS = 8, PLANES = 8 }; /* the launcher knows them as well */

template <typename T> static __device__ void jacobi3d(const T *__restrict__ x, T *__restrict__ y, const gy_grid_boxes *g)
{
    const int64_t column = (int64_t)blockIdx.x * LANES + threadIdx.x, row = (int64_t)blockIdx.y * WARPS + threadIdx.y;
    const int64_t first = (int64_t)blockIdx.z * PLANES;
    if (column >= g->count[2] || row >= g->count[1])
        return;
    const bool side = g->first[2] + column == 0 || g->first[2] + column == g->whole[2] - 1 || g->first[1] + row == 0 ||
                      g->first[1] + row == g->whole[1] - 1;
    const T *u = x + g->skip + first * g->plane + row * g->row + column;
    T *v = y + (first * g->count[1] + row) * g->count[2] + column;
    T before = (T)0, here = u[0];
    if (g->first[0] + first > 0)
        before = u[-g->plane];
    for (int64_t p = first; p < first + PLANES && p < g->count[0]; p++) {
        const bool last = g->first[0] + p == g->whole[0] - 1, border = side || last || g->first[0] + p == 0;
        const T behind = last ? (T)0 : u[g->plane];
        v[0] = border ? here : (((before + behind) + (u[-g->row] + u[g->row])) + (u[-1] + u[1])) / (T)6;
        before = here;
        here = behind;
        u += g->plane;
        v += g->count[1] * g->count[2];
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
