/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/kernels/image.h"

enum { LANES = 32, ROWS = 8 }; /* of spmm_csr.cu */

static gantry_status launch_spmm_csr(const gantry_launch *l)
{
    const gantry_arg *in = &l->arg[3], *out = &l->arg[4];
    const void *row = l->arg[0].data, *column = l->arg[1].data, *value = l->arg[2].data, *x = in->data;
    void *y = out->data;
    int32_t *status = l->status;
    int64_t rows = out->rows, entries = gy_arg_size(&l->arg[1]), columns = in->rows, width = gy_arg_width(out);
    int32_t each = width <= LANES ? 1 : width <= 2 * LANES ? 2 : 4; /* columns of a lane */
    uint32_t across = (uint32_t)gy_tiles(width, LANES * each);
    gy_grid grid = { (unsigned)(across * gy_tiles(rows, ROWS)), 1, 1, LANES, ROWS, 1 };
    return gy_cuda_image_launch(
        l, l->arg[0].dtype == GANTRY_I64, out->dtype, grid,
        (void *[]){ &row, &column, &value, &x, &y, &rows, &entries, &columns, &width, &across, &each, &status });
}

GY_CUDA_KERNEL(spmm_csr, launch_spmm_csr, GANTRY_DTYPE_BIT(GANTRY_F32) | GANTRY_DTYPE_BIT(GANTRY_F64), "_i32", "_i64")
