/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attention and attention_grad in f64, attention_grad in f32, and attention in f32 where our own kernel has no tensor
 * cores, by products of cuBLAS and the softmax of this library: scores lie in memory, a portion at a time, so that they
 * stay in the cache of the GPU. Ordinary cores multiply at their best that way, which a fused kernel of our own does
 * not reach. Small ones, f16 and bf16, and queries that see no key are left to our own kernel.
 *
 *   forward    S = q k^T, P = softmax(scale S), y = P v
 *   backward   P again; dv = P^T dy, dP = dy v^T, dS = scale P (dP - sum(y dy)), dq = dS k, dk = dS^T q
 *
 * P and dS of f32 come from our own kernel where it has tensor cores, which makes them of q, k, dy and v at once: 2
 * passes over scores in place of 7.
 *
 * What portions (attention_portions.c) add to the same dv and dk comes in one order.
 */
#include "backends/cuda/kernels/attention_portions.h"
#include "backends/cuda/kernels/blas_calls.h"
#include "backends/cuda/kernels/plain.h"
#include "kernels/attention_grad/attention_grad.h"
#include "kernels/rows_launch.h"

#include "base/error.h"
#include "base/memory.h"

enum {
    Y = GY_ATTENTION_V + 1, /* of attention */
    LSE,
    OF_ATTENTION = 1,       /* variant of softmax and of softmax_grad */
    PIECE = 256,            /* bytes that pieces of scratch begin at multiples of */
    LEAST_SCORES = 1 << 20, /* below, three launches or seven take longer than the own kernel's one or four */
    PAIRS = 4,              /* of arguments that are as q and k, of the gradient; attention has half as many */
    SPLIT_WIDEST = GY_GRAD_SPLIT_WIDEST
};

extern const gy_cuda_kernel gy_cuda_kernel_softmax, gy_cuda_kernel_softmax_grad, gy_cuda_kernel_transpose;

typedef struct handle {
    const gy_driver *driver;
    const gy_cuda_kernel *own;
    gy_blas_calls blas;         /* opened with the next two, when a launch that wants them is prepared */
    void *soften, *soften_grad; /* handles of softmax and softmax_grad */
    void *turn;                 /* of transpose */
    void *plain;                /* of the own kernel, an image */
    const char *why;            /* the last launch failed; NULL: the own kernel knows */
} handle;

/* ---- opened and closed ---- */

static void close_products(void *opened)
{
    handle *h = opened;
    gy_blas_calls_close(&h->blas);
    if (h->soften)
        gy_cuda_kernel_softmax.close(h->soften);
    if (h->soften_grad)
        gy_cuda_kernel_softmax_grad.close(h->soften_grad);
    if (h->turn)
        gy_cuda_kernel_transpose.close(h->turn);
    if (h->plain)
        h->own->close(h->plain);
    gy_free(h);
}

static gantry_status open_products(void **opened, const gy_cuda_kernel *kernel, const gy_driver *driver,
                                   gantry_error *err)
{
    handle *h = gy_calloc(1, sizeof *h);
    if (!h)
        return gy_fail_nomem(err);
    h->driver = driver;
    h->own = kernel->data;
    gantry_status status = h->own->open(&h->plain, h->own, driver, err);
    if (status) {
        h->plain = NULL;
        close_products(h);
        return status;
    }
    *opened = h;
    return GANTRY_OK;
}

static gantry_status open_image(void **slot, const gy_cuda_kernel *kernel, const gy_driver *driver, gantry_error *err)
{
    gantry_status status = *slot ? GANTRY_OK : kernel->open(slot, kernel, driver, err);
    if (status)
        *slot = NULL;
    return status;
}

static gantry_status open_parts(handle *h, gantry_error *err)
{
    GY_TRY(h->blas.cublas ? GANTRY_OK : gy_blas_calls_open(&h->blas, h->driver, err));
    GY_TRY(open_image(&h->soften, &gy_cuda_kernel_softmax, h->driver, err));
    GY_TRY(open_image(&h->turn, &gy_cuda_kernel_transpose, h->driver, err));
    return open_image(&h->soften_grad, &gy_cuda_kernel_softmax_grad, h->driver, err);
}

static const char *why_products(const void *opened)
{
    const handle *h = opened;
    return h->why ? h->why : h->own->why(h->plain);
}

/* ---- what a launch takes ---- */

/* The work of one launch, and where scores of a portion, those of the gradients, and arguments that are turned, are in
 * scratch. */
typedef struct work {
    gy_portions cut;
    gantry_dtype dtype;
    bool is_split; /* our own kernel makes weights and slopes of floats on tensor cores, and has `sums` for it */
    uint64_t workspace, scores, slopes, sums, turned, end;
} work;

static bool is_grad(const handle *h)
{
    return h->own == &gy_plain_attention_grad;
}

static gy_attention shape_of(const handle *h, const gantry_launch *l)
{
    return gy_attention_in_rows(l, is_grad(h) ? (int)GY_ATTENTION_GRAD_DIM : (int)GY_ATTENTION_DIM);
}

/* The same with heads that follow each other. */
static gy_attention apart(const gy_attention *a)
{
    gy_attention of = *a;
    of.beside = 1;
    of.line = of.key_line = of.d;
    return of;
}

/* Does our own kernel take floats in two parts to tensor cores? */
static bool own_splits(const handle *h, const gantry_launch *l, const gy_attention *a)
{
    return l->arg[GY_ATTENTION_Q].dtype == GANTRY_F32 && a->d <= SPLIT_WIDEST && gy_cuda_image_splits(h->plain);
}

/* All of attention goes there sooner than cuBLAS multiplies; its gradient would make more products again than that
 * saves. */
static bool is_wanted(const gantry_launch *l, const gy_attention *a)
{
    const handle *h = l->handle;
    gantry_dtype dtype = l->arg[GY_ATTENTION_Q].dtype;
    bool is_own = !is_grad(h) && own_splits(h, l, a);
    return (dtype == GANTRY_F32 || dtype == GANTRY_F64) && !is_own && a->d > 0 &&
           gy_portions_fit(a, (int64_t)gantry_dtype_size(dtype)) &&
           (double)a->heads * (double)a->rows * (double)a->m >= LEAST_SCORES;
}

static uint64_t pieces(uint64_t bytes)
{
    return (bytes + PIECE - 1) / PIECE * PIECE;
}

static work work_of(const handle *h, const gantry_launch *l, const gy_attention *a)
{
    work w = { .dtype = l->arg[GY_ATTENTION_Q].dtype };
    gy_attention heads = apart(a);
    uint64_t elements = (uint64_t)(a->heads * (a->rows + a->m) * a->d);
    w.cut = gy_portions_of(&heads, (int64_t)gantry_dtype_size(w.dtype));
    uint64_t bytes = pieces((uint64_t)gy_portions_bytes(&w.cut));
    w.workspace = gy_blas_workspace(h->driver, l->device_ordinal);
    w.scores = w.workspace;
    w.slopes = w.scores + bytes;
    w.sums = is_grad(h) ? w.slopes + bytes : w.slopes;
    w.is_split = is_grad(h) && own_splits(h, l, a);
    w.turned = w.sums + (w.is_split ? pieces(2 * sizeof(float) * (uint64_t)(a->heads * a->rows)) : 0);
    w.end = w.turned;
    if (gy_attention_is_in_rows(a))
        w.end += 2 * PAIRS * PIECE + elements * gantry_dtype_size(w.dtype) * (is_grad(h) ? PAIRS : PAIRS / 2);
    return w;
}

static gantry_launch part_of(const gantry_launch *l, void *opened)
{
    gantry_launch part = *l;
    part.handle = opened;
    return part;
}

static gantry_launch plain_of(const gantry_launch *l)
{
    return part_of(l, ((const handle *)l->handle)->plain);
}

/* The types of the launch's arguments are those that the two kernels are launched with. */
static gantry_status prepare_parts(const handle *h, const gantry_launch *l, uint64_t *scratch, gantry_error *err)
{
    gantry_launch soften = part_of(l, h->soften), soften_grad = part_of(l, h->soften_grad), turn = part_of(l, h->turn);
    GY_TRY(gy_cuda_image_prepare(&turn, scratch, err));
    GY_TRY(gy_cuda_image_prepare(&soften, scratch, err));
    return gy_cuda_image_prepare(&soften_grad, scratch, err);
}

static gantry_status prepare_products(const gantry_launch *l, uint64_t *scratch, gantry_error *err)
{
    handle *h = l->handle;
    gy_attention shape = shape_of(h, l);
    gantry_launch plain = plain_of(l);
    if (!is_wanted(l, &shape))
        return h->own->prepare(&plain, scratch, err);
    work w = work_of(h, l, &shape);
    *scratch = w.end > *scratch ? w.end : *scratch;
    GY_TRY(open_parts(h, err));
    if (w.is_split)
        GY_TRY(gy_cuda_image_prepare(&plain, scratch, err));
    return prepare_parts(h, l, scratch, err);
}

/* ---- launches ---- */

/* A launch as the functions below take it. */
typedef struct doing {
    handle *h;
    const gantry_launch *l;
    const work *w;
} doing;

/* A matrix of each head, `step` elements apart. */
typedef struct stack {
    void *data;
    int64_t rows, columns, step;
} stack;

/* Rows of an argument from `row` on, of which each head has `all`. */
static stack rows_of(const doing *now, int argument, int64_t head, int64_t all, int64_t row, int64_t rows)
{
    char *data = now->l->arg[argument].data;
    int64_t d = now->w->cut.of.d;
    return (stack){ data + (head * all + row) * d * now->w->cut.size, rows, d, all * d };
}

static stack queries_of(const doing *now, const gy_portion *x, int argument)
{
    return rows_of(now, argument, x->head, now->w->cut.of.rows, x->row, x->rows);
}

static stack keys_of(const doing *now, const gy_portion *x, int argument)
{
    return rows_of(now, argument, x->head, now->w->cut.of.m, 0, x->keys);
}

static stack scores_at(const doing *now, const gy_portion *x, uint64_t at)
{
    return (stack){ (char *)now->l->scratch + at, x->rows, x->keys, x->rows * x->keys };
}

static gy_gpu_matrix matrix_of(const stack *s)
{
    return (gy_gpu_matrix){ s->data, (int)s->rows, (int)s->columns, (int)s->columns };
}

/* c = op(a) op(b) + beta c of the portion's heads */
static gantry_status multiply(const doing *now, const gy_portion *x, stack a, bool ta, stack b, bool tb, double beta,
                              stack c)
{
    handle *h = now->h;
    gy_blas_product product =
        gy_blas_product_of(now->w->dtype, now->w->dtype, 1, beta, matrix_of(&a), ta, matrix_of(&b), tb, matrix_of(&c));
    long long step[3] = { a.step, b.step, c.step };
    gantry_status status = gy_blas_multiply(&h->blas, &product, (int)x->heads, step);
    h->why = status ? h->blas.why : NULL;
    return status;
}

/* Scores become weights where they are, by the logarithms of their sums if attention has kept them; attention keeps
 * them if they are wanted. */
static gantry_status soften(const doing *now, const gy_portion *x, stack s)
{
    handle *h = now->h;
    double scale = now->w->cut.of.scale;
    int64_t causal = now->w->cut.of.causal, before = x->before, period = x->period, rows = x->heads * x->rows;
    int64_t lines = x->rows, step = now->w->cut.of.rows, first = x->head * step + x->row;
    char *all = now->l->arg[is_grad(h) ? (int)GY_ATTENTION_GRAD_LSE : (int)LSE].data;
    void *lse = all ? all + first * now->w->cut.size : NULL;
    int64_t given = is_grad(h) && lse;
    gantry_launch part = part_of(now->l, h->soften);
    gantry_status status = gy_cuda_image_launch(&part, OF_ATTENTION, now->w->dtype, gy_rows_grid(rows, s.columns),
                                                (void *[]){ &scale, &causal, &before, &period, &s.data, &s.data, &rows,
                                                            &s.columns, &lse, &given, &lines, &step });
    h->why = status ? gy_cuda_image_why(h->soften) : NULL;
    return status;
}

/* The sum of y dy of a query, of y as it is given, is taken off the slopes of its weights. */
static gantry_status soften_grad(const doing *now, const gy_portion *x, stack weights, stack slopes, stack y, stack dy)
{
    handle *h = now->h;
    double scale = now->w->cut.of.scale;
    int64_t rows = x->heads * x->rows, period = x->rows, step = now->w->cut.of.rows;
    gantry_launch part = part_of(now->l, h->soften_grad);
    gantry_status status =
        gy_cuda_image_launch(&part, OF_ATTENTION, now->w->dtype, gy_rows_grid(rows, weights.columns),
                             (void *[]){ &scale, &weights.data, &slopes.data, &slopes.data, &rows, &weights.columns,
                                         &y.data, &dy.data, &y.columns, &period, &step });
    h->why = status ? gy_cuda_image_why(h->soften_grad) : NULL;
    return status;
}

static gantry_status run_forward(const doing *now, const gy_portion *x)
{
    stack q = queries_of(now, x, GY_ATTENTION_Q), y = queries_of(now, x, Y);
    stack k = keys_of(now, x, GY_ATTENTION_K), v = keys_of(now, x, GY_ATTENTION_V);
    stack s = scores_at(now, x, now->w->scores);
    GY_TRY(multiply(now, x, q, false, k, true, 0, s));
    GY_TRY(soften(now, x, s));
    return multiply(now, x, s, false, v, false, 0, y);
}

/* The logarithms of all queries, if they are not given, and the sums of y dy. */
static gantry_status sum_up(const doing *now)
{
    gantry_launch plain = plain_of(now->l);
    return gy_plain_attention_grad_sums(&plain, &now->w->cut.of, (char *)now->l->scratch + now->w->sums);
}

/* Weights and slopes of a portion by our own kernel. */
static gantry_status weigh(const doing *now, const gy_portion *x, stack weights, stack slopes)
{
    gantry_launch plain = plain_of(now->l);
    gy_grad_portion p = { x->head, x->row, x->rows, x->keys, weights.data, slopes.data };
    return gy_plain_attention_grad_weigh(&plain, &now->w->cut.of, (char *)now->l->scratch + now->w->sums, x->heads, &p);
}

/* The same by cuBLAS, one after the other. */
static gantry_status multiply_weights(const doing *now, const gy_portion *x, stack weights, stack slopes)
{
    stack q = queries_of(now, x, GY_ATTENTION_Q), k = keys_of(now, x, GY_ATTENTION_K);
    stack v = keys_of(now, x, GY_ATTENTION_V), y = queries_of(now, x, GY_ATTENTION_GRAD_Y);
    stack dy = queries_of(now, x, GY_ATTENTION_GRAD_DY);
    GY_TRY(multiply(now, x, q, false, k, true, 0, weights));
    GY_TRY(soften(now, x, weights));
    GY_TRY(multiply(now, x, dy, false, v, true, 0, slopes));
    return soften_grad(now, x, weights, slopes, y, dy);
}

static gantry_status run_backward(const doing *now, const gy_portion *x)
{
    stack q = queries_of(now, x, GY_ATTENTION_Q), dy = queries_of(now, x, GY_ATTENTION_GRAD_DY);
    stack dq = queries_of(now, x, GY_ATTENTION_GRAD_DQ), k = keys_of(now, x, GY_ATTENTION_K);
    stack dk = keys_of(now, x, GY_ATTENTION_GRAD_DK), dv = keys_of(now, x, GY_ATTENTION_GRAD_DV);
    stack s = scores_at(now, x, now->w->scores), ds = scores_at(now, x, now->w->slopes);
    GY_TRY(now->w->is_split ? weigh(now, x, s, ds) : multiply_weights(now, x, s, ds));
    GY_TRY(multiply(now, x, s, true, dy, false, x->more, dv));
    GY_TRY(multiply(now, x, ds, false, k, false, 0, dq));
    return multiply(now, x, ds, true, q, false, x->more, dk);
}

/* ---- heads side by side ---- */

/* A launch as of heads that follow each other: its arguments, in scratch. Products in place would be those of each
 * sequence alone: in f32 attention of 16 sequences of 16 heads of 512 and its gradient took 1.15 times as long so. */
typedef struct turned {
    gantry_arg arg[GY_ATTENTION_GRAD_LSE + 1];
    gantry_launch launch;
} turned;

static bool are_keys(int argument)
{
    return argument == GY_ATTENTION_K || argument == GY_ATTENTION_V || argument == GY_ATTENTION_GRAD_DK ||
           argument == GY_ATTENTION_GRAD_DV;
}

static turned turned_of(const gantry_launch *l, const handle *h, const work *w, const gy_attention *a)
{
    int last = is_grad(h) ? (int)GY_ATTENTION_GRAD_DV : (int)Y;
    turned t = { .launch = *l };
    char *next = (char *)l->scratch + w->turned;
    for (int i = 0; i <= last + 1; i++) {
        t.arg[i] = l->arg[i];
        if (i < GY_ATTENTION_Q || i > last)
            continue;
        t.arg[i].data = next;
        next += pieces((uint64_t)(a->heads * (are_keys(i) ? a->m : a->rows) * a->d * w->cut.size));
    }
    return t;
}

/* An argument to scratch, or back. */
static gantry_status turn(handle *h, const gantry_launch *l, const turned *t, const gy_attention *a, int i, bool back)
{
    int64_t sequences = a->heads / a->beside, n = are_keys(i) ? a->m : a->n, heads = gy_arg_width(&l->arg[i]) / a->d;
    int64_t shape[] = { sequences, heads, n, a->d };
    gantry_arg rows = l->arg[i], other = l->arg[i];
    other.rank = 4;
    other.shape = shape;
    other.rows = sequences;
    other.row_bytes = heads * n * a->d * (int64_t)gantry_dtype_size(other.dtype);
    other.data = t->arg[i].data;
    gantry_arg arg[] = { { .name = "axis", .number = 1, .integer = 1 }, back ? other : rows, back ? rows : other };
    gantry_launch part = part_of(l, h->turn);
    part.args = 3;
    part.arg = arg;
    gantry_status status = gy_cuda_kernel_transpose.launch(&part);
    h->why = status ? gy_cuda_image_why(h->turn) : NULL;
    return status;
}

/* The array that is read, or that was written. */
static gantry_status turn_all(handle *h, const gantry_launch *l, const turned *t, const gy_attention *a, bool back)
{
    int written = is_grad(h) ? (int)GY_ATTENTION_GRAD_DQ : (int)Y;
    int last = is_grad(h) ? (int)GY_ATTENTION_GRAD_DV : (int)Y;
    for (int i = GY_ATTENTION_Q; i <= last; i++)
        if ((i >= written) == back)
            GY_TRY(turn(h, l, t, a, i, back));
    return GANTRY_OK;
}

static gantry_status run_portions(handle *h, const gantry_launch *l, const work *w)
{
    doing now = { h, l, w };
    gantry_status status = w->is_split ? sum_up(&now) : GANTRY_OK;
    for (gy_portion x = { 0 }; !status && gy_portions_next(&w->cut, &x);)
        status = is_grad(h) ? run_backward(&now, &x) : run_forward(&now, &x);
    return status;
}

static gantry_status run_turned(handle *h, const gantry_launch *l, const work *w, const gy_attention *a)
{
    turned t = turned_of(l, h, w, a);
    t.launch.arg = t.arg;
    GY_TRY(turn_all(h, l, &t, a, false));
    GY_TRY(run_portions(h, &t.launch, w));
    return turn_all(h, l, &t, a, true);
}

static gantry_status launch_products(const gantry_launch *l)
{
    handle *h = l->handle;
    gy_attention shape = shape_of(h, l);
    h->why = NULL;
    if (!is_wanted(l, &shape)) {
        gantry_launch plain = plain_of(l);
        return h->own->launch(&plain);
    }
    work w = work_of(h, l, &shape);
    gantry_status status = gy_blas_begin(&h->blas, l, w.workspace);
    h->why = status ? h->blas.why : NULL;
    if (status)
        return status;
    return gy_attention_is_in_rows(&shape) ? run_turned(h, l, &w, &shape) : run_portions(h, l, &w);
}

#define PRODUCTS(name_)                                                                                                \
    const gy_cuda_kernel gy_products_##name_ = { .name = #name_,                                                       \
                                                 .launch = launch_products,                                            \
                                                 .open = open_products,                                                \
                                                 .close = close_products,                                              \
                                                 .data = &gy_plain_##name_,                                            \
                                                 .usable = gy_blas_usable,                                             \
                                                 .prepare = prepare_products,                                          \
                                                 .why = why_products,                                                  \
                                                 .loads = gy_linalg_loads };
PRODUCTS(attention)
PRODUCTS(attention_grad)
