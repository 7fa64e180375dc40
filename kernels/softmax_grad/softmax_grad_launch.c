/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/rows_launch.h"

static gantry_status launch_softmax_grad(const gantry_launch *l)
{
    double scale = l->arg[0].number;
    const void *y = l->arg[1].data, *dy = l->arg[2].data;
    void *dx = l->arg[3].data;
    int64_t width = gy_row_width(&l->arg[1]), rows = gy_row_count(&l->arg[1], width);
    return gy_cuda_image_launch(l, 0, l->arg[1].dtype, gy_rows_grid(rows, width),
                                (void *[]){ &scale, &y, &dy, &dx, &rows, &width });
}

GY_CUDA_KERNEL(softmax_grad, launch_softmax_grad, GY_FLOAT_DTYPES, "", "_of") /* _of: for attention */
