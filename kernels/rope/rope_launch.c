/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/rows_launch.h"

/* The first argument of the function; rope.cu has the same. */
typedef struct turning {
    int64_t dim, first, length;
    double base, sign;
} turning;

static gantry_status launch_rope(const gantry_launch *l)
{
    turning t = { l->arg[0].integer, l->arg[1].integer, l->arg[2].integer, l->arg[3].number, l->arg[4].number };
    const void *x = l->arg[5].data;
    void *y = l->arg[6].data;
    int64_t rows = l->arg[5].rows, width = gy_arg_width(&l->arg[5]);
    if (t.dim < 2 || t.dim % 2 || width % t.dim) /* check() does not see numbers that change later */
        return GANTRY_E_KERNEL;
    return gy_cuda_image_launch(l, 0, l->arg[5].dtype, gy_rows_grid(rows, t.dim / 2),
                                (void *[]){ &t, &x, &y, &rows, &width });
}

GY_CUDA_KERNEL(rope, launch_rope, GY_FLOAT_DTYPES, "")
