/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/frames_launch.h"
#include "kernels/gaussian.h"

enum { BLUR_ROWS = 8, NEAR = 64 }; /* of gaussian_blur_grad.cu */

static gantry_status launch_gaussian_blur_grad(const gantry_launch *l)
{
    const void *in = l->arg[1].data;
    void *out = l->arg[2].data;
    unsigned blocks;
    gy_frames f = gy_frames_of(&l->arg[1], &l->arg[2], BLUR_ROWS, &blocks);
    gy_gaussian g = gy_gaussian_of(l->arg[0].number);
    return gy_cuda_image_launch(l, (int64_t)g.radius * f.channels > NEAR, l->arg[1].dtype,
                                (gy_grid){ blocks, 1, 1, GY_FRAMES_COLUMNS, 1, 1 }, (void *[]){ &in, &out, &f, &g });
}

GY_CUDA_KERNEL(gaussian_blur_grad, launch_gaussian_blur_grad, GANTRY_DTYPE_BIT(GANTRY_F32), "", "_far")
