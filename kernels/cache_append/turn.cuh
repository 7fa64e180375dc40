/* SPDX-License-Identifier: Apache-2.0 */
/* How an appended token's heads are turned by its place: pair i of a head by place * base^(-2 i / elements of a head).
 * Angles are in double, as those of rope.cu. */
#ifndef GY_KERNELS_CACHE_APPEND_TURN_CUH
#define GY_KERNELS_CACHE_APPEND_TURN_CUH

#include "kernels/element.cuh"

/* The angle of pair i of a head from place to place. */
static __device__ inline double gy_turn_step(double base, int64_t dim, int64_t i)
{
    return pow(base, -2 * (double)i / (double)dim);
}

/* That of the thread's first pair, which follows from numbers of the launch alone: a power in double is a long chain of
 * operations, so it is made while the kernel ahead is still at work. */
static __device__ inline double gy_turn_ahead(double base, int64_t dim, int64_t i)
{
    return base > 0 && i < dim / 2 ? gy_turn_step(base, dim, i) : 0;
}

struct gy_turn {
    double cosine, sine;
};

static __device__ inline gy_turn gy_turn_of(int64_t place, double step)
{
    gy_turn by;
    sincos((double)place * step, &by.sine, &by.cosine);
    return by;
}

template <typename Wide, typename T>
static __device__ inline void gy_turned(const gy_turn &by, T first, T second, T *to_first, T *to_second)
{
    typedef gy_element<Wide> e;
    const double u = (double)e::load(first), v = (double)e::load(second);
    *to_first = e::template store<T>((Wide)(u * by.cosine - v * by.sine));
    *to_second = e::template store<T>((Wide)(v * by.cosine + u * by.sine));
}

#endif
