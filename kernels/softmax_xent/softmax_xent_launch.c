/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/rows_launch.h"

enum { ROWS, TOTAL }; /* variants */

static gantry_status launch_softmax_xent(const gantry_launch *l)
{
    const gantry_arg *logits = &l->arg[1];
    double scale = l->arg[0].number;
    const void *x = logits->data, *labels = l->arg[2].data;
    void *loss = l->arg[3].data, *partial = l->scratch;
    int32_t *status = l->status;
    int64_t rows = logits->rows, width = gy_arg_width(logits), most = (int64_t)(l->scratch_bytes / sizeof(double));
    int32_t groups = (int32_t)(rows < most ? rows : most);
    if (groups == 0)
        return rows == 0 ? GANTRY_OK : GANTRY_E_KERNEL;
    gantry_status failed = gy_cuda_image_launch(l, ROWS, logits->dtype, gy_rows_grid(groups, width),
                                                (void *[]){ &x, &labels, &partial, &rows, &width, &groups, &status });
    return failed
               ? failed
               : gy_cuda_image_launch(l, TOTAL, logits->dtype, (gy_grid){ 1, 1, 1, GY_ROW_WARPS * GY_ROW_LANES, 1, 1 },
                                      (void *[]){ &scale, &partial, &groups, &loss });
}

GY_CUDA_KERNEL(softmax_xent, launch_softmax_xent, GY_FLOAT_DTYPES, "_rows", "_total")
