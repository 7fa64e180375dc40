/* SPDX-License-Identifier: Apache-2.0 */
/* A warp writes a stretch of a line of the box: elements along the last axis, of which each thread loads EACH before it stores one,
 * so that much is under way. Those of one line come from three places at most, before, beside and behind the tile. Only the size of an
 * element matters. */
#include "kernels/begin.cuh"
#include "kernels/halo.h"

enum { LANES = 32, EACH = 8 }; /* the launcher knows them as well */

/* Along one axis: 0 before, 1 beside, 2 behind; *at becomes the index there and *count how many there are. */
static __device__ inline int halo_digit(const gy_halo_layout *l, int axis, int64_t *at, int64_t *count)
{
    const int64_t before = l->before[axis], own = l->own[axis];
    const int digit = *at < before ? 0 : *at < before + own ? 1 : 2;
    *at -= digit == 0 ? 0 : digit == 1 ? before : before + own;
    *count = digit == 0 ? before : digit == 1 ? own : l->shape[axis] - before - own;
    return digit;
}

/* A line of the box; and where its elements before, beside and behind the tile come from. */
template <typename T> struct halo_line {
    const T *from[3];
    int64_t before, behind; /* the elements of the tile end there */
};

/* `at`: the line along the first three axes. */
template <typename T>
static __device__ halo_line<T> halo_line_of(const T *x, const T *edges, const gy_halo_layout *l, const int64_t (&at)[3])
{
    int64_t base = 0, stride = 1;
    int way = 0, power = 3;
#pragma unroll
    for (int k = GY_HALO_AXES - 2; k >= 0; k--) {
        int64_t index = at[k], count;
        way += halo_digit(l, k, &index, &count) * power;
        power *= 3;
        base += index * stride;
        stride *= count;
    }
    halo_line<T> line = { {}, l->before[3], l->before[3] + l->own[3] };
    const int64_t count[3] = { line.before, l->own[3], l->shape[3] - line.behind }, begin[3] = { 0, line.before, line.behind };
#pragma unroll
    for (int i = 0; i < 3; i++)
        line.from[i] = (way + i == GY_HALO_WAYS / 2 ? x : edges + l->piece[way + i]) + base * count[i] - begin[i];
    return line;
}

template <typename T>
static __device__ void halo_unpack(const T *__restrict__ x, const T *__restrict__ edges, T *__restrict__ y, const gy_halo_layout *l,
                                   uint32_t across)
{
    const int64_t planes = l->shape[0] * l->shape[1], width = l->shape[3];
    const int64_t row = (int64_t)(blockIdx.x / across) * blockDim.y + threadIdx.y;
    const int64_t first = (int64_t)(blockIdx.x % across) * (LANES * EACH) + threadIdx.x;
    for (int64_t plane = blockIdx.y; row < l->shape[2] && plane < planes; plane += gridDim.y) {
        const int64_t at[3] = { plane / l->shape[1], plane % l->shape[1], row };
        const halo_line<T> line = halo_line_of(x, edges, l, at);
        T *to = y + (plane * l->shape[2] + row) * width, got[EACH];
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            const int64_t i = first + k * LANES;
            if (i < width)
                got[k] = (i < line.before ? line.from[0] : i < line.behind ? line.from[1] : line.from[2])[i];
        }
#pragma unroll
        for (int k = 0; k < EACH; k++)
            if (first + k * LANES < width)
                to[first + k * LANES] = got[k];
    }
}

#define KERNEL(name, type)                                                                                             \
    extern "C" __global__ void __launch_bounds__(256)                                                                  \
        halo_unpack##name(const type *x, const type *edges, type *y, gy_halo_layout layout, uint32_t across)           \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        halo_unpack<type>(x, edges, y, &layout, across);                                                               \
    }
KERNEL(_u8, uint8_t)
KERNEL(_f16, uint16_t)
KERNEL(_f32, uint32_t)
KERNEL(_f64, uint64_t)
