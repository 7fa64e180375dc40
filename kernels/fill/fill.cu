/* SPDX-License-Identifier: Apache-2.0 */
/* First contents and fills on GPUs: the bits of src/run/fill.c, which says what is drawn. An element follows from its index in the
 * whole array alone. */
#include "kernels/begin.cuh"
#include "kernels/chunk.cuh"
#include "kernels/element.cuh"
#include "kernels/f8.cuh"
#include "kernels/philox4.h"

/* Where the elements are in the whole array: element 0 is number `first`; lines of `line` elements, so many `lines` in a plane, so
 * many `planes` in a volume, follow each other here, and lie so far apart there. */
struct gy_fill_box {
    int64_t first, line, lines, planes, line_step, plane_step, volume_step;
    __device__ uint64_t index_of(int64_t i) const
    {
        if (i < line)
            return (uint64_t)(first + i);
        const int64_t at_line = i / line, at_plane = at_line / lines;
        return (uint64_t)(first + i % line + at_line % lines * line_step + at_plane % planes * plane_step +
                          at_plane / planes * volume_step);
    }
};
#define BOX                                                                                                            \
    int64_t first, int64_t line, int64_t lines, int64_t planes, int64_t line_step, int64_t plane_step, int64_t volume_step
#define BOXED { first, line, lines, planes, line_step, plane_step, volume_step }

/* ---- a double as an element, as gy_element_store of src/run/number.c ---- */

/* Towards zero, the last bit set if anything was cut off: rounded once more, it is as if it had been rounded once. */
static __device__ float to_odd(double value)
{
    const float near = (float)value;
    if ((double)near == value || value != value)
        return near;
    unsigned bits = __float_as_uint(near);
    if (fabs((double)near) > fabs(value))
        bits--;
    return __uint_as_float(bits | 1u);
}

static __device__ double as_element(double x, double) { return x; }
static __device__ float as_element(double x, float) { return (float)x; }
static __device__ __half as_element(double x, __half) { return __float2half_rn(to_odd(x)); }
static __device__ __nv_bfloat16 as_element(double x, __nv_bfloat16) { return __float2bfloat16_rn(to_odd(x)); }
static __device__ gy_f8e4m3 as_element(double x, gy_f8e4m3 like) { return gy_to_f8(to_odd(x), like); }
static __device__ gy_f8e5m2 as_element(double x, gy_f8e5m2 like) { return gy_to_f8(to_odd(x), like); }
template <typename T> static __device__ T as_element(double x, T)
{
    const bool has_sign = (T)-1 < (T)1;
    const uint64_t high = ~UINT64_C(0) >> (64 - 8 * sizeof(T) + has_sign);
    if (x != x || x <= (has_sign ? -(double)high - 1 : 0))
        return x == x && has_sign ? (T)~high : (T)0;
    return x >= (double)high ? (T)high : has_sign ? (T)(int64_t)x : (T)(uint64_t)x;
}

/* ---- uniform ---- */

/* A block of Philox has numbers for two wide elements, or for four. */
template <typename T> static __device__ double unit_of(const gy_philox4 &block, int k)
{
    if (sizeof(T) < 8)
        return (double)block.word[k] * 0x1p-32;
    const int low = 2 * (k & 1);
    return (double)(((uint64_t)block.word[low + 1] << 32 | block.word[low]) >> 11) * 0x1p-53;
}

/* Integers: rounded down, and never the upper bound that is excluded. */
template <typename T, typename Wide> static __device__ T between(double low, double high, double u)
{
    double value = low + (high - low) * u;
    if ((Wide)0.5 == (Wide)0) {
        value = floor(value);
        value = value >= high && high > low ? high - 1 : value;
    }
    return as_element(value, T());
}

/* Of a tile, each element by itself. */
template <typename T, typename Wide>
static __device__ void draw_lines(T *to, int64_t n, const gy_fill_box &box, uint64_t seed, double low, double high)
{
    const int count = sizeof(T) < 8 ? 4 : 2;
    GY_FOR_EACH (i, n) {
        const uint64_t e = box.index_of(i);
        const gy_philox4 block = gy_philox4_at(seed, e / count);
        double u = unit_of<T>(block, 0);
#pragma unroll
        for (int k = 1; k < count; k++)
            u = (int)(e % count) == k ? unit_of<T>(block, k) : u;
        GY_STORE(&to[i], (between<T, Wide>(low, high, u)));
    }
}

/* A thread has the elements of a block of numbers, and stores them at once where they lie so. */
template <typename T, typename Wide>
static __device__ void draw(T *to, int64_t n, const gy_fill_box &box, uint64_t seed, double low, double high)
{
    const int count = sizeof(T) < 8 ? 4 : 2;
    if (box.line < n) {
        draw_lines<T, Wide>(to, n, box, seed, low, high);
        return;
    }
    const int64_t before = box.first % count; /* elements of the first block that are not here */
    const bool aligned = ((uintptr_t)to - (uintptr_t)before * sizeof(T)) % (count * sizeof(T)) == 0;
    GY_FOR_EACH (b, (before + n + count - 1) / count) {
        const gy_philox4 block = gy_philox4_at(seed, (uint64_t)(box.first / count + b));
        const int64_t i = count * b - before;
        gy_chunk<T, count> drawn;
#pragma unroll
        for (int k = 0; k < count; k++)
            drawn.at[k] = between<T, Wide>(low, high, unit_of<T>(block, k));
        if (aligned && i >= 0 && i + count <= n) {
            gy_store_chunk(to + (i - count * b), b, drawn);
            continue;
        }
#pragma unroll
        for (int k = 0; k < count; k++)
            if (i + k >= 0 && i + k < n)
                GY_STORE(&to[i + k], drawn.at[k]);
    }
}

/* ---- numbers that count, and matrices ---- */

/* Whole numbers wrap. */
template <typename T, typename Wide>
static __device__ void count_up(T *to, int64_t n, const gy_fill_box &box, double a, double b, uint64_t whole_a, uint64_t whole_b)
{
    GY_FOR_EACH (i, n) {
        const uint64_t e = box.index_of(i);
        if constexpr ((Wide)0.5 == (Wide)0)
            GY_STORE(&to[i], (T)(whole_a + whole_b * e));
        else
            GY_STORE(&to[i], (as_element(a + b * (double)e, T())));
    }
}

/* Symmetric, `order` more on the diagonal. */
template <typename T>
static __device__ void make_spd(T *to, int64_t n, const gy_fill_box &box, uint64_t seed, uint64_t order)
{
    GY_FOR_EACH (k, n) {
        const uint64_t e = box.index_of(k), i = e / order, j = e % order, at = i < j ? e : j * order + i;
        const gy_philox4 block = gy_philox4_at(seed, at / 2);
        const double u = at % 2 ? unit_of<double>(block, 1) : unit_of<double>(block, 0);
        GY_STORE(&to[k], (as_element(i == j ? u + (double)order : u, T())));
    }
}

#define KERNEL(suffix, type, wide)                                                                                     \
    extern "C" __global__ void fill_uniform_##suffix(type *to, int64_t n, BOX, uint64_t seed, double low, double high) \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        const gy_fill_box box = BOXED;                                                                                 \
        draw<type, wide>(to, n, box, seed, low, high);                                                                 \
    }                                                                                                                  \
    extern "C" __global__ void fill_iota_##suffix(type *to, int64_t n, BOX, double a, double b, uint64_t whole_a,      \
                                                  uint64_t whole_b)                                                    \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        const gy_fill_box box = BOXED;                                                                                 \
        count_up<type, wide>(to, n, box, a, b, whole_a, whole_b);                                                         \
    }                                                                                                                  \
    extern "C" __global__ void fill_spd_##suffix(type *to, int64_t n, BOX, uint64_t seed, uint64_t order)              \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        const gy_fill_box box = BOXED;                                                                                 \
        make_spd(to, n, box, seed, order);                                                                             \
    }
GY_CUDA_TYPES(KERNEL)
GY_CUDA_F8_TYPES(KERNEL)
