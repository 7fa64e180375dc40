/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of queries at a time: products with all keys, their softmax, the product with the values. Products are those
 * of gemm, in float but for f64; f16 and bf16 are made float head by head. */
#include "kernels/attention/attention_host.h"
#include "base/memory.h"
#include <math.h>
#include <string.h>

enum { BLOCK = GY_ATTENTION_BLOCK };

double gy_attention_scale(int64_t d)
{
    return d > 0 ? 1 / sqrt((double)d) : 1;
}

int64_t gy_attention_seen(const gy_attention *a, int64_t r, int64_t length)
{
    int64_t upto = a->causal ? length - a->n + r % a->n + 1 : length;
    return upto < 0 ? 0 : upto;
}

int64_t gy_attention_seen_by_any(const gy_attention *a, int64_t first, int64_t rows, int64_t length)
{
    int64_t keys = 0;
    for (int64_t r = first; r < first + rows; r++)
        keys = gy_attention_seen(a, r, length) > keys ? gy_attention_seen(a, r, length) : keys;
    return keys;
}

/* Memory of a call: a head as floats, a block of scores and one of results. */
typedef struct work {
    gantry_dtype dtype; /* that is computed in */
    size_t size;
    void *q, *k, *v, *scores, *result; /* q, k, v and result NULL: elements are taken as they are */
} work;

static void free_work(work *w)
{
    gy_free(w->q);
    gy_free(w->k);
    gy_free(w->v);
    gy_free(w->scores);
    gy_free(w->result);
}

static bool make_work(work *w, const gy_attention *a, gantry_dtype dtype)
{
    *w = (work){ .dtype = dtype == GANTRY_F64 ? GANTRY_F64 : GANTRY_F32 };
    w->size = gantry_dtype_size(w->dtype);
    w->scores = gy_calloc(BLOCK * (size_t)a->m + 1, w->size);
    if (!gy_attention_wants_room(a, dtype))
        return w->scores != NULL;
    w->q = gy_calloc(BLOCK * (size_t)a->d + 1, w->size);
    w->k = gy_calloc((size_t)(a->m * a->d) + 1, w->size);
    w->v = gy_calloc((size_t)(a->m * a->d) + 1, w->size);
    w->result = gy_calloc(BLOCK * (size_t)a->d + 1, w->size);
    return w->scores && w->q && w->k && w->v && w->result;
}

static bool is_narrow(gantry_dtype dtype)
{
    return dtype == GANTRY_F16 || dtype == GANTRY_BF16;
}

bool gy_attention_wants_room(const gy_attention *a, gantry_dtype dtype)
{
    return is_narrow(dtype) || gy_attention_is_in_rows(a);
}

static void *row_of(const gy_attention *a, const gantry_arg *x, gy_attention_rows rows, int64_t row)
{
    int64_t at = gy_attention_at(a, rows.head, rows.first + row, rows.are_keys);
    return (char *)x->data + at * (int64_t)gantry_dtype_size(x->dtype);
}

void *gy_attention_take(const gy_attention *a, const gantry_arg *x, gy_attention_rows rows, void *room)
{
    size_t bytes = (size_t)a->d * gantry_dtype_size(x->dtype);
    if (!room)
        return row_of(a, x, rows, 0);
    for (int64_t r = 0; r < rows.count; r++) {
        const uint16_t *from = row_of(a, x, rows, r);
        float *to = (float *)room + r * a->d;
        if (!is_narrow(x->dtype))
            memcpy((char *)room + (size_t)r * bytes, from, bytes);
        for (int64_t i = 0; i < a->d && is_narrow(x->dtype); i++)
            to[i] = x->dtype == GANTRY_F16 ? gy_f16_to_float(from[i]) : gy_bf16_to_float(from[i]);
    }
    return room;
}

void *gy_attention_target(const gy_attention *a, const gantry_arg *y, gy_attention_rows rows, void *room)
{
    return room ? room : row_of(a, y, rows, 0);
}

void gy_attention_put(const gy_attention *a, const gantry_arg *y, gy_attention_rows rows, const void *from)
{
    size_t bytes = (size_t)a->d * gantry_dtype_size(y->dtype);
    for (int64_t r = 0; r < rows.count && from; r++) {
        const float *row = (const float *)from + r * a->d;
        uint16_t *to = row_of(a, y, rows, r);
        if (!is_narrow(y->dtype))
            memcpy(to, (const char *)from + (size_t)r * bytes, bytes);
        for (int64_t i = 0; i < a->d && is_narrow(y->dtype); i++)
            to[i] = y->dtype == GANTRY_F16 ? gy_float_to_f16(row[i]) : gy_float_to_bf16(row[i]);
    }
}

#define SOFTMAX(dtype, type, wide, LOAD, STORE)                                                                        \
    static double soften_##type(type *row, int64_t stop, int64_t count)                                                \
    {                                                                                                                  \
        type largest = -(type)INFINITY;                                                                                \
        double sum = 0;                                                                                                \
        for (int64_t j = 0; j < stop; j++)                                                                             \
            largest = row[j] > largest ? row[j] : largest;                                                             \
        for (int64_t j = 0; j < stop; j++)                                                                             \
            sum += row[j] = (type)(sizeof(type) == 4 ? (type)expf((float)(row[j] - largest))                           \
                                                     : (type)exp((double)(row[j] - largest)));                         \
        for (int64_t j = 0; j < count; j++)                                                                            \
            row[j] = j < stop ? (type)(row[j] / sum) : 0;                                                              \
        return (double)largest + log(sum);                                                                             \
    }                                                                                                                  \
    static void weigh_##type(type *row, int64_t stop, int64_t count, type logarithm)                                   \
    {                                                                                                                  \
        for (int64_t j = 0; j < count; j++)                                                                            \
            row[j] = j >= stop           ? 0                                                                           \
                     : sizeof(type) == 4 ? (type)expf((float)(row[j] - logarithm))                                     \
                                         : (type)exp((double)(row[j] - logarithm));                                    \
    }
GY_WIDE_TYPES(SOFTMAX)

double gy_attention_soften(gantry_dtype dtype, void *scores, int64_t row, int64_t stop, int64_t count)
{
    return dtype == GANTRY_F32 ? soften_float((float *)scores + row * count, stop, count)
                               : soften_double((double *)scores + row * count, stop, count);
}

void gy_attention_weigh(gantry_dtype dtype, void *scores, int64_t row, int64_t stop, int64_t count, double logarithm)
{
    if (dtype == GANTRY_F32)
        weigh_float((float *)scores + row * count, stop, count, (float)logarithm);
    else
        weigh_double((double *)scores + row * count, stop, count, logarithm);
}

static void keep(const gantry_arg *lse, int64_t at, double logarithm)
{
    if (lse->dtype == GANTRY_F32)
        ((float *)lse->data)[at] = (float)logarithm;
    else
        ((double *)lse->data)[at] = logarithm;
}

typedef struct call {
    gy_attention a;
    int length, y, lse; /* arguments; lse 0: the node does not give it */
    gy_least_row wrong;
} call;

/* Some rows of a head. Keys that none of them sees are left out. */
static void attend(const gantry_launch *l, const call *c, const work *w, gy_attention_rows these, int64_t length,
                   void *k, void *v)
{
    const gy_linalg *table = gy_linalg_of(l);
    const gy_attention *a = &c->a;
    const gantry_arg *y = &l->arg[c->y];
    int64_t rows = these.count, keys = gy_attention_seen_by_any(a, these.first, rows, length);
    gy_matrix q = { gy_attention_take(a, &l->arg[GY_ATTENTION_Q], these, w->q), rows, a->d, a->d };
    gy_matrix scores = { w->scores, rows, keys, keys };
    gy_matrix out = { gy_attention_target(a, y, these, w->result), rows, a->d, a->d };
    table->gemm(w->dtype, 0, 1, a->scale, q, (gy_matrix){ k, keys, a->d, a->d }, 0, scores);
    for (int64_t r = 0; r < rows; r++) {
        double lse = gy_attention_soften(w->dtype, w->scores, r, gy_attention_seen(a, these.first + r, length), keys);
        if (c->lse)
            keep(&l->arg[c->lse], these.head * a->rows + these.first + r, lse);
    }
    table->gemm(w->dtype, 0, 0, 1, scores, (gy_matrix){ v, keys, a->d, a->d }, 0, out);
    gy_attention_put(a, y, these, w->result);
}

/* Keys of a head; -1: more than there are, or less than none. */
static int64_t length_of(const gantry_launch *l, const gy_attention *a, int length, int64_t head)
{
    const int32_t *given = a->lengths ? l->arg[length].data : NULL;
    int64_t keys = given ? given[head / a->per] : a->m;
    return keys < 0 || keys > a->m ? -1 : keys;
}

static gantry_status do_heads(const gantry_launch *l, void *data, int64_t first, int64_t last)
{
    call *c = data;
    const gy_attention *a = &c->a;
    work w;
    bool made = make_work(&w, a, l->arg[c->y].dtype);
    for (int64_t h = first; h < last && made; h++) {
        int64_t keys = length_of(l, a, c->length, h);
        if (keys < 0) {
            gy_least_row_note(&c->wrong, h / a->per);
            break;
        }
        gy_attention_rows all = { h, 0, keys, true };
        void *k = gy_attention_take(a, &l->arg[GY_ATTENTION_K], all, w.k);
        void *v = gy_attention_take(a, &l->arg[GY_ATTENTION_V], all, w.v);
        for (int64_t r = 0; r < a->rows; r += BLOCK) {
            gy_attention_rows these = { h, r, a->rows - r < BLOCK ? a->rows - r : BLOCK, false };
            attend(l, c, &w, these, keys, k, v);
        }
    }
    free_work(&w);
    return made ? GANTRY_OK : GANTRY_E_NOMEM;
}

gantry_status gy_attention_run_as(const gantry_launch *l, const gy_attention *a, int length, int y, int lse)
{
    call c = { .a = *a, .length = length, .y = y, .wrong = INT64_MAX };
    c.lse = lse && l->arg[lse].access ? lse : 0;
    double flops = 4.0 * (double)c.a.rows * (double)c.a.m * (double)c.a.d;
    gantry_status status = gy_linalg_cut(l, c.a.heads, flops, do_heads, &c);
    gy_least_row_tell(&c.wrong, l);
    return status;
}

gantry_status gy_attention_run(const gantry_launch *l, int length, int y, int lse)
{
    gy_attention a = gy_attention_of(l, length);
    return gy_attention_run_as(l, &a, length, y, lse);
}

/* ---- checks ---- */

static gantry_status check_axes(const gantry_launch *l, int i, int other, char *text, size_t size)
{
    static const char *const what[] = { "sequences", "heads", "queries or keys", "elements of a head" };
    const gantry_arg *a = &l->arg[i], *as = &l->arg[other];
    if (a->rank != 3 && a->rank != 4)
        return gy_check_fail(text, size,
                             "\"%s\" has %d axes; it must have 3, heads, queries or keys, and elements, or 4, with "
                             "sequences before them",
                             a->name, (int)a->rank);
    if (a->rank != as->rank)
        return gy_check_fail(text, size, "\"%s\" has %d axes and \"%s\" %d; they must have as many", a->name,
                             (int)a->rank, as->name, (int)as->rank);
    for (int axis = 0; axis < a->rank; axis++) {
        int64_t is = axis ? a->shape[axis] : a->rows, should = axis ? as->shape[axis] : as->rows;
        if (is != should)
            return gy_check_fail(text, size, "\"%s\" has %lld %s and \"%s\" %lld; they must agree", a->name,
                                 (long long)is, what[axis + 4 - a->rank], as->name, (long long)should);
    }
    return GANTRY_OK;
}

static gantry_status check_lse_type(const gantry_launch *l, int lse, char *text, size_t size)
{
    const gantry_arg *a = &l->arg[lse], *q = &l->arg[GY_ATTENTION_Q];
    if ((a->dtype == GANTRY_F64) != (q->dtype == GANTRY_F64))
        return gy_check_fail(text, size, "\"%s\" is %s and \"q\" %s; it must be f64 where \"q\" is, else f32", a->name,
                             gantry_dtype_name(a->dtype), gantry_dtype_name(q->dtype));
    return GANTRY_OK;
}

static gantry_status check_lse_axes(const gantry_launch *l, int lse, char *text, size_t size)
{
    const gantry_arg *a = &l->arg[lse], *q = &l->arg[GY_ATTENTION_Q];
    bool fits = a->rank == q->rank - 1 && a->rows == q->rows;
    for (int axis = 1; axis < a->rank && fits; axis++)
        fits = a->shape[axis] == q->shape[axis];
    if (!fits)
        return gy_check_fail(text, size,
                             "\"%s\" has %d axes and %lld elements for %lld queries of all heads; it must have the "
                             "axes of \"q\" without the last one",
                             a->name, (int)a->rank, (long long)gy_arg_size(a),
                             (long long)(gy_attention_heads(q) * q->shape[q->rank - 2]));
    return GANTRY_OK;
}

static gantry_status check_heads(const gantry_launch *l, int length, char *text, size_t size)
{
    const gantry_arg *q = &l->arg[GY_ATTENTION_Q], *k = &l->arg[GY_ATTENTION_K];
    int64_t heads = gy_attention_heads(q), of_keys = gy_attention_heads(k);
    if (q->rank != k->rank || (q->rank == 4 && q->rows != k->rows))
        return gy_check_fail(text, size,
                             "\"q\" has %d axes and %lld rows, \"k\" %d and %lld; both must have 3, or 4 and as many "
                             "sequences",
                             (int)q->rank, (long long)q->rows, (int)k->rank, (long long)k->rows);
    if (q->shape[q->rank - 1] != k->shape[k->rank - 1] || q->shape[q->rank - 1] > GY_ATTENTION_WIDEST)
        return gy_check_fail(
            text, size,
            "heads of \"q\" have %lld elements and those of \"k\" %lld; they must have as many, and at "
            "most %d",
            (long long)q->shape[q->rank - 1], (long long)k->shape[k->rank - 1], GY_ATTENTION_WIDEST);
    if (of_keys ? heads % of_keys : heads)
        return gy_check_fail(
            text, size, "\"q\" has %lld heads and \"k\" %lld; those of \"q\" must be as many or a multiple of them",
            (long long)heads, (long long)of_keys);
    int64_t lengths = length ? gy_arg_size(&l->arg[length]) : 1;
    if (lengths < 1 || of_keys % lengths)
        return gy_check_fail(text, size,
                             "\"%s\" has %lld elements for %lld heads of \"k\"; it must have one, or one for "
                             "each so many heads",
                             l->arg[length].name, (long long)lengths, (long long)of_keys);
    return GANTRY_OK;
}

gantry_status gy_attention_check_inputs(const gantry_launch *l, int length, char *text, size_t size)
{
    const gantry_arg *causal = &l->arg[GY_ATTENTION_CAUSAL];
    if (causal->number != 0 && causal->number != 1)
        return gy_check_fail(text, size, "\"causal\" is %g; it must be 0 or 1", causal->number);
    static const int as[] = { GY_ATTENTION_Q, GY_ATTENTION_K, GY_ATTENTION_K };
    gantry_status status = GANTRY_OK;
    for (int i = GY_ATTENTION_Q; i <= GY_ATTENTION_V && !status; i++)
        status = check_axes(l, i, as[i - GY_ATTENTION_Q], text, size);
    return status ? status : check_heads(l, length, text, size);
}

/* ---- checks where heads lie side by side ---- */

static gantry_status check_matrix(const gantry_launch *l, int i, int other, int64_t d, char *text, size_t size)
{
    const gantry_arg *a = &l->arg[i], *as = &l->arg[other];
    if (a->rank != 2 || gy_arg_width(a) % d)
        return gy_check_fail(text, size,
                             "\"%s\" has %d axes and rows of %lld elements; with \"dim\" %lld it must be a matrix, "
                             "each row of which is heads of %lld elements side by side",
                             a->name, (int)a->rank, (long long)gy_arg_width(a), (long long)d, (long long)d);
    if (a->rows != as->rows || gy_arg_width(a) != gy_arg_width(as))
        return gy_check_fail(text, size, "\"%s\" is %lld x %lld and \"%s\" %lld x %lld; they must agree", a->name,
                             (long long)a->rows, (long long)gy_arg_width(a), as->name, (long long)as->rows,
                             (long long)gy_arg_width(as));
    return GANTRY_OK;
}

/* Numbers, then that sequences and heads divide what there is. */
static gantry_status check_numbers(const gantry_launch *l, int dim, char *text, size_t size)
{
    const gantry_arg *causal = &l->arg[GY_ATTENTION_CAUSAL], *d = &l->arg[dim], *length = &l->arg[dim + 1];
    if (causal->number != 0 && causal->number != 1)
        return gy_check_fail(text, size, "\"causal\" is %g; it must be 0 or 1", causal->number);
    if (d->number != (double)d->integer || d->number < 0 || d->number > GY_ATTENTION_WIDEST)
        return gy_check_fail(text, size, "\"dim\" is %g; it must be a whole number, 0 or at most %d elements of a head",
                             d->number, GY_ATTENTION_WIDEST);
    if (length->number != (double)length->integer || length->number < 0)
        return gy_check_fail(text, size, "\"length\" is %g; it must be a whole number of at least 0", length->number);
    if (length->number > 0 && d->number == 0)
        return gy_check_fail(text, size,
                             "\"length\" is %g and \"dim\" 0; sequences of rows are those of matrices, which want "
                             "\"dim\", else they have an axis of their own",
                             length->number);
    return GANTRY_OK;
}

static gantry_status check_sequences(const gantry_launch *l, int dim, char *text, size_t size)
{
    const gantry_arg *q = &l->arg[GY_ATTENTION_Q], *k = &l->arg[GY_ATTENTION_K];
    int64_t d = l->arg[dim].integer, n = gy_attention_queries(l, dim);
    int64_t heads = gy_arg_width(q) / d, of_keys = gy_arg_width(k) / d, sequences = n ? q->rows / n : 0;
    if ((n ? q->rows % n : 0) || (sequences ? k->rows % sequences : k->rows))
        return gy_check_fail(text, size,
                             "\"q\" has %lld rows and \"k\" %lld, with sequences of %lld queries (\"length\"); the "
                             "rows of \"q\" must be whole sequences, and those of \"k\" as many of them",
                             (long long)q->rows, (long long)k->rows, (long long)n);
    if (of_keys ? heads % of_keys : heads)
        return gy_check_fail(
            text, size, "\"q\" has %lld heads and \"k\" %lld; those of \"q\" must be as many or a multiple of them",
            (long long)heads, (long long)of_keys);
    return GANTRY_OK;
}

static gantry_status check_lse_of_rows(const gantry_launch *l, int lse, int dim, char *text, size_t size)
{
    const gantry_arg *a = &l->arg[lse], *q = &l->arg[GY_ATTENTION_Q];
    int64_t n = gy_attention_queries(l, dim), heads = gy_arg_width(q) / l->arg[dim].integer;
    int64_t sequences = n ? q->rows / n : 0;
    if (a->rank != 3 || a->rows != sequences || a->shape[1] != heads || a->shape[2] != n)
        return gy_check_fail(text, size,
                             "\"%s\" has %d axes and %lld elements; with \"dim\" it must have 3, %lld sequences, %lld "
                             "heads and %lld queries",
                             a->name, (int)a->rank, (long long)gy_arg_size(a), (long long)sequences, (long long)heads,
                             (long long)n);
    return GANTRY_OK;
}

/* ---- checks of attention and its gradient ---- */

static gantry_status check_rows(const gantry_launch *l, int last, const int as[], int dim, char *text, size_t size)
{
    gantry_status status = GANTRY_OK;
    for (int i = GY_ATTENTION_Q; i <= last && !status; i++)
        status = check_matrix(l, i, as[i], l->arg[dim].integer, text, size);
    return status ? status : check_sequences(l, dim, text, size);
}

gantry_status gy_attention_check_all(const gantry_launch *l, int last, const int as[], int dim, char *text, size_t size)
{
    bool in_rows = l->arg[dim].number != 0;
    int lse = last + 1;
    gantry_status status = check_numbers(l, dim, text, size);
    if (!status)
        status = in_rows ? check_rows(l, last, as, dim, text, size) : gy_attention_check_inputs(l, 0, text, size);
    for (int i = GY_ATTENTION_V + 1; i <= last && !in_rows && !status; i++)
        status = check_axes(l, i, as[i], text, size);
    if (status || !l->arg[lse].access)
        return status;
    status = check_lse_type(l, lse, text, size);
    if (status)
        return status;
    return in_rows ? check_lse_of_rows(l, lse, dim, text, size) : check_lse_axes(l, lse, text, size);
}
