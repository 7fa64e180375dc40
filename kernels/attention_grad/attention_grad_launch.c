/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/attention/attention_launch.h"
#include "kernels/attention_grad/attention_grad.h"

/* attention_grad.cuh has the same. */
typedef struct gy_grad_arrays {
    const void *q, *k, *v, *y, *dy;
    void *dq, *dk, *dv, *sums;
    const void *lse;
} gy_grad_arrays;

enum { STEPS = 4, OF_QUERIES = 2, WEIGHTS = 3 }; /* steps, those of queries; the first variant for weights */

static gy_grad_arrays arrays_of(const gantry_launch *l, void *sums)
{
    return (gy_grad_arrays){ .q = l->arg[GY_ATTENTION_Q].data,
                             .k = l->arg[GY_ATTENTION_K].data,
                             .v = l->arg[GY_ATTENTION_V].data,
                             .y = l->arg[GY_ATTENTION_GRAD_Y].data,
                             .dy = l->arg[GY_ATTENTION_GRAD_DY].data,
                             .dq = l->arg[GY_ATTENTION_GRAD_DQ].data,
                             .dk = l->arg[GY_ATTENTION_GRAD_DK].data,
                             .dv = l->arg[GY_ATTENTION_GRAD_DV].data,
                             .sums = sums,
                             .lse = l->arg[GY_ATTENTION_GRAD_LSE].data };
}

static gantry_status launch_step(const gantry_launch *l, const gy_attention *of, int step, void *sums)
{
    gy_attention a = *of;
    gantry_dtype dtype = l->arg[GY_ATTENTION_Q].dtype;
    gy_grad_arrays x = arrays_of(l, sums);
    uint32_t across = (uint32_t)gy_tiles(step < OF_QUERIES ? a.rows : a.m, gy_attention_side(dtype, a.d));
    int variant = gy_attention_variant(a.d);
    gy_grid grid = { (unsigned)(across * a.heads), 1, 1, gy_cuda_image_threads(l, variant, dtype), 1, 1 };
    return gy_cuda_image_launch(l, variant, dtype, grid, (void *[]){ &a, &across, &step, &x });
}

/* One after the other: what belongs to queries (sums, dq), then what belongs to keys (dk, dv). */
gantry_status gy_plain_attention_grad_launch(const gantry_launch *l)
{
    gy_attention a = gy_attention_in_rows(l, GY_ATTENTION_GRAD_DIM);
    gantry_status status = GANTRY_OK;
    for (int step = 0; step < STEPS && !status; step++)
        status = launch_step(l, &a, step, l->scratch);
    return status;
}

gantry_status gy_plain_attention_grad_sums(const gantry_launch *l, const gy_attention *a, void *sums)
{
    return launch_step(l, a, 0, sums);
}

gantry_status gy_plain_attention_grad_weigh(const gantry_launch *l, const gy_attention *of, void *sums, int64_t heads,
                                            const gy_grad_portion *p)
{
    gy_attention a = *of;
    gy_grad_arrays x = arrays_of(l, sums);
    gy_grad_portion portion = *p;
    uint32_t across = (uint32_t)gy_tiles(p->rows, gy_attention_side(GANTRY_F32, a.d));
    int variant = WEIGHTS + gy_attention_variant(a.d);
    int64_t blocks = across * gy_tiles(p->keys, GY_GRAD_KEYS) * heads;
    gy_grid grid = { (unsigned)blocks, 1, 1, gy_cuda_image_threads(l, variant, GANTRY_F32), 1, 1 };
    return gy_cuda_image_launch(l, variant, GANTRY_F32, grid, (void *[]){ &a, &across, &x, &portion });
}

#define ONLY_F32 GANTRY_DTYPE_BIT(GANTRY_F32)
const gy_cuda_image gy_plain_attention_grad_image = { .code = gy_fatbin_attention_grad,
                                                      .dtypes = GY_FLOAT_DTYPES,
                                                      .variant = { "_64", "_128", "_256", [WEIGHTS] = "_weights_64",
                                                                   "_weights_128" },
                                                      .only = { [WEIGHTS] = ONLY_F32, ONLY_F32 } };
const gy_cuda_kernel gy_plain_attention_grad = { .name = "attention_grad",
                                                 .launch = gy_plain_attention_grad_launch,
                                                 .open = gy_cuda_image_open,
                                                 .close = gy_cuda_image_close,
                                                 .data = &gy_plain_attention_grad_image,
                                                 .early = gy_cuda_image_early,
                                                 .prepare = gy_cuda_image_prepare,
                                                 .why = gy_cuda_image_why };
