/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/kernels/image.h"

enum { PLAIN, WIDE }; /* variants */

/* By bytes of an element: the dtype that stands for it, elements of a chunk, chunks of a tile's side. As in
 * transpose.cu. */
typedef struct tile {
    gantry_dtype dtype;
    int64_t chunk, side;
} tile;
static const tile tiles[] = {
    [1] = { GANTRY_U8, 4, 32 }, [2] = { GANTRY_F16, 4, 16 }, [4] = { GANTRY_F32, 4, 16 }, [8] = { GANTRY_F64, 2, 16 }
};

static gantry_status launch_transpose(const gantry_launch *l)
{
    const gantry_arg *in = &l->arg[0], *out = &l->arg[1];
    size_t size = gantry_dtype_size(in->dtype);
    tile t = tiles[size];
    int64_t bytes = t.chunk * (int64_t)size, rows = in->rows, columns = gy_arg_width(in);
    int variant = gy_rows_aligned(in, bytes) && gy_rows_aligned(out, bytes) ? WIDE : PLAIN;
    int64_t side = variant == WIDE ? t.chunk * t.side : 32;
    const void *x = in->data;
    void *y = out->data;
    uint32_t across = (uint32_t)gy_tiles(columns, side);
    gy_grid grid = { (unsigned)(across * gy_tiles(rows, side)), 1, 1, GY_IMAGE_THREADS, 1, 1 };
    return gy_cuda_image_launch(l, variant, t.dtype, grid, (void *[]){ &x, &y, &rows, &columns, &across });
}

GY_CUDA_KERNEL(transpose, launch_transpose,
               GANTRY_DTYPE_BIT(GANTRY_U8) | GANTRY_DTYPE_BIT(GANTRY_F16) | GANTRY_DTYPE_BIT(GANTRY_F32) |
                   GANTRY_DTYPE_BIT(GANTRY_F64),
               "", "_wide")
