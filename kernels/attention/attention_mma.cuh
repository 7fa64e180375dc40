/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention on tensor cores, as FlashAttention-2 goes about it (Dao 2023). A block has ROWS queries of one head of keys,
 * each warp 16 of them, and goes over the keys KEYS at a time. Queries stay in registers as left operands; keys and values come to
 * shared memory by asynchronous copies: with two buffers the next of both while scores are computed and values added, else values while
 * scores are computed and the next keys while values are added. Scores, the largest of
 * them, sums of exponentials and results are f32; exponentials are rounded to the type of the elements where they multiply values, and
 * are added up unrounded.
 */
#ifndef GY_KERNELS_ATTENTION_MMA_CUH
#define GY_KERNELS_ATTENTION_MMA_CUH

#include "kernels/attention/shape.cuh"
#include "kernels/mma_f32.cuh"
#include "kernels/mma_rows.cuh"

/* In the place of a block's SIDE: so many queries as tensor cores do best. attention_launch.h has the same. */
enum { GY_ATTENTION_MMA = 0 };
template <typename T> struct gy_attention_rows {
    enum { ROWS = 128 };
};
template <> struct gy_attention_rows<float> {
    enum { ROWS = 64 };
};

/* Threads of a block of these; a launcher asks the function. */
#ifdef GY_MMA
#define GY_ATTENTION_MMA_THREADS(type) (gy_attention_rows<type>::ROWS * 2)
#else
#define GY_ATTENTION_MMA_THREADS(type) 256
#endif

#ifdef GY_MMA
/* Rows of WIDTH elements lie so far apart that eight of them that follow each other have no bank in common. */
template <typename T, int WIDTH> struct gy_mma_tiles {
    typedef typename gy_mma_type<T>::word word;
    enum {
        KEYS = 128 / sizeof(T),
        LINE = WIDTH + gy_mma_type<T>::APART,
        BUFFERS = WIDTH == 64 ? 2 : 1 /* 48 KiB is all there is without being asked for */
    };
    alignas(16) word k[BUFFERS][KEYS][LINE], v[BUFFERS][KEYS][LINE];
};

template <typename T, int WIDTH> struct gy_attention_warp {
    typedef typename gy_mma_type<T>::word word;
    enum { KEYS = gy_mma_tiles<T, WIDTH>::KEYS, STEPS = WIDTH / gy_mma_type<T>::DEPTH, PARTS = WIDTH / 8, TILES = KEYS / 8 };
    float factor;                      /* of scores, for powers of 2 */
    int64_t seen[2];                   /* keys of rows g and g + 8 */
    typename gy_mma_type<T>::operand q[STEPS][4]; /* left operands */
    float result[PARTS][4];            /* of both rows */
    float largest[2], sum[2];          /* sum: what this lane has of it */
    float score[TILES][4];

    __device__ void begin(const gy_attention &a, const word *from, int64_t row, int64_t rows, int64_t length, bool whole)
    {
        factor = gy_mma_factor(a.scale);
        gy_mma_load_left(q, from, gy_query_lines(a), row, rows, (int)a.d, whole, a.scale < 0);
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const int64_t r = row + threadIdx.x % 32 / 4 + 8 * i;
            seen[i] = r < rows ? gy_seen(a, r, length) : 0;
            largest[i] = -INFINITY;
            sum[i] = 0;
        }
#pragma unroll
        for (int p = 0; p < PARTS; p++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                result[p][i] = 0;
    }

    /* Scores of keys from `key` on that a row does not see become -infinity. */
    __device__ void hide(int64_t key)
    {
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const int64_t left = seen[i] - key - threadIdx.x % 4 * 2;
            const int stop = left < 0 ? 0 : left > KEYS ? KEYS : (int)left;
#pragma unroll
            for (int j = 0; j < TILES; j++) {
                if (8 * j >= stop)
                    score[j][2 * i] = -INFINITY;
                if (8 * j + 1 >= stop)
                    score[j][2 * i + 1] = -INFINITY;
            }
        }
    }

    /* Scores become exponentials; the results so far are scaled. */
    __device__ void soften()
    {
#pragma unroll
        for (int i = 0; i < 2; i++) {
            float top = largest[i];
#pragma unroll
            for (int j = 0; j < TILES; j++)
                top = fmaxf(top, fmaxf(score[j][2 * i], score[j][2 * i + 1]));
            top = gy_mma_row_largest(top);
            const float base = top == -INFINITY ? 0.0f : __fmul_rn(top, factor), shrink = gy_mma_shrink(largest[i], factor, base);
            float part = 0;
#pragma unroll
            for (int j = 0; j < TILES; j++)
#pragma unroll
                for (int c = 2 * i; c < 2 * i + 2; c++) {
                    score[j][c] = gy_exp2(__fmaf_rn(score[j][c], factor, -base));
                    part += score[j][c];
                }
            sum[i] = __fmaf_rn(sum[i], shrink, part);
            largest[i] = top;
#pragma unroll
            for (int p = 0; p < PARTS; p++) {
                result[p][2 * i] *= shrink;
                result[p][2 * i + 1] *= shrink;
            }
        }
    }

    /* `lse`: of the head's queries; NULL: it is not wanted. Scores were multiplied for powers of 2. */
    __device__ void store(word *to, float *lse, const gy_lines &lines, int64_t row, int64_t rows, int d, bool whole)
    {
        float by[2];
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const float all = gy_mma_row_sum(sum[i]);
            const int64_t r = row + threadIdx.x % 32 / 4 + 8 * i;
            by[i] = all > 0 || all != all ? 1 / all : 0.0f;
            if (lse && threadIdx.x % 4 == 0 && r < rows)
                lse[r] = largest[i] == -INFINITY ? -INFINITY : (largest[i] * factor + log2f(all)) * 0.69314718f;
        }
        gy_mma_store<T>(result, by, to, lines, row, rows, d, whole);
    }
};

/* Of the head. */
template <typename T> struct gy_attention_keys {
    const typename gy_mma_type<T>::word *k, *v;
    gy_lines lines;
    int64_t given, stop, all_see; /* keys; those that some query of the block sees; those that all see */
    int d;
    bool whole;
};

/* Rows [key, key + KEYS) of the keys or values; zeros beyond those that are seen. */
template <int WIDTH, typename T, typename Word, int LINE>
static __device__ inline void gy_attention_fetch(Word (*to)[LINE], const gy_attention_keys<T> &of, const Word *rows, int64_t key)
{
    gy_mma_load<gy_mma_tiles<T, WIDTH>::KEYS, WIDTH, GY_ATTENTION_MMA_THREADS(T)>(to, rows, of.lines, key, key < of.stop ? of.given : 0, of.d, of.whole);
}

template <typename T, int WIDTH>
static __device__ inline void gy_attend_one_buffer(const gy_attention_keys<T> &of, gy_mma_tiles<T, WIDTH> &t,
                                               gy_attention_warp<T, WIDTH> &warp)
{
    enum { KEYS = gy_mma_tiles<T, WIDTH>::KEYS };
    gy_attention_fetch<WIDTH>(t.k[0], of, of.k, 0);
    for (int64_t key = 0; key < of.stop; key += KEYS) {
        gy_attention_fetch<WIDTH>(t.v[0], of, of.v, key);
        gy_copies_wait<1>();
        __syncthreads();
        gy_mma_scores<T>(warp.score, warp.q, t.k[0]);
        __syncthreads();
        gy_attention_fetch<WIDTH>(t.k[0], of, of.k, key + KEYS);
        if (key + KEYS > of.all_see)
            warp.hide(key);
        warp.soften();
        gy_copies_wait<1>();
        __syncthreads();
        gy_mma_add_rows<T>(warp.result, warp.score, t.v[0]);
        __syncthreads();
    }
}

template <typename T, int WIDTH>
static __device__ inline void gy_attend_in_turn(const gy_attention_keys<T> &of, gy_mma_tiles<T, WIDTH> &t,
                                               gy_attention_warp<T, WIDTH> &warp)
{
    enum { KEYS = gy_mma_tiles<T, WIDTH>::KEYS, OTHER = gy_mma_tiles<T, WIDTH>::BUFFERS - 1 };
    gy_attention_fetch<WIDTH>(t.k[0], of, of.k, 0);
    gy_attention_fetch<WIDTH>(t.v[0], of, of.v, 0);
    int b = 0;
    for (int64_t key = 0; key < of.stop; key += KEYS, b ^= OTHER) {
        gy_attention_fetch<WIDTH>(t.k[b ^ OTHER], of, of.k, key + KEYS);
        gy_attention_fetch<WIDTH>(t.v[b ^ OTHER], of, of.v, key + KEYS);
        gy_copies_wait<2>();
        __syncthreads();
        gy_mma_scores<T>(warp.score, warp.q, t.k[b]);
        if (key + KEYS > of.all_see)
            warp.hide(key);
        warp.soften();
        gy_mma_add_rows<T>(warp.result, warp.score, t.v[b]);
        __syncthreads();
    }
}

template <typename T, int WIDTH>
static __device__ inline void gy_attend_mma(const gy_attention &a, int64_t head, int64_t row, const T *q, const T *k, const T *v,
                                            const int32_t *length, T *y, float *lse, int32_t *status)
{
    enum { ROWS = gy_attention_rows<T>::ROWS };
    __shared__ gy_mma_tiles<T, WIDTH> tiles;
    gy_attention_warp<T, WIDTH> warp;
    const int d = (int)a.d;
    typedef typename gy_mma_type<T>::word word;
    const word *keys = (const word *)k + gy_keys_at(a, head), *values = (const word *)v + gy_keys_at(a, head);
    const bool whole = d * sizeof(T) % 16 == 0 && ((uintptr_t)q | (uintptr_t)k | (uintptr_t)v | (uintptr_t)y) % 16 == 0;
    const int64_t given = gy_attention_length(a, head, length, status);
    const int64_t end = row + ROWS < a.rows ? row + ROWS : a.rows, own = row + threadIdx.x / 32 * 16;
    const int64_t stop = gy_seen_by_most(a, row, end, given), all_see = gy_seen_by_fewest(a, row, end, given);
    warp.begin(a, (const word *)q + gy_queries_at(a, head), own, a.rows, given, whole);
    const gy_attention_keys<T> of = { keys, values, gy_key_lines(a), given, stop, all_see, d, whole };
    if (gy_mma_tiles<T, WIDTH>::BUFFERS == 2)
        gy_attend_in_turn<T, WIDTH>(of, tiles, warp);
    else
        gy_attend_one_buffer<T, WIDTH>(of, tiles, warp);
    gy_copies_wait<0>();
    warp.store((word *)y + gy_queries_at(a, head), lse ? lse + head * a.rows : NULL, gy_query_lines(a), own, a.rows, d, whole);
}
#endif
#endif
