/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/rows_launch.h"

enum { ROWS, COLUMNS }; /* variants */

static gantry_status launch_rmsnorm_grad(const gantry_launch *l)
{
    double eps = l->arg[0].number;
    const void *x = l->arg[1].data, *gain = l->arg[2].data, *dy = l->arg[3].data;
    void *dx = l->arg[4].data, *dgain = l->arg[5].data, *norm = l->scratch;
    int64_t width = gy_arg_size(&l->arg[2]), rows = gy_row_count(&l->arg[1], width);
    if (rows == 0)
        return GANTRY_OK;
    gantry_status failed = gy_cuda_image_launch(l, ROWS, l->arg[1].dtype, gy_rows_grid(rows, width),
                                                (void *[]){ &eps, &x, &gain, &dy, &dx, &norm, &rows, &width });
    return failed ? failed
                  : gy_cuda_image_launch(l, COLUMNS, l->arg[1].dtype, gy_columns_grid(width),
                                         (void *[]){ &x, &dy, &norm, &dgain, &rows, &width });
}

GY_CUDA_KERNEL(rmsnorm_grad, launch_rmsnorm_grad, GY_FLOAT_DTYPES, "_rows", "_columns")
