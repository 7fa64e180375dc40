/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread goes down a column of elements and keeps of three rows what is left, what is right and the weighted sum of
 * both with the middle, so each row is read once and its sum is taken once. Neighbours in a row come from the nearest
 * cache, since they are as far apart as there are channels.
 */
#include "kernels/begin.cuh"
#include "kernels/frames.cuh"

enum { COLUMNS = 256, ROWS = 16 }; /* the launcher knows them as well */

struct line {
    float left, right, sum;
};

static __device__ inline void store(float *to, float value) { *to = value; }
static __device__ inline void store(uint8_t *to, float value) { *to = value >= 255 ? 255 : (uint8_t)(value + 0.5f); }

template <typename T> static __device__ void sobel(const T *__restrict__ in, T *__restrict__ out, const gy_frames &f)
{
    gy_tile t = gy_tile_at(f, ROWS, COLUMNS);
    int64_t here = t.column + threadIdx.x;
    if (here >= f.out_left + f.out_pitch)
        return;
    int64_t left = here < f.channels ? here : here - f.channels;
    int64_t right = here + f.channels < f.row_elements ? here + f.channels : here;
    gy_walk<T> walk(in, f, t.frame, f.out_first + t.row - 1);
    auto read = [&](int n) {
        float a = (float)walk.at[left], b = (float)walk.at[here], c = (float)walk.at[right];
        walk.down(n);
        return line{ a, c, a + 2 * b + c };
    };
    T *to = gy_wanted(out, f, t, here);
    line above = read(0), middle = read(1);
#pragma unroll 4
    for (int i = 0; i < t.rows; i++) {
        line below = read(i + 2);
        float gx = (above.right + 2 * middle.right + below.right) - (above.left + 2 * middle.left + below.left);
        float gy = below.sum - above.sum;
        store(to, sqrtf(gx * gx + gy * gy));
        to += f.out_pitch;
        above = middle;
        middle = below;
    }
}

extern "C" __global__ void __launch_bounds__(COLUMNS) sobel_u8(const uint8_t *in, uint8_t *out, gy_frames f)
{
    gy_begin();
    sobel(in, out, f);
}
extern "C" __global__ void __launch_bounds__(COLUMNS) sobel_f32(const float *in, float *out, gy_frames f)
{
    gy_begin();
    sobel(in, out, f);
}
