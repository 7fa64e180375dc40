/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The steps of attention_grad.cuh for f16, bf16 and f32 on tensor cores. Each warp has 16 of a block's own items as left operands in
 * registers; the others come to shared memory OTHERS at a time, the next of them by asynchronous copies meanwhile. Weights are rounded
 * to the type of the elements where they multiply rows; sums are f32. Logarithms are those of powers of 2.
 */
#ifndef GY_KERNELS_ATTENTION_GRAD_MMA_CUH
#define GY_KERNELS_ATTENTION_GRAD_MMA_CUH

#include "kernels/attention_grad/grad_shape.cuh"
#include "kernels/mma_rows.cuh"

#ifdef GY_MMA
template <typename T, int WIDTH> struct gy_grad_tiles {
    enum { OTHERS = (WIDTH == 64 ? 128 : 64) / sizeof(T), LINE = WIDTH + gy_mma_type<T>::APART };
    alignas(16) typename gy_mma_type<T>::word at[2][2][OTHERS][LINE]; /* two of them in turn; rows of both right operands */
    float logarithm[2][OTHERS], total[2][OTHERS]; /* where the others are queries */
    int limit[2][OTHERS];                         /* how many of the block's keys they see */
};

template <typename T, int WIDTH> struct gy_grad_warp {
    enum { OTHERS = gy_grad_tiles<T, WIDTH>::OTHERS, STEPS = WIDTH / gy_mma_type<T>::DEPTH, PARTS = WIDTH / 8, TILES = OTHERS / 8 };
    float factor, scale;
    int64_t seen[2];                                       /* of own queries */
    float logarithm[2], total[2], largest[2], sum[2];
    typename gy_mma_type<T>::operand own[2][STEPS][4];
    float result[PARTS][4], weight[TILES][4];

    /* Largest scores and sums of exponentials, of queries. */
    __device__ void sum_up(int64_t other, const typename gy_mma_type<T>::word (*tile)[gy_grad_tiles<T, WIDTH>::LINE])
    {
        gy_mma_scores<T>(weight, own[0], tile);
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const int64_t left = seen[i] - other - threadIdx.x % 4 * 2;
            float top = largest[i], part = 0;
#pragma unroll
            for (int j = 0; j < TILES; j++)
#pragma unroll
                for (int c = 0; c < 2; c++) {
                    float *score = &weight[j][2 * i + c];
                    *score = 8 * j + c < left ? *score : -INFINITY;
                    top = fmaxf(top, *score);
                }
            top = gy_mma_row_largest(top);
            const float base = top == -INFINITY ? 0.0f : __fmul_rn(top, factor);
#pragma unroll
            for (int j = 0; j < TILES; j++)
                part += gy_exp2(__fmaf_rn(weight[j][2 * i], factor, -base)) + gy_exp2(__fmaf_rn(weight[j][2 * i + 1], factor, -base));
            sum[i] = __fmaf_rn(sum[i], gy_mma_shrink(largest[i], factor, base), part);
            largest[i] = top;
        }
    }

    __device__ float weigh(float score, float slope, float of_logarithm, float of_total, bool seen_by, bool slopes) const
    {
        const float p = gy_exp2(__fmaf_rn(score, factor, -of_logarithm));
        return !seen_by ? 0.0f : slopes ? scale * p * (slope - of_total) : p;
    }

    /* Weights of OTHERS keys from `other` on, whose rows are in buffer `b`, and the gradients of their scores. */
    __device__ void weigh_both(int64_t other, const gy_grad_tiles<T, WIDTH> &t, int b, float (&slope)[TILES][4])
    {
        gy_mma_scores<T>(weight, own[0], t.at[b][0]);
        gy_mma_scores<T>(slope, own[1], t.at[b][1]);
#pragma unroll
        for (int j = 0; j < TILES; j++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const bool seen_by = other + 8 * j + threadIdx.x % 4 * 2 + i % 2 < seen[i / 2];
                weight[j][i] = weigh(weight[j][i], 0.0f, logarithm[i / 2], 0.0f, seen_by, false);
                slope[j][i] = scale * weight[j][i] * (slope[j][i] - total[i / 2]);
            }
    }

    /* Adds what OTHERS others from `other` on have to add, whose rows are in buffer `b`. */
    template <int STEP> __device__ void go_over(int64_t other, int row, const gy_grad_tiles<T, WIDTH> &t, int b)
    {
        float slope[TILES][4];
        gy_mma_scores<T>(weight, own[0], t.at[b][0]);
        if (STEP != GY_GRAD_V)
            gy_mma_scores<T>(slope, own[1], t.at[b][1]);
#pragma unroll
        for (int j = 0; j < TILES; j++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const int at = 8 * j + threadIdx.x % 4 * 2 + i % 2;
                const bool of_keys = STEP != GY_GRAD_Q;
                const bool seen_by = of_keys ? row + 8 * (i / 2) < t.limit[b][at] : other + at < seen[i / 2];
                weight[j][i] = weigh(weight[j][i], STEP != GY_GRAD_V ? slope[j][i] : 0.0f, of_keys ? t.logarithm[b][at] : logarithm[i / 2],
                                     of_keys ? t.total[b][at] : total[i / 2], seen_by, STEP != GY_GRAD_V);
            }
        gy_mma_add_rows<T>(result, weight, t.at[b][STEP == GY_GRAD_V]);
    }
};

template <typename T, int WIDTH> struct gy_grad_mma {
    typedef typename gy_mma_type<T>::word word;
    enum { ROWS = gy_attention_rows<T>::ROWS, THREADS = GY_ATTENTION_MMA_THREADS(T), OTHERS = gy_grad_tiles<T, WIDTH>::OTHERS };
    const gy_attention &a;
    gy_grad_tiles<T, WIDTH> &t;
    const gy_grad_head<T> &h;
    float *logarithm, *total; /* of the head's queries */
    int64_t first, end;
    int d;
    bool whole;
    gy_grad_warp<T, WIDTH> w;

    __device__ gy_grad_mma(const gy_attention &of, gy_grad_tiles<T, WIDTH> &in, const gy_grad_head<T> &head) : a(of), t(in), h(head) {}

    __device__ int64_t own_row() const { return first + threadIdx.x / 32 * 16; }

    /* The first others from `other` on that have to do with the block's items. */
    __device__ int64_t next(int64_t other) const
    {
        while (a.causal && other < h.others &&
               !gy_grad_meets(a, h.keys, first, end, other, other + OTHERS < h.others ? other + OTHERS : h.others))
            other += OTHERS;
        return other;
    }

    __device__ void fetch(int64_t other, int b, bool both)
    {
        const int64_t others = other < h.others ? h.others : 0;
        gy_mma_load<OTHERS, WIDTH, THREADS>(t.at[b][0], (const word *)h.other[0], h.other_lines, other, others, d, whole);
        if (both)
            gy_mma_load<OTHERS, WIDTH, THREADS>(t.at[b][1], (const word *)h.other[1], h.other_lines, other, others, d, whole);
        if (h.keys && threadIdx.x < OTHERS) {
            const int64_t query = other + threadIdx.x, left = query < others ? gy_seen(a, query, a.m) - first : 0;
            t.limit[b][threadIdx.x] = left < 0 ? 0 : left > ROWS ? ROWS : (int)left;
            t.logarithm[b][threadIdx.x] = query < others ? logarithm[query] : 0.0f;
            t.total[b][threadIdx.x] = query < others ? total[query] : 0.0f;
        }
    }

    __device__ void begin(bool both)
    {
        w.factor = gy_mma_factor(a.scale);
        w.scale = (float)a.scale;
        gy_mma_load_left(w.own[0], (const word *)h.own[0], h.own_lines, own_row(), h.owns, d, whole, a.scale < 0);
        if (both)
            gy_mma_load_left(w.own[1], (const word *)h.own[1], h.own_lines, own_row(), h.owns, d, whole, false);
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const int64_t r = own_row() + threadIdx.x % 32 / 4 + 8 * i;
            const bool query = !h.keys && r < h.owns;
            w.seen[i] = query ? gy_seen(a, r, a.m) : 0;
            w.logarithm[i] = both && query ? logarithm[r] : 0.0f;
            w.total[i] = both && query ? total[r] : 0.0f;
            w.largest[i] = -INFINITY;
            w.sum[i] = 0;
        }
#pragma unroll
        for (int p = 0; p < w.PARTS; p++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                w.result[p][i] = 0;
    }

    template <int STEP> __device__ void go()
    {
        enum { BOTH = STEP != GY_GRAD_SUMS };
        begin(BOTH && STEP != GY_GRAD_V);
        int64_t other = next(0);
        fetch(other, 0, BOTH);
        for (int b = 0; other < h.others; b ^= 1) {
            const int64_t after = next(other + OTHERS);
            fetch(after, b ^ 1, BOTH);
            gy_copies_wait<BOTH ? 2 : 1>();
            __syncthreads();
            if (STEP == GY_GRAD_SUMS)
                w.sum_up(other, t.at[b][0]);
            else
                w.template go_over<STEP>(other, (int)(own_row() - first) + threadIdx.x % 32 / 4, t, b);
            __syncthreads();
            other = after;
        }
        gy_copies_wait<0>();
    }

    /* Of keys from `other` on, to a matrix whose first row is that of the block's first query. */
    __device__ void put(const float (&x)[gy_grad_warp<T, WIDTH>::TILES][4], float *to, int64_t other, int64_t keys) const
    {
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const int64_t r = own_row() + threadIdx.x % 32 / 4 + 8 * i;
            float *const row = to + (r - first) * keys + other + threadIdx.x % 4 * 2;
#pragma unroll
            for (int j = 0; j < w.TILES; j++) {
                const int64_t left = h.others - other - threadIdx.x % 4 * 2 - 8 * j;
                const gy_mma_two two = { x[j][2 * i], x[j][2 * i + 1] };
                if (r >= end || left < 1)
                    continue;
                if (keys % 2 == 0) {
                    *reinterpret_cast<gy_mma_two *>(row + 8 * j) = two;
                } else {
                    row[8 * j] = two.first;
                    if (left > 1)
                        row[8 * j + 1] = two.second;
                }
            }
        }
    }

    /* Keys from `other` on, to matrices of `keys` columns: 0 where nobody sees one. */
    __device__ void go_to_memory(int64_t other, float *weights, float *slopes, int64_t keys)
    {
        float slope[gy_grad_warp<T, WIDTH>::TILES][4];
        int64_t done = other;
        begin(true);
        other = next(other);
        fetch(other, 0, true);
        for (int b = 0; other < h.others; b ^= 1) {
            const int64_t after = next(other + OTHERS);
            fetch(after, b ^ 1, true);
            gy_copies_wait<2>();
            __syncthreads();
            w.weigh_both(other, t, b, slope);
            put(w.weight, weights, other, keys);
            put(slope, slopes, other, keys);
            __syncthreads();
            done = other + OTHERS;
            other = after;
        }
        gy_copies_wait<0>();
#pragma unroll
        for (int j = 0; j < w.TILES; j++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                slope[j][i] = 0;
        for (; done < h.others; done += OTHERS) {
            put(slope, weights, done, keys);
            put(slope, slopes, done, keys);
        }
    }

    /* Sums of y dy by pairs of elements, and logarithms; `lse`: what is known of them, NULL: what was summed up. */
    __device__ void store_sums(const word *y, const word *dy, const float *lse)
    {
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const int64_t r = own_row() + threadIdx.x % 32 / 4 + 8 * i;
            const int64_t at = r < h.owns ? h.own_lines.at(r) : 0;
            float part = 0;
            for (int c = threadIdx.x % 4 * 2; c < d && r < h.owns; c += 8)
                part = gy_mma_add_pair<T>(part, y + at, dy + at, c, d, whole);
            part = gy_mma_row_sum(part);
            const float all = lse ? 0.0f : gy_mma_row_sum(w.sum[i]);
            if (threadIdx.x % 4 == 0 && r < h.owns) {
                logarithm[r] = lse ? lse[r] * 1.44269504f : w.largest[i] * w.factor + log2f(all);
                total[r] = part;
            }
        }
    }
};

/* As many own items of a head as a block has, from `first` on. */
template <int WIDTH, typename T>
static __device__ inline void gy_grad_by_mma(const gy_attention &a, int64_t head, int64_t first, int step, const gy_grad_arrays<T> &x)
{
    typedef typename gy_mma_type<T>::word word;
    __shared__ gy_grad_tiles<T, WIDTH> tiles;
    const gy_grad_head<T> h = gy_grad_head_of(a, head, step, x);
    gy_grad_mma<T, WIDTH> g(a, tiles, h);
    g.logarithm = (float *)x.sums + head * a.rows;
    g.total = g.logarithm + a.heads * a.rows;
    g.first = first;
    g.end = first + g.ROWS < h.owns ? first + g.ROWS : h.owns;
    g.d = (int)a.d;
    g.whole = a.d * sizeof(T) % 16 == 0 && ((uintptr_t)x.q | (uintptr_t)x.k | (uintptr_t)x.v | (uintptr_t)x.y | (uintptr_t)x.dy | (uintptr_t)x.dq |
                               (uintptr_t)x.dk | (uintptr_t)x.dv) % 16 == 0;
    const int64_t queries = gy_queries_at(a, head);
    const float one[2] = { 1, 1 };
    if (step == GY_GRAD_SUMS) {
        if (!x.lse)
            g.template go<GY_GRAD_SUMS>();
        g.store_sums((const word *)x.y + queries, (const word *)x.dy + queries, x.lse ? (const float *)x.lse + head * a.rows : NULL);
        return;
    }
    if (step == GY_GRAD_Q)
        g.template go<GY_GRAD_Q>();
    else if (step == GY_GRAD_K)
        g.template go<GY_GRAD_K>();
    else
        g.template go<GY_GRAD_V>();
    gy_mma_store<T>(g.w.result, one, (word *)h.to, h.own_lines, g.own_row(), h.owns, g.d, g.whole);
}
/* As many queries of a portion as a block has, and as many keys: these blocks are so short that all of the GPU has some. */
template <int WIDTH, typename T>
static __device__ inline void gy_grad_weigh_by_mma(const gy_attention &a, uint32_t across, const gy_grad_arrays<T> &x,
                                                   const gy_grad_portion<T> &p)
{
    __shared__ gy_grad_tiles<T, WIDTH> tiles;
    const uint32_t pieces = (uint32_t)((p.keys + GY_GRAD_KEYS - 1) / GY_GRAD_KEYS), in = blockIdx.x / across;
    const int64_t head = p.head + in / pieces, key = (int64_t)(in % pieces) * GY_GRAD_KEYS;
    gy_grad_head<T> h = gy_grad_head_of(a, head, GY_GRAD_Q, x);
    h.others = key + GY_GRAD_KEYS < p.keys ? key + GY_GRAD_KEYS : p.keys;
    gy_grad_mma<T, WIDTH> g(a, tiles, h);
    g.logarithm = (float *)x.sums + head * a.rows;
    g.total = g.logarithm + a.heads * a.rows;
    g.first = p.row + (int64_t)(blockIdx.x % across) * g.ROWS;
    g.end = g.first + g.ROWS < p.row + p.rows ? g.first + g.ROWS : p.row + p.rows;
    g.d = (int)a.d;
    g.whole = a.d * sizeof(T) % 16 == 0 && ((uintptr_t)x.q | (uintptr_t)x.k | (uintptr_t)x.v | (uintptr_t)x.dy) % 16 == 0;
    const int64_t at = ((head - p.head) * p.rows + g.first - p.row) * p.keys;
    g.go_to_memory(key, p.weights + at, p.slopes + at, p.keys);
}
#endif
#endif
