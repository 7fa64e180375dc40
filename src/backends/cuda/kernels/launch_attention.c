/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attention and attention_grad by cuDNN's fused engines, in f16 and bf16. One plan for each shape and device, made when
 * a run is opened, as launch_conv.c makes them. What cuDNN does not do (f32 and f64, heads whose rows are no multiples
 * of 16 bytes, queries that see no key, what it refuses) products by cuBLAS or our own kernels do.
 *
 * The gradients need the statistics of attention: where the node is not given those that attention kept, it is done
 * again for them, into scratch. What the gradients of scores take grows with queries times keys, so heads are done a
 * few at a time where they would take more than there may be.
 */
#include "backends/cuda/kernels/attention_graphs.h"
#include "backends/cuda/kernels/linalg.h"
#include "backends/cuda/kernels/network.h"
#include "kernels/attention_grad/attention_grad.h"

#include "base/error.h"
#include "base/memory.h"
#include <math.h>
#include <string.h>

enum { ALIGNED = 16, NARROW = 2, PIECE = 256 }; /* bytes: of rows, of an element, what pieces of scratch begin at */
enum { Y = GY_ATTENTION_V + 1, LSE };           /* of attention */
/* So that 16 heads of 4,096 queries and keys are done at once: 386 us, in halves 476 (H200, bf16, causal). */
enum { MOST_BYTES = GY_NETWORK_MOST_BYTES + GY_FUSED_OTHERS };

typedef struct made {
    gy_attention shape;
    gantry_dtype dtype;
    bool has_lse;  /* the node has the statistics: attention keeps them, and its gradient need not compute them */
    bool refused;  /* by cuDNN */
    int64_t heads; /* of keys, that the gradients are made of at a time */
    gy_fused forward, backward;
    float scale, lowest, one;
    int32_t shift;
    size_t again, statistics, sums, workspace, bytes; /* scratch: where its pieces begin, and their end */
} made;

typedef struct handle {
    gy_network network;
    bool grad;
    made **plan;
    size_t plans;
} handle;

static const gy_cuda_kernel *own_kernel(bool grad)
{
    return grad ? &gy_else_attention_grad : &gy_else_attention;
}

/* ---- opened and closed ---- */

static gantry_status open_attention(void **opened, const gy_cuda_kernel *kernel, const gy_driver *driver,
                                    gantry_error *err)
{
    handle *h = gy_calloc(1, sizeof *h);
    if (!h)
        return gy_fail_nomem(err);
    h->grad = kernel->data != NULL;
    gantry_status status = gy_network_open(&h->network, own_kernel(h->grad), driver, err);
    if (status) {
        gy_free(h);
        return status;
    }
    *opened = h;
    return GANTRY_OK;
}

static void free_plan(made *m)
{
    gy_cudnn_plan_free(&m->forward.plan);
    gy_cudnn_plan_free(&m->backward.plan);
}

static void close_attention(void *opened)
{
    handle *h = opened;
    for (size_t i = 0; i < h->plans; i++) {
        free_plan(h->plan[i]);
        gy_free(h->plan[i]);
    }
    gy_free(h->plan);
    gy_network_close(&h->network);
    gy_free(h);
}

static const char *why_attention(const void *opened)
{
    const handle *h = opened;
    return gy_network_why(&h->network);
}

/* ---- plans ---- */

static bool by_cudnn(const gantry_launch *l, const gy_attention *a)
{
    gantry_dtype dtype = l->arg[GY_ATTENTION_Q].dtype;
    bool narrow = dtype == GANTRY_F16 || dtype == GANTRY_BF16, blind = a->causal && a->n > a->m;
    return narrow && a->rows && a->m && a->d && a->d * NARROW % ALIGNED == 0 && !blind;
}

static gy_attention shape_of(const handle *h, const gantry_launch *l)
{
    return gy_attention_in_rows(l, h->grad ? (int)GY_ATTENTION_GRAD_DIM : (int)GY_ATTENTION_DIM);
}

static const gantry_arg *lse_of(const handle *h, const gantry_launch *l)
{
    return &l->arg[h->grad ? (int)GY_ATTENTION_GRAD_LSE : (int)LSE];
}

static made *find(const handle *h, const gantry_launch *l, const gy_attention *shape)
{
    gantry_dtype dtype = l->arg[GY_ATTENTION_Q].dtype;
    bool has_lse = lse_of(h, l)->access != 0;
    for (size_t i = 0; i < h->plans; i++)
        if (h->plan[i]->dtype == dtype && h->plan[i]->has_lse == has_lse &&
            memcmp(&h->plan[i]->shape, shape, sizeof *shape) == 0)
            return h->plan[i];
    return NULL;
}

/* The most heads of keys, of those that divide them all, whose gradients there is room for; 1 at least. Where heads lie
 * side by side they are some of one row, or all of several sequences. */
static int64_t heads_at_a_time(const gy_attention *a)
{
    int64_t parts = 1, some = a->heads;
    while (parts < a->heads && (a->heads % parts || (some % a->beside && a->beside % some) ||
                                gy_fused_backward_bytes(a, some) > MOST_BYTES))
        some = a->heads / ++parts;
    return some;
}

/* A graph's plan. *refused: there is none, which is no error. */
static gantry_status plan_graph(handle *h, gy_fused *f, bool *refused)
{
    int status = gy_cudnn_plan_make(&f->plan, MOST_BYTES);
    *refused = gy_cudnn_refuses(status);
    return *refused ? GANTRY_OK : gy_network_check(&h->network, status, f->plan.graph.call);
}

static void start_graph(const handle *h, gy_fused *f)
{
    f->plan.graph.api = &h->network.api;
    f->plan.graph.cudnn = h->network.cudnn;
}

static gantry_status plan_attention(handle *h, made *m)
{
    int type = gy_network_type(m->dtype);
    bool is_forward = !h->grad || !m->has_lse;
    start_graph(h, &m->forward);
    start_graph(h, &m->backward);
    if (is_forward) {
        gy_fused_forward(&m->forward, &m->shape, m->shape.heads, type, h->grad || m->has_lse);
        GY_TRY(plan_graph(h, &m->forward, &m->refused));
    }
    if (!h->grad || m->refused)
        return GANTRY_OK;
    gy_fused_backward(&m->backward, &m->shape, m->heads, type);
    return plan_graph(h, &m->backward, &m->refused);
}

/* Says where the next `bytes` of scratch begin. */
static size_t piece(size_t *end, size_t bytes)
{
    size_t at = *end;
    *end = (at + bytes + PIECE - 1) / PIECE * PIECE;
    return at;
}

static void divide_scratch(const handle *h, made *m)
{
    const gy_attention *a = &m->shape;
    size_t queries = (size_t)(a->heads * a->rows), end = 0;
    size_t forward = m->forward.plan.bytes, backward = m->backward.plan.bytes;
    if (h->grad && !m->has_lse) {
        m->again = piece(&end, queries * (size_t)a->d * NARROW);
        m->statistics = piece(&end, queries * sizeof(float));
    }
    if (h->grad)
        m->sums = piece(&end, queries * sizeof(float));
    m->workspace = piece(&end, forward > backward ? forward : backward);
    m->bytes = end;
}

static gantry_status add_plan(handle *h, const gantry_launch *l, const gy_attention *shape, gantry_error *err)
{
    made **grown = gy_realloc(h->plan, h->plans + 1, sizeof(made *)), *m = grown ? gy_calloc(1, sizeof *m) : NULL;
    h->plan = grown ? grown : h->plan;
    if (!m)
        return gy_fail_nomem(err);
    *m = (made){ .shape = *shape, .dtype = l->arg[GY_ATTENTION_Q].dtype, .heads = heads_at_a_time(shape) };
    m->has_lse = lse_of(h, l)->access != 0;
    m->scale = (float)shape->scale;
    m->lowest = -INFINITY;
    m->one = 1;
    m->shift = (int32_t)(shape->m - shape->n);
    gantry_status status = plan_attention(h, m);
    if (status || m->refused)
        free_plan(m);
    if (status) {
        gy_free(m);
        return gy_fail(err, status, NULL, "%s for %d heads of %d queries, %d keys and %d elements", h->network.why,
                       (int)(shape->heads * (shape->rows / shape->n)), (int)shape->n, (int)shape->m, (int)shape->d);
    }
    if (!m->refused)
        divide_scratch(h, m);
    h->plan[h->plans++] = m;
    return GANTRY_OK;
}

/* Own functions are found in any case: arrays of the program may begin at addresses that cuDNN does not take. */
static gantry_status prepare_attention(const gantry_launch *l, uint64_t *scratch, gantry_error *err)
{
    handle *h = l->handle;
    gy_attention shape = shape_of(h, l);
    if (by_cudnn(l, &shape) && !find(h, l, &shape))
        GY_TRY(add_plan(h, l, &shape, err));
    const made *m = by_cudnn(l, &shape) ? find(h, l, &shape) : NULL;
    if (m && m->bytes > *scratch)
        *scratch = m->bytes;
    gantry_launch plain = gy_network_plain(&h->network, l);
    return own_kernel(h->grad)->prepare(&plain, scratch, err);
}

/* ---- launches ---- */

static void *at(const void *base, size_t bytes)
{
    return (char *)(uintptr_t)base + bytes;
}

static gantry_status run(handle *h, gy_fused *f, void *const place[GY_FUSED_COUNT], void *workspace)
{
    int status = gy_cudnn_plan_run(&f->plan, GY_FUSED_COUNT, f->id, place, workspace);
    return gy_network_check(&h->network, status, f->plan.graph.call);
}

static void place_inputs(const gantry_launch *l, made *m, void *place[GY_FUSED_COUNT])
{
    place[GY_FUSED_Q] = l->arg[GY_ATTENTION_Q].data;
    place[GY_FUSED_K] = l->arg[GY_ATTENTION_K].data;
    place[GY_FUSED_V] = l->arg[GY_ATTENTION_V].data;
    place[GY_FUSED_SCALE] = &m->scale;
    place[GY_FUSED_SHIFT] = &m->shift;
    place[GY_FUSED_LOWEST] = &m->lowest;
    place[GY_FUSED_ONE] = &m->one;
}

/* Attention again, for its statistics, if they are not given; then the gradients, some heads of keys at a time. */
static gantry_status run_gradients(handle *h, const gantry_launch *l, made *m)
{
    static const struct {
        int which, argument;
        bool of_keys;
    } moving[] = { { GY_FUSED_Q, GY_ATTENTION_Q, false },        { GY_FUSED_K, GY_ATTENTION_K, true },
                   { GY_FUSED_V, GY_ATTENTION_V, true },         { GY_FUSED_Y, GY_ATTENTION_GRAD_Y, false },
                   { GY_FUSED_DY, GY_ATTENTION_GRAD_DY, false }, { GY_FUSED_DQ, GY_ATTENTION_GRAD_DQ, false },
                   { GY_FUSED_DK, GY_ATTENTION_GRAD_DK, true },  { GY_FUSED_DV, GY_ATTENTION_GRAD_DV, true } };
    const gy_attention *a = &m->shape;
    void *place[GY_FUSED_COUNT] = { NULL }, *workspace = at(l->scratch, m->workspace);
    void *statistics = m->has_lse ? lse_of(h, l)->data : at(l->scratch, m->statistics);
    place_inputs(l, m, place);
    place[GY_FUSED_Y] = at(l->scratch, m->again);
    place[GY_FUSED_STATISTICS] = statistics;
    if (!m->has_lse)
        GY_TRY(run(h, &m->forward, place, workspace));
    for (int64_t head = 0; head < a->heads; head += m->heads) {
        for (size_t i = 0; i < sizeof moving / sizeof *moving; i++) {
            int64_t first = gy_attention_at(a, head, 0, moving[i].of_keys);
            place[moving[i].which] = at(l->arg[moving[i].argument].data, (size_t)first * NARROW);
        }
        place[GY_FUSED_STATISTICS] = at(statistics, (size_t)(head * a->rows) * sizeof(float));
        place[GY_FUSED_SUMS] = at(l->scratch, m->sums);
        GY_TRY(run(h, &m->backward, place, workspace));
    }
    return GANTRY_OK;
}

static gantry_status run_attention(handle *h, const gantry_launch *l, made *m)
{
    void *place[GY_FUSED_COUNT] = { NULL };
    place_inputs(l, m, place);
    place[GY_FUSED_Y] = l->arg[Y].data;
    place[GY_FUSED_STATISTICS] = l->arg[LSE].data;
    return run(h, &m->forward, place, at(l->scratch, m->workspace));
}

static bool all_aligned(const handle *h, const gantry_launch *l)
{
    bool aligned = true;
    for (int i = GY_ATTENTION_Q; i <= (h->grad ? (int)GY_ATTENTION_GRAD_LSE : (int)LSE); i++)
        aligned = aligned && (uintptr_t)l->arg[i].data % ALIGNED == 0;
    return aligned;
}

static gantry_status launch_attention(const gantry_launch *l)
{
    handle *h = l->handle;
    gy_attention shape = shape_of(h, l);
    made *m = by_cudnn(l, &shape) && all_aligned(h, l) ? find(h, l, &shape) : NULL;
    h->network.why[0] = 0;
    if (!m || m->refused) {
        gantry_launch plain = gy_network_plain(&h->network, l);
        return own_kernel(h->grad)->launch(&plain);
    }
    GY_TRY(GY_NETWORK_CALL(&h->network, cudnnSetStream, h->network.cudnn, l->stream));
    return h->grad ? run_gradients(h, l, m) : run_attention(h, l, m);
}

#define ATTENTION(name_, data_)                                                                                        \
    const gy_cuda_kernel gy_library_##name_ = { .name = #name_,                                                        \
                                                .launch = launch_attention,                                            \
                                                .open = open_attention,                                                \
                                                .close = close_attention,                                              \
                                                .data = data_,                                                         \
                                                .usable = gy_network_usable,                                           \
                                                .prepare = prepare_attention,                                          \
                                                .why = why_attention,                                                  \
                                                .loads = gy_linalg_loads };
ATTENTION(attention, NULL)
ATTENTION(attention_grad, &gy_plain_attention_grad)
