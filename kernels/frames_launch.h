/* SPDX-License-Identifier: Apache-2.0 */
/* Launches of image filters: frames cut into tiles. */
#ifndef GY_KERNELS_FRAMES_LAUNCH_H
#define GY_KERNELS_FRAMES_LAUNCH_H

#include "backends/cuda/kernels/image.h"
#include "kernels/frames.h"
#include "kernels/gaussian.h"

enum { GY_FRAMES_COLUMNS = 256 }; /* of a tile, in elements: sobel.cu and gaussian_blur.cu */
#define GY_FRAMES_DTYPES (GANTRY_DTYPE_BIT(GANTRY_U8) | GANTRY_DTYPE_BIT(GANTRY_F32))

/* [height, width], of which rows may be missing, or whole [frames, height, width] or [frames, height, width, channels];
 * *blocks is how many tiles there are. */
static inline gy_frames gy_frames_of(const gantry_arg *in, const gantry_arg *out, int64_t tile_rows, unsigned *blocks)
{
    int64_t frames = in->rank == 2 ? 1 : out->rows;
    gy_frames f = { .channels = in->rank == 4 ? (int32_t)in->shape[3] : 1 };
    if (in->rank == 2) {
        f.height = in->shape[0];
        f.row_elements = in->shape[1];
        f.in_first = in->first_row;
        f.in_rows = in->rows;
        f.out_first = out->first_row;
        f.out_rows = out->rows;
    } else {
        f.height = f.in_rows = f.out_rows = in->shape[1];
        f.row_elements = in->shape[2] * f.channels;
    }
    f.across = (uint32_t)((f.row_elements + GY_FRAMES_COLUMNS - 1) / GY_FRAMES_COLUMNS);
    f.down = (uint32_t)((f.out_rows + tile_rows - 1) / tile_rows);
    *blocks = (unsigned)(frames * f.across * f.down);
    return f;
}

/* filter2d and its adjoint, whose tiles have these rows: weights, what is read, what is written. */
enum { GY_FILTER_ROWS = 8 };
static inline gantry_status gy_filter_launch(const gantry_launch *l)
{
    const void *weights = l->arg[0].data, *in = l->arg[1].data;
    void *out = l->arg[2].data;
    int32_t high = (int32_t)l->arg[0].rows, wide = (int32_t)l->arg[0].shape[1];
    unsigned blocks;
    gy_frames f = gy_frames_of(&l->arg[1], &l->arg[2], GY_FILTER_ROWS, &blocks);
    return gy_cuda_image_launch(l, 0, l->arg[1].dtype, (gy_grid){ blocks, 1, 1, GY_FRAMES_COLUMNS, 1, 1 },
                                (void *[]){ &weights, &in, &out, &f, &high, &wide });
}

/* gaussian_blur and its adjoint likewise: sigma, what is read, what is written. Variant 1 is for a far reach. */
enum { GY_BLUR_ROWS = 8, GY_BLUR_NEAR = 64 };
static inline gantry_status gy_blur_launch(const gantry_launch *l)
{
    const void *in = l->arg[1].data;
    void *out = l->arg[2].data;
    unsigned blocks;
    gy_frames f = gy_frames_of(&l->arg[1], &l->arg[2], GY_BLUR_ROWS, &blocks);
    gy_gaussian g = gy_gaussian_of(l->arg[0].number);
    return gy_cuda_image_launch(l, (int64_t)g.radius * f.channels > GY_BLUR_NEAR, l->arg[1].dtype,
                                (gy_grid){ blocks, 1, 1, GY_FRAMES_COLUMNS, 1, 1 }, (void *[]){ &in, &out, &f, &g });
}

#endif
