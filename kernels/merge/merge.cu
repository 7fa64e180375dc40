/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A block gives TILE neighbours of z (Green, McColl and Bader, GPU Merge Path, 2012): two warps find what
 * of x and y these are, all load it, each finds its own ITEMS of them in the same way and puts them in order.
 */
#include "kernels/begin.cuh"
#include "kernels/radix.cuh"
#include "kernels/shared.cuh"

enum { THREADS = 256, ITEMS = 8, TILE = THREADS * ITEMS };

/* As in merge_launch.c. */
struct merging {
    gy_radix_order order;
    int64_t xs, ys, zs, first; /* elements, and number of the first of z among all */
};

/* Of the first k elements, how many come from x; equal ones of x come first. merge.c does the same. */
template <typename K>
static __device__ int64_t of_x(const K *x, const K *y, int64_t xs, int64_t ys, int64_t k, const gy_radix_order &order)
{
    int64_t low = k > ys ? k - ys : 0, high = k < xs ? k : xs;
    while (low < high) {
        const int64_t i = low + (high - low) / 2;
        if (gy_radix_number(x[i], order) <= gy_radix_number(y[k - 1 - i], order))
            low = i + 1;
        else
            high = i;
    }
    return low;
}

/* The same by a warp, which asks 32 places at once: memory answers slowly. Where keys are in no order, some number of the range. */
template <typename K>
static __device__ int64_t of_x_by_warp(const K *x, const K *y, int64_t xs, int64_t ys, int64_t k, const gy_radix_order &order)
{
    enum { LANES = 32 };
    int64_t low = k > ys ? k - ys : 0, high = k < xs ? k : xs;
    while (low < high) {
        const int64_t each = (high - low + LANES - 1) / LANES, mine = low + (threadIdx.x % LANES + 1) * each - 1;
        const bool asks = mine < high;
        const bool from_x = asks && gy_radix_number(x[mine], order) <= gy_radix_number(y[k - 1 - mine], order);
        const uint32_t others = ~__ballot_sync(~0u, from_x); /* lanes whose place is beyond what comes from x */
        const int before = others ? __ffs((int)others) - 1 : LANES;
        const int64_t end = low + (before + 1) * each - 1;
        high = end < high ? end : high;
        low += before * each;
    }
    return low;
}

template <typename K> static __device__ void merge(const K *x, const K *y, K *z, const merging &m)
{
    typedef K keys[TILE];
    typedef int64_t bounds[2];
    GY_SHARED(keys, key);
    GY_SHARED(bounds, bound);
    const int64_t begin = (int64_t)blockIdx.x * TILE, left = m.zs - begin;
    const int count = left < TILE ? (int)left : TILE;
    if (threadIdx.x < 64) {
        const int end = threadIdx.x / 32;
        const int64_t found = of_x_by_warp(x, y, m.xs, m.ys, m.first + begin + (end ? count : 0), m.order);
        if (threadIdx.x % 32 == 0)
            bound[end] = found;
    }
    __syncthreads();
    /* Where x or y is in no order, no bisection says anything; then z is in none, but nothing else is touched. */
    const int64_t from_x = bound[0], from_y = m.first + begin - from_x, given = bound[1] - from_x;
    const int xs = given < 0 ? 0 : given > count ? count : (int)given, ys = count - xs;
    for (int i = threadIdx.x; i < count; i += THREADS)
        key[i] = i < xs ? x[from_x + i] : y[from_y + i - xs];
    __syncthreads();
    const int at = threadIdx.x * ITEMS < count ? threadIdx.x * ITEMS : count;
    int i = (int)of_x(key, key + xs, xs, ys, at, m.order), j = at - i;
    K own[ITEMS];
#pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        const bool has_x = i < xs, has_y = j < ys;
        const K one = has_x ? key[i] : (K)0, other = has_y ? key[xs + j] : (K)0;
        const bool takes_x = !has_y || (has_x && gy_radix_number(one, m.order) <= gy_radix_number(other, m.order));
        own[k] = takes_x ? one : other;
        i += takes_x;
        j += !takes_x;
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < ITEMS; k++)
        if (at + k < count)
            key[at + k] = own[k];
    __syncthreads();
    for (int i = threadIdx.x; i < count; i += THREADS)
        z[begin + i] = key[i];
}

#define KERNEL(suffix, type)                                                                                           \
    extern "C" __global__ void __launch_bounds__(THREADS)                                                              \
        merge_##suffix(const type *x, const type *y, type *z, merging m)                                               \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        merge(x, y, z, m);                                                                                             \
    }
GY_RADIX_KEYS(KERNEL)
