/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/frames_launch.h"

enum { SOBEL_ROWS = 16 }; /* of sobel.cu */

static gantry_status launch_sobel(const gantry_launch *l)
{
    const void *in = l->arg[0].data;
    void *out = l->arg[1].data;
    unsigned blocks;
    gy_frames f = gy_frames_of(&l->arg[0], &l->arg[1], SOBEL_ROWS, &blocks);
    return gy_cuda_image_launch(l, 0, l->arg[0].dtype, (gy_grid){ blocks, 1, 1, GY_FRAMES_COLUMNS, 1, 1 },
                                (void *[]){ &in, &out, &f });
}

GY_CUDA_KERNEL(sobel, launch_sobel, GY_IMAGE_DTYPES, "")
