/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gradients of attention in four launches, each of which makes the scores that it needs again: of each query the logarithm of its sum of
 * exponentials, if it is not given, and the sum of y dy; then dq, dk and dv. A block has `own` items, queries for dq and keys for dk and dv, and goes over
 * the others. What it makes is a product of weights with rows of the others, in one order, so nobody adds to what another block made:
 *
 *   dq[query] = sum of ds k[key]      dk[key] = sum of ds q[query]      dv[key] = sum of p dy[query]
 *   p = exp(scale q k^T - logarithm),  ds = scale p (dy v^T - sum of y dy)
 */
#ifndef GY_KERNELS_ATTENTION_GRAD_CUH
#define GY_KERNELS_ATTENTION_GRAD_CUH

#include "kernels/attention/attention.cuh"
#include "kernels/attention_grad/attention_grad_mma.cuh"

template <typename Wide, typename T, int SIDE, int WIDTH> struct gy_grad_block {
    enum { LINE = GY_ATTENTION_LINE, EACH = SIDE / LINE, PARTS = WIDTH / LINE };
    typedef gy_attention_tiles<Wide, SIDE, WIDTH> tiles;
    const gy_attention &a;
    tiles &t;
    gy_grad_head<T> h;
    const Wide *logarithm, *total; /* of the head's queries */
    int64_t first, rows;
    int x, y;
    Wide score[EACH][EACH], result[EACH][PARTS];

    __device__ gy_grad_block(const gy_attention &of, tiles &in) : a(of), t(in), x(threadIdx.x % LINE), y(threadIdx.x / LINE) {}

    /* to = own[which] other[which]^T, for SIDE others from `other` on. */
    __device__ void multiply(int which, int64_t other, Wide (&to)[EACH][EACH])
    {
        for (int i = 0; i < EACH; i++)
            for (int j = 0; j < EACH; j++)
                to[i][j] = 0;
        for (int64_t c = 0; c < a.d; c += tiles::DEPTH) {
            __syncthreads();
            gy_load_turned<tiles::DEPTH, SIDE>(t.at.q, h.own[which] + c, h.own_lines, first, rows, a.d - c);
            gy_load_turned<tiles::DEPTH, SIDE>(t.at.k, h.other[which] + c, h.other_lines, other, h.others - other, a.d - c);
            __syncthreads();
#pragma unroll 4
            for (int e = 0; e < tiles::DEPTH; e++)
#pragma unroll
                for (int i = 0; i < EACH; i++)
#pragma unroll
                    for (int j = 0; j < EACH; j++)
                        to[i][j] += t.at.q[e][y + i * LINE] * t.at.k[e][x + j * LINE];
        }
    }

    /* Element (i, j) of the thread's: which query and which key it is of, and whether that sees it. */
    __device__ bool sees(int i, int j, int64_t other, int64_t *query) const
    {
        const int64_t mine = first + y + i * LINE, theirs = other + x + j * LINE;
        const int64_t key = h.keys ? mine : theirs;
        *query = h.keys ? theirs : mine;
        return mine < h.owns && theirs < h.others && key < gy_seen(a, *query, a.m);
    }

    /* `lse`: what is known of the logarithms; NULL: nothing. */
    __device__ void sum_up(int64_t stop, const T *y_of_head, const T *dy_of_head, const Wide *lse, Wide *to_logarithm, Wide *to_total)
    {
        Wide largest[EACH], sum[EACH];
        for (int i = 0; i < EACH; i++) {
            largest[i] = -(Wide)INFINITY;
            sum[i] = 0;
        }
        for (int64_t other = 0; other < stop && !lse; other += SIDE) {
            int64_t query;
            multiply(0, other, score);
            for (int i = 0; i < EACH; i++) {
                Wide top = largest[i], part = 0;
                for (int j = 0; j < EACH; j++) {
                    score[i][j] = sees(i, j, other, &query) ? (Wide)a.scale * score[i][j] : -(Wide)INFINITY;
                    top = fmax(top, score[i][j]);
                }
                top = gy_line_join(top, [](Wide f, Wide g) { return fmax(f, g); });
                const Wide base = top == -(Wide)INFINITY ? (Wide)0 : top;
                for (int j = 0; j < EACH; j++)
                    part += gy_power(score[i][j] - base);
                sum[i] = sum[i] * gy_power(largest[i] - base) + gy_line_join(part, [](Wide f, Wide g) { return f + g; });
                largest[i] = top;
            }
        }
        for (int i = 0; i < EACH; i++) {
            const int64_t r = first + y + i * LINE;
            Wide part = 0;
            for (int64_t c = x; c < a.d && r < h.owns; c += LINE)
                part += gy_element<Wide>::load(y_of_head[h.own_lines.at(r) + c]) * gy_element<Wide>::load(dy_of_head[h.own_lines.at(r) + c]);
            part = gy_line_join(part, [](Wide f, Wide g) { return f + g; });
            if (x == 0 && r < h.owns) {
                to_logarithm[r] = lse ? lse[r] : largest[i] + (Wide)log((double)sum[i]);
                to_total[r] = part;
            }
        }
    }

    /* Weights of the others, to memory that the block shares. */
    __device__ void weigh(bool slopes, int64_t other)
    {
        Wide slope[EACH][EACH];
        multiply(0, other, score);
        if (slopes)
            multiply(1, other, slope);
        for (int i = 0; i < EACH; i++)
            for (int j = 0; j < EACH; j++) {
                int64_t query;
                Wide w = 0;
                if (sees(i, j, other, &query)) {
                    w = gy_power((Wide)a.scale * score[i][j] - logarithm[query]);
                    w = slopes ? (Wide)a.scale * w * (slope[i][j] - total[query]) : w;
                }
                t.p[y + i * LINE][x + j * LINE] = w;
            }
    }

    __device__ void add(int64_t other) { gy_add_weighted(t, h.added, h.other_lines, other, h.others, a.d, x, y, result); }

    __device__ void go_over_others(bool slopes)
    {
        for (int i = 0; i < EACH; i++)
            for (int c = 0; c < PARTS; c++)
                result[i][c] = 0;
        for (int64_t other = 0; other < h.others; other += SIDE) {
            const int64_t end = other + SIDE < h.others ? other + SIDE : h.others;
            if (!gy_grad_meets(a, h.keys, first, first + rows, other, end))
                continue;
            weigh(slopes, other);
            add(other);
        }
        for (int i = 0; i < EACH; i++)
            for (int c = 0; c < PARTS; c++)
                if (y + i * LINE < rows && x + c * LINE < a.d)
                    h.to[h.own_lines.at(first + y + i * LINE) + x + c * LINE] = gy_element<Wide>::template store<T>(result[i][c]);
    }
};

/* SIDE own items of a head, from `first` on. */
template <typename Wide, int SIDE, int WIDTH, typename T>
static __device__ inline void gy_grad(const gy_attention &a, int64_t head, int64_t first, int step, const gy_grad_arrays<T> &x)
{
    __shared__ gy_attention_tiles<Wide, SIDE, WIDTH> tiles;
    gy_grad_block<Wide, T, SIDE, WIDTH> b(a, tiles);
    Wide *logarithm = (Wide *)x.sums + head * a.rows, *total = logarithm + a.heads * a.rows;
    b.h = gy_grad_head_of(a, head, step, x);
    b.first = first;
    b.rows = b.h.owns - first < SIDE ? b.h.owns - first : SIDE;
    b.logarithm = logarithm;
    b.total = total;
    const int64_t queries = gy_queries_at(a, head);
    if (step == GY_GRAD_SUMS)
        b.sum_up(gy_seen_by_most(a, first, first + b.rows, a.m), x.y + queries, x.dy + queries,
                 x.lse ? (const Wide *)x.lse + head * a.rows : NULL, logarithm, total);
    else
        b.go_over_others(step != GY_GRAD_V);
}

/* `across`: blocks of a head. */
template <typename Wide, int SIDE, int WIDTH> struct gy_grad_way {
    template <typename T> static __device__ void go(const gy_attention &a, uint32_t across, int step, const gy_grad_arrays<T> &x)
    {
        gy_grad<Wide, SIDE, WIDTH>(a, blockIdx.x / across, (int64_t)(blockIdx.x % across) * SIDE, step, x);
    }
};

/* Where there are no tensor cores a block does 64 items at a time. */
template <int WIDTH> struct gy_grad_way<float, GY_ATTENTION_MMA, WIDTH> {
    template <typename T> static __device__ void go(const gy_attention &a, uint32_t across, int step, const gy_grad_arrays<T> &x)
    {
        enum { ROWS = gy_attention_rows<T>::ROWS };
        int64_t head;
        const uint32_t order = gy_attention_order(a, across, &head);
        const int64_t first = (int64_t)(step < GY_GRAD_K ? across - 1 - order : order) * ROWS; /* longest first */
#ifdef GY_MMA
        gy_grad_by_mma<WIDTH>(a, head, first, step, x);
#else
        enum { PART = 64 };
        const int64_t owns = step == GY_GRAD_K || step == GY_GRAD_V ? a.m : a.rows;
        for (int i = 0; i < ROWS && first + i < owns; i += PART) {
            __syncthreads();
            gy_grad<float, PART, WIDTH>(a, head, first + i, step, x);
        }
#endif
    }
};

#define GY_GRAD_BOUNDS(type, side, width)                                                                              \
    (side) == GY_ATTENTION_MMA ? GY_ATTENTION_MMA_THREADS(type) : GY_ATTENTION_THREADS,                                \
        (side) == GY_ATTENTION_MMA && GY_ATTENTION_MMA_THREADS(type) == 128 ? ((width) <= 64 ? 3 : 2) : 1
#define GY_GRAD_KERNEL(suffix, type, wide, side, width)                                                                \
    extern "C" __global__ void __launch_bounds__(GY_GRAD_BOUNDS(type, side, width)) attention_grad_##width##_##suffix(        \
        gy_attention a, uint32_t across, int step, gy_grad_arrays<type> x)                                             \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        gy_grad_way<wide, side, width>::go(a, across, step, x);                                                        \
    }

#endif
