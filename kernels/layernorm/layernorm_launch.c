/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/rows_launch.h"

static gantry_status launch_layernorm(const gantry_launch *l)
{
    double eps = l->arg[0].number;
    const void *x = l->arg[1].data, *gain = l->arg[2].data, *bias = l->arg[3].data;
    void *y = l->arg[4].data;
    int64_t width = gy_arg_size(&l->arg[2]), rows = gy_row_count(&l->arg[1], width);
    return gy_cuda_image_launch(l, gy_row_form(&l->arg[1], width), l->arg[1].dtype, gy_rows_grid(rows, width),
                                (void *[]){ &eps, &x, &gain, &bias, &y, &rows, &width });
}

GY_CUDA_KERNEL(layernorm, launch_layernorm, GY_FLOAT_DTYPES, "", GY_ROW_FORMS)
