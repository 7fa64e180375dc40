/* SPDX-License-Identifier: Apache-2.0 */
/* Products of one row, which gemm.cu has a function of its own for. */
#ifndef GY_KERNELS_GEMM_H
#define GY_KERNELS_GEMM_H

#include <stdint.h>

/* row_product.cuh has the same. */
typedef struct gy_row_product {
    int64_t terms, columns;
    double alpha, beta;
    int32_t across, wide; /* threads of a block along a row of b; c is of the type that sums are computed in */
} gy_row_product;

enum { GY_ROW_PRODUCT_THREADS = 512, GY_ROW_PRODUCT_BYTES = 16, GY_ROW_PRODUCT_LEAST = 2, GY_ROW_PRODUCT_MOST = 8 };

/* As wide a line of memory as leaves enough blocks for all of a GPU: fewer columns of a block are more blocks. By the
 * shape alone, which the order of additions follows from. */
static inline int32_t gy_row_product_across(int64_t columns, int64_t size)
{
    enum { BLOCKS = 128 };
    int32_t across = GY_ROW_PRODUCT_MOST;
    while (across > GY_ROW_PRODUCT_LEAST && columns * size < (int64_t)BLOCKS * across * GY_ROW_PRODUCT_BYTES)
        across /= 2;
    return across;
}

#endif
