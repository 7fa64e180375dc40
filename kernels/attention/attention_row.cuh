/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A block for each query, where there are few: decoding. A warp has every so many of the keys that the query sees, BATCH at a
 * time so that loads do not wait for each other, and keeps the largest score, the sum of exponentials and the weighted values of
 * its own; then these come together in the order of warps. Keys beyond those are not read. Computed in float, but for f64.
 */
#ifndef GY_KERNELS_ATTENTION_ROW_CUH
#define GY_KERNELS_ATTENTION_ROW_CUH

#include "kernels/attention/shape.cuh"
#include "kernels/element.cuh"

enum { GY_ATTENTION_ROW_WARPS = 16, GY_ATTENTION_ROW_LANES = 32 };

/* Results of the warps of a block. */
template <typename Wide> struct gy_attention_parts {
    Wide result[GY_ATTENTION_ROW_WARPS][256], largest[GY_ATTENTION_ROW_WARPS], sum[GY_ATTENTION_ROW_WARPS];
};

/* A lane has each 32nd element of heads of up to WIDTH. */
template <typename Wide, typename T, int WIDTH> struct gy_attention_query {
    enum { LANES = GY_ATTENTION_ROW_LANES, EACH = WIDTH / LANES, BATCH = 4 };
    typedef gy_element<Wide> e;
    Wide q[EACH], result[EACH], largest, sum;
    int64_t d;
    int lane;

    __device__ gy_attention_query(const T *from, Wide scale, int64_t elements) : d(elements), lane(threadIdx.x % LANES)
    {
        largest = -(Wide)INFINITY;
        sum = 0;
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            q[i] = lane + i * LANES < d ? scale * e::load(from[lane + i * LANES]) : (Wide)0;
            result[i] = 0;
        }
    }

    /* BATCH keys. Lanes beyond a head have its first element. */
    struct batch {
        T key[BATCH][EACH], value[BATCH][EACH];
    };

    /* Keys first, first + step, ..., as far as they are below `count`. */
    static __device__ void fetch(batch &of, const T *__restrict__ k, const T *__restrict__ v, int64_t first,
                                 int64_t step, int64_t count, int64_t d)
    {
        const int lane = threadIdx.x % LANES;
#pragma unroll
        for (int b = 0; b < BATCH; b++) {
            const int64_t at = (first + b * step < count ? first + b * step : first) * d;
#pragma unroll
            for (int i = 0; i < EACH; i++) {
                const int c = lane + i * LANES;
                of.key[b][i] = k[at + (c < d ? c : 0)];
                of.value[b][i] = v[at + (c < d ? c : 0)];
            }
        }
    }

    /* The pack that fetch() has brought. */
    __device__ void weigh(const batch &of, int64_t first, int64_t step, int64_t count)
    {
        Wide score[BATCH], top = largest;
#pragma unroll
        for (int b = 0; b < BATCH; b++) {
            Wide dot = 0;
#pragma unroll
            for (int i = 0; i < EACH; i++) /* q is 0 beyond the head */
                dot += lane + i * LANES < d ? q[i] * e::load(of.key[b][i]) : (Wide)0;
            for (int by = LANES / 2; by > 0; by /= 2)
                dot += __shfl_xor_sync(~0u, dot, by);
            score[b] = first + b * step < count ? dot : -(Wide)INFINITY;
            top = fmax(top, score[b]);
        }
        const Wide base = top == -(Wide)INFINITY ? (Wide)0 : top, shrink = gy_power(largest - base);
        sum *= shrink;
#pragma unroll
        for (int i = 0; i < EACH; i++)
            result[i] *= shrink;
#pragma unroll
        for (int b = 0; b < BATCH; b++) {
            const bool seen = first + b * step < count;
            const Wide p = gy_power(score[b] - base);
            sum += p;
#pragma unroll
            for (int i = 0; i < EACH; i++)
                result[i] += seen ? p * e::load(of.value[b][i]) : (Wide)0;
        }
        largest = top;
    }

    __device__ void see(const T *k, const T *v, int64_t first, int64_t step, int64_t count)
    {
        batch of;
        fetch(of, k, v, first, step, count, d);
        weigh(of, first, step, count);
    }
};

/* Results of the warps come together, by all threads of the block. */
template <typename Wide, typename T, int WIDTH>
static __device__ void gy_attention_join(gy_attention_parts<Wide> &t, const gy_attention_query<Wide, T, WIDTH> &mine,
                                         int64_t d, T *y)
{
    enum { WARPS = GY_ATTENTION_ROW_WARPS, LANES = GY_ATTENTION_ROW_LANES };
    const int warp = threadIdx.x / LANES, lane = threadIdx.x % LANES;
#pragma unroll
    for (int i = 0; i < WIDTH / LANES; i++)
        t.result[warp][lane + i * LANES] = mine.result[i];
    if (lane == 0) {
        t.largest[warp] = mine.largest;
        t.sum[warp] = mine.sum;
    }
    __syncthreads();
    if (warp * LANES >= d)
        return;
    /* A lane has what a warp's part is worth, and tells the others: an exponential for each of them, not for each of
     * them and each element. */
    const Wide largest = lane < WARPS ? t.largest[lane] : -(Wide)INFINITY;
    Wide top = largest, all = 0, total = 0;
    for (int by = LANES / 2; by > 0; by /= 2)
        top = fmax(top, __shfl_xor_sync(~0u, top, by));
    const Wide base = top == -(Wide)INFINITY ? (Wide)0 : top, factor = gy_power(largest - base);
    const Wide share = factor * (lane < WARPS ? t.sum[lane] : (Wide)0);
#pragma unroll 4
    for (int w = 0; w < WARPS; w++) {
        all += __shfl_sync(~0u, share, w);
        total += __shfl_sync(~0u, factor, w) * t.result[w][threadIdx.x];
    }
    if (threadIdx.x < d)
        y[threadIdx.x] = gy_element<Wide>::template store<T>(all > 0 || all != all ? total / all : (Wide)0);
}

template <typename Wide, int WIDTH, typename T>
static __device__ void gy_attend_query(gy_attention_parts<Wide> &t, const gy_attention &a, const T *q, const T *k, const T *v, const int32_t *length,
                                       T *y, int32_t *status)
{
    typedef gy_attention_query<Wide, T, WIDTH> query;
    const int64_t head = blockIdx.x / a.rows, row = blockIdx.x % a.rows, at = (head * a.rows + row) * a.d;
    const int64_t keys = gy_seen(a, row, gy_attention_length(a, head, length, status));
    const int warp = threadIdx.x / GY_ATTENTION_ROW_LANES;
    query mine(q + at, (Wide)a.scale, a.d);
    for (int64_t key = warp; key < keys; key += GY_ATTENTION_ROW_WARPS * query::BATCH)
        mine.see(k + head * a.m * a.d, v + head * a.m * a.d, key, GY_ATTENTION_ROW_WARPS, keys);
    gy_attention_join<Wide, T, WIDTH>(t, mine, a.d, y + at);
}

#define GY_ATTENTION_ROW_KERNEL(name, suffix, type, wide)                                                              \
    extern "C" __global__ void __launch_bounds__(GY_ATTENTION_ROW_WARPS *GY_ATTENTION_ROW_LANES)                       \
        name##_row_##suffix(gy_attention a, const type *q, const type *k, const type *v, const int32_t *length,        \
                            type *y, int32_t *status)                                                                  \
    {                                                                                                                  \
        __shared__ gy_attention_parts<wide> t;                                                                         \
        gy_begin();                                                                                                    \
        if (a.d <= 64)                                                                                                 \
            gy_attend_query<wide, 64>(t, a, q, k, v, length, y, status);                                                  \
        else if (a.d <= 128)                                                                                           \
            gy_attend_query<wide, 128>(t, a, q, k, v, length, y, status);                                                 \
        else                                                                                                           \
            gy_attend_query<wide, 256>(t, a, q, k, v, length, y, status);                                                 \
    }

#endif
