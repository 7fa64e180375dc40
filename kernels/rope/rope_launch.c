/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/rope/rope.h"
#include "kernels/rows_launch.h"

/* The first argument of the function; rope.cu has the same. */
typedef struct turning {
    int64_t dim, first, length, positions;
    double base, sign;
} turning;

static gantry_status launch_rope(const gantry_launch *l)
{
    gy_rope_rows r;
    bool there = gy_rope_rows_of(l, &r);
    turning t = { .dim = l->arg[GY_ROPE_DIM].integer,
                  .first = l->arg[GY_ROPE_FIRST].integer,
                  .length = l->arg[GY_ROPE_LENGTH].integer,
                  .positions = r.positions,
                  .base = l->arg[GY_ROPE_BASE].number,
                  .sign = l->arg[GY_ROPE_SIGN].number };
    const void *x = l->arg[GY_ROPE_X].data;
    void *y = l->arg[GY_ROPE_Y].data;
    if (!there || t.dim < 2 || t.dim % 2 || r.width % t.dim) /* check() does not see numbers that change later */
        return GANTRY_E_KERNEL;
    return gy_cuda_image_launch(l, 0, l->arg[GY_ROPE_X].dtype, gy_rows_grid(r.rows, t.dim / 2),
                                (void *[]){ &t, &x, &y, &r.rows, &r.width });
}

GY_CUDA_KERNEL(rope, launch_rope, GY_FLOAT_DTYPES, "")
