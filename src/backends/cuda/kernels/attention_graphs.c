/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/kernels/attention_graphs.h"

#include <string.h>

typedef gy_cudnn_tensor tensor;
enum { NUMBER = GY_CUDNN_FLOAT, SIDE_OF_QUERIES = 64, SIDE_OF_KEYS = 128 };

/* Extents of what there is: sequences, heads, then rows and columns; and how far these lie apart where they are queries
 * or keys in memory. */
typedef struct extents {
    int64_t queries[4], keys[4], turned_keys[4], scores[4], turned_scores[4], rows[4], spread_keys[4];
    int64_t step_of_queries[4], step_of_keys[4];
} extents;

/* Where heads follow each other all are those of one sequence. */
static extents extents_of(const gy_attention *a, int64_t heads)
{
    bool in_rows = gy_attention_is_in_rows(a);
    int64_t n = a->n, m = a->m, d = a->d, s = in_rows && heads > a->beside ? heads / a->beside : 1;
    int64_t of_keys = heads / s, of_queries = a->rows / n * of_keys;
    return (extents){ .queries = { s, of_queries, n, d },
                      .keys = { s, of_keys, m, d },
                      .turned_keys = { s, of_keys, d, m },
                      .scores = { s, of_queries, n, m },
                      .turned_scores = { s, of_queries, m, n },
                      .rows = { s, of_queries, n, 1 },
                      .spread_keys = { s, of_queries, m, d },
                      .step_of_queries = { a->line * n, in_rows ? d : n * d, a->line, 1 },
                      .step_of_keys = { a->key_line * m, in_rows ? d : m * d, a->key_line, 1 } };
}

/* Queries, keys, or what is as them, in memory. */
static tensor given_rows(gy_fused *f, int which, int type, const int64_t extent[4], const int64_t step[4])
{
    tensor t = gy_cudnn_strided(&f->plan.graph, type, extent, step, false);
    f->id[which] = t.id;
    return t;
}

/* The same with the last two axes exchanged: `extent` is as the graph sees it. */
static tensor given_turned(gy_fused *f, int which, int type, const int64_t extent[4], const int64_t step[4])
{
    return given_rows(f, which, type, extent, (const int64_t[]){ step[0], step[1], step[3], step[2] });
}

static tensor given(gy_fused *f, int which, int type, const int64_t extent[4])
{
    tensor t = gy_cudnn_given(&f->plan.graph, type, extent);
    f->id[which] = t.id;
    return t;
}

static tensor number(gy_fused *f, int which, int type)
{
    tensor t = gy_cudnn_number(&f->plan.graph, type);
    f->id[which] = t.id;
    return t;
}

static tensor between(gy_fused *f, int type, const int64_t extent[4])
{
    return gy_cudnn_between(&f->plan.graph, type, extent, false);
}

/* mode(x, b), in memory of its own. */
static tensor each(gy_fused *f, int mode, const tensor *x, const tensor *b)
{
    tensor y = between(f, NUMBER, x->extent);
    gy_cudnn_each(&f->plan.graph, mode, NUMBER, x, b, NULL, &y);
    return y;
}

static tensor reduced(gy_fused *f, int operation, const tensor *x, const int64_t extent[4])
{
    tensor y = between(f, NUMBER, extent);
    gy_cudnn_reduce(&f->plan.graph, operation, x, &y);
    return y;
}

/* Query i sees key j where i + keys - queries >= j; the score of others is lower than any number. */
static tensor causal(gy_fused *f, const gy_attention *a, const tensor *scores)
{
    gy_cudnn_graph *g = &f->plan.graph;
    tensor row = between(f, GY_CUDNN_DATA_INT32, scores->extent),
           column = between(f, GY_CUDNN_DATA_INT32, scores->extent);
    tensor seen = between(f, GY_CUDNN_DATA_BOOLEAN, scores->extent), masked = between(f, NUMBER, scores->extent);
    tensor lowest = number(f, GY_FUSED_LOWEST, NUMBER);
    gy_cudnn_index(g, 2, scores, &row);
    if (a->m != a->n) {
        tensor shift = number(f, GY_FUSED_SHIFT, GY_CUDNN_DATA_INT32), at = row;
        row = between(f, GY_CUDNN_DATA_INT32, scores->extent);
        gy_cudnn_each(g, GY_CUDNN_POINTWISE_ADD, GY_CUDNN_DATA_INT32, &at, &shift, NULL, &row);
    }
    gy_cudnn_index(g, 3, scores, &column);
    gy_cudnn_each(g, GY_CUDNN_POINTWISE_CMP_GE, GY_CUDNN_DATA_BOOLEAN, &row, &column, NULL, &seen);
    gy_cudnn_each(g, GY_CUDNN_POINTWISE_BINARY_SELECT, NUMBER, scores, &lowest, &seen, &masked);
    return masked;
}

void gy_fused_forward(gy_fused *to, const gy_attention *a, int64_t heads, int type, bool statistics)
{
    gy_cudnn_graph *g = &to->plan.graph;
    extents e = extents_of(a, heads);
    tensor q = given_rows(to, GY_FUSED_Q, type, e.queries, e.step_of_queries);
    tensor k = given_turned(to, GY_FUSED_K, type, e.turned_keys, e.step_of_keys);
    tensor v = given_rows(to, GY_FUSED_V, type, e.keys, e.step_of_keys);
    tensor y = given_rows(to, GY_FUSED_Y, type, e.queries, e.step_of_queries);
    tensor scale = number(to, GY_FUSED_SCALE, NUMBER), product = between(to, NUMBER, e.scores);
    gy_cudnn_multiply(g, &q, &k, &product);
    tensor score = each(to, GY_CUDNN_POINTWISE_MUL, &product, &scale);
    if (a->causal)
        score = causal(to, a, &score);
    tensor most = reduced(to, GY_CUDNN_REDUCE_TENSOR_MAX, &score, e.rows);
    tensor less = each(to, GY_CUDNN_POINTWISE_SUB, &score, &most);
    tensor power = each(to, GY_CUDNN_POINTWISE_EXP, &less, NULL);
    tensor sum = reduced(to, GY_CUDNN_REDUCE_TENSOR_ADD, &power, e.rows);
    tensor logarithm = each(to, GY_CUDNN_POINTWISE_LOG, &sum, NULL);
    /* Without these two operations cuDNN does not know the graph. */
    tensor kept = statistics ? given(to, GY_FUSED_STATISTICS, NUMBER, e.rows) : between(to, NUMBER, e.rows);
    gy_cudnn_each(g, GY_CUDNN_POINTWISE_ADD, NUMBER, &most, &logarithm, NULL, &kept);
    tensor p = between(to, type, e.scores);
    gy_cudnn_each(g, GY_CUDNN_POINTWISE_DIV, NUMBER, &power, &sum, NULL, &p);
    gy_cudnn_multiply(g, &p, &v, &y);
}

/* to = x^T of each head, times b. Heads of queries that share one of keys are added up. */
static void multiply_turned(gy_fused *f, const extents *e, int type, const tensor *x, const tensor *b, const tensor *to)
{
    gy_cudnn_graph *g = &f->plan.graph;
    tensor over = gy_cudnn_between(g, type, e->turned_scores, true);
    gy_cudnn_reshape(g, x, &over);
    if (e->keys[1] == e->queries[1]) {
        gy_cudnn_multiply(g, &over, b, to);
        return;
    }
    tensor spread = between(f, type, e->spread_keys);
    gy_cudnn_multiply(g, &over, b, &spread);
    gy_cudnn_reduce(g, GY_CUDNN_REDUCE_TENSOR_ADD, &spread, to);
}

/* Of each query the sum of y dy. cuDNN wants it in memory, and multiplied by something. */
static tensor sums(gy_fused *f, const extents *e, const tensor *y, const tensor *dy)
{
    tensor both = each(f, GY_CUDNN_POINTWISE_MUL, dy, y), one = number(f, GY_FUSED_ONE, NUMBER);
    tensor sum = reduced(f, GY_CUDNN_REDUCE_TENSOR_ADD, &both, e->rows);
    tensor kept = given(f, GY_FUSED_SUMS, NUMBER, e->rows);
    gy_cudnn_each(&f->plan.graph, GY_CUDNN_POINTWISE_MUL, NUMBER, &sum, &one, NULL, &kept);
    return kept;
}

void gy_fused_backward(gy_fused *to, const gy_attention *a, int64_t heads, int type)
{
    gy_cudnn_graph *g = &to->plan.graph;
    extents e = extents_of(a, heads);
    tensor q = given_rows(to, GY_FUSED_Q, type, e.queries, e.step_of_queries);
    tensor k = given_turned(to, GY_FUSED_K, type, e.turned_keys, e.step_of_keys);
    tensor v = given_turned(to, GY_FUSED_V, type, e.turned_keys, e.step_of_keys);
    tensor y = given_rows(to, GY_FUSED_Y, type, e.queries, e.step_of_queries);
    tensor dy = given_rows(to, GY_FUSED_DY, type, e.queries, e.step_of_queries);
    tensor dq = given_rows(to, GY_FUSED_DQ, type, e.queries, e.step_of_queries);
    tensor dk = given_rows(to, GY_FUSED_DK, type, e.keys, e.step_of_keys);
    tensor dv = given_rows(to, GY_FUSED_DV, type, e.keys, e.step_of_keys);
    tensor statistics = given(to, GY_FUSED_STATISTICS, NUMBER, e.rows), sum = sums(to, &e, &y, &dy);
    tensor scale = number(to, GY_FUSED_SCALE, NUMBER), product = between(to, NUMBER, e.scores);
    gy_cudnn_multiply(g, &q, &k, &product);
    tensor score = each(to, GY_CUDNN_POINTWISE_MUL, &product, &scale);
    tensor less = each(to, GY_CUDNN_POINTWISE_SUB, &score, &statistics);
    if (a->causal)
        less = causal(to, a, &less);
    tensor p = each(to, GY_CUDNN_POINTWISE_EXP, &less, NULL);
    multiply_turned(to, &e, type, &p, &dy, &dv);
    tensor dp = between(to, NUMBER, e.scores), ds = between(to, type, e.scores);
    gy_cudnn_multiply(g, &dy, &v, &dp);
    tensor off = each(to, GY_CUDNN_POINTWISE_SUB, &dp, &sum), slope = each(to, GY_CUDNN_POINTWISE_MUL, &off, &p);
    gy_cudnn_each(g, GY_CUDNN_POINTWISE_MUL, NUMBER, &slope, &scale, NULL, &ds);
    multiply_turned(to, &e, type, &ds, &q, &dk);
    tensor keys = gy_cudnn_strided(g, type, e.keys, e.step_of_keys, true);
    gy_cudnn_reshape(g, &k, &keys);
    gy_cudnn_multiply(g, &ds, &keys, &dq);
}

static int64_t rounded(int64_t n, int64_t side)
{
    return (n + side - 1) / side * side;
}

size_t gy_fused_backward_bytes(const gy_attention *a, int64_t heads)
{
    int64_t of_queries = a->rows / a->n * heads;
    int64_t slopes = rounded(a->n, SIDE_OF_QUERIES) * rounded(a->m, SIDE_OF_KEYS), spread = 2 * a->m * a->d;
    return GY_FUSED_OTHERS + (size_t)(of_queries * (slopes + (of_queries > heads ? spread : 0)) * 2);
}
