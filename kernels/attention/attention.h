/* SPDX-License-Identifier: Apache-2.0 */
/* Code of `attention` and `attention_cached`, which differ in who says how many keys there are.
 *
 * q is [heads, n, d], k and v are [heads of keys, m, d], or all have an axis of sequences before that, which are more
 * heads. As many heads of q in a row as there are for each head of keys share it, so for one head of keys q is a matrix
 * of shared * n rows.
 *
 * Or all are as products leave them, matrices with a row for each query or key, in which heads lie side by side:
 * [sequences * n, heads * d]. Row r of those that share a head of keys is then a piece of row r % n of its sequence. */
#ifndef GY_KERNELS_ATTENTION_H
#define GY_KERNELS_ATTENTION_H

#include "kernels/linalg.h"

enum { GY_ATTENTION_WIDEST = 256 }; /* elements of a head */
enum { GY_ATTENTION_SCALE, GY_ATTENTION_CAUSAL, GY_ATTENTION_Q, GY_ATTENTION_K, GY_ATTENTION_V }; /* arguments */
enum { GY_ATTENTION_DIM = GY_ATTENTION_V + 3 }; /* of attention; the next one is `length` */

/* attention.cu has the same. */
typedef struct gy_attention {
    int64_t n, m, d;      /* queries and keys of a head, elements of each */
    int64_t heads, rows;  /* heads of keys; rows of queries for each */
    int64_t lengths, per; /* numbers of keys: how many, and for how many heads each; 0: all are m */
    int64_t causal;
    double scale;
    int64_t beside;         /* heads of keys that lie side by side; 1: heads follow each other */
    int64_t line, key_line; /* elements from a query of a head to the next, and from a key */
} gy_attention;

static inline bool gy_attention_is_in_rows(const gy_attention *a)
{
    return a->line != a->d || a->key_line != a->d;
}

/* Where row `row` of the queries that share a head of keys begins, or a row of the keys: elements. */
static inline int64_t gy_attention_at(const gy_attention *a, int64_t head, int64_t row, bool of_keys)
{
    int64_t group = head / a->beside * a->beside, in_group = head % a->beside;
    if (of_keys)
        return group * a->m * a->d + in_group * a->d + row * a->key_line;
    int64_t from = group * a->rows * a->d, shared = a->n ? a->rows / a->n : 0;
    if (a->line == a->d)
        return from + (in_group * a->rows + row) * a->d;
    return from + (in_group * shared + row / a->n) * a->d + row % a->n * a->line;
}

/* 1 / sqrt(d) */
double gy_attention_scale(int64_t d);

/* Heads of all sequences. */
static inline int64_t gy_attention_heads(const gantry_arg *x)
{
    return x->rank == 4 ? x->rows * x->shape[1] : x->rows;
}

/* `length` is the argument's number, or 0: there is none. */
static inline gy_attention gy_attention_of(const gantry_launch *l, int length)
{
    const gantry_arg *q = &l->arg[GY_ATTENTION_Q], *k = &l->arg[GY_ATTENTION_K];
    const int64_t *of_q = q->shape + q->rank - 2, *of_k = k->shape + k->rank - 2; /* queries or keys, elements */
    gy_attention a = { .n = of_q[0], .m = of_k[0], .d = of_q[1], .heads = gy_attention_heads(k) };
    a.rows = a.heads ? gy_attention_heads(q) / a.heads * a.n : 0;
    a.lengths = length ? gy_arg_size(&l->arg[length]) : 0;
    a.per = a.lengths ? a.heads / a.lengths : 1;
    a.causal = l->arg[GY_ATTENTION_CAUSAL].integer;
    a.scale = l->arg[GY_ATTENTION_SCALE].number;
    if (a.scale == 0)
        a.scale = gy_attention_scale(a.d);
    a.beside = 1;
    a.line = a.key_line = a.d;
    return a;
}

/* Queries of a sequence, where heads lie side by side: `length`, the argument behind `dim`, or all rows. */
static inline int64_t gy_attention_queries(const gantry_launch *l, int dim)
{
    int64_t length = l->arg[dim + 1].integer;
    return length > 0 ? length : l->arg[GY_ATTENTION_Q].rows;
}

/* The same of attention and its gradient, whose argument `dim` says that heads lie side by side, if it is not 0. */
static inline gy_attention gy_attention_in_rows(const gantry_launch *l, int dim)
{
    const gantry_arg *q = &l->arg[GY_ATTENTION_Q], *k = &l->arg[GY_ATTENTION_K];
    int64_t d = l->arg[dim].integer, n = gy_attention_queries(l, dim), sequences = n ? q->rows / n : 0;
    if (d <= 0)
        return gy_attention_of(l, 0);
    gy_attention a = { .n = n, .m = sequences ? k->rows / sequences : 0, .d = d };
    a.line = gy_arg_width(q);
    a.key_line = gy_arg_width(k);
    a.beside = a.key_line / d > 0 ? a.key_line / d : 1;
    a.heads = sequences * (a.key_line / d);
    a.rows = a.line / d / a.beside * n;
    a.per = 1;
    a.causal = l->arg[GY_ATTENTION_CAUSAL].integer;
    a.scale = l->arg[GY_ATTENTION_SCALE].number != 0 ? l->arg[GY_ATTENTION_SCALE].number : gy_attention_scale(d);
    return a;
}

/* `lse`: the argument that takes the logarithms of sums of exponentials, or 0. */
gantry_status gy_attention_run(const gantry_launch *l, int length, int y, int lse);
gantry_status gy_attention_run_as(const gantry_launch *l, const gy_attention *a, int length, int y, int lse);
/* check(): of q, k, v and the lengths. */
gantry_status gy_attention_check_inputs(const gantry_launch *l, int length, char *text, size_t size);
/* Of attention and its gradient: region i is to be as as[i], up to the argument `last`, behind which `lse` comes. */
gantry_status gy_attention_check_all(const gantry_launch *l, int last, const int as[], int dim, char *text,
                                     size_t size);

/* Elements of a head times the scores that are computed: under a mask 64 queries have the keys that the last of them
 * sees (attention_host.c). */
#define GY_ATTENTION_SCORES "q.size * (k.last1 - causal * max(0, min(q.last1, k.last1) - 64) / 2)"
/* The same of attention and its gradient: with `dim` rows are those of all sequences. */
#define GY_ATTENTION_OF_SEQUENCE(x_)                                                                                   \
    "((dim == 0) * " x_ ".last1 + (dim > 0) * " x_ ".rows / max(1, (length > 0) * q.rows / max(1, length)))"
#define GY_ATTENTION_SCORES_IN_ROWS                                                                                    \
    "q.size * (" GY_ATTENTION_OF_SEQUENCE("k") " - causal * max(0, min(" GY_ATTENTION_OF_SEQUENCE(                     \
        "q") ", " GY_ATTENTION_OF_SEQUENCE("k") ") - 64) / 2)"

#define GY_ATTENTION_ARGS                                                                                              \
    GY_SCALE_OR("scale", 0, "factor of q k^T; 0: 1 / sqrt(elements of a head)"),                                       \
        GY_NUMBER_OR("causal", 0, "1: the last query sees all keys, each one before it one key less"),                 \
        GY_REGION("q", GANTRY_READ, GY_FLOAT_DTYPES, 'T',                                                              \
                  "[heads, queries, elements of a head], or [sequences, heads, queries, elements]"),                   \
        GY_REGION("k", GANTRY_READ, GY_FLOAT_DTYPES, 'T',                                                              \
                  "[heads, keys, elements], or as q with sequences; as many heads of q in a row share one"),           \
        GY_REGION("v", GANTRY_READ, GY_FLOAT_DTYPES, 'T', "as k")

/* Natural logarithms of the sums of exponentials of scores, by which attention_grad knows all weights. */
#define GY_ATTENTION_LSE_ARG(access_, summary_)                                                                        \
    GY_REGION_OR_NONE("lse", access_, GANTRY_DTYPE_BIT(GANTRY_F32) | GANTRY_DTYPE_BIT(GANTRY_F64), 0,                  \
                      summary_ ": [heads, queries], or with sequences before, also with dim; f32, where q is f64 f64")

/* Numbers of attention and its gradient, which come last. */
#define GY_ATTENTION_ROWS_ARGS                                                                                         \
    GY_NUMBER_OR("dim", 0,                                                                                             \
                 "elements of a head, where q, k, v and y are matrices of rows of heads side by side; 0: they have "   \
                 "axes of heads"),                                                                                     \
        GY_NUMBER_OR("length", 0, "with dim: queries of a sequence; 0: all rows are one sequence")

#endif
