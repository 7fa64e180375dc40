/* SPDX-License-Identifier: Apache-2.0 */
/* Launches of sorting by digits (radix.cuh): three for each byte of a key. */
#ifndef GY_KERNELS_RADIX_LAUNCH_H
#define GY_KERNELS_RADIX_LAUNCH_H

#include "backends/cuda/kernels/image.h"
#include "base/error.h"
#include "kernels/radix.h"

/* The variants of an image that sorts; those that move begin with the third. Its dtypes are one for each size of keys.
 */
enum {
    GY_RADIX_COUNT,
    GY_RADIX_STARTS,
    GY_RADIX_MOVE,
    GY_RADIX_THREADS = 256,
    GY_RADIX_WARPS = 8,
    GY_RADIX_MOVERS = 512
};
#define GY_RADIX_DTYPES                                                                                                \
    (GANTRY_DTYPE_BIT(GANTRY_U8) | GANTRY_DTYPE_BIT(GANTRY_F16) | GANTRY_DTYPE_BIT(GANTRY_U32) |                       \
     GANTRY_DTYPE_BIT(GANTRY_U64) | GY_IMAGE_BY_SIZE)

/* The parameter of the functions; radix.cuh has the same. */
typedef struct gy_radix_pass {
    gy_radix_order order;
    int64_t n, chunk;
    int32_t shift;
} gy_radix_pass;

/* Blocks that have a few turns each at most, of whole tiles: as many keys as radix.cuh has in one. */
static inline int64_t gy_radix_chunk(const gantry_launch *l, const gy_radix *r, int move, gantry_dtype dtype)
{
    bool is_wide = gantry_dtype_size(dtype) > 4 || r->value_bytes > 4;
    int64_t tile = is_wide ? GY_RADIX_LEAST_TILE : 16 * GY_RADIX_MOVERS;
    int64_t tiles = gy_tiles(r->n, tile), most = gy_cuda_image_grid(l, move, dtype, GY_RADIX_CHUNKS).x;
    return gy_tiles(tiles, most) * tile;
}

/* Sorts by variant `move`. With an even number of passes the last of them goes to the results; a single one does, too.
 */
static inline gantry_status gy_radix_launch(const gantry_launch *l, const gy_radix *r, int move)
{
    gantry_dtype dtype = gy_image_of_size(r->dtype);
    if (r->n == 0)
        return GANTRY_OK;
    int bytes = (int)gantry_dtype_size(r->dtype);
    gy_radix_pass p = { gy_radix_order_of(r->dtype, r->descending), r->n, gy_radix_chunk(l, r, move, dtype), 0 };
    int64_t chunks = gy_tiles(r->n, p.chunk);
    gy_grid grid = { (unsigned)chunks, 1, 1, GY_RADIX_MOVERS, 1, 1 };
    gy_grid digits = { GY_RADIX_DIGITS / GY_RADIX_WARPS, 1, 1, GY_RADIX_THREADS, 1, 1 };
    const void *keys = r->keys, *values = r->values;
    void *counts = r->counts;
    for (int b = 0; b < bytes; b++) {
        int left = bytes - 1 - b;
        void *keys_to = left % 2 ? r->spare_keys : r->sorted, *values_to = left % 2 ? r->spare_values : r->moved;
        p.shift = 8 * b;
        GY_TRY(gy_cuda_image_launch(l, GY_RADIX_COUNT, dtype, grid, (void *[]){ &keys, &counts, &p }));
        GY_TRY(gy_cuda_image_launch(l, GY_RADIX_STARTS, dtype, digits, (void *[]){ &counts, &chunks }));
        GY_TRY(gy_cuda_image_launch(l, move, dtype, grid,
                                    (void *[]){ &keys, &keys_to, &values, &values_to, &counts, &p }));
        keys = keys_to;
        values = values_to;
    }
    return GANTRY_OK;
}

#endif
