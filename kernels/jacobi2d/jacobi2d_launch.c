/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/kernels/image.h"

enum { PLAIN, WIDE }; /* variants */

static gantry_status launch_jacobi2d(const gantry_launch *l)
{
    enum { LANES = 32, WARPS = 8, ROWS = 8, BYTES = 16 }; /* of jacobi2d.cu */
    const gantry_arg *in = &l->arg[0], *out = &l->arg[1];
    int variant = gy_rows_aligned(in, BYTES) && gy_rows_aligned(out, BYTES) ? WIDE : PLAIN;
    int64_t elements = variant == WIDE ? BYTES / (int64_t)gantry_dtype_size(in->dtype) : 1;
    int64_t rows = out->rows, columns = gy_arg_width(out), top = out->first_row, height = in->shape[0];
    const char *x = (const char *)in->data + (top - in->first_row) * in->row_bytes;
    void *y = out->data;
    uint32_t across = (uint32_t)gy_tiles(columns, elements * LANES);
    gy_grid grid = { (unsigned)(across * gy_tiles(rows, (int64_t)WARPS * ROWS)), 1, 1, LANES, WARPS, 1 };
    return gy_cuda_image_launch(l, variant, in->dtype, grid,
                                (void *[]){ &x, &y, &rows, &columns, &top, &height, &across });
}

GY_CUDA_KERNEL(jacobi2d, launch_jacobi2d, GANTRY_DTYPE_BIT(GANTRY_F32) | GANTRY_DTYPE_BIT(GANTRY_F64), "", "_wide")
