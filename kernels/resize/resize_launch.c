/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/kernels/image.h"
#include "kernels/image.h"

/* The first argument of the function; resize.cu has the same. */
typedef struct sizes {
    int64_t frames, height, width, high, wide, channels;
} sizes;

static gantry_status launch_resize(const gantry_launch *l)
{
    gy_image in = gy_image_of(&l->arg[0]), out = gy_image_of(&l->arg[1]);
    sizes s = { out.frames, in.rows, in.pitch / in.channels, out.rows, out.pitch / out.channels, out.channels };
    const void *image = l->arg[0].data;
    void *to = l->arg[1].data;
    return gy_cuda_image_launch(l, 0, l->arg[0].dtype, gy_grid_for(gy_arg_size(&l->arg[1])),
                                (void *[]){ &s, &image, &to });
}

GY_CUDA_KERNEL(resize, launch_resize, GY_IMAGE_DTYPES, "")
