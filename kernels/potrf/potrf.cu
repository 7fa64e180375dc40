/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Square by square along the diagonal, three launches each: the square's own factor, what is below it, and what that
 * takes away from the rest. Once the status word says that a minor is not positive, the launches to come do nothing.
 */
#include "kernels/begin.cuh"
#include "kernels/triangle.cuh"

/* One block. a points to the square, whose rows are `first` and those after it. */
template <typename T>
static __device__ void diagonal(T *a, int64_t ld, int32_t side, int64_t first, int32_t *status)
{
    __shared__ gy_square<T> s;
    int row = threadIdx.x; /* of the factor, column of the copy back */
    if (*status != 0)
        return;
    gy_load_square(s, a, ld, side, side);
    __syncthreads();
    for (int c = 0; c < side && threadIdx.y == 0; c++) {
        T value = s.at[row][c];
        for (int k = 0; k < c; k++)
            value -= s.at[row][k] * s.at[c][k];
        T pivot = __shfl_sync(~0u, value, c), root = (T)sqrt((double)pivot);
        if (!(pivot > 0)) {
            if (row == 0)
                *status = (int32_t)(first + c + 1);
            break;
        }
        s.at[row][c] = row == c ? root : row > c ? value / root : s.at[row][c];
        __syncwarp();
    }
    __syncthreads();
    for (int i = threadIdx.y; i < side; i += GY_SQUARE_LINES)
        if (row <= i)
            a[i * ld + row] = s.at[i][row];
}

/* Blocks are squares of the rest, `across` in a row; `below` points to the rows below the factor's square, `a` to the
 * rest. */
template <typename T>
static __device__ void rest(const T *below, T *a, int64_t ld, int64_t rows, uint32_t across, const int32_t *status)
{
    __shared__ gy_square<T> x, y;
    int64_t row = (int64_t)(blockIdx.x / across) * GY_SQUARE, column = (int64_t)(blockIdx.x % across) * GY_SQUARE;
    if (*status != 0 || column > row)
        return;
    gy_load_square(x, below + row * ld, ld, rows - row, GY_SQUARE);
    gy_load_square(y, below + column * ld, ld, rows - column, GY_SQUARE);
    __syncthreads();
    gy_take_away(a + row * ld + column, ld, rows - row, rows - column, x, y, row == column);
}

/* Turns an n x n matrix over its diagonal, in place. A block exchanges a square with the one across the diagonal, or
 * turns one on the diagonal; `across` squares make a row. */
template <typename T> static __device__ void turn(T *a, int64_t n, uint32_t across)
{
    __shared__ gy_square<T> x, y;
    int64_t row = (int64_t)(blockIdx.x / across) * GY_SQUARE, column = (int64_t)(blockIdx.x % across) * GY_SQUARE;
    if (column > row)
        return;
    gy_load_square(x, a + row * n + column, n, n - row, n - column);
    gy_load_square(y, a + column * n + row, n, n - column, n - row);
    __syncthreads();
    int lane = threadIdx.x;
    for (int i = threadIdx.y; i < GY_SQUARE; i += GY_SQUARE_LINES) {
        if (row + i < n && column + lane < n)
            a[(row + i) * n + column + lane] = y.at[lane][i];
        if (column + i < n && row + lane < n)
            a[(column + i) * n + row + lane] = x.at[lane][i];
    }
}

#define KERNEL(suffix, type)                                                                                           \
    extern "C" __global__ void __launch_bounds__(GY_SQUARE_THREADS)                                                    \
        potrf_diagonal_##suffix(type *a, int64_t ld, int32_t side, int64_t first, int32_t *status)                     \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        diagonal(a, ld, side, first, status);                                                                          \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(GY_SQUARE_THREADS)                                                    \
        potrf_below_##suffix(const type *a, type *below, int64_t ld, int64_t rows, const int32_t *status)              \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        int64_t row = (int64_t)blockIdx.x * GY_SQUARE;                                                                 \
        if (*status == 0)                                                                                              \
            gy_solve_rows(a, ld, below + row * ld, ld, rows - row, GY_SQUARE);                                         \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(GY_SQUARE_THREADS)                                                    \
        potrf_rest_##suffix(const type *below, type *a, int64_t ld, int64_t rows, uint32_t across,                     \
                            const int32_t *status)                                                                     \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        rest(below, a, ld, rows, across, status);                                                                      \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(GY_SQUARE_THREADS)                                                    \
        potrf_turn_##suffix(type *a, int64_t n, uint32_t across)                                                       \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        turn(a, n, across);                                                                                            \
    }
KERNEL(f32, float)
KERNEL(f64, double)
