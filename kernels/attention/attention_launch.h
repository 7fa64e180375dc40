/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GY_KERNELS_ATTENTION_LAUNCH_H
#define GY_KERNELS_ATTENTION_LAUNCH_H

#include "backends/cuda/kernels/plain.h"
#include "kernels/attention/attention.h"

/* Queries of a block; as attention.cuh has it. */
static inline int64_t gy_attention_side(gantry_dtype dtype, int64_t d)
{
    bool narrow = dtype == GANTRY_F16 || dtype == GANTRY_BF16;
    return narrow && d <= 128 ? 128 : dtype == GANTRY_F64 ? 32 : 64;
}

/* By the elements of a head, up to 64, 128 and 256. */
static inline int gy_attention_variant(int64_t d)
{
    return d <= 64 ? 0 : d <= 128 ? 1 : 2;
}

/* `length` and `lse` are arguments' numbers, or 0: the kernel has none. */
static inline gantry_status gy_attention_launch_as(const gantry_launch *l, gy_attention a, int length, int y, int lse)
{
    gantry_dtype dtype = l->arg[y].dtype;
    uint32_t across = (uint32_t)gy_tiles(a.rows, gy_attention_side(dtype, a.d));
    const void *q = l->arg[GY_ATTENTION_Q].data, *k = l->arg[GY_ATTENTION_K].data, *v = l->arg[GY_ATTENTION_V].data;
    const void *given = length ? l->arg[length].data : NULL;
    void *to = l->arg[y].data, *kept = lse ? l->arg[lse].data : NULL;
    int32_t *status = l->status;
    int variant = gy_attention_variant(a.d);
    gy_grid grid = { (unsigned)(across * a.heads), 1, 1, gy_cuda_image_threads(l, variant, dtype), 1, 1 };
    return gy_cuda_image_launch(l, variant, dtype, grid,
                                (void *[]){ &a, &across, &q, &k, &v, &given, &to, &kept, &status });
}

static inline gantry_status gy_attention_launch(const gantry_launch *l, int length, int y, int lse)
{
    return gy_attention_launch_as(l, gy_attention_of(l, length), length, y, lse);
}

#endif
