/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/kernels/image.h"
#include "kernels/cache_append/cache_append.h"

static gantry_status launch_cache_append(const gantry_launch *l)
{
    enum { NARROW = 32 };
    gy_append a = gy_append_of(l);
    const void *place = l->arg[GY_APPEND_PLACE].data, *q = l->arg[GY_APPEND_Q].data, *k = l->arg[GY_APPEND_K].data,
               *v = l->arg[GY_APPEND_V].data;
    void *turned = l->arg[GY_APPEND_TURNED].data, *keys = l->arg[GY_APPEND_KEYS].data,
         *values = l->arg[GY_APPEND_VALUES].data;
    int32_t *status = l->status;
    unsigned threads = a.dim <= 2 * NARROW ? NARROW : GY_IMAGE_THREADS / 2;
    gy_grid grid = { (unsigned)(a.queries + 2 * a.heads), 1, 1, threads, 1, 1 };
    return gy_cuda_image_launch(l, 0, l->arg[GY_APPEND_Q].dtype, grid,
                                (void *[]){ &a, &place, &q, &k, &v, &turned, &keys, &values, &status });
}

GY_CUDA_KERNEL(cache_append, launch_cache_append, GY_FLOAT_DTYPES, "")
