/* SPDX-License-Identifier: Apache-2.0 */
/* The same row for all. */
#include "backends/cuda/kernels/image.h"

enum { PLAIN, WIDE, ROWS = 4, PACK = 16 };

/* Columns in x, rows in y. A block has as many columns as it can use, and rows with the threads that are left. */
static gy_grid shape_rows(const gantry_launch *l, int variant, int64_t rows, int64_t width)
{
    unsigned columns = 1;
    int64_t most = gy_cuda_image_grid(l, variant, l->arg[0].dtype, INT64_MAX).x;
    while (columns < GY_IMAGE_THREADS && columns < width)
        columns *= 2;
    int64_t x = (width + columns - 1) / columns, y = GY_IMAGE_THREADS / columns;
    x = x < most ? x : most;
    int64_t down = (rows + ROWS * y - 1) / (ROWS * y), room = (most + x - 1) / x;
    down = down < room ? down : room;
    return (gy_grid){ (unsigned)x, (unsigned)(down < UINT16_MAX ? down : UINT16_MAX), 1, columns, (unsigned)y, 1 };
}

/* bias_add(x, b, y, rows, width) */
static gantry_status launch_bias(const gantry_launch *l)
{
    void *x = l->arg[0].data, *b = l->arg[1].data, *y = l->arg[2].data;
    int64_t rows = l->arg[0].rows, width = gy_arg_width(&l->arg[0]);
    bool wide =
        gy_rows_aligned(&l->arg[0], PACK) && (uintptr_t)l->arg[1].data % PACK == 0 && gy_rows_aligned(&l->arg[2], PACK);
    int variant = wide ? WIDE : PLAIN;
    width = wide ? l->arg[0].row_bytes / PACK : width;
    return gy_cuda_image_launch(l, variant, l->arg[0].dtype, shape_rows(l, variant, rows, width),
                                (void *[]){ &x, &b, &y, &rows, &width });
}

GY_CUDA_KERNEL(bias_add, launch_bias, GY_FLOAT_DTYPES, [PLAIN] = "", [WIDE] = "_wide")
