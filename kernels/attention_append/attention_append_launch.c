/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/kernels/image.h"
#include "kernels/attention/attention.h"
#include "kernels/attention_append/attention_append.h"

/* A block for each query, as attention_row.cuh has it. */
static gantry_status launch_attention_append(const gantry_launch *l)
{
    enum { ROW_THREADS = 512 };
    const gantry_arg *arg = l->arg, *keys = &arg[GY_TOKEN_KEYS];
    gy_token t = { .heads = keys->rows, .places = keys->shape[1], .dim = keys->shape[2] };
    int64_t queries = gy_arg_size(&arg[GY_TOKEN_Q]) / t.dim;
    t.each = t.heads ? queries / t.heads : 0;
    t.base = arg[GY_TOKEN_BASE].number;
    t.scale = arg[GY_TOKEN_SCALE].number != 0 ? arg[GY_TOKEN_SCALE].number : gy_attention_scale(t.dim);
    const void *place = arg[GY_TOKEN_PLACE].data, *q = arg[GY_TOKEN_Q].data, *k = arg[GY_TOKEN_K].data,
               *v = arg[GY_TOKEN_V].data;
    void *to_keys = keys->data, *to_values = arg[GY_TOKEN_VALUES].data, *y = arg[GY_TOKEN_Y].data;
    int32_t *status = l->status;
    gy_grid grid = { (unsigned)queries, 1, 1, ROW_THREADS, 1, 1 };
    return gy_cuda_image_launch(l, 0, keys->dtype, grid,
                                (void *[]){ &t, &place, &q, &k, &v, &to_keys, &to_values, &y, &status });
}

GY_CUDA_KERNEL(attention_append, launch_attention_append, GY_FLOAT_DTYPES, "")
