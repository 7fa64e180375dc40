/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Solving with triangles, for where cuBLAS and cuSOLVER are not: in squares of SIDE x SIDE elements that a block of SIDE
 * x LINES threads holds in shared memory. From each element, products are taken away one by one in the order of the
 * host's plain version.
 */
#ifndef GY_KERNELS_TRIANGLE_CUH
#define GY_KERNELS_TRIANGLE_CUH

#include <stdint.h>

enum { GY_SQUARE = 32, GY_SQUARE_LINES = 8, GY_SQUARE_THREADS = GY_SQUARE * GY_SQUARE_LINES };

template <typename T> struct gy_square {
    T at[GY_SQUARE][GY_SQUARE + 1];
};

/* Zero where there is nothing: rows and columns that are left from `from` on. */
template <typename T>
static __device__ inline void gy_load_square(gy_square<T> &s, const T *from, int64_t ld, int64_t rows, int64_t columns)
{
    int column = threadIdx.x;
    for (int i = threadIdx.y; i < GY_SQUARE; i += GY_SQUARE_LINES)
        s.at[i][column] = i < rows && column < columns ? from[i * ld + column] : (T)0;
}

/* c -= x y^T, product by product; only the lower triangle if `lower`. */
template <typename T>
static __device__ inline void gy_take_away(T *c, int64_t ld, int64_t rows, int64_t columns, const gy_square<T> &x,
                                           const gy_square<T> &y, bool lower)
{
    int column = threadIdx.x;
    for (int row = threadIdx.y; row < GY_SQUARE; row += GY_SQUARE_LINES) {
        if (row >= rows || column >= columns || (lower && column > row))
            continue;
        T value = c[row * ld + column];
#pragma unroll 8
        for (int k = 0; k < GY_SQUARE; k++)
            value -= x.at[row][k] * y.at[column][k];
        c[row * ld + column] = value;
    }
}

/* GY_SQUARE rows of b = b a^-T, a lower triangular with `n` rows. A thread always has the same elements of b. */
template <typename T>
static __device__ inline void gy_solve_rows(const T *a, int64_t lda, T *b, int64_t ldb, int64_t rows, int64_t n)
{
    __shared__ gy_square<T> triangle, x;
    for (int64_t j = 0; j < n; j += GY_SQUARE) {
        int width = n - j < GY_SQUARE ? (int)(n - j) : GY_SQUARE, lane = threadIdx.x;
        __syncthreads(); /* the squares before have been read */
        gy_load_square(triangle, a + j * lda + j, lda, width, width);
        gy_load_square(x, b + j, ldb, rows, width);
        __syncthreads();
        for (int c = 0; c < width && threadIdx.y == 0; c++) {
            T value = x.at[lane][c]; /* of row `lane` */
            for (int k = 0; k < c; k++)
                value -= x.at[lane][k] * triangle.at[c][k];
            x.at[lane][c] = value / triangle.at[c][c];
        }
        __syncthreads();
        for (int i = threadIdx.y; i < GY_SQUARE; i += GY_SQUARE_LINES)
            if (i < rows && lane < width)
                b[i * ldb + j + lane] = x.at[i][lane];
        for (int64_t q = j + GY_SQUARE; q < n; q += GY_SQUARE) {
            __syncthreads();
            gy_load_square(triangle, a + q * lda + j, lda, n - q, GY_SQUARE);
            __syncthreads();
            gy_take_away(b + q, ldb, rows, n - q, x, triangle, false);
        }
    }
}

#endif
