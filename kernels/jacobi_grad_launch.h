/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GY_KERNELS_JACOBI_GRAD_LAUNCH_H
#define GY_KERNELS_JACOBI_GRAD_LAUNCH_H

#include "backends/cuda/kernels/image.h"
#include "kernels/box.h"

static inline gantry_status gy_jacobi_grad_launch(const gantry_launch *l)
{
    enum { LANES = 32, WARPS = 8, BLOCKS = 65535 }; /* of jacobi_grad.cuh */
    gy_grid_boxes g = gy_grid_boxes_of(&l->arg[0], &l->arg[1]);
    const void *x = l->arg[0].data;
    void *y = l->arg[1].data;
    int64_t down = gy_tiles(g.count[0] * g.count[1], WARPS);
    gy_grid grid = {
        (unsigned)gy_tiles(g.count[2], LANES), (unsigned)(down < BLOCKS ? down : BLOCKS), 1, LANES, WARPS, 1
    };
    return gy_cuda_image_launch(l, 0, l->arg[0].dtype, grid, (void *[]){ &x, &y, &g });
}

#endif
