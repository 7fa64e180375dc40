/* SPDX-License-Identifier: Apache-2.0 */
/*
 * With p = softmax(scale q k^T), y = p v and the gradient dy of y, for each head:
 *
 *   dv = p^T dy      ds = scale p * (dy v^T - rows' sums of y dy)      dq = ds k      dk = ds^T q
 *
 * Blocks of queries at a time, as attention: p is made again from q and k, and nothing is kept of it; where attention
 * has kept the logarithms of sums, p = exp(scale q k^T - lse). Queries that share a head of keys add to the same dk and
 * dv, in their order.
 */
#include "kernels/attention_grad/attention_grad.h"
#include "base/memory.h"
#include "kernels/attention/attention_host.h"
#include <string.h>

enum { BLOCK = GY_ATTENTION_BLOCK };

/* Memory of a call. What elements are converted to is NULL where they are taken as they are. */
typedef struct work {
    gantry_dtype dtype; /* that is computed in */
    size_t size;
    void *scores, *slopes;                   /* a block of p, of ds */
    void *q, *y, *dy, *dq, *k, *v, *dk, *dv; /* a block of queries; a head of keys */
} work;

static void free_work(work *w)
{
    void *all[] = { w->scores, w->slopes, w->q, w->y, w->dy, w->dq, w->k, w->v, w->dk, w->dv };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        gy_free(all[i]);
}

static bool make_work(work *w, const gy_attention *a, gantry_dtype dtype)
{
    bool apart = gy_attention_wants_room(a, dtype), made = true;
    *w = (work){ .dtype = dtype == GANTRY_F64 ? GANTRY_F64 : GANTRY_F32 };
    w->size = gantry_dtype_size(w->dtype);
    struct {
        void **to;
        int64_t rows, columns;
        bool wanted;
    } all[] = { { &w->scores, BLOCK, a->m, true }, { &w->slopes, BLOCK, a->m, true }, { &w->q, BLOCK, a->d, apart },
                { &w->y, BLOCK, a->d, apart },     { &w->dy, BLOCK, a->d, apart },    { &w->dq, BLOCK, a->d, apart },
                { &w->k, a->m, a->d, apart },      { &w->v, a->m, a->d, apart },      { &w->dk, a->m, a->d, apart },
                { &w->dv, a->m, a->d, apart } };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (all[i].wanted)
            *all[i].to = gy_calloc((size_t)(all[i].rows * all[i].columns) + 1, w->size);
        made = made && (!all[i].wanted || *all[i].to);
    }
    return made;
}

/* slopes = scale scores * (slopes - sum of y dy), of a row; in double as far as the sum goes. */
#define SLOPES(dtype, type, wide, LOAD, STORE)                                                                         \
    static void slope_##type(type *slope, const type *p, const type *y, const type *dy, int64_t d, int64_t count,      \
                             double scale)                                                                             \
    {                                                                                                                  \
        double sum = 0;                                                                                                \
        for (int64_t c = 0; c < d; c++)                                                                                \
            sum += (double)y[c] * (double)dy[c];                                                                       \
        for (int64_t j = 0; j < count; j++)                                                                            \
            slope[j] = (type)(scale * (double)p[j] * ((double)slope[j] - sum));                                        \
    }
GY_WIDE_TYPES(SLOPES)

static void slope_rows(const work *w, const gy_attention *a, const void *y, const void *dy, int64_t rows, int64_t keys)
{
    for (int64_t r = 0; r < rows; r++)
        if (w->dtype == GANTRY_F32)
            slope_float((float *)w->slopes + r * keys, (float *)w->scores + r * keys, (const float *)y + r * a->d,
                        (const float *)dy + r * a->d, a->d, keys, a->scale);
        else
            slope_double((double *)w->slopes + r * keys, (double *)w->scores + r * keys, (const double *)y + r * a->d,
                         (const double *)dy + r * a->d, a->d, keys, a->scale);
}

/* Scores of rows [first, first + rows) of a head become weights; the first row is row `at` of all queries. */
static void weigh_rows(const gantry_launch *l, const gy_attention *a, const work *w, int64_t at, int64_t first,
                       int64_t rows, int64_t keys)
{
    const gantry_arg *lse = &l->arg[GY_ATTENTION_GRAD_LSE];
    const float *narrow = lse->dtype == GANTRY_F32 ? lse->data : NULL;
    const double *wide = lse->data;
    for (int64_t r = 0; r < rows; r++) {
        int64_t stop = gy_attention_seen(a, first + r, a->m), query = at + first + r;
        if (lse->access)
            gy_attention_weigh(w->dtype, w->scores, r, stop, keys, narrow ? (double)narrow[query] : wide[query]);
        else
            gy_attention_soften(w->dtype, w->scores, r, stop, keys);
    }
}

/* Some rows of a head. Keys that none of them sees are left out. */
static void one_block(const gantry_launch *l, const gy_attention *a, const work *w, gy_attention_rows these,
                      const void *const head[4])
{
    const gy_linalg *table = gy_linalg_of(l);
    int64_t rows = these.count, keys = gy_attention_seen_by_any(a, these.first, rows, a->m);
    gy_matrix q = { gy_attention_take(a, &l->arg[GY_ATTENTION_Q], these, w->q), rows, a->d, a->d };
    gy_matrix y = { gy_attention_take(a, &l->arg[GY_ATTENTION_GRAD_Y], these, w->y), rows, a->d, a->d };
    gy_matrix dy = { gy_attention_take(a, &l->arg[GY_ATTENTION_GRAD_DY], these, w->dy), rows, a->d, a->d };
    const gantry_arg *to = &l->arg[GY_ATTENTION_GRAD_DQ];
    gy_matrix dq = { gy_attention_target(a, to, these, w->dq), rows, a->d, a->d };
    gy_matrix k = { (void *)(uintptr_t)head[0], keys, a->d, a->d },
              v = { (void *)(uintptr_t)head[1], keys, a->d, a->d };
    gy_matrix dk = { (void *)(uintptr_t)head[2], keys, a->d, a->d },
              dv = { (void *)(uintptr_t)head[3], keys, a->d, a->d };
    gy_matrix p = { w->scores, rows, keys, keys }, ds = { w->slopes, rows, keys, keys };
    table->gemm(w->dtype, 0, 1, a->scale, q, k, 0, p);
    weigh_rows(l, a, w, these.head * a->rows, these.first, rows, keys);
    table->gemm(w->dtype, 1, 0, 1, p, dy, 1, dv);
    table->gemm(w->dtype, 0, 1, 1, dy, v, 0, ds);
    slope_rows(w, a, y.data, dy.data, rows, keys);
    table->gemm(w->dtype, 0, 0, 1, ds, k, 0, dq);
    table->gemm(w->dtype, 1, 0, 1, ds, q, 1, dk);
    gy_attention_put(a, to, these, w->dq);
}

static void one_head(const gantry_launch *l, const gy_attention *a, const work *w, int64_t h)
{
    const gantry_arg *dk = &l->arg[GY_ATTENTION_GRAD_DK], *dv = &l->arg[GY_ATTENTION_GRAD_DV];
    gy_attention_rows all = { h, 0, a->m, true };
    size_t bytes = (size_t)(a->m * a->d) * w->size;
    void *const head[4] = { gy_attention_take(a, &l->arg[GY_ATTENTION_K], all, w->k),
                            gy_attention_take(a, &l->arg[GY_ATTENTION_V], all, w->v),
                            gy_attention_target(a, dk, all, w->dk), gy_attention_target(a, dv, all, w->dv) };
    memset(head[2], 0, bytes);
    memset(head[3], 0, bytes);
    for (int64_t r = 0; r < a->rows; r += BLOCK) {
        gy_attention_rows these = { h, r, a->rows - r < BLOCK ? a->rows - r : BLOCK, false };
        one_block(l, a, w, these, (const void *const *)head);
    }
    gy_attention_put(a, dk, all, w->dk);
    gy_attention_put(a, dv, all, w->dv);
}

static gantry_status do_heads(const gantry_launch *l, void *data, int64_t first, int64_t last)
{
    const gy_attention *a = data;
    work w;
    bool made = make_work(&w, a, l->arg[GY_ATTENTION_Q].dtype);
    for (int64_t h = first; h < last && made; h++)
        one_head(l, a, &w, h);
    free_work(&w);
    return made ? GANTRY_OK : GANTRY_E_NOMEM;
}

static gantry_status run(const gantry_launch *l)
{
    gy_attention a = gy_attention_in_rows(l, GY_ATTENTION_GRAD_DIM);
    return gy_linalg_cut(l, a.heads, 10.0 * (double)a.rows * (double)a.m * (double)a.d, do_heads, &a);
}

static gantry_status check(const gantry_launch *l, char *text, size_t size)
{
    enum { Q = GY_ATTENTION_Q, K = GY_ATTENTION_K };
    static const int as[] = { [GY_ATTENTION_Q] = Q, K, K, Q, Q, Q, K, K };
    return gy_attention_check_all(l, GY_ATTENTION_GRAD_DV, as, GY_ATTENTION_GRAD_DIM, text, size);
}

static const gantry_kernel_arg args[] = {
    GY_ATTENTION_ARGS,
    GY_REGION("y", GANTRY_READ, GY_FLOAT_DTYPES, 'T', "result of attention"),
    GY_REGION("dy", GANTRY_READ, GY_FLOAT_DTYPES, 'T', "gradient of y"),
    GY_REGION("dq", GANTRY_WRITE, GY_FLOAT_DTYPES, 'T', "gradient of q"),
    GY_REGION("dk", GANTRY_WRITE, GY_FLOAT_DTYPES, 'T', "gradient of k"),
    GY_REGION("dv", GANTRY_WRITE, GY_FLOAT_DTYPES, 'T', "gradient of v"),
    GY_ATTENTION_LSE_ARG(GANTRY_READ, "what attention gave as lse, which is not computed again then"),
    GY_ATTENTION_ROWS_ARGS,
};

/* scratch: of each query the logarithm of its sum of exponentials and the sum of y dy, which GPUs keep. */
const gantry_kernel gy_kernel_attention_grad = { .struct_size = sizeof(gantry_kernel),
                                                 .name = "attention_grad",
                                                 .summary = "gradients of attention by q, k and v",
                                                 GANTRY_KERNEL_ARGS(args),
                                                 .flops = "10 * " GY_ATTENTION_SCORES_IN_ROWS,
                                                 .scratch = "16 * q.size / max(1, (dim == 0) * q.last0 + dim)",
                                                 .host = run,
                                                 .check = check,
                                                 .open = gy_linalg_open_kernel,
                                                 .close = gy_linalg_close };
