/* SPDX-License-Identifier: Apache-2.0 */
/* Launches of image filters: frames cut into tiles. */
#ifndef GY_KERNELS_FRAMES_LAUNCH_H
#define GY_KERNELS_FRAMES_LAUNCH_H

#include "backends/cuda/kernels/image.h"
#include "kernels/frames.h"

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

#endif
