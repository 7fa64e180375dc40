/* SPDX-License-Identifier: Apache-2.0 */
/* Launches of image filters: frames cut into tiles. */
#ifndef GY_KERNELS_FRAMES_LAUNCH_H
#define GY_KERNELS_FRAMES_LAUNCH_H

#include "backends/cuda/kernels/image.h"
#include "kernels/frames.h"
#include "kernels/gaussian.h"
#include "kernels/image.h"

enum { GY_FRAMES_COLUMNS = 256 }; /* of a tile, in elements: sobel.cu and gaussian_blur.cu */

/* Images, of which rows and columns may be missing; *blocks is how many tiles there are. */
static inline gy_frames gy_frames_of(const gantry_arg *in, const gantry_arg *out, int64_t tile_rows, unsigned *blocks)
{
    gy_image from = gy_image_of(in), to = gy_image_of(out);
    gy_frames f = { .row_elements = to.row_elements,
                    .height = to.height,
                    .in_first = from.first,
                    .in_rows = from.rows,
                    .out_first = to.first,
                    .out_rows = to.rows,
                    .in_left = from.left,
                    .in_pitch = from.pitch,
                    .out_left = to.left,
                    .out_pitch = to.pitch,
                    .channels = (int32_t)to.channels };
    f.across = (uint32_t)((f.out_pitch + GY_FRAMES_COLUMNS - 1) / GY_FRAMES_COLUMNS);
    f.down = (uint32_t)((f.out_rows + tile_rows - 1) / tile_rows);
    *blocks = (unsigned)(to.frames * f.across * f.down);
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
