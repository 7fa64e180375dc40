/* SPDX-License-Identifier: Apache-2.0 */
/* A thread has a column of elements of a tile, and takes weights in the order of the host version. */
#include "kernels/begin.cuh"
#include "kernels/frames.cuh"
#include "kernels/image_grad.h"

enum { COLUMNS = 256, ROWS = 8 }; /* the launcher knows them as well */

extern "C" __global__ void __launch_bounds__(COLUMNS)
    filter2d_grad_f32(const float *weights, const float *in, float *out, gy_frames f, int32_t high, int32_t wide)
{
    gy_begin();
    gy_tile t = gy_tile_at(f, ROWS, COLUMNS);
    const int64_t element = t.column + threadIdx.x;
    const gy_filter filter = { weights, high, wide, f.channels, f.height, f.row_elements / f.channels, f.in_pitch };
    if (element >= f.out_left + f.out_pitch)
        return;
    const float *image = gy_frame_of(in, f, t.frame);
    float *to = gy_wanted(out, f, t, element);
    for (int i = 0; i < t.rows; i++)
        to[i * f.out_pitch] = gy_filter_grad(&filter, image, f.out_first + t.row + i, element / f.channels,
                                                (int32_t)(element % f.channels));
}
