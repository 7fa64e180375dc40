/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/kernels/image.h"

enum { THREADS = 256, WINDOW = 1024 }; /* of spmv_csr.cu */

/* As many rows as have about a window of entries on average, so that no thread waits long for the row of another. */
static int32_t rows_of_block(int64_t entries, int64_t rows)
{
    int64_t mean = rows > 0 ? entries / rows : 0, fit = mean > 0 ? WINDOW / mean : THREADS;
    return (int32_t)(fit < 1 ? 1 : fit < THREADS ? fit : THREADS);
}

static gantry_status launch_spmv_csr(const gantry_launch *l)
{
    const gantry_arg *out = &l->arg[4];
    const void *row = l->arg[0].data, *column = l->arg[1].data, *value = l->arg[2].data, *vector = l->arg[3].data;
    void *y = out->data;
    int32_t *status = l->status;
    int64_t rows = out->rows, entries = gy_arg_size(&l->arg[1]), columns = gy_arg_size(&l->arg[3]);
    int32_t block = rows_of_block(entries, out->shape[0]);
    gy_grid grid = { (unsigned)((rows + block - 1) / block), 1, 1, THREADS, 1, 1 };
    return gy_cuda_image_launch(
        l, l->arg[0].dtype == GANTRY_I64, out->dtype, grid,
        (void *[]){ &row, &column, &value, &vector, &y, &rows, &entries, &columns, &block, &status });
}

GY_CUDA_KERNEL(spmv_csr, launch_spmv_csr, GANTRY_DTYPE_BIT(GANTRY_F32) | GANTRY_DTYPE_BIT(GANTRY_F64), "_i32", "_i64")
