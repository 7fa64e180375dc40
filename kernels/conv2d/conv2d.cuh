/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products of matrices whose elements are looked up where they are needed: no matrix of patches is in memory. A block makes SIDE x
 * SIDE elements, a thread EACH x EACH of these, or a quarter as many rows; terms are added in their order, in float but for f64. Of a
 * product of few elements and many terms each block has a piece of the terms.
 */
#ifndef GY_KERNELS_CONV2D_CUH
#define GY_KERNELS_CONV2D_CUH

#include "kernels/begin.cuh"
#include "kernels/element.cuh"

enum { GY_CONV_SIDE = 64, GY_CONV_DEPTH = 16, GY_CONV_EACH = 4, GY_CONV_THREADS = 256, GY_CONV_LINE = 32 };

/* As conv2d.h has it. */
struct gy_conv {
    int32_t images, channels, height, width, results, high, wide, window_height, window_width, stride, pad, adds;
};

/* left(i, k) and right(k, j) are elements, store(i, j, sum) takes them. Neighbouring threads look up neighbouring j, and
 * neighbouring k on the left. Of the terms those from `first` up to `terms`. HIGH: rows of a thread. */
template <typename Wide, int HIGH = GY_CONV_EACH, typename Left, typename Right, typename Store>
static __device__ inline void gy_conv_product(int32_t rows, int32_t columns, int32_t first, int32_t terms, uint32_t across,
                                              const Left &left, const Right &right, const Store &store)
{
    enum { SIDE = GY_CONV_SIDE, DEPTH = GY_CONV_DEPTH, EACH = GY_CONV_EACH, LINE = SIDE / EACH, ROWS = HIGH * LINE };
    __shared__ Wide a[DEPTH][ROWS + 1], b[DEPTH][SIDE + 1];
    const int x = threadIdx.x % LINE, y = threadIdx.x / LINE;
    const int32_t row = (int32_t)(blockIdx.x / across) * ROWS, column = (int32_t)(blockIdx.x % across) * SIDE;
    Wide sum[HIGH][EACH] = {};
    for (int32_t term = first; term < terms; term += DEPTH) {
        for (int n = threadIdx.x; n < SIDE * DEPTH; n += GY_CONV_THREADS) {
            const int i = n / DEPTH, k = n % DEPTH, j = n % SIDE, l = n / SIDE;
            if (i < ROWS)
                a[k][i] = row + i < rows && term + k < terms ? left(row + i, term + k) : (Wide)0;
            b[l][j] = column + j < columns && term + l < terms ? right(term + l, column + j) : (Wide)0;
        }
        __syncthreads();
        const int depth = terms - term < DEPTH ? terms - term : DEPTH;
#pragma unroll 4
        for (int k = 0; k < depth; k++)
#pragma unroll
            for (int i = 0; i < HIGH; i++)
#pragma unroll
                for (int j = 0; j < EACH; j++)
                    sum[i][j] += a[k][y + i * LINE] * b[k][x + j * LINE];
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < HIGH; i++)
#pragma unroll
        for (int j = 0; j < EACH; j++)
            if (row + y + i * LINE < rows && column + x + j * LINE < columns)
                store(row + y + i * LINE, column + x + j * LINE, sum[i][j]);
}

/* An element of the image that element (i, j) of the window at pixel (y, x) lies on; 0 beside it. */
template <typename Wide, typename T>
static __device__ inline Wide gy_conv_pixel(const gy_conv &c, const T *x, int32_t image, int32_t channel, int32_t r, int32_t q)
{
    const bool inside = r >= 0 && r < c.height && q >= 0 && q < c.width;
    return inside ? gy_element<Wide>::load(x[((image * c.channels + channel) * c.height + r) * c.width + q]) : (Wide)0;
}

#endif
