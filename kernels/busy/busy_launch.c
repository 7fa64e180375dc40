/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/kernels/image.h"

static gantry_status launch_busy(const gantry_launch *l)
{
    int64_t ns = (int64_t)(l->arg[0].number * 1e3), n = gy_arg_size(&l->arg[2]);
    gy_multiplier number = gy_multiplier_of(&l->arg[1], l->arg[2].dtype);
    const void *x = l->arg[2].data;
    void *y = l->arg[3].data;
    return gy_cuda_image_launch(l, 0, l->arg[2].dtype, gy_grid_for(n > 0 ? n : 1),
                                (void *[]){ &ns, &number, &x, &y, &n });
}

GY_CUDA_KERNEL(busy, launch_busy, GY_ALL_DTYPES, "")
