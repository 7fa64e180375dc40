/* SPDX-License-Identifier: Apache-2.0 */
/* A block for each head of q, k and v. Angles are in double, as those of rope.cu. */
#include "kernels/begin.cuh"
#include "kernels/element.cuh"

/* As cache_append.h has it. */
struct gy_append {
    int64_t heads, places, dim, queries;
    double base;
};

/* The angle of pair i of a head from place to place. */
static __device__ inline double step_of(const gy_append &a, int64_t i)
{
    return pow(a.base, -2 * (double)i / (double)a.dim);
}

/* That of the thread's first pair, which follows from numbers of the launch alone: a power in double is a long chain of
 * operations, so it is made while the kernel ahead is still at work. */
static __device__ inline double gy_append_ahead(const gy_append &a)
{
    return a.base > 0 && threadIdx.x < a.dim / 2 ? step_of(a, threadIdx.x) : 0;
}

template <typename Wide, typename T>
static __device__ void turn(const gy_append &a, double step, int64_t place, const T *__restrict__ x, T *__restrict__ y)
{
    typedef gy_element<Wide> e;
    const int64_t half = a.dim / 2;
    for (int64_t i = threadIdx.x; i < half; i += blockDim.x) {
        const double u = (double)e::load(x[i]), v = (double)e::load(x[half + i]);
        const double angle = (double)place * (i == threadIdx.x ? step : step_of(a, i)), c = cos(angle), s = sin(angle);
        y[i] = e::template store<T>((Wide)(u * c - v * s));
        y[half + i] = e::template store<T>((Wide)(v * c + u * s));
    }
}

template <typename T> static __device__ void keep(const gy_append &a, const T *__restrict__ x, T *__restrict__ y)
{
    for (int64_t i = threadIdx.x; i < a.dim; i += blockDim.x)
        y[i] = x[i];
}

/* Blocks: heads of q, then of k, then of v. */
template <typename Wide, typename T>
static __device__ void append(const gy_append &a, double step, const int32_t *at, const T *q, const T *k, const T *v, T *turned,
                              T *keys, T *values, int32_t *status)
{
    const int64_t place = *at, block = blockIdx.x;
    if (place < 0 || place >= a.places) {
        if (block == 0 && threadIdx.x == 0)
            *status = 1;
        return;
    }
    const bool is_q = block < a.queries, is_k = !is_q && block < a.queries + a.heads;
    const int64_t head = is_q ? block : is_k ? block - a.queries : block - a.queries - a.heads;
    const T *from = (is_q ? q : is_k ? k : v) + head * a.dim;
    T *to = is_q ? turned + head * a.dim : (is_k ? keys : values) + (head * a.places + place) * a.dim;
    if (a.base > 0 && (is_q || is_k))
        turn<Wide>(a, step, place, from, to);
    else
        keep(a, from, to);
}

#define KERNEL(suffix, type, wide)                                                                                     \
    extern "C" __global__ void __launch_bounds__(256)                                                                  \
        cache_append_##suffix(gy_append a, const int32_t *place, const type *q, const type *k, const type *v,          \
                              type *turned, type *keys, type *values, int32_t *status)                                 \
    {                                                                                                                  \
        const double step = gy_append_ahead(a);                                                                        \
        gy_begin();                                                                                                    \
        append<wide>(a, step, place, q, k, v, turned, keys, values, status);                                           \
    }
GY_CUDA_FLOAT_TYPES(KERNEL)
