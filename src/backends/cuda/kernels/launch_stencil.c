/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels over matrices: tiles that blocks of a launch take one after the other. */
#include "backends/cuda/kernels/image.h"

enum { PLAIN, WIDE }; /* variants */

static int begins_at(const gantry_arg *a, int64_t bytes)
{
    return a->row_bytes % bytes == 0 && (uintptr_t)a->data % (uintptr_t)bytes == 0;
}

static int64_t tiles(int64_t count, int64_t of)
{
    return (count + of - 1) / of;
}

static gantry_status launch_jacobi2d(const gantry_launch *l)
{
    enum { LANES = 32, WARPS = 8, ROWS = 8, BYTES = 16 }; /* of jacobi2d.cu */
    const gantry_arg *in = &l->arg[0], *out = &l->arg[1];
    int variant = begins_at(in, BYTES) && begins_at(out, BYTES) ? WIDE : PLAIN;
    int64_t elements = variant == WIDE ? BYTES / (int64_t)gantry_dtype_size(in->dtype) : 1;
    int64_t rows = out->rows, columns = gy_arg_width(out), top = out->first_row, height = in->shape[0];
    const char *x = (const char *)in->data + (top - in->first_row) * in->row_bytes;
    void *y = out->data;
    uint32_t across = (uint32_t)tiles(columns, elements * LANES);
    gy_grid grid = { (unsigned)(across * tiles(rows, (int64_t)WARPS * ROWS)), 1, 1, LANES, WARPS, 1 };
    return gy_cuda_image_launch(l, variant, in->dtype, grid,
                                (void *[]){ &x, &y, &rows, &columns, &top, &height, &across });
}

static const gy_cuda_image image_jacobi2d = { gy_fatbin_jacobi2d,
                                              GANTRY_DTYPE_BIT(GANTRY_F32) | GANTRY_DTYPE_BIT(GANTRY_F64),
                                              { "", "_wide" } };
const gy_cuda_kernel gy_cuda_kernel_jacobi2d = { .name = "jacobi2d",
                                                 .launch = launch_jacobi2d,
                                                 .open = gy_cuda_image_open,
                                                 .close = gy_cuda_image_close,
                                                 .data = &image_jacobi2d };

/* By bytes of an element: the dtype that stands for it, elements of a chunk, chunks of a tile's side. As in
 * transpose.cu. */
typedef struct turn {
    gantry_dtype dtype;
    int64_t chunk, side;
} turn;
static const turn turns[] = {
    [1] = { GANTRY_U8, 4, 32 }, [2] = { GANTRY_F16, 4, 16 }, [4] = { GANTRY_F32, 4, 16 }, [8] = { GANTRY_F64, 2, 16 }
};

static gantry_status launch_transpose(const gantry_launch *l)
{
    const gantry_arg *in = &l->arg[0], *out = &l->arg[1];
    size_t size = gantry_dtype_size(in->dtype);
    turn t = turns[size];
    int64_t bytes = t.chunk * (int64_t)size, rows = in->rows, columns = gy_arg_width(in);
    int variant = begins_at(in, bytes) && begins_at(out, bytes) ? WIDE : PLAIN;
    int64_t side = variant == WIDE ? t.chunk * t.side : 32;
    const void *x = in->data;
    void *y = out->data;
    uint32_t across = (uint32_t)tiles(columns, side);
    gy_grid grid = { (unsigned)(across * tiles(rows, side)), 1, 1, GY_IMAGE_THREADS, 1, 1 };
    return gy_cuda_image_launch(l, variant, t.dtype, grid, (void *[]){ &x, &y, &rows, &columns, &across });
}

static const gy_cuda_image image_transpose = { gy_fatbin_transpose,
                                               GANTRY_DTYPE_BIT(GANTRY_U8) | GANTRY_DTYPE_BIT(GANTRY_F16) |
                                                   GANTRY_DTYPE_BIT(GANTRY_F32) | GANTRY_DTYPE_BIT(GANTRY_F64),
                                               { "", "_wide" } };
const gy_cuda_kernel gy_cuda_kernel_transpose = { .name = "transpose",
                                                  .launch = launch_transpose,
                                                  .open = gy_cuda_image_open,
                                                  .close = gy_cuda_image_close,
                                                  .data = &image_transpose };
