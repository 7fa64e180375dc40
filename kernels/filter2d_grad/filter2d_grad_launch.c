/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/frames_launch.h"

enum { FILTER_ROWS = 8 }; /* of filter2d_grad.cu */

static gantry_status launch_filter2d_grad(const gantry_launch *l)
{
    const void *weights = l->arg[0].data, *in = l->arg[1].data;
    void *out = l->arg[2].data;
    int32_t high = (int32_t)l->arg[0].rows, wide = (int32_t)l->arg[0].shape[1];
    unsigned blocks;
    gy_frames f = gy_frames_of(&l->arg[1], &l->arg[2], FILTER_ROWS, &blocks);
    return gy_cuda_image_launch(l, 0, l->arg[1].dtype, (gy_grid){ blocks, 1, 1, GY_FRAMES_COLUMNS, 1, 1 },
                                (void *[]){ &weights, &in, &out, &f, &high, &wide });
}

GY_CUDA_KERNEL(filter2d_grad, launch_filter2d_grad, GANTRY_DTYPE_BIT(GANTRY_F32), "")
