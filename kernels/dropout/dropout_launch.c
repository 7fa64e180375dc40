/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/kernels/image.h"
#include <math.h>

static gantry_status launch_dropout(const gantry_launch *l)
{
    double p = l->arg[0].number, factor = 1 / (1 - p);
    if (!(p >= 0 && p < 1)) /* check() does not see numbers that change later */
        return GANTRY_E_KERNEL;
    uint64_t seed = (uint64_t)l->arg[1].integer, first = (uint64_t)l->arg[2].integer,
             least = (uint64_t)ceil(p * 0x1p32);
    const void *x = l->arg[5].data;
    void *y = l->arg[6].data;
    int64_t n = gy_arg_size(&l->arg[5]), run = l->arg[3].integer ? l->arg[3].integer : n, pitch = l->arg[4].integer;
    int64_t rows = run ? n / run : 0;
    return gy_cuda_image_launch(l, 0, l->arg[5].dtype, gy_grid_for(rows * ((run + 6) / 4) + 1),
                                (void *[]){ &seed, &first, &least, &factor, &x, &y, &rows, &run, &pitch });
}

GY_CUDA_KERNEL(dropout, launch_dropout, GY_FLOAT_DTYPES, "")
