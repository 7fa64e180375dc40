/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A block has SIDE queries of one head of keys, and goes over the keys SIDE at a time: their scores, the softmax so far, what the
 * values add. Largest scores and sums of exponentials are kept, and results so far are scaled when a larger one comes, so that no
 * score is in memory. A thread has EACH x EACH scores and, of EACH queries, each 16th element of the result. Computed in float, but
 * for f64.
 */
#ifndef GY_KERNELS_ATTENTION_CUH
#define GY_KERNELS_ATTENTION_CUH

#include "kernels/attention/attention_mma.cuh"
#include "kernels/begin.cuh"
#include "kernels/element.cuh"

enum { GY_ATTENTION_LINE = 16, GY_ATTENTION_THREADS = GY_ATTENTION_LINE * GY_ATTENTION_LINE };

template <typename Wide, int SIDE, int WIDTH> struct gy_attention_tiles {
    enum { DEPTH = 32, KEYS = 16 };
    union {
        struct {
            Wide q[DEPTH][SIDE + 1], k[DEPTH][SIDE + 1];
        } at;
        Wide v[KEYS][WIDTH];
    };
    Wide p[SIDE][SIDE + 1];
};

/* to[c][r] = element c of row `first` + r of x, for `rows` rows and `columns` columns; 0 elsewhere. */
template <int DEPTH, int SIDE, typename Wide, typename T>
static __device__ inline void gy_load_turned(Wide (&to)[DEPTH][SIDE + 1], const T *x, const gy_lines &lines, int64_t first, int64_t rows,
                                             int64_t columns)
{
    for (int i = threadIdx.x; i < SIDE * DEPTH; i += GY_ATTENTION_THREADS) {
        const int r = i / DEPTH, c = i % DEPTH;
        to[c][r] = r < rows && c < columns ? gy_element<Wide>::load(x[lines.at(first + r) + c]) : (Wide)0;
    }
}

/* Of the threads that have one query. */
template <typename Wide, typename F> static __device__ inline Wide gy_line_join(Wide x, const F &f)
{
    for (int by = GY_ATTENTION_LINE / 2; by > 0; by /= 2)
        x = f(x, __shfl_xor_sync(~0u, x, by));
    return x;
}

/* result += p from, of the weights p in shared memory and SIDE rows of `from` from number `first` on; what lies behind `rows` counts as 0.
 * The thread has elements x and y of each line. */
template <typename Wide, typename T, int SIDE, int WIDTH, int EACH, int PARTS>
static __device__ inline void gy_add_weighted(gy_attention_tiles<Wide, SIDE, WIDTH> &t, const T *from, const gy_lines &lines, int64_t first, int64_t rows, int64_t d,
                                              int x, int y, Wide (&result)[EACH][PARTS])
{
    enum { LINE = GY_ATTENTION_LINE };
    typedef gy_attention_tiles<Wide, SIDE, WIDTH> tiles;
    for (int begin = 0; begin < SIDE; begin += tiles::KEYS) {
        __syncthreads();
        for (int i = threadIdx.x; i < tiles::KEYS * WIDTH; i += GY_ATTENTION_THREADS) {
            const int j = i / WIDTH, c = i % WIDTH;
            const int64_t at = first + begin + j;
            t.v[j][c] = at < rows && c < d ? gy_element<Wide>::load(from[lines.at(at) + c]) : (Wide)0;
        }
        __syncthreads();
#pragma unroll 4
        for (int j = 0; j < tiles::KEYS; j++)
#pragma unroll
            for (int i = 0; i < EACH; i++) {
                const Wide p = t.p[y + i * LINE][begin + j];
#pragma unroll
                for (int c = 0; c < PARTS; c++)
                    result[i][c] += p * t.v[j][x + c * LINE];
            }
    }
}

template <typename Wide, typename T, int SIDE, int WIDTH> struct gy_attention_block {
    enum { LINE = GY_ATTENTION_LINE, EACH = SIDE / LINE, PARTS = WIDTH / LINE };
    typedef gy_attention_tiles<Wide, SIDE, WIDTH> tiles;
    const gy_attention &a;
    tiles &t;
    const T *q, *k, *v; /* the head's first query, key and value */
    const gy_lines of_queries, of_keys;
    int64_t first, rows, length;
    int x, y;
    Wide score[EACH][EACH], result[EACH][PARTS], largest[EACH], sum[EACH];

    __device__ gy_attention_block(const gy_attention &of, tiles &in)
        : a(of), t(in), of_queries(gy_query_lines(of)), of_keys(gy_key_lines(of)), x(threadIdx.x % LINE), y(threadIdx.x / LINE)
    {
        for (int i = 0; i < EACH; i++) {
            largest[i] = -(Wide)INFINITY;
            sum[i] = 0;
            for (int c = 0; c < PARTS; c++)
                result[i][c] = 0;
        }
    }

    /* score = scale q k^T for SIDE keys from `key` on; -infinity where a query does not see the key. */
    __device__ void multiply(int64_t key)
    {
        for (int i = 0; i < EACH; i++)
            for (int j = 0; j < EACH; j++)
                score[i][j] = 0;
        for (int64_t c = 0; c < a.d; c += tiles::DEPTH) {
            __syncthreads();
            gy_load_turned<tiles::DEPTH, SIDE>(t.at.q, q + c, of_queries, first, rows, a.d - c);
            gy_load_turned<tiles::DEPTH, SIDE>(t.at.k, k + c, of_keys, key, length - key, a.d - c);
            __syncthreads();
#pragma unroll 8
            for (int e = 0; e < tiles::DEPTH; e++)
#pragma unroll
                for (int i = 0; i < EACH; i++)
#pragma unroll
                    for (int j = 0; j < EACH; j++)
                        score[i][j] += t.at.q[e][y + i * LINE] * t.at.k[e][x + j * LINE];
        }
        for (int i = 0; i < EACH; i++) {
            const int64_t stop = gy_seen(a, first + y + i * LINE, length) - key;
            for (int j = 0; j < EACH; j++)
                score[i][j] = x + j * LINE < stop ? (Wide)a.scale * score[i][j] : -(Wide)INFINITY;
        }
    }

    __device__ void soften()
    {
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            Wide top = largest[i], part = 0;
            for (int j = 0; j < EACH; j++)
                top = fmax(top, score[i][j]);
            top = gy_line_join(top, [](Wide f, Wide g) { return fmax(f, g); });
            const Wide base = top == -(Wide)INFINITY ? (Wide)0 : top, shrink = gy_power(largest[i] - base);
            for (int j = 0; j < EACH; j++) {
                const Wide p = gy_power(score[i][j] - base);
                t.p[y + i * LINE][x + j * LINE] = p;
                part += p;
            }
            sum[i] = sum[i] * shrink + gy_line_join(part, [](Wide f, Wide g) { return f + g; });
            largest[i] = top;
            for (int c = 0; c < PARTS; c++)
                result[i][c] *= shrink;
        }
    }

    __device__ void add(int64_t key) { gy_add_weighted(t, v, of_keys, key, length, a.d, x, y, result); }

    /* To rows of the head; `lse`: of the block's first query; NULL: it is not wanted. */
    __device__ void store(T *to, Wide *lse)
    {
        for (int i = 0; i < EACH && lse; i++)
            if (x == 0 && y + i * LINE < rows)
                lse[y + i * LINE] = largest[i] + (Wide)log((double)sum[i]);
        for (int i = 0; i < EACH; i++)
            for (int c = 0; c < PARTS; c++)
                if (y + i * LINE < rows && x + c * LINE < a.d)
                    to[of_queries.at(first + y + i * LINE) + x + c * LINE] = gy_element<Wide>::template store<T>(
                        sum[i] > 0 || sum[i] != sum[i] ? result[i][c] / sum[i] : (Wide)0);
    }
};

/* SIDE queries of a head, from `row` on. */
template <typename Wide, int SIDE, int WIDTH, typename T>
static __device__ inline void gy_attend(const gy_attention &a, int64_t head, int64_t row, const T *q, const T *k, const T *v,
                                        const int32_t *length, T *y, Wide *lse, int32_t *status)
{
    __shared__ gy_attention_tiles<Wide, SIDE, WIDTH> tiles;
    const int64_t queries = gy_queries_at(a, head), first_key = gy_keys_at(a, head);
    gy_attention_block<Wide, T, SIDE, WIDTH> b(a, tiles);
    b.q = q + queries;
    b.k = k + first_key;
    b.v = v + first_key;
    b.first = row;
    b.rows = a.rows - row < SIDE ? a.rows - row : SIDE;
    b.length = gy_attention_length(a, head, length, status);
    int64_t keys = 0;
    for (int r = 0; r < b.rows; r++) {
        const int64_t seen = gy_seen(a, row + r, b.length);
        keys = seen > keys ? seen : keys;
    }
    for (int64_t key = 0; key < keys; key += SIDE) {
        b.multiply(key);
        b.soften();
        b.add(key);
    }
    b.store(y + queries, lse ? lse + head * a.rows + row : NULL);
}

/* `across`: blocks of a head. */
template <typename Wide, int SIDE, int WIDTH> struct gy_attention_way {
    template <typename T>
    static __device__ void go(const gy_attention &a, uint32_t across, const T *q, const T *k, const T *v, const int32_t *length, T *y,
                              Wide *lse, int32_t *status)
    {
        gy_attend<Wide, SIDE, WIDTH>(a, blockIdx.x / across, (int64_t)(blockIdx.x % across) * SIDE, q, k, v, length, y, lse, status);
    }
};

/* Where there are no tensor cores a block does 64 queries at a time. */
template <int WIDTH> struct gy_attention_way<float, GY_ATTENTION_MMA, WIDTH> {
    template <typename T>
    static __device__ void go(const gy_attention &a, uint32_t across, const T *q, const T *k, const T *v, const int32_t *length, T *y,
                              float *lse, int32_t *status)
    {
        enum { ROWS = gy_attention_rows<T>::ROWS };
        int64_t head;
        const int64_t row = (int64_t)(across - 1 - gy_attention_order(a, across, &head)) * ROWS;
#ifdef GY_MMA
        gy_attend_mma<T, WIDTH>(a, head, row, q, k, v, length, y, lse, status);
#else
        enum { PART = 64 };
        for (int i = 0; i < ROWS && row + i < a.rows; i += PART) {
            __syncthreads();
            gy_attend<float, PART, WIDTH>(a, head, row + i, q, k, v, length, y, lse, status);
        }
#endif
    }
};

/* Threads of a block, and as many blocks for each multiprocessor as registers allow. */
#define GY_ATTENTION_BOUNDS(type, side, width)                                                                         \
    (side) == GY_ATTENTION_MMA ? GY_ATTENTION_MMA_THREADS(type) : GY_ATTENTION_THREADS,                                \
        (side) != GY_ATTENTION_MMA ? ((width) <= 128 ? 2 : 1)                                                          \
                                   : ((width) <= 64 ? 2 : 1) + (GY_ATTENTION_MMA_THREADS(type) == 128)
#define GY_ATTENTION_KERNEL(name, suffix, type, wide, side, width)                                                     \
    extern "C" __global__ void __launch_bounds__(GY_ATTENTION_BOUNDS(type, side, width))                               \
        name##_##width##_##suffix(gy_attention a, uint32_t across, const type *q, const type *k, const type *v,        \
                                  const int32_t *length, type *y, wide *lse, int32_t *status)                          \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        gy_attention_way<wide, side, width>::go(a, across, q, k, v, length, y, lse, status);                           \
    }
#define GY_ATTENTION_WIDTHS(name, suffix, type, wide, narrow, side)                                                    \
    GY_ATTENTION_KERNEL(name, suffix, type, wide, narrow, 64)                                                          \
    GY_ATTENTION_KERNEL(name, suffix, type, wide, narrow, 128)                                                         \
    GY_ATTENTION_KERNEL(name, suffix, type, wide, side, 256)
#define GY_ATTENTION_KERNELS(name)                                                                                     \
    GY_ATTENTION_WIDTHS(name, f16, __half, float, GY_ATTENTION_MMA, 64)\
    GY_ATTENTION_WIDTHS(name, bf16, __nv_bfloat16, float, GY_ATTENTION_MMA, 64)\
    GY_ATTENTION_WIDTHS(name, f32, float, float, GY_ATTENTION_MMA, 64)\
    GY_ATTENTION_WIDTHS(name, f64, double, double, 32, 32)

#endif
