/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that do the same to each element. */
#include "backends/cuda/image.h"

/* NAME(number, x, y, n) */
static gantry_status launch_axy(const gantry_launch *l)
{
    double number = l->arg[0].number;
    void *x = l->arg[1].data, *y = l->arg[2].data;
    int64_t n = gy_elements(&l->arg[1]);
    return gy_image_launch(l, 0, l->arg[1].dtype, gy_grid_for(n), (void *[]){ &number, &x, &y, &n });
}

/* NAME(x, y, n) */
static gantry_status launch_xy(const gantry_launch *l)
{
    void *x = l->arg[0].data, *y = l->arg[1].data;
    int64_t n = gy_elements(&l->arg[0]);
    return gy_image_launch(l, 0, l->arg[0].dtype, gy_grid_for(n), (void *[]){ &x, &y, &n });
}

#define KERNEL(name_, launch_)                                                                                         \
    static const gy_image image_##name_ = { gy_fatbin_##name_, GY_ALL_DTYPES, { "" } };                                \
    const gy_cuda_kernel gy_cuda_kernel_##name_ = {                                                                    \
        .name = #name_, .launch = launch_, .open = gy_image_open, .close = gy_image_close, .data = &image_##name_      \
    };
KERNEL(copy, launch_xy)
KERNEL(saxpy, launch_axy)
KERNEL(scale, launch_axy)
