/* SPDX-License-Identifier: Apache-2.0 */
/* A warp writes a line of the box: elements along the last axis. Those of one line come from three places at most, before, beside
 * and behind the tile. Only the size of an element matters. */
#include "kernels/begin.cuh"
#include "kernels/halo.h"

enum { LANES = 32 };

/* Along one axis: 0 before, 1 beside, 2 behind; *at becomes the index there and *count how many there are. */
static __device__ inline int halo_digit(const gy_halo_layout *l, int axis, int64_t *at, int64_t *count)
{
    const int64_t before = l->before[axis], own = l->own[axis];
    const int digit = *at < before ? 0 : *at < before + own ? 1 : 2;
    *at -= digit == 0 ? 0 : digit == 1 ? before : before + own;
    *count = digit == 0 ? before : digit == 1 ? own : l->shape[axis] - before - own;
    return digit;
}

template <typename T>
static __device__ void halo_unpack(const T *__restrict__ x, const T *__restrict__ edges, T *__restrict__ y, const gy_halo_layout *l)
{
    const int64_t lines = l->shape[0] * l->shape[1] * l->shape[2], step = (int64_t)gridDim.x * blockDim.y;
    for (int64_t line = (int64_t)blockIdx.x * blockDim.y + threadIdx.y; line < lines; line += step) {
        int64_t rest = line, base = 0, stride = 1;
        int way = 0, power = 3;
#pragma unroll
        for (int k = GY_HALO_AXES - 2; k >= 0; k--) {
            int64_t at = rest % l->shape[k], count;
            rest /= l->shape[k];
            way += halo_digit(l, k, &at, &count) * power;
            power *= 3;
            base += at * stride;
            stride *= count;
        }
        for (int64_t i = threadIdx.x; i < l->shape[3]; i += LANES) {
            int64_t at = i, count;
            const int all = way + halo_digit(l, 3, &at, &count);
            const T *from = all == GY_HALO_WAYS / 2 ? x : edges + l->piece[all];
            y[line * l->shape[3] + i] = from[base * count + at];
        }
    }
}

#define KERNEL(name, type)                                                                                             \
    extern "C" __global__ void __launch_bounds__(256)                                                                  \
        halo_unpack##name(const type *x, const type *edges, type *y, gy_halo_layout layout)                            \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        halo_unpack<type>(x, edges, y, &layout);                                                                       \
    }
KERNEL(_u8, uint8_t)
KERNEL(_f16, uint16_t)
KERNEL(_f32, uint32_t)
KERNEL(_f64, uint64_t)
