/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/rows_launch.h"

static gantry_status launch_softmax(const gantry_launch *l)
{
    double scale = l->arg[0].number;
    int64_t causal = l->arg[1].integer, first = l->arg[2].integer;
    const void *x = l->arg[3].data;
    void *y = l->arg[4].data;
    int64_t rows = l->arg[3].rows, width = gy_arg_width(&l->arg[3]);
    return gy_cuda_image_launch(l, 0, l->arg[3].dtype, gy_rows_grid(rows),
                                (void *[]){ &scale, &causal, &first, &x, &y, &rows, &width });
}

GY_CUDA_KERNEL(softmax, launch_softmax, GY_FLOAT_DTYPES, "")
