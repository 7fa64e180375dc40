/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/attention/attention_launch.h"

enum { LENGTH = GY_ATTENTION_V + 1, Y };

/* As attention_row.cuh has it. */
enum { ROW = 3, FEW = 8, ROW_THREADS = 512 };

/* A block for each query; blocks of the other functions would have 64 of them, of which few are queries. */
static gantry_status launch_few(const gantry_launch *l, gy_attention a)
{
    const void *q = l->arg[GY_ATTENTION_Q].data, *k = l->arg[GY_ATTENTION_K].data, *v = l->arg[GY_ATTENTION_V].data;
    const void *length = l->arg[LENGTH].data;
    void *y = l->arg[Y].data;
    int32_t *status = l->status;
    gy_grid grid = { (unsigned)(a.rows * a.heads), 1, 1, ROW_THREADS, 1, 1 };
    return gy_cuda_image_launch(l, ROW, l->arg[Y].dtype, grid, (void *[]){ &a, &q, &k, &v, &length, &y, &status });
}

static gantry_status launch_cached(const gantry_launch *l)
{
    gy_attention a = gy_attention_of(l, LENGTH);
    return a.rows <= FEW ? launch_few(l, a) : gy_attention_launch(l, LENGTH, Y, 0);
}

GY_CUDA_KERNEL(attention_cached, launch_cached, GY_FLOAT_DTYPES, "_64", "_128", "_256", [ROW] = "_row")
