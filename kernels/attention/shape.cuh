/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes of attention and its gradient, and which keys a query sees. */
#ifndef GY_KERNELS_ATTENTION_SHAPE_CUH
#define GY_KERNELS_ATTENTION_SHAPE_CUH

#include <stdint.h>

/* As attention.h has it. */
struct gy_attention {
    int64_t n, m, d, heads, rows, lengths, per, causal;
    double scale;
    int64_t beside, line, key_line;
};

/* Where rows of a head lie: row r of queries of several heads is row r % n of head r / n of them, which are `apart`. Heads that share keys are
 * few, and code of a division in each load would take longer to be fetched than such kernels take. */
struct gy_lines {
    int64_t line, apart;
    uint32_t n; /* so many that no row is of another head: they are of one, or follow each other */
    __device__ int64_t at(int64_t r) const
    {
        int64_t head = 0;
        uint32_t row = (uint32_t)r;
        for (; row >= n; row -= n)
            head += apart;
        return head + row * line;
    }
};
enum : uint32_t { GY_ONE_HEAD = ~0u };

/* Of the queries that share a head of keys, and of its keys; and where the first of them is, in elements. */
static __device__ inline gy_lines gy_query_lines(const gy_attention &a)
{
    return { a.line, a.d, a.line == a.d || a.rows == a.n ? GY_ONE_HEAD : (uint32_t)a.n };
}
static __device__ inline gy_lines gy_key_lines(const gy_attention &a) { return { a.key_line, 0, GY_ONE_HEAD }; }
static __device__ inline int64_t gy_queries_at(const gy_attention &a, int64_t head)
{
    if (a.beside == 1)
        return head * a.rows * a.d;
    return head / a.beside * a.beside * a.rows * a.d + head % a.beside * (a.rows / a.n) * a.d;
}
static __device__ inline int64_t gy_keys_at(const gy_attention &a, int64_t head)
{
    return head / a.beside * a.beside * a.m * a.d + head % a.beside * a.d;
}

static __device__ inline float gy_power(float x) { return expf(x); }
static __device__ inline double gy_power(double x) { return exp(x); }

/* Keys that row r of a head sees. */
static __device__ inline int64_t gy_seen(const gy_attention &a, int64_t r, int64_t length)
{
    const int64_t upto = a.causal ? length - a.n + r % a.n + 1 : length;
    return upto < 0 ? 0 : upto;
}

/* Keys of the head; 0, and a word for the host, where the buffer says what cannot be. */
static __device__ inline int64_t gy_attention_length(const gy_attention &a, int64_t head, const int32_t *length, int32_t *status)
{
    const int64_t given = a.lengths ? length[head / a.per] : a.m;
    if (given >= 0 && given <= a.m)
        return given;
    if (threadIdx.x == 0)
        *status = (int32_t)(head / a.per + 1);
    return 0;
}

/* Which head the block is of, and which of its head's `across` blocks it is. With a causal mask the first blocks of several heads come
 * first, which are to have most to do, so that the GPU's last blocks are short; the keys of that many heads stay in its cache. */
static __device__ inline uint32_t gy_attention_order(const gy_attention &a, uint32_t across, int64_t *head)
{
    enum { TOGETHER = 16 };
    const uint32_t heads = a.causal ? TOGETHER : 1, group = blockIdx.x / (across * heads) * heads, in = blockIdx.x % (across * heads);
    const uint32_t here = a.heads - group < heads ? (uint32_t)(a.heads - group) : heads;
    *head = group + in % here;
    return in / here;
}

/* The most keys that one of the rows [row, end) of a head sees, and the fewest. Queries of several heads follow each other in it. */
static __device__ inline int64_t gy_seen_by_most(const gy_attention &a, int64_t row, int64_t end, int64_t length)
{
    const bool has_last = end - row >= a.n || (end - 1) / a.n > row / a.n || (end - 1) % a.n == a.n - 1;
    return gy_seen(a, has_last ? a.n - 1 : end - 1, length);
}
static __device__ inline int64_t gy_seen_by_fewest(const gy_attention &a, int64_t row, int64_t end, int64_t length)
{
    const bool has_first = row % a.n == 0 || (end - 1) / a.n > row / a.n;
    return gy_seen(a, has_first ? 0 : row, length);
}

#endif
