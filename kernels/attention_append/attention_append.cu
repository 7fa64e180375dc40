/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A block for each query of the token. Each turns its query and the token's own key, which it does not read from the
 * cache: the first block of those that share a head writes it there, and all others read the places before it only. So
 * no block waits for another. Keys and sums come in the order of attention_row.cuh: the bits are those of cache_append
 * and attention_cached behind each other.
 */
#include "kernels/attention/attention_row.cuh"
#include "kernels/begin.cuh"
#include "kernels/cache_append/turn.cuh"

/* As attention_append.h has it. */
struct gy_token {
    int64_t heads, places, dim, each;
    double base, scale;
};

/* The token's head, as a block has it. */
enum { WIDEST = 256 };
template <typename T> struct gy_token_head {
    T q[WIDEST], k[WIDEST], v[WIDEST];
};

/* Threads are 128 for the pairs of q, as many for those of k, and 256 for elements of v. A pair is an element and the
 * one half a head on; the last one of an odd head is alone. */
enum { PAIRS = WIDEST / 2 };

/* The angle of the thread's pair from place to place. */
static __device__ inline double gy_token_ahead(const gy_token &t)
{
    return threadIdx.x < 2 * PAIRS ? gy_turn_ahead(t.base, t.dim, threadIdx.x % PAIRS) : 0;
}

template <typename Wide, typename T>
static __device__ inline void gy_token_pair(const gy_token &t, double step, int64_t place, T first, T second, T *to)
{
    const int i = threadIdx.x % PAIRS, half = (int)(t.dim + 1) / 2;
    if (i >= half)
        return;
    if (t.base > 0) {
        gy_turned<Wide>(gy_turn_of(place, step), first, second, to + i, to + half + i);
        return;
    }
    to[i] = first;
    if (half + i < t.dim)
        to[half + i] = second;
}

/* The part of q, k or v, whose heads these are, that the thread has, turned where it is to be. */
template <typename Wide, typename T>
static __device__ inline void gy_token_read(const gy_token &t, gy_token_head<T> &own, double step, int64_t place,
                                            const T *q, const T *k, const T *v)
{
    const int x = threadIdx.x, i = x % PAIRS, half = (int)(t.dim + 1) / 2;
    if (x >= 2 * PAIRS) {
        if (x - 2 * PAIRS < t.dim)
            own.v[x - 2 * PAIRS] = v[x - 2 * PAIRS];
        return;
    }
    const T *from = x < PAIRS ? q : k;
    const T first = from[i < half ? i : 0], second = from[half + i < t.dim ? half + i : 0];
    gy_token_pair<Wide>(t, step, place, first, second, x < PAIRS ? own.q : own.k);
}

/* By all threads, of which the block has as many as two heads have elements at most. */
template <typename T>
static __device__ inline void gy_token_keep(const gy_token &t, const gy_token_head<T> &own, T *key, T *value)
{
    const int i = threadIdx.x % WIDEST;
    if (i < t.dim)
        (threadIdx.x < WIDEST ? key : value)[i] = (threadIdx.x < WIDEST ? own.k : own.v)[i];
}

/* The token's own key and value take their place in the batch that has it. */
template <typename Q, typename T>
static __device__ inline void gy_token_own(typename Q::batch &of, const gy_token_head<T> &own, int64_t first,
                                           int64_t place, int64_t d)
{
    const int lane = threadIdx.x % Q::LANES;
#pragma unroll
    for (int b = 0; b < Q::BATCH; b++)
#pragma unroll
        for (int i = 0; i < Q::EACH; i++)
            if (first + b * GY_ATTENTION_ROW_WARPS == place) {
                const int c = lane + i * Q::LANES;
                of.key[b][i] = own.k[c < d ? c : 0];
                of.value[b][i] = own.v[c < d ? c : 0];
            }
}

template <typename Wide, int WIDTH, typename T>
static __device__ void gy_token_attend(const gy_token &t, gy_attention_parts<Wide> &parts, gy_token_head<T> &own,
                                       double step, const int32_t *at, const T *q, const T *k, const T *v, T *keys,
                                       T *values, T *y, int32_t *status)
{
    typedef gy_attention_query<Wide, T, WIDTH> query;
    const uint32_t head = blockIdx.x / (uint32_t)t.each, of_head = blockIdx.x % (uint32_t)t.each;
    const int64_t place = *at, d = t.dim, first = threadIdx.x / GY_ATTENTION_ROW_LANES;
    T *own_keys = keys + head * t.places * d, *own_values = values + head * t.places * d;
    if (place < 0 || place >= t.places) {
        if (blockIdx.x == 0 && threadIdx.x == 0)
            *status = 1;
        return;
    }
    typename query::batch of;
    if (first < place)
        query::fetch(of, own_keys, own_values, first, GY_ATTENTION_ROW_WARPS, place, d);
    gy_token_read<Wide>(t, own, step, place, q + blockIdx.x * d, k + head * d, v + head * d);
    __syncthreads();
    if (of_head == 0)
        gy_token_keep(t, own, own_keys + place * d, own_values + place * d);
    query mine(own.q, (Wide)t.scale, d);
    for (int64_t key = first; key <= place; key += GY_ATTENTION_ROW_WARPS * query::BATCH) {
        if (key > first && key < place)
            query::fetch(of, own_keys, own_values, key, GY_ATTENTION_ROW_WARPS, place, d);
        gy_token_own<query>(of, own, key, place, d);
        mine.weigh(of, key, GY_ATTENTION_ROW_WARPS, place + 1);
    }
    gy_attention_join<Wide, T, WIDTH>(parts, mine, d, y + blockIdx.x * d);
}

#define KERNEL(suffix, type, wide)                                                                                     \
    extern "C" __global__ void __launch_bounds__(GY_ATTENTION_ROW_WARPS *GY_ATTENTION_ROW_LANES)                       \
        attention_append_##suffix(gy_token t, const int32_t *place, const type *q, const type *k, const type *v,       \
                                  type *keys, type *values, type *y, int32_t *status)                                  \
    {                                                                                                                  \
        const double step = gy_token_ahead(t);                                                                         \
        gy_begin();                                                                                                    \
        __shared__ gy_attention_parts<wide> parts;                                                                     \
        __shared__ gy_token_head<type> own;                                                                            \
        if (t.dim <= 64)                                                                                               \
            gy_token_attend<wide, 64>(t, parts, own, step, place, q, k, v, keys, values, y, status);                   \
        else if (t.dim <= 128)                                                                                         \
            gy_token_attend<wide, 128>(t, parts, own, step, place, q, k, v, keys, values, y, status);                  \
        else                                                                                                           \
            gy_token_attend<wide, 256>(t, parts, own, step, place, q, k, v, keys, values, y, status);                  \
    }
GY_CUDA_FLOAT_TYPES(KERNEL)
