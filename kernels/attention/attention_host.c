/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of queries at a time: products with all keys, their softmax, the product with the values. Products are those
 * of gemm, in float but for f64; f16 and bf16 are made float head by head. */
#include "kernels/attention/attention_host.h"
#include "base/memory.h"
#include <math.h>

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
    bool narrow = dtype == GANTRY_F16 || dtype == GANTRY_BF16;
    *w = (work){ .dtype = dtype == GANTRY_F64 ? GANTRY_F64 : GANTRY_F32 };
    w->size = gantry_dtype_size(w->dtype);
    w->scores = gy_calloc(BLOCK * (size_t)a->m + 1, w->size);
    if (!narrow)
        return w->scores != NULL;
    w->q = gy_calloc(BLOCK * (size_t)a->d + 1, w->size);
    w->k = gy_calloc((size_t)(a->m * a->d) + 1, w->size);
    w->v = gy_calloc((size_t)(a->m * a->d) + 1, w->size);
    w->result = gy_calloc(BLOCK * (size_t)a->d + 1, w->size);
    return w->scores && w->q && w->k && w->v && w->result;
}

void *gy_attention_widened(const gantry_arg *x, int64_t first, int64_t count, float *room)
{
    uint16_t *from = (uint16_t *)x->data + first;
    if (!room)
        return (char *)x->data + first * (int64_t)gantry_dtype_size(x->dtype);
    for (int64_t i = 0; i < count; i++)
        room[i] = x->dtype == GANTRY_F16 ? gy_f16_to_float(from[i]) : gy_bf16_to_float(from[i]);
    return room;
}

void gy_attention_narrow(const gantry_arg *y, int64_t first, int64_t count, const float *from)
{
    uint16_t *to = (uint16_t *)y->data + first;
    for (int64_t i = 0; i < count && from; i++)
        to[i] = y->dtype == GANTRY_F16 ? gy_float_to_f16(from[i]) : gy_float_to_bf16(from[i]);
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

/* Rows [first, first + rows) of a head. Keys that none of them sees are left out. */
static void attend(const gantry_launch *l, const call *c, const work *w, int64_t at, int64_t rows, int64_t first,
                   int64_t length, void *k, void *v)
{
    const gy_linalg *table = gy_linalg_of(l);
    const gy_attention *a = &c->a;
    const gantry_arg *y = &l->arg[c->y];
    int64_t keys = gy_attention_seen_by_any(a, first, rows, length);
    void *to = w->result ? w->result : (char *)y->data + at * a->d * (int64_t)w->size;
    gy_matrix q = { gy_attention_widened(&l->arg[GY_ATTENTION_Q], at * a->d, rows * a->d, w->q), rows, a->d, a->d };
    gy_matrix scores = { w->scores, rows, keys, keys }, out = { to, rows, a->d, a->d };
    table->gemm(w->dtype, 0, 1, a->scale, q, (gy_matrix){ k, keys, a->d, a->d }, 0, scores);
    for (int64_t r = 0; r < rows; r++) {
        double lse = gy_attention_soften(w->dtype, w->scores, r, gy_attention_seen(a, first + r, length), keys);
        if (c->lse)
            keep(&l->arg[c->lse], at + r, lse);
    }
    table->gemm(w->dtype, 0, 0, 1, scores, (gy_matrix){ v, keys, a->d, a->d }, 0, out);
    gy_attention_narrow(y, at * a->d, rows * a->d, w->result);
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
        void *k = gy_attention_widened(&l->arg[GY_ATTENTION_K], h * a->m * a->d, keys * a->d, w.k);
        void *v = gy_attention_widened(&l->arg[GY_ATTENTION_V], h * a->m * a->d, keys * a->d, w.v);
        for (int64_t r = 0; r < a->rows; r += BLOCK)
            attend(l, c, &w, h * a->rows + r, a->rows - r < BLOCK ? a->rows - r : BLOCK, r, keys, k, v);
    }
    free_work(&w);
    return made ? GANTRY_OK : GANTRY_E_NOMEM;
}

gantry_status gy_attention_run(const gantry_launch *l, int length, int y, int lse)
{
    call c = { .a = gy_attention_of(l, length), .length = length, .y = y, .wrong = INT64_MAX };
    c.lse = lse && l->arg[lse].access ? lse : 0;
    double flops = 4.0 * (double)c.a.rows * (double)c.a.m * (double)c.a.d;
    gantry_status status = gy_linalg_cut(l, c.a.heads, flops, do_heads, &c);
    gy_least_row_tell(&c.wrong, l);
    return status;
}

/* ---- checks ---- */

gantry_status gy_attention_check_axes(const gantry_launch *l, int i, int other, char *text, size_t size)
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

gantry_status gy_attention_check_lse(const gantry_launch *l, int lse, char *text, size_t size)
{
    const gantry_arg *a = &l->arg[lse], *q = &l->arg[GY_ATTENTION_Q];
    if (!a->access)
        return GANTRY_OK;
    if ((a->dtype == GANTRY_F64) != (q->dtype == GANTRY_F64))
        return gy_check_fail(text, size, "\"%s\" is %s and \"q\" %s; it must be f64 where \"q\" is, else f32", a->name,
                             gantry_dtype_name(a->dtype), gantry_dtype_name(q->dtype));
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
        status = gy_attention_check_axes(l, i, as[i - GY_ATTENTION_Q], text, size);
    return status ? status : check_heads(l, length, text, size);
}

gantry_status gy_attention_check(const gantry_launch *l, int length, int y, char *text, size_t size)
{
    gantry_status status = gy_attention_check_inputs(l, length, text, size);
    return status ? status : gy_attention_check_axes(l, y, GY_ATTENTION_Q, text, size);
}
