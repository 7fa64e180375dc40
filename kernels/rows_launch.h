/* SPDX-License-Identifier: Apache-2.0 */
/* Launches of kernels that give a warp to each row (rows.cuh). */
#ifndef GY_KERNELS_ROWS_LAUNCH_H
#define GY_KERNELS_ROWS_LAUNCH_H

#include "backends/cuda/kernels/image.h"

enum { GY_ROW_LANES = 32, GY_ROW_WARPS = 8, GY_ROW_BLOCKS = 1 << 16 };

static inline gy_grid gy_rows_grid(int64_t rows)
{
    int64_t blocks = gy_tiles(rows, GY_ROW_WARPS);
    return (
        gy_grid){ (unsigned)(blocks < GY_ROW_BLOCKS ? blocks : GY_ROW_BLOCKS), 1, 1, GY_ROW_LANES, GY_ROW_WARPS, 1 };
}

/* Blocks of 32 columns and 32 lanes of rows. */
static inline gy_grid gy_columns_grid(int64_t width)
{
    return (gy_grid){ (unsigned)gy_tiles(width, GY_ROW_LANES), 1, 1, GY_ROW_LANES, GY_ROW_LANES, 1 };
}

#endif
