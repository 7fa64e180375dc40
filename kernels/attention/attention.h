/* SPDX-License-Identifier: Apache-2.0 */
/* Code of `attention` and `attention_cached`, which differ in who says how many keys there are.
 *
 * q is [heads, n, d], k and v are [heads of keys, m, d], or all have an axis of sequences before that, which are more
 * heads. As many heads of q in a row as there are for each head of keys share it, so for one head of keys q is a matrix
 * of shared * n rows. */
#ifndef GY_KERNELS_ATTENTION_H
#define GY_KERNELS_ATTENTION_H

#include "kernels/linalg.h"

enum { GY_ATTENTION_WIDEST = 256 }; /* elements of a head */
enum { GY_ATTENTION_SCALE, GY_ATTENTION_CAUSAL, GY_ATTENTION_Q, GY_ATTENTION_K, GY_ATTENTION_V }; /* arguments */

/* attention.cu has the same. */
typedef struct gy_attention {
    int64_t n, m, d;      /* queries and keys of a head, elements of each */
    int64_t heads, rows;  /* heads of keys; rows of queries for each */
    int64_t lengths, per; /* numbers of keys: how many, and for how many heads each; 0: all are m */
    int64_t causal;
    double scale;
} gy_attention;

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
    return a;
}

/* `lse`: the argument that takes the logarithms of sums of exponentials, or 0. */
gantry_status gy_attention_run(const gantry_launch *l, int length, int y, int lse);
/* check(): of q, k, v and the lengths; also that y is as q; that argument i is as large as another; of `lse`, if it is
 * given. */
gantry_status gy_attention_check_inputs(const gantry_launch *l, int length, char *text, size_t size);
gantry_status gy_attention_check(const gantry_launch *l, int length, int y, char *text, size_t size);
gantry_status gy_attention_check_axes(const gantry_launch *l, int i, int other, char *text, size_t size);
gantry_status gy_attention_check_lse(const gantry_launch *l, int lse, char *text, size_t size);

/* Elements of a head times the scores that are computed: under a mask 64 queries have the keys that the last of them
 * sees (attention_host.c). */
#define GY_ATTENTION_SCORES "q.size * (k.last1 - causal * max(0, min(q.last1, k.last1) - 64) / 2)"

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
                      summary_ ": [heads, queries], or with sequences before; f32, where q is f64 f64")

#endif
