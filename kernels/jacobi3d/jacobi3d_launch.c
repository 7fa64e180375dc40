/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/kernels/image.h"
#include "kernels/box.h"

static gantry_status launch_jacobi3d(const gantry_launch *l)
{
    enum { LANES = 32, WARPS = 8, PLANES = 8 }; /* of jacobi3d.cu */
    gy_grid_boxes g = gy_grid_boxes_of(&l->arg[0], &l->arg[1]);
    const void *x = l->arg[0].data;
    void *y = l->arg[1].data;
    gy_grid grid = { (unsigned)gy_tiles(g.count[2], LANES),
                     (unsigned)gy_tiles(g.count[1], WARPS),
                     (unsigned)gy_tiles(g.count[0], PLANES),
                     LANES,
                     WARPS,
                     1 };
    return gy_cuda_image_launch(l, 0, l->arg[0].dtype, grid, (void *[]){ &x, &y, &g });
}

GY_CUDA_KERNEL(jacobi3d, launch_jacobi3d, GANTRY_DTYPE_BIT(GANTRY_F32) | GANTRY_DTYPE_BIT(GANTRY_F64), "")
