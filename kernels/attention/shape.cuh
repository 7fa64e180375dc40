/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes of attention and its gradient, and which keys a query sees. */
#ifndef GY_KERNELS_ATTENTION_SHAPE_CUH
#define GY_KERNELS_ATTENTION_SHAPE_CUH

#include <stdint.h>

/* As attention.h has it. */
struct gy_attention {
    int64_t n, m, d, heads, rows, lengths, per, causal;
    double scale;
};

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
