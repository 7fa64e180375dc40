/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention of f16 and bf16 on tensor cores, as FlashAttention-2 goes about it (Dao 2023). A block has ROWS queries of one head of keys,
 * each warp 16 of them, and goes over the keys KEYS at a time. Queries stay in registers as left operands; keys and values come to
 * shared memory by asynchronous copies, values while scores are computed, the next keys while values are added. Scores, the largest of
 * them, sums of exponentials and results are f32; exponentials are rounded to the type of the elements where they multiply values, and
 * are added up unrounded.
 */
#ifndef GY_KERNELS_ATTENTION_MMA_CUH
#define GY_KERNELS_ATTENTION_MMA_CUH

#include "kernels/attention/shape.cuh"
#include "kernels/mma.cuh"

enum { GY_ATTENTION_MMA_ROWS = 128 };

#ifdef GY_MMA
/* Rows of WIDTH elements lie so far apart that eight of them that follow each other have no bank in common. */
template <int WIDTH> struct gy_mma_tiles {
    enum { KEYS = 64, LINE = WIDTH + 8 };
    alignas(16) uint16_t k[KEYS][LINE], v[KEYS][LINE];
};

/* Rows [first, first + ROWS) of x, which has `rows` of d elements; zeros where there are none. In whole: all rows begin at multiples of
 * 16 bytes. */
template <int ROWS, int WIDTH, int THREADS>
static __device__ inline void gy_mma_load(uint16_t (*to)[WIDTH + 8], const uint16_t *x, int64_t first, int64_t rows, int d, bool whole)
{
    if (whole) {
        enum { PIECES = WIDTH / 8 };
        for (int i = threadIdx.x; i < ROWS * PIECES; i += THREADS) {
            const int r = i / PIECES, c = i % PIECES * 8;
            const bool there = first + r < rows && c < d;
            gy_copy_16(&to[r][c], there ? x + (first + r) * d + c : x, there);
        }
    } else {
        for (int i = threadIdx.x; i < ROWS * WIDTH; i += THREADS) {
            const int r = i / WIDTH, c = i % WIDTH;
            to[r][c] = first + r < rows && c < d ? x[(first + r) * d + c] : (uint16_t)0;
        }
    }
    gy_copies_end_group();
}

/* Elements c and c + 1 of a row; zeros beyond its end. */
static __device__ inline uint32_t gy_mma_pair_at(const uint16_t *row, int c, int d, bool whole)
{
    if (whole)
        return c < d ? *reinterpret_cast<const uint32_t *>(row + c) : 0;
    const uint32_t low = c < d ? row[c] : 0, high = c + 1 < d ? row[c + 1] : 0;
    return low | high << 16;
}

/* The row that a lane gives the address of when two matrices of columns next to each other, of 16 rows, are loaded, and its first
 * column: as right operands whose rows are columns of the matrices, or, turned, rows. */
static __device__ inline int gy_mma_row(int lane) { return lane / 16 * 8 + lane % 8; }
static __device__ inline int gy_mma_column(int lane) { return lane / 8 % 2 * 8; }
static __device__ inline int gy_mma_row_turned(int lane) { return lane / 8 % 2 * 8 + lane % 8; }
static __device__ inline int gy_mma_column_turned(int lane) { return lane / 16 * 8; }

template <typename T, int WIDTH> struct gy_attention_warp {
    enum { KEYS = gy_mma_tiles<WIDTH>::KEYS, STEPS = WIDTH / 16, PARTS = WIDTH / 8, TILES = KEYS / 8 };
    int lane;
    float factor;                      /* of scores, for powers of 2 */
    int64_t seen[2];                   /* keys of rows g and g + 8 */
    uint32_t q[STEPS][4];              /* left operands */
    float result[PARTS][4];            /* of both rows */
    float largest[2], sum[2];          /* sum: what this lane has of it */
    float score[TILES][4];

    __device__ void begin(const gy_attention &a, const uint16_t *from, int64_t row, int64_t rows, int64_t length, bool whole)
    {
        lane = threadIdx.x % 32;
        const float scale = (float)(a.scale * 1.4426950408889634);
        factor = fmaxf(fabsf(scale), 1.2e-38f); /* infinity times 0 is none */
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const int64_t r = row + lane / 4 + 8 * i;
            seen[i] = r < rows ? gy_seen(a, r, length) : 0;
            largest[i] = -INFINITY;
            sum[i] = 0;
#pragma unroll
            for (int s = 0; s < STEPS; s++)
#pragma unroll
                for (int half = 0; half < 2; half++) {
                    const int c = 16 * s + 8 * half + lane % 4 * 2;
                    const uint32_t pair = r < rows ? gy_mma_pair_at(from + r * a.d, c, (int)a.d, whole) : 0;
                    q[s][i + 2 * half] = scale < 0 ? pair ^ 0x80008000u : pair;
                }
        }
#pragma unroll
        for (int p = 0; p < PARTS; p++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                result[p][i] = 0;
    }

    __device__ void multiply(const gy_mma_tiles<WIDTH> &t)
    {
#pragma unroll
        for (int j = 0; j < TILES; j++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                score[j][i] = 0;
#pragma unroll
        for (int s = 0; s < STEPS; s++)
#pragma unroll
            for (int j = 0; j < TILES; j += 2) {
                uint32_t b[4];
                gy_load_matrices(b, &t.k[8 * j + gy_mma_row(lane)][16 * s + gy_mma_column(lane)]);
                gy_mma_add<T>(score[j], q[s], b[0], b[1]);
                gy_mma_add<T>(score[j + 1], q[s], b[2], b[3]);
            }
    }

    /* Scores of keys from `key` on that a row does not see become -infinity. */
    __device__ void hide(int64_t key)
    {
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const int64_t left = seen[i] - key - lane % 4 * 2;
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
            top = fmaxf(top, __shfl_xor_sync(~0u, top, 1));
            top = fmaxf(top, __shfl_xor_sync(~0u, top, 2));
            const float base = top == -INFINITY ? 0.0f : top * factor;
            const float shrink = gy_exp2(__fmaf_rn(largest[i], factor, -base));
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

    __device__ void add(const gy_mma_tiles<WIDTH> &t)
    {
#pragma unroll
        for (int j = 0; j < TILES; j += 2) {
            const uint32_t p[4] = { gy_pair<T>(score[j][0], score[j][1]), gy_pair<T>(score[j][2], score[j][3]),
                                    gy_pair<T>(score[j + 1][0], score[j + 1][1]), gy_pair<T>(score[j + 1][2], score[j + 1][3]) };
#pragma unroll
            for (int part = 0; part < PARTS; part += 2) {
                uint32_t b[4];
                gy_load_matrices_turned(b, &t.v[8 * j + gy_mma_row_turned(lane)][8 * part + gy_mma_column_turned(lane)]);
                gy_mma_add<T>(result[part], p, b[0], b[1]);
                gy_mma_add<T>(result[part + 1], p, b[2], b[3]);
            }
        }
    }

    __device__ void store(uint16_t *to, int64_t row, int64_t rows, int d, bool whole)
    {
#pragma unroll
        for (int i = 0; i < 2; i++) {
            float all = sum[i] + __shfl_xor_sync(~0u, sum[i], 1);
            all += __shfl_xor_sync(~0u, all, 2);
            const int64_t r = row + lane / 4 + 8 * i;
            const float by = all > 0 || all != all ? 1 / all : 0.0f;
#pragma unroll
            for (int p = 0; p < PARTS; p++) {
                const int c = 8 * p + lane % 4 * 2;
                const uint32_t pair = gy_pair<T>(result[p][2 * i] * by, result[p][2 * i + 1] * by);
                if (r >= rows || c >= d)
                    continue;
                if (whole) {
                    *reinterpret_cast<uint32_t *>(to + r * d + c) = pair;
                } else {
                    to[r * d + c] = (uint16_t)pair;
                    if (c + 1 < d)
                        to[r * d + c + 1] = (uint16_t)(pair >> 16);
                }
            }
        }
    }
};

template <typename T, int WIDTH>
static __device__ inline void gy_attend_mma(const gy_attention &a, int64_t head, int64_t row, const T *q, const T *k, const T *v,
                                            const int32_t *length, T *y, int32_t *status)
{
    enum { ROWS = GY_ATTENTION_MMA_ROWS, KEYS = gy_mma_tiles<WIDTH>::KEYS, THREADS = ROWS / 16 * 32 };
    __shared__ gy_mma_tiles<WIDTH> tiles;
    gy_attention_warp<T, WIDTH> warp;
    const int d = (int)a.d;
    const uint16_t *keys = (const uint16_t *)k + head * a.m * d, *values = (const uint16_t *)v + head * a.m * d;
    const bool whole = d % 8 == 0 && ((uintptr_t)q | (uintptr_t)k | (uintptr_t)v | (uintptr_t)y) % 16 == 0;
    const int64_t given = gy_attention_length(a, head, length, status);
    const int64_t end = row + ROWS < a.rows ? row + ROWS : a.rows, own = row + threadIdx.x / 32 * 16;
    const int64_t stop = gy_seen_by_most(a, row, end, given), all_see = gy_seen_by_fewest(a, row, end, given);
    warp.begin(a, (const uint16_t *)q + head * a.rows * d, own, a.rows, given, whole);
    gy_mma_load<KEYS, WIDTH, THREADS>(tiles.k, keys, 0, given, d, whole);
    for (int64_t key = 0; key < stop; key += KEYS) {
        gy_mma_load<KEYS, WIDTH, THREADS>(tiles.v, values, key, given, d, whole);
        gy_copies_wait<1>();
        __syncthreads();
        warp.multiply(tiles);
        __syncthreads();
        gy_mma_load<KEYS, WIDTH, THREADS>(tiles.k, keys, key + KEYS, key + KEYS < stop ? given : 0, d, whole);
        if (key + KEYS > all_see)
            warp.hide(key);
        warp.soften();
        gy_copies_wait<1>();
        __syncthreads();
        warp.add(tiles);
        __syncthreads();
    }
    gy_copies_wait<0>();
    warp.store((uint16_t *)y + head * a.rows * d, own, a.rows, d, whole);
}
#endif
#endif
