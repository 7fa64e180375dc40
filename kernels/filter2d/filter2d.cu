/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread has ROWS rows of a column of elements in work, so that a pixel that it loads serves as many sums. Each sum
 * takes weights in the order of the host version. Weights are the same for all threads and come from the nearest cache.
 */
#include "kernels/begin.cuh"
#include "kernels/frames.cuh"

enum { COLUMNS = 256, ROWS = 8 }; /* the launcher knows them as well */

static __device__ inline void store(float *to, float value) { *to = value; }
static __device__ inline void store(uint8_t *to, float value)
{
    *to = value >= 255 ? 255 : value > 0 ? (uint8_t)(value + 0.5f) : 0;
}

template <typename T>
static __device__ void filter(const float *__restrict__ weights, const T *__restrict__ in, T *__restrict__ out,
                              const gy_frames &f, int32_t high, int32_t wide)
{
    gy_tile t = gy_tile_at(f, ROWS, COLUMNS);
    int64_t here = t.column + threadIdx.x;
    if (here >= f.out_left + f.out_pitch)
        return;
    gy_walk<T> walk(in, f, t.frame, f.out_first + t.row - high / 2);
    float sum[ROWS] = {};
    for (int j = 0; j < t.rows - 1 + high; j++) {
        for (int k = 0; k < wide; k++) {
            float x = (float)walk.at[gy_inside(here + (int64_t)(k - wide / 2) * f.channels, f)];
#pragma unroll
            for (int i = 0; i < ROWS; i++)
                if (j >= i && j - i < high)
                    sum[i] += weights[(int64_t)(j - i) * wide + k] * x;
        }
        walk.down(j);
    }
    T *to = gy_wanted(out, f, t, here);
#pragma unroll
    for (int i = 0; i < ROWS; i++)
        if (i < t.rows)
            store(to + i * f.out_pitch, sum[i]);
}

#define KERNEL(name, type)                                                                                             \
    extern "C" __global__ void __launch_bounds__(COLUMNS)                                                              \
        filter2d_##name(const float *weights, const type *in, type *out, gy_frames f, int32_t high, int32_t wide)      \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        filter(weights, in, out, f, high, wide);                                                                       \
    }
KERNEL(u8, uint8_t)
KERNEL(f32, float)
