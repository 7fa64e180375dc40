/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attention and attention_grad in f32 and f64 by products of cuBLAS and the softmax of this library: scores lie in
 * memory, of a few heads at a time, so that they stay in the cache of the GPU. Ordinary cores multiply at their best
 * that way, which a fused kernel of our own does not reach. Small ones, f16 and bf16, queries and keys that are not as
 * many under a causal mask, and queries that see no key are left to our own kernel.
 *
 *   forward    S = q k^T, P = softmax(scale S), y = P v
 *   backward   P again; dv = P^T dy, dP = dy v^T, dS = scale P (dP - sum(y dy)), dq = dS k, dk = dS^T q
 */
#include "backends/cuda/kernels/blas_calls.h"
#include "backends/cuda/kernels/plain.h"
#include "kernels/attention_grad/attention_grad.h"
#include "kernels/rows_launch.h"

#include "base/error.h"
#include "base/memory.h"
#include <limits.h>

enum {
    Y = GY_ATTENTION_V + 1, /* of attention */
    OF_OTHERS = 1,          /* variant of softmax_grad */
    PIECE = 256,            /* bytes that pieces of scratch begin at multiples of */
    AT_A_TIME = 64 << 20,   /* bytes of scores, if heads have fewer: so that all of a GPU has work */
    MOST_BYTES = 512 << 20, /* of scores of one head */
    LEAST_SCORES = 1 << 20  /* below, three launches or seven take longer than the own kernel's one or four */
};

extern const gy_cuda_kernel gy_cuda_kernel_softmax, gy_cuda_kernel_softmax_grad;

typedef struct handle {
    const gy_driver *driver;
    const gy_cuda_kernel *own;
    gy_blas_calls blas;         /* opened with the next two, when a launch that wants them is prepared */
    void *soften, *soften_grad; /* handles of softmax and softmax_grad */
    void *plain;                /* of the own kernel */
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
    return open_image(&h->soften_grad, &gy_cuda_kernel_softmax_grad, h->driver, err);
}

static const char *why_products(const void *opened)
{
    const handle *h = opened;
    return h->why ? h->why : h->own->why(h->plain);
}

/* ---- what a launch takes ---- */

/* The work of one launch: heads of keys at a time, and where their scores, and those of the gradients, are in scratch.
 */
typedef struct portions {
    gy_attention of;
    gantry_dtype dtype;
    int64_t size, heads; /* bytes of an element */
    uint64_t workspace, scores, slopes, end;
} portions;

static uint64_t rounded(uint64_t bytes)
{
    return (bytes + PIECE - 1) / PIECE * PIECE;
}

static bool is_wanted(const gantry_launch *l, const gy_attention *a)
{
    gantry_dtype dtype = l->arg[GY_ATTENTION_Q].dtype;
    double scores = (double)a->rows * (double)a->m;
    return (dtype == GANTRY_F32 || dtype == GANTRY_F64) && a->rows <= INT_MAX && a->m <= INT_MAX &&
           (!a->causal || a->n == a->m) && scores * (double)gantry_dtype_size(dtype) <= MOST_BYTES && a->d > 0 &&
           scores * (double)a->heads >= LEAST_SCORES;
}

static portions portions_of(const handle *h, const gantry_launch *l, const gy_attention *a)
{
    portions p = { .of = *a, .dtype = l->arg[GY_ATTENTION_Q].dtype };
    p.size = (int64_t)gantry_dtype_size(p.dtype);
    int64_t bytes = a->rows * a->m * p.size, fit = AT_A_TIME / bytes;
    p.heads = fit < 1 ? 1 : fit < a->heads ? fit : a->heads;
    p.workspace = gy_blas_workspace(h->driver, l->device_ordinal);
    p.scores = p.workspace;
    p.slopes = p.scores + rounded((uint64_t)(p.heads * bytes));
    p.end = h->own == &gy_plain_attention_grad ? p.slopes + (p.slopes - p.scores) : p.slopes;
    return p;
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
    gantry_launch soften = part_of(l, h->soften), soften_grad = part_of(l, h->soften_grad);
    GY_TRY(gy_cuda_image_prepare(&soften, scratch, err));
    return gy_cuda_image_prepare(&soften_grad, scratch, err);
}

static gantry_status prepare_products(const gantry_launch *l, uint64_t *scratch, gantry_error *err)
{
    handle *h = l->handle;
    gy_attention shape = gy_attention_of(l, 0);
    gantry_launch plain = plain_of(l);
    if (!is_wanted(l, &shape))
        return h->own->prepare(&plain, scratch, err);
    portions p = portions_of(h, l, &shape);
    *scratch = p.end > *scratch ? p.end : *scratch;
    GY_TRY(open_parts(h, err));
    return prepare_parts(h, l, scratch, err);
}

/* ---- launches ---- */

/* A matrix of each head. */
typedef struct stack {
    void *data;
    int64_t rows, columns;
} stack;

static stack stack_of(const portions *p, const gantry_launch *l, int argument, int64_t head, int64_t rows)
{
    char *data = l->arg[argument].data;
    return (stack){ data + head * rows * p->of.d * p->size, rows, p->of.d };
}

static stack stack_in(const portions *p, const gantry_launch *l, uint64_t at)
{
    return (stack){ (char *)l->scratch + at, p->of.rows, p->of.m };
}

static gy_gpu_matrix matrix_of(const stack *s)
{
    return (gy_gpu_matrix){ s->data, (int)s->rows, (int)s->columns, (int)s->columns };
}

/* c = op(a) op(b) of `count` heads */
static gantry_status multiply(handle *h, const portions *p, int64_t count, stack a, bool ta, stack b, bool tb, stack c)
{
    gy_blas_product product = gy_blas_product_of(p->dtype, 1, 0, matrix_of(&a), ta, matrix_of(&b), tb, matrix_of(&c));
    long long step[3] = { a.rows * a.columns, b.rows * b.columns, c.rows * c.columns };
    gantry_status status = gy_blas_multiply(&h->blas, &product, (int)count, step);
    h->why = status ? h->blas.why : NULL;
    return status;
}

/* Scores become weights where they are: each thread reads an element for the last time before it writes it. */
static gantry_status soften(handle *h, const portions *p, const gantry_launch *l, int64_t count, stack s)
{
    double scale = p->of.scale;
    int64_t causal = p->of.causal, first = 0, rows = count * s.rows;
    gantry_launch part = part_of(l, h->soften);
    gantry_status status =
        gy_cuda_image_launch(&part, 0, p->dtype, gy_rows_grid(rows, s.columns),
                             (void *[]){ &scale, &causal, &first, &s.data, &s.data, &rows, &s.columns });
    h->why = status ? gy_cuda_image_why(h->soften) : NULL;
    return status;
}

/* The sum of y dy of a query, of y as it is given, is taken off the slopes of its weights. */
static gantry_status soften_grad(handle *h, const portions *p, const gantry_launch *l, int64_t count, stack weights,
                                 stack slopes, stack y, stack dy)
{
    double scale = p->of.scale;
    int64_t rows = count * weights.rows;
    gantry_launch part = part_of(l, h->soften_grad);
    gantry_status status = gy_cuda_image_launch(&part, OF_OTHERS, p->dtype, gy_rows_grid(rows, weights.columns),
                                                (void *[]){ &scale, &weights.data, &slopes.data, &slopes.data, &rows,
                                                            &weights.columns, &y.data, &dy.data, &y.columns });
    h->why = status ? gy_cuda_image_why(h->soften_grad) : NULL;
    return status;
}

static gantry_status run_forward(handle *h, const portions *p, const gantry_launch *l, int64_t head, int64_t count)
{
    stack q = stack_of(p, l, GY_ATTENTION_Q, head, p->of.rows), k = stack_of(p, l, GY_ATTENTION_K, head, p->of.m);
    stack v = stack_of(p, l, GY_ATTENTION_V, head, p->of.m), y = stack_of(p, l, Y, head, p->of.rows);
    stack s = stack_in(p, l, p->scores);
    GY_TRY(multiply(h, p, count, q, false, k, true, s));
    GY_TRY(soften(h, p, l, count, s));
    return multiply(h, p, count, s, false, v, false, y);
}

static gantry_status run_backward(handle *h, const portions *p, const gantry_launch *l, int64_t head, int64_t count)
{
    int64_t rows = p->of.rows, m = p->of.m;
    stack q = stack_of(p, l, GY_ATTENTION_Q, head, rows), k = stack_of(p, l, GY_ATTENTION_K, head, m);
    stack v = stack_of(p, l, GY_ATTENTION_V, head, m), dy = stack_of(p, l, GY_ATTENTION_GRAD_DY, head, rows);
    stack dq = stack_of(p, l, GY_ATTENTION_GRAD_DQ, head, rows), dk = stack_of(p, l, GY_ATTENTION_GRAD_DK, head, m);
    stack dv = stack_of(p, l, GY_ATTENTION_GRAD_DV, head, m), y = stack_of(p, l, GY_ATTENTION_GRAD_Y, head, rows);
    stack s = stack_in(p, l, p->scores), ds = stack_in(p, l, p->slopes);
    GY_TRY(multiply(h, p, count, q, false, k, true, s));
    GY_TRY(soften(h, p, l, count, s));
    GY_TRY(multiply(h, p, count, s, true, dy, false, dv));
    GY_TRY(multiply(h, p, count, dy, false, v, true, ds));
    GY_TRY(soften_grad(h, p, l, count, s, ds, y, dy));
    GY_TRY(multiply(h, p, count, ds, false, k, false, dq));
    return multiply(h, p, count, ds, true, q, false, dk);
}

static gantry_status launch_products(const gantry_launch *l)
{
    handle *h = l->handle;
    gy_attention shape = gy_attention_of(l, 0);
    h->why = NULL;
    if (!is_wanted(l, &shape)) {
        gantry_launch plain = plain_of(l);
        return h->own->launch(&plain);
    }
    portions p = portions_of(h, l, &shape);
    gantry_status status = gy_blas_begin(&h->blas, l, p.workspace);
    h->why = status ? h->blas.why : NULL;
    for (int64_t head = 0; head < shape.heads && !status; head += p.heads) {
        int64_t count = shape.heads - head < p.heads ? shape.heads - head : p.heads;
        status = h->own == &gy_plain_attention_grad ? run_backward(h, &p, l, head, count)
                                                    : run_forward(h, &p, l, head, count);
    }
    return status;
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
