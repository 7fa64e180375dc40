/* SPDX-License-Identifier: Apache-2.0 */
/* In the order of the host version: a block adds up the columns of its tile, and of what its rows reach, in shared
 * memory, then the rows. What lies outside of the image gives nothing. */
#include "kernels/begin.cuh"
#include "kernels/frames.cuh"
#include "kernels/image_grad.h"

enum { COLUMNS = 256, ROWS = 8, NEAR = 64, FAR = GY_GAUSSIAN_RADIUS * GY_GAUSSIAN_CHANNELS };

/* sum[i]: an element of row i of the tile, of which `column` is row 0 of the adjoint of the result. */
static __device__ inline void take_column(const float *__restrict__ column, const gy_frames &f, const gy_tile &t,
                                          const gy_gaussian &g, float (&sum)[ROWS])
{
    const int64_t row = f.out_first + t.row;
    const gy_around above = gy_around_of(row, f.height, g.radius);
    const gy_around below = gy_around_of(row + t.rows - 1, f.height, g.radius);
    for (int64_t y = above.first; y <= below.last; y++) {
        const float x = column[y * f.in_pitch];
#pragma unroll
        for (int i = 0; i < ROWS; i++)
            if (i < t.rows && y >= row + i - g.radius && y <= row + i + g.radius)
                sum[i] += gy_gaussian_taken(&g, row + i, y, f.height) * x;
    }
}

/* REACH: the most elements that radius * channels may be. */
template <int REACH>
static __device__ void blur_grad(const float *__restrict__ in, float *__restrict__ out, const gy_frames &f,
                                 const gy_gaussian &g)
{
    __shared__ float strip[ROWS][COLUMNS + 2 * REACH];
    gy_tile t = gy_tile_at(f, ROWS, COLUMNS);
    const int reach = g.radius * f.channels;
    for (int c = threadIdx.x; c < COLUMNS + 2 * reach; c += COLUMNS) {
        float sum[ROWS] = {};
        const int64_t element = t.column + c - reach;
        if (element >= f.in_left && element < f.in_left + f.in_pitch)
            take_column(gy_frame_of(in, f, t.frame) + element, f, t, g, sum);
#pragma unroll
        for (int i = 0; i < ROWS; i++)
            strip[i][c] = sum[i];
    }
    __syncthreads();
    const int64_t element = t.column + threadIdx.x, pixel = element / f.channels, width = f.row_elements / f.channels;
    if (element >= f.out_left + f.out_pitch)
        return;
    const gy_around across = gy_around_of(pixel, width, g.radius);
    float sum[ROWS] = {};
    for (int64_t from = across.first; from <= across.last; from++) {
        const float weight = gy_gaussian_taken(&g, pixel, from, width);
        const int at = (int)threadIdx.x + reach + (int)(from - pixel) * f.channels;
#pragma unroll
        for (int i = 0; i < ROWS; i++)
            sum[i] += weight * strip[i][at];
    }
    float *to = gy_wanted(out, f, t, element);
#pragma unroll
    for (int i = 0; i < ROWS; i++)
        if (i < t.rows)
            to[i * f.out_pitch] = sum[i];
}

#define KERNEL(name, reach)                                                                                            \
    extern "C" __global__ void __launch_bounds__(COLUMNS)                                                              \
        gaussian_blur_grad##name(const float *in, float *out, gy_frames f, gy_gaussian g)                              \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        blur_grad<reach>(in, out, f, g);                                                                               \
    }
KERNEL(_f32, NEAR)
KERNEL(_far_f32, FAR)
