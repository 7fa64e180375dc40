/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/attention/attention_launch.h"
#include "kernels/attention_grad/attention_grad.h"

/* attention_grad.cuh has the same. */
typedef struct gy_grad_arrays {
    const void *q, *k, *v, *y, *dy;
    void *dq, *dk, *dv, *sums;
    const void *lse;
} gy_grad_arrays;

/* One after the other: what belongs to queries (sums, dq), then what belongs to keys (dk, dv). */
gantry_status gy_plain_attention_grad_launch(const gantry_launch *l)
{
    enum { STEPS = 4, OF_QUERIES = 2 };
    gy_attention a = gy_attention_of(l, 0);
    gantry_dtype dtype = l->arg[GY_ATTENTION_Q].dtype;
    gy_grad_arrays x = { .q = l->arg[GY_ATTENTION_Q].data,
                         .k = l->arg[GY_ATTENTION_K].data,
                         .v = l->arg[GY_ATTENTION_V].data,
                         .y = l->arg[GY_ATTENTION_GRAD_Y].data,
                         .dy = l->arg[GY_ATTENTION_GRAD_DY].data,
                         .dq = l->arg[GY_ATTENTION_GRAD_DQ].data,
                         .dk = l->arg[GY_ATTENTION_GRAD_DK].data,
                         .dv = l->arg[GY_ATTENTION_GRAD_DV].data,
                         .sums = l->scratch,
                         .lse = l->arg[GY_ATTENTION_GRAD_LSE].data };
    gantry_status status = GANTRY_OK;
    for (int step = 0; step < STEPS && !status; step++) {
        uint32_t across = (uint32_t)gy_tiles(step < OF_QUERIES ? a.rows : a.m, gy_attention_side(dtype, a.d));
        int variant = gy_attention_variant(a.d);
        gy_grid grid = { (unsigned)(across * a.heads), 1, 1, gy_cuda_image_threads(l, variant, dtype), 1, 1 };
        status = gy_cuda_image_launch(l, variant, dtype, grid, (void *[]){ &a, &across, &step, &x });
    }
    return status;
}

GY_PLAIN_KERNEL(attention_grad, NULL, GY_FLOAT_DTYPES, "_64", "_128", "_256")
