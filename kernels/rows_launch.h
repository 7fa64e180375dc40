/* SPDX-License-Identifier: Apache-2.0 */
/* Launches of kernels that give a warp to each row, or a block to each long one (rows.cuh). */
#ifndef GY_KERNELS_ROWS_LAUNCH_H
#define GY_KERNELS_ROWS_LAUNCH_H

#include "backends/cuda/kernels/image.h"
#include "kernels/rows.h"

enum { GY_ROW_LANES = 32, GY_ROW_WARPS = 8, GY_ROW_BLOCKS = 1 << 16, GY_ROW_KEPT_BYTES = 20 << 10 };

/* A row has as many lanes as on the host, so that additions come in the same order. */
static inline gy_grid gy_rows_grid(int64_t rows, int64_t width)
{
    unsigned lanes = (unsigned)gy_lanes_of(width), rows_at_once = GY_ROW_LANES * GY_ROW_WARPS / lanes;
    int64_t blocks = gy_tiles(rows, rows_at_once);
    unsigned most = (unsigned)(blocks < GY_ROW_BLOCKS ? blocks : GY_ROW_BLOCKS);
    return (gy_grid){ most, 1, 1, lanes, rows_at_once, 1 };
}

/* Is a row so long that blocks keep it in shared memory (rows.cuh)? Shorter ones of all blocks of a processor stay in
 * its cache. */
static inline bool gy_row_is_kept(const gantry_arg *a, int64_t width)
{
    return width * (int64_t)gantry_dtype_size(a->dtype) > GY_ROW_KEPT_BYTES;
}

/* The variant for rows, 0 for "" and the next for each of GY_ROW_FORMS: short ones are held in registers, in as few as
 * have room for them. */
#define GY_ROW_FORMS "_long", "_held2", "_held4", "_held8"
static inline int gy_row_form(const gantry_arg *a, int64_t width)
{
    enum { READ, KEPT, HELD };
    int64_t packs = gy_tiles(width, (int64_t)gy_row_pack(a) * GY_ROW_LANES);
    if (gy_row_is_kept(a, width))
        return KEPT;
    if (gy_lanes_of(width) > GY_ROW_LANES || packs > 8)
        return READ;
    return HELD + (packs > 2) + (packs > 4);
}

/* Blocks of 32 columns and 32 lanes of rows. */
static inline gy_grid gy_columns_grid(int64_t width)
{
    return (gy_grid){ (unsigned)gy_tiles(width, GY_ROW_LANES), 1, 1, GY_ROW_LANES, GY_ROW_LANES, 1 };
}

#endif
