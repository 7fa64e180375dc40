/* SPDX-License-Identifier: Apache-2.0 */
/*
 * 32 columns at a time, four launches each: their own factors with pivots, the exchanges of rows in all other columns, the rows of
 * the upper factor beside them, and what both take away from the rest. Numbers are taken away in the order of the host's plain
 * version, so that the bits are its.
 */
#include "kernels/begin.cuh"
#include "kernels/pivot.cuh"
#include "kernels/triangle.cuh"

enum { PANEL_LINES = 32, PANEL_THREADS = GY_SQUARE * PANEL_LINES };

template <typename T> struct largest {
    T value;
    int64_t row;
};

/* The larger one; of equal ones the upper. */
template <typename T> static __device__ inline largest<T> larger(largest<T> x, largest<T> y)
{
    return y.value > x.value || (y.value == x.value && y.row < x.row) ? y : x;
}

/* The row of the largest number of column c, from row c on. All threads of the block get it. */
template <typename T>
static __device__ inline int64_t find_pivot(const T *a, int64_t ld, int64_t rows, int c, largest<T> (&best)[PANEL_LINES])
{
    const int thread = threadIdx.y * GY_SQUARE + threadIdx.x;
    largest<T> mine = { (T)-1, rows };
    for (int64_t i = c + thread; i < rows; i += PANEL_THREADS)
        mine = larger(mine, largest<T>{ (T)fabs((double)a[i * ld + c]), i });
    for (int by = GY_SQUARE / 2; by > 0; by /= 2)
        mine = larger(mine, largest<T>{ __shfl_xor_sync(~0u, mine.value, by), __shfl_xor_sync(~0u, mine.row, by) });
    if (threadIdx.x == 0)
        best[threadIdx.y] = mine;
    __syncthreads();
    mine = best[0];
    for (int i = 1; i < PANEL_LINES; i++)
        mine = larger(mine, best[i]);
    return mine.row < rows ? mine.row : c; /* none is larger than -1: all are NaN */
}

/* One block. a points to the panel's first row and column; `first` is its number. */
template <typename T>
static __device__ void panel(T *a, int64_t ld, int64_t rows, int32_t side, int64_t first, int32_t *pivots, int32_t *status)
{
    __shared__ largest<T> best[PANEL_LINES];
    const int lane = threadIdx.x;
    for (int c = 0; c < side; c++) {
        const int64_t with = find_pivot(a, ld, rows, c, best);
        if (threadIdx.y == 0) {
            if (lane == 0)
                pivots[first + c] = (int32_t)(first + with + 1);
            if (lane < side && with != c) {
                const T kept = a[c * ld + lane];
                a[c * ld + lane] = a[with * ld + lane];
                a[with * ld + lane] = kept;
            }
        }
        __syncthreads();
        const T pivot = a[c * ld + c], above = lane > c && lane < side ? a[c * ld + lane] : (T)0;
        if (pivot == 0) {
            if (threadIdx.y == 0 && lane == 0 && *status == 0)
                *status = (int32_t)(first + c + 1);
        } else {
            for (int64_t i = c + 1 + threadIdx.y; i < rows; i += PANEL_LINES) {
                const T left = a[i * ld + c] / pivot;
                __syncwarp();
                if (lane == c)
                    a[i * ld + c] = left;
                else if (lane > c && lane < side)
                    a[i * ld + lane] -= left * above;
            }
        }
        __syncthreads();
    }
}

/* The rows of the upper factor beside the panel: a block has 32 columns. `a` points to the panel's square. */
template <typename T> static __device__ void beside(const T *a, T *right, int64_t ld, int64_t columns)
{
    __shared__ gy_square<T> lower, x;
    const int64_t column = (int64_t)blockIdx.x * GY_SQUARE;
    const int lane = threadIdx.x;
    gy_load_square(lower, a, ld, GY_SQUARE, GY_SQUARE);
    gy_load_square(x, right + column, ld, GY_SQUARE, columns - column);
    __syncthreads();
    for (int r = 1; r < GY_SQUARE && threadIdx.y == 0; r++) {
        T value = x.at[r][lane];
        for (int k = 0; k < r; k++)
            value -= lower.at[r][k] * x.at[k][lane];
        x.at[r][lane] = value;
    }
    __syncthreads();
    for (int i = threadIdx.y; i < GY_SQUARE; i += GY_SQUARE_LINES)
        if (lane < columns - column)
            right[i * ld + column + lane] = x.at[i][lane];
}

/* Blocks are squares of the rest, `across` in a row. */
template <typename T>
static __device__ void rest(const T *below, const T *right, T *a, int64_t ld, int64_t rows, uint32_t across)
{
    __shared__ gy_square<T> x, y;
    const int64_t row = (int64_t)(blockIdx.x / across) * GY_SQUARE, column = (int64_t)(blockIdx.x % across) * GY_SQUARE;
    const int lane = threadIdx.x;
    gy_load_square(x, below + row * ld, ld, rows - row, GY_SQUARE);
    gy_load_square(y, right + column, ld, GY_SQUARE, rows - column);
    __syncthreads();
    for (int i = threadIdx.y; i < GY_SQUARE; i += GY_SQUARE_LINES) {
        if (row + i >= rows || column + lane >= rows)
            continue;
        T value = a[(row + i) * ld + column + lane];
#pragma unroll 8
        for (int k = 0; k < GY_SQUARE; k++)
            value -= x.at[i][k] * y.at[k][lane];
        a[(row + i) * ld + column + lane] = value;
    }
}

#define KERNEL(suffix, type)                                                                                           \
    extern "C" __global__ void __launch_bounds__(PANEL_THREADS)                                                        \
        getrf_panel_##suffix(type *a, int64_t ld, int64_t rows, int32_t side, int64_t first, int32_t *pivots,          \
                             int32_t *status)                                                                          \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        panel(a, ld, rows, side, first, pivots, status);                                                               \
    }                                                                                                                  \
    extern "C" __global__ void getrf_exchange_##suffix(type *a, int64_t n, const int32_t *pivots, int64_t first,       \
                                                       int64_t count, int32_t *status)                                 \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        gy_exchange_rows(a, n, n, n, pivots, first, count, first, count, status);                                      \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(GY_SQUARE_THREADS)                                                    \
        getrf_beside_##suffix(const type *a, type *right, int64_t ld, int64_t columns)                                 \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        beside(a, right, ld, columns);                                                                                 \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(GY_SQUARE_THREADS)                                                    \
        getrf_rest_##suffix(const type *below, const type *right, type *a, int64_t ld, int64_t rows, uint32_t across)  \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        rest(below, right, a, ld, rows, across);                                                                       \
    }
KERNEL(f32, float)
KERNEL(f64, double)
