/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread computes a chunk of columns in ROWS rows: it loads these and the rows above and below at once, so that much
 * is under way, and keeps them in registers. What is left and right of its chunk comes from its neighbours in the warp;
 * only at the warp's ends is it loaded. `_wide` wants rows that begin at multiples of 16 bytes. `_thin`, too, is for parts of few
 * rows: a thread has a chunk of one of them, and all threads of a block lie beside each other.
 */
#include "kernels/begin.cuh"
#include "kernels/chunk.cuh"
#include "kernels/grid.h"

enum { LANES = 32, WARPS = 8, ROWS = 8 }; /* the launcher knows them as well */

/* A part of a grid: `rows` times `columns` elements from row `top` and column `left` on, and the whole grid. */
struct part {
    int64_t rows, columns, top, left, height, width;
};

/* x and y begin at the same element of the grid; rows of x are `stride` elements apart, and it has a row and a column more on each
 * side of the part, where the grid has them. With N > 1 the part has whole rows. */
template <int N, typename T>
static __device__ void jacobi2d(const T *__restrict__ x, T *__restrict__ y, const part &p, int64_t stride, uint32_t across)
{
    int lane = threadIdx.x;
    int64_t first = ((int64_t)(blockIdx.x / across) * WARPS + threadIdx.y) * ROWS;
    int64_t chunk = (int64_t)(blockIdx.x % across) * LANES + lane, column = chunk * N;
    int64_t beside = lane == 0 ? column - 1 : column + N, last = p.width - p.left; /* behind the grid's last column */
    bool mine = column < p.columns, end = mine && (lane == 0 || lane == LANES - 1) && beside >= -p.left && beside < last;
    bool loads = column <= p.columns && column < last; /* what is right of the part is loaded for the lane before */
    gy_chunk<T, N> line[ROWS + 2] = {};
    T side[ROWS] = {};
#pragma unroll
    for (int i = 0; i < ROWS + 2; i++) {
        int64_t row = first + i - 1;
        if (loads && row <= p.rows && p.top + row >= 0 && p.top + row < p.height)
            line[i] = gy_load_chunk<N>(x + row * stride, chunk);
    }
#pragma unroll
    for (int i = 0; i < ROWS; i++)
        if (end && first + i < p.rows)
            side[i] = x[(first + i) * stride + beside];
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
        const gy_chunk<T, N> &up = line[i], &here = line[i + 1], &down = line[i + 2];
        T left = __shfl_up_sync(~0u, here.at[N - 1], 1), right = __shfl_down_sync(~0u, here.at[0], 1);
        left = lane == 0 ? side[i] : left;
        right = lane == LANES - 1 ? side[i] : right;
        int64_t row = first + i;
        bool border = p.top + row == 0 || p.top + row == p.height - 1;
        gy_chunk<T, N> result;
#pragma unroll
        for (int k = 0; k < N; k++) {
            T l = k ? here.at[k ? k - 1 : 0] : left, r = k < N - 1 ? here.at[k < N - 1 ? k + 1 : 0] : right;
            T mean = (T)0.25 * ((up.at[k] + down.at[k]) + (l + r));
            result.at[k] = border || p.left + column + k == 0 || column + k >= last - 1 ? here.at[k] : mean;
        }
        if (mine && row < p.rows)
            gy_store_chunk(y + row * p.columns, chunk, result);
    }
}

/* With few registers, since who calls it in a resident kernel waits until they have been saved. Blocks lie in rows. */
template <int N, typename T>
static __device__ void jacobi2d_thin(const T *__restrict__ x, T *__restrict__ y, uint32_t columns, int64_t top,
                                     int64_t height)
{
    const uint32_t chunk = blockIdx.x * (WARPS * LANES) + threadIdx.y * LANES + threadIdx.x, column = chunk * N;
    const int64_t row = blockIdx.y;
    const T *line = x + row * columns;
    if (column >= columns)
        return;
    gy_chunk<T, N> here = gy_load_chunk<N>(line, chunk), result = here;
    if (top + row != 0 && top + row != height - 1) {
        const gy_chunk<T, N> up = gy_load_chunk<N>(line - columns, chunk), down = gy_load_chunk<N>(line + columns, chunk);
        const T left = column ? line[column - 1] : here.at[0], right = column + N < columns ? line[column + N] : here.at[0];
#pragma unroll
        for (int k = 0; k < N; k++) {
            T l = k ? here.at[k ? k - 1 : 0] : left, r = k < N - 1 ? here.at[k < N - 1 ? k + 1 : 0] : right;
            T mean = (T)0.25 * ((up.at[k] + down.at[k]) + (l + r));
            result.at[k] = column + k == 0 || column + k == columns - 1 ? here.at[k] : mean;
        }
    }
    gy_store_chunk(y + row * columns, chunk, result);
}

/* Boxes of the grid, of which x has what is around y. */
#define BOX(name, type)                                                                                                \
    extern "C" __global__ void __launch_bounds__(LANES *WARPS)                                                         \
        jacobi2d_box##name(const type *x, type *y, gy_grid_boxes g, uint32_t across)                                   \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        jacobi2d<1>(x + g.skip, y,                                                                                     \
                    part{ g.count[1], g.count[2], g.first[1], g.first[2], g.whole[1], g.whole[2] }, g.row, across);    \
    }
BOX(_f32, float)
BOX(_f64, double)

#define KERNEL(name, type, n)                                                                                          \
    extern "C" __global__ void __launch_bounds__(LANES *WARPS)                                                         \
        jacobi2d##name(const type *x, type *y, int64_t rows, int64_t columns, int64_t top, int64_t height,             \
                       uint32_t across)                                                                                \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        jacobi2d<n>(x, y, part{ rows, columns, top, 0, height, columns }, columns, across);                            \
    }
KERNEL(_f32, float, 1)
KERNEL(_f64, double, 1)
KERNEL(_wide_f32, float, 4)
KERNEL(_wide_f64, double, 2)

#define THIN(name, type, n)                                                                                            \
    extern "C" __global__ void __launch_bounds__(LANES *WARPS)                                                         \
        jacobi2d_thin##name(const type *x, type *y, int64_t, int64_t columns, int64_t top, int64_t height, uint32_t)   \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        jacobi2d_thin<n>(x, y, (uint32_t)columns, top, height);                                                        \
    }
THIN(_f32, float, 4)
THIN(_f64, double, 2)
