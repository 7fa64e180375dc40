/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Separable, in the order of the host version: columns first, then rows, weights from first to last, in float. A block
 * filters the columns of its tile and of what its rows reach into shared memory, then the rows. Each thread has ROWS
 * rows in work, so that one load (of a pixel, of a weight) serves as many sums.
 */
#include "kernels/begin.cuh"
#include "kernels/frames.cuh"
#include "kernels/gaussian.h"

enum { COLUMNS = 256, ROWS = 8, NEAR = 64, FAR = GY_GAUSSIAN_RADIUS * GY_GAUSSIAN_CHANNELS };

static __device__ inline void store(float *to, float value) { *to = value; }
static __device__ inline void store(uint8_t *to, float value)
{
    int rounded = (int)(value + 0.5f);
    *to = (uint8_t)(rounded < 0 ? 0 : rounded > 255 ? 255 : rounded);
}

/* sum[i] = column `element` around row i of the tile. Row j of the input counts for the sums that it reaches, which are
 * all but at the beginning and at the end. */
template <typename T>
static __device__ inline void filter_column(const T *__restrict__ in, const gy_frames &f, const gy_tile &t,
                                            const gy_gaussian &g, int64_t element, float (&sum)[ROWS])
{
    int last = 2 * g.radius;
    gy_walk<T> walk(in, f, t.frame, f.out_first + t.row - g.radius);
    auto add = [&](int j, int from, int to) {
        float x = (float)walk.at[element];
        walk.down(j);
#pragma unroll
        for (int i = 0; i < ROWS; i++)
            if (i >= from && i <= to)
                sum[i] += g.weight[j - i] * x;
    };
    if (last < ROWS - 2) {
        for (int j = 0; j < t.rows + last; j++)
            add(j, j - last, j);
        return;
    }
#pragma unroll
    for (int j = 0; j < ROWS - 1; j++)
        add(j, 0, j);
#pragma unroll 8
    for (int j = ROWS - 1; j <= last; j++)
        add(j, 0, ROWS - 1);
#pragma unroll
    for (int i = 1; i < ROWS; i++)
        if (i < t.rows)
            add(last + i, i, ROWS - 1);
}

/* REACH: the most elements that radius * channels may be. */
template <int REACH, typename T>
static __device__ void blur(const T *__restrict__ in, T *__restrict__ out, const gy_frames &f, const gy_gaussian &g)
{
    __shared__ float strip[ROWS][COLUMNS + 2 * REACH];
    gy_tile t = gy_tile_at(f, ROWS, COLUMNS);
    int reach = g.radius * f.channels;
    /* Threads behind what is wanted have nothing in the strip, as the input may end there; they store nothing. */
    int64_t left = f.out_left + f.out_pitch - t.column;
    int wanted = left < COLUMNS ? (int)left : COLUMNS;
    for (int c = threadIdx.x; c < wanted + 2 * reach; c += COLUMNS) {
        float sum[ROWS] = {};
        filter_column(in, f, t, g, gy_inside(t.column + c - reach, f), sum);
#pragma unroll
        for (int i = 0; i < ROWS; i++)
            strip[i][c] = sum[i];
    }
    __syncthreads();
    float sum[ROWS] = {};
#pragma unroll 4
    for (int k = 0; k <= 2 * g.radius; k++)
#pragma unroll
        for (int i = 0; i < ROWS; i++)
            sum[i] += g.weight[k] * strip[i][threadIdx.x + k * f.channels];
    int64_t element = t.column + threadIdx.x;
    T *to = gy_wanted(out, f, t, element);
#pragma unroll
    for (int i = 0; i < ROWS; i++)
        if (i < t.rows && (int)threadIdx.x < wanted)
            store(to + i * f.out_pitch, sum[i]);
}

#define KERNEL(name, type, reach)                                                                                      \
    extern "C" __global__ void __launch_bounds__(COLUMNS)                                                              \
        gaussian_blur##name(const type *in, type *out, gy_frames f, gy_gaussian g)                                     \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        blur<reach>(in, out, f, g);                                                                                    \
    }
KERNEL(_u8, uint8_t, NEAR)
KERNEL(_f32, float, NEAR)
KERNEL(_far_u8, uint8_t, FAR)
KERNEL(_far_f32, float, FAR)
