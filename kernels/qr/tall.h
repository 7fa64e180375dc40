/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of rows of a tall matrix on a GPU (tall.cuh), as its threads and the host count them. */
#ifndef GY_KERNELS_QR_TALL_H
#define GY_KERNELS_QR_TALL_H

enum { GY_TALL_THREADS = 512, GY_TALL_COLUMNS = 64, GY_TALL_MOST_ROWS = 1024 };

/* Columns that a warp has of n: a power of two, at most 4. */
#define GY_TALL_COLUMNS_OF(n) ((n) <= 16 ? 1 : (n) <= 32 ? 2 : 4)
/* Rows of a block, whose warps have so many columns each: 64 words of registers of a thread hold what it has of them.
 */
#define GY_TALL_ROWS(size, columns)                                                                                    \
    (32 * 256 / (size) / (columns) < (int)GY_TALL_MOST_ROWS ? 32 * 256 / (size) / (columns) : (int)GY_TALL_MOST_ROWS)

#endif
