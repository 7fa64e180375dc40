/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/kernels/image.h"
#include "kernels/box.h"

enum { PLAIN, WIDE, THIN, BOX }; /* variants */

enum { LANES = 32, WARPS = 8, MANY = 8, FEW = 4, BYTES = 16 }; /* of jacobi2d.cu */

/* Warps have MANY rows each. */
static gy_grid grid_of(int64_t rows, uint32_t across)
{
    return (gy_grid){ (unsigned)(across * gy_tiles(rows, (int64_t)WARPS * MANY)), 1, 1, LANES, WARPS, 1 };
}

/* Tiles: rows of x are wider than those of y. */
static gantry_status launch_box(const gantry_launch *l)
{
    gy_grid_boxes g = gy_grid_boxes_of(&l->arg[0], &l->arg[1]);
    const void *x = l->arg[0].data;
    void *y = l->arg[1].data;
    uint32_t across = (uint32_t)gy_tiles(g.count[2], LANES);
    return gy_cuda_image_launch(l, BOX, l->arg[0].dtype, grid_of(g.count[1], across),
                                (void *[]){ &x, &y, &g, &across });
}

static gantry_status launch_jacobi2d(const gantry_launch *l)
{
    const gantry_arg *in = &l->arg[0], *out = &l->arg[1];
    if (in->whole || out->whole)
        return launch_box(l);
    int64_t rows = out->rows, columns = gy_arg_width(out), top = out->first_row, height = in->shape[0];
    bool aligned = gy_rows_aligned(in, BYTES) && gy_rows_aligned(out, BYTES);
    int variant = !aligned ? PLAIN : rows <= FEW && columns <= INT32_MAX ? THIN : WIDE;
    int64_t elements = variant == PLAIN ? 1 : BYTES / (int64_t)gantry_dtype_size(in->dtype);
    int64_t beside = variant == THIN ? WARPS : 1; /* warps of a block, along its rows */
    const char *x = (const char *)in->data + (top - in->first_row) * in->row_bytes;
    void *y = out->data;
    uint32_t across = (uint32_t)gy_tiles(columns, elements * LANES * beside);
    gy_grid grid = { across, (unsigned)rows, 1, LANES, WARPS, 1 };
    if (variant != THIN)
        grid = grid_of(rows, across);
    return gy_cuda_image_launch(l, variant, in->dtype, grid,
                                (void *[]){ &x, &y, &rows, &columns, &top, &height, &across });
}

GY_CUDA_KERNEL(jacobi2d, launch_jacobi2d, GANTRY_DTYPE_BIT(GANTRY_F32) | GANTRY_DTYPE_BIT(GANTRY_F64), "", "_wide",
               "_thin", "_box")
