/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/rows_launch.h"

static gantry_status launch_softmax_xent_grad(const gantry_launch *l)
{
    const gantry_arg *logits = &l->arg[1];
    double scale = l->arg[0].number;
    const void *x = logits->data, *labels = l->arg[2].data;
    void *grad = l->arg[3].data;
    int64_t rows = logits->rows, width = gy_arg_width(logits);
    return gy_cuda_image_launch(l, 0, logits->dtype, gy_rows_grid(rows, width),
                                (void *[]){ &scale, &x, &labels, &grad, &rows, &width });
}

GY_CUDA_KERNEL(softmax_xent_grad, launch_softmax_xent_grad, GY_FLOAT_DTYPES, "")
