/* SPDX-License-Identifier: Apache-2.0 */
/* Code of `attention` and `attention_cached`, which differ in who says how many keys there are.
 *
 * q is [heads, n, d], k and v are [heads of keys, m, d]. As many heads of q in a row as there are for each head of keys
 * share it, so for one head of keys q is a matrix of shared * n rows. */
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

/* `length` is the argument's number, or 0: there is none. */
static inline gy_attention gy_attention_of(const gantry_launch *l, int length)
{
    const gantry_arg *q = &l->arg[GY_ATTENTION_Q], *k = &l->arg[GY_ATTENTION_K];
    gy_attention a = { .n = q->shape[1], .m = k->shape[1], .d = q->shape[2], .heads = k->rows };
    a.rows = a.heads ? q->rows / a.heads * a.n : 0;
    a.lengths = length ? gy_arg_size(&l->arg[length]) : 0;
    a.per = a.lengths ? a.heads / a.lengths : 1;
    a.causal = l->arg[GY_ATTENTION_CAUSAL].integer;
    a.scale = l->arg[GY_ATTENTION_SCALE].number;
    if (a.scale == 0)
        a.scale = gy_attention_scale(a.d);
    return a;
}

gantry_status gy_attention_run(const gantry_launch *l, int length, int y);
/* check(): of q, k, v and the lengths; also that y is as q; that argument i is as large as another. */
gantry_status gy_attention_check_inputs(const gantry_launch *l, int length, char *text, size_t size);
gantry_status gy_attention_check(const gantry_launch *l, int length, int y, char *text, size_t size);
gantry_status gy_attention_check_axes(const gantry_launch *l, int i, int other, char *text, size_t size);

#define GY_ATTENTION_ARGS                                                                                              \
    GY_SCALE_OR("scale", 0, "factor of q k^T; 0: 1 / sqrt(elements of a head)"),                                       \
        GY_NUMBER_OR("causal", 0, "1: the last query sees all keys, each one before it one key less"),                 \
        GY_REGION("q", GANTRY_READ, GY_FLOAT_DTYPES, 'T', "[heads, queries, elements of a head]"),                     \
        GY_REGION("k", GANTRY_READ, GY_FLOAT_DTYPES, 'T',                                                              \
                  "[heads, keys, elements]; as many heads of q in a row share one"),                                   \
        GY_REGION("v", GANTRY_READ, GY_FLOAT_DTYPES, 'T', "as k")

#endif
