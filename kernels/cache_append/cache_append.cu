/* SPDX-License-Identifier: Apache-2.0 */
/* A block for each head of q, k and v. */
#include "kernels/begin.cuh"
#include "kernels/cache_append/turn.cuh"
#include "kernels/element.cuh"

/* As cache_append.h has it. */
struct gy_append {
    int64_t heads, places, dim, queries;
    double base;
};

template <typename Wide, typename T>
static __device__ void turn(const gy_append &a, double step, int64_t place, const T *__restrict__ x, T *__restrict__ y)
{
    const int64_t half = a.dim / 2;
    for (int64_t i = threadIdx.x; i < half; i += blockDim.x) {
        const gy_turn by = gy_turn_of(place, i == threadIdx.x ? step : gy_turn_step(a.base, a.dim, i));
        gy_turned<Wide>(by, x[i], x[half + i], y + i, y + half + i);
    }
}

template <typename T> static __device__ void keep(const gy_append &a, const T *__restrict__ x, T *__restrict__ y)
{
    for (int64_t i = threadIdx.x; i < a.dim; i += blockDim.x)
        y[i] = x[i];
}

/* Blocks: heads of q, then of k, then of v. */
template <typename Wide, typename T>
static __device__ void append(const gy_append &a, double step, const int32_t *at, const T *q, const T *k, const T *v,
                              T *turned, T *keys, T *values, int32_t *status)
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
        const double step = gy_turn_ahead(a.base, a.dim, threadIdx.x);                                                 \
        gy_begin();                                                                                                    \
        append<wide>(a, step, place, q, k, v, turned, keys, values, status);                                           \
    }
GY_CUDA_FLOAT_TYPES(KERNEL)
