/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of the gradient of attention, and what each of them has to do with. */
#ifndef GY_KERNELS_ATTENTION_GRAD_SHAPE_CUH
#define GY_KERNELS_ATTENTION_GRAD_SHAPE_CUH

#include "kernels/attention/attention_mma.cuh"

enum gy_grad_step { GY_GRAD_SUMS, GY_GRAD_Q, GY_GRAD_K, GY_GRAD_V };

/* Of all heads. */
template <typename T> struct gy_grad_arrays {
    const T *q, *k, *v, *y, *dy;
    T *dq, *dk, *dv;
    void *sums;      /* of each query, in float or, for f64, double: logarithms, then sums of y dy */
    const void *lse; /* natural logarithms, of the same type, as attention gave them; NULL: they are computed again */
};

/* Queries [row, row + rows) of each of some heads from `head` on, and the first `keys` keys: their weights and the gradients of their scores,
 * a matrix of each head. attention_grad.h has the same. */
template <typename T> struct gy_grad_portion {
    int64_t head, row, rows, keys;
    T *weights, *slopes;
};
enum { GY_GRAD_KEYS = 512 }; /* of a block */

/* Of one head, as a step sees it. */
template <typename T> struct gy_grad_head {
    const T *own[2], *other[2], *added; /* q and dy, or k and v; whose rows are multiplied by weights */
    T *to;
    gy_lines own_lines, other_lines;
    int64_t owns, others;
    bool keys; /* own items are keys */
};

template <typename T>
static __device__ inline gy_grad_head<T> gy_grad_head_of(const gy_attention &a, int64_t head, int step, const gy_grad_arrays<T> &x)
{
    const int64_t queries = gy_queries_at(a, head), keys = gy_keys_at(a, head);
    gy_grad_head<T> h;
    h.keys = step == GY_GRAD_K || step == GY_GRAD_V;
    const T *const of_queries[] = { x.q + queries, x.dy + queries }, *const of_keys[] = { x.k + keys, x.v + keys };
    for (int i = 0; i < 2; i++) {
        h.own[i] = h.keys ? of_keys[i] : of_queries[i];
        h.other[i] = h.keys ? of_queries[i] : of_keys[i];
    }
    h.added = h.other[step == GY_GRAD_V];
    h.to = step == GY_GRAD_Q ? x.dq + queries : step == GY_GRAD_K ? x.dk + keys : x.dv + keys;
    h.own_lines = h.keys ? gy_key_lines(a) : gy_query_lines(a);
    h.other_lines = h.keys ? gy_query_lines(a) : gy_key_lines(a);
    h.owns = h.keys ? a.m : a.rows;
    h.others = h.keys ? a.rows : a.m;
    return h;
}

/* Does one of the items [own, own_end) have to do with one of [other, other_end)? */
static __device__ inline bool gy_grad_meets(const gy_attention &a, bool keys, int64_t own, int64_t own_end, int64_t other,
                                            int64_t other_end)
{
    return keys ? gy_seen_by_most(a, other, other_end, a.m) > own : gy_seen_by_most(a, own, own_end, a.m) > other;
}

#endif
