/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conv2d and its gradients by cuDNN. One plan for each shape and device, made when a run is opened: the algorithm that
 * cuDNN's heuristics put first among those that give the same bits in every run and want no more than
 * GY_NETWORK_MOST_BYTES. Nothing is tried out by the clock. The workspace is the launch's scratch, which lanes do not
 * share, so nothing is allocated in flight and launches can be captured.
 *
 * As in gemm, f32 is never computed as TF32, and sums of f16 and bf16 are kept in f32. What cuDNN does not do (f64, no
 * elements, what it refuses) our own kernel does.
 */
#include "backends/cuda/kernels/linalg.h"
#include "backends/cuda/kernels/network.h"
#include "kernels/conv2d_grad_w/conv2d_grad_w.h"

#include "base/error.h"
#include "base/memory.h"
#include <string.h>

enum { MOST_ALGORITHMS = 16 };
enum { FIRST = GY_CONV_PAD + 1, SECOND, RESULT }; /* arguments, in the order that cuDNN has them in, too */

typedef struct made {
    gy_conv shape;
    gantry_dtype dtype;
    bool refused; /* by cuDNN */
    int algorithm;
    void *a, *b, *c, *convolution; /* descriptors; of w or dw one of a filter */
    size_t bytes;                  /* of the workspace */
} made;

typedef struct handle {
    gy_network network;
    gy_conv_way way;
    const gy_cudnn_way *call;
    made *plan;
    size_t plans;
} handle;

#define CALL(h, name, ...) GY_NETWORK_CALL(&(h)->network, name, __VA_ARGS__)

/* ---- which of the three ---- */

static const struct {
    const gy_cuda_kernel *own;
    int image, filter, result; /* arguments: x, w and y or their gradients */
} ways[] = { [GY_CONV_FORWARD] = { &gy_plain_conv2d, FIRST, SECOND, RESULT },
             [GY_CONV_GRAD_X] = { &gy_plain_conv2d_grad_x, RESULT, FIRST, SECOND },
             [GY_CONV_GRAD_W] = { &gy_plain_conv2d_grad_w, FIRST, RESULT, SECOND } };

static bool is_empty(const gantry_launch *l)
{
    return !gy_arg_size(&l->arg[FIRST]) || !gy_arg_size(&l->arg[SECOND]) || !gy_arg_size(&l->arg[RESULT]);
}

/* ---- opened and closed ---- */

static gantry_status open_conv(void **opened, const gy_cuda_kernel *kernel, const gy_driver *driver, gantry_error *err)
{
    handle *h = gy_calloc(1, sizeof *h);
    if (!h)
        return gy_fail_nomem(err);
    h->way = *(const gy_conv_way *)kernel->data;
    gantry_status status = gy_network_open(&h->network, ways[h->way].own, driver, err);
    if (status) {
        gy_free(h);
        return status;
    }
    h->call = &h->network.api.way[h->way];
    *opened = h;
    return GANTRY_OK;
}

static void free_operand(handle *h, int argument, void *descriptor)
{
    if (descriptor && argument == ways[h->way].filter)
        h->network.api.cudnnDestroyFilterDescriptor(descriptor);
    else if (descriptor)
        h->network.api.cudnnDestroyTensorDescriptor(descriptor);
}

static void free_plan(handle *h, made *m)
{
    free_operand(h, FIRST, m->a);
    free_operand(h, SECOND, m->b);
    free_operand(h, RESULT, m->c);
    if (m->convolution)
        h->network.api.cudnnDestroyConvolutionDescriptor(m->convolution);
    m->a = m->b = m->c = m->convolution = NULL;
}

static void close_conv(void *opened)
{
    handle *h = opened;
    for (size_t i = 0; i < h->plans; i++)
        free_plan(h, &h->plan[i]);
    gy_free(h->plan);
    gy_network_close(&h->network);
    gy_free(h);
}

static const char *why_conv(const void *opened)
{
    const handle *h = opened;
    return gy_network_why(&h->network);
}

/* ---- plans ---- */

static made *find(const handle *h, const gy_conv *shape, gantry_dtype dtype)
{
    for (size_t i = 0; i < h->plans; i++)
        if (h->plan[i].dtype == dtype && memcmp(&h->plan[i].shape, shape, sizeof *shape) == 0)
            return &h->plan[i];
    return NULL;
}

static gantry_status describe_operand(handle *h, const gantry_launch *l, int argument, void **made_one)
{
    const gantry_arg *a = &l->arg[argument];
    int type = gy_network_type(a->dtype), n = (int)a->rows, c = (int)a->shape[1], high = (int)a->shape[2],
        wide = (int)a->shape[3];
    if (argument == ways[h->way].filter) {
        GY_TRY(CALL(h, cudnnCreateFilterDescriptor, made_one));
        return CALL(h, cudnnSetFilter4dDescriptor, *made_one, type, GY_CUDNN_NCHW, n, c, high, wide);
    }
    GY_TRY(CALL(h, cudnnCreateTensorDescriptor, made_one));
    return CALL(h, cudnnSetTensor4dDescriptor, *made_one, GY_CUDNN_NCHW, type, n, c, high, wide);
}

static gantry_status describe(handle *h, const gantry_launch *l, made *m)
{
    const gy_conv *s = &m->shape;
    int math = m->dtype == GANTRY_F32 ? GY_CUDNN_FMA_MATH : GY_CUDNN_TENSOR_OP_MATH;
    GY_TRY(describe_operand(h, l, FIRST, &m->a));
    GY_TRY(describe_operand(h, l, SECOND, &m->b));
    GY_TRY(describe_operand(h, l, RESULT, &m->c));
    GY_TRY(CALL(h, cudnnCreateConvolutionDescriptor, &m->convolution));
    GY_TRY(CALL(h, cudnnSetConvolution2dDescriptor, m->convolution, s->pad, s->pad, s->stride, s->stride, 1, 1,
                GY_CUDNN_CROSS_CORRELATION, GY_CUDNN_FLOAT));
    return CALL(h, cudnnSetConvolutionMathType, m->convolution, math);
}

/* FMA_MATH forbids TF32; no other is asked for where elements are f32. */
static bool may_be_taken(const made *m, const gy_cudnn_algorithm *a)
{
    bool right_math = m->dtype == GANTRY_F32 ? a->math == GY_CUDNN_FMA_MATH || a->math == GY_CUDNN_DEFAULT_MATH
                                             : a->math != GY_CUDNN_ALLOW_CONVERSION;
    return a->status == GY_CUDNN_SUCCESS && a->determinism == GY_CUDNN_DETERMINISTIC && right_math;
}

/* *taken: the algorithm does it in the workspace that there may be. */
static gantry_status try_algorithm(handle *h, made *m, const gy_cudnn_algorithm *a, bool *taken)
{
    size_t bytes = 0;
    if (m->dtype != GANTRY_F32)
        GY_TRY(CALL(h, cudnnSetConvolutionMathType, m->convolution, a->math));
    int status = h->call->size(h->network.cudnn, m->a, m->b, m->convolution, m->c, a->algorithm, &bytes);
    *taken = status == GY_CUDNN_SUCCESS && bytes <= GY_NETWORK_MOST_BYTES;
    m->algorithm = a->algorithm;
    m->bytes = bytes;
    return gy_cudnn_refuses(status) ? GANTRY_OK : gy_network_check(&h->network, status, h->call->size_name);
}

static gantry_status choose(handle *h, made *m)
{
    gy_cudnn_algorithm list[MOST_ALGORITHMS];
    int found = 0;
    bool taken = false;
    int status = h->call->get(h->network.cudnn, m->a, m->b, m->convolution, m->c, MOST_ALGORITHMS, &found, list);
    gantry_status failed =
        gy_cudnn_refuses(status) ? GANTRY_OK : gy_network_check(&h->network, status, h->call->get_name);
    for (int i = 0; i < found && !failed && !taken && status == GY_CUDNN_SUCCESS; i++)
        if (may_be_taken(m, &list[i]))
            failed = try_algorithm(h, m, &list[i], &taken);
    m->refused = !taken;
    m->bytes = taken ? m->bytes : 0;
    return failed;
}

static gantry_status add_plan(handle *h, const gantry_launch *l, const gy_conv *shape, gantry_error *err)
{
    made *grown = gy_realloc(h->plan, h->plans + 1, sizeof *grown);
    if (!grown)
        return gy_fail_nomem(err);
    h->plan = grown;
    made *m = &h->plan[h->plans];
    *m = (made){ .shape = *shape, .dtype = l->arg[RESULT].dtype };
    gantry_status status = describe(h, l, m);
    status = status ? status : choose(h, m);
    if (status || m->refused)
        free_plan(h, m);
    if (status)
        return gy_fail(err, status, NULL, "%s for %d images of %d x %d x %d and %d windows of %d x %d", h->network.why,
                       (int)shape->images, (int)shape->channels, (int)shape->height, (int)shape->width,
                       (int)shape->results, (int)shape->window_height, (int)shape->window_width);
    h->plans++;
    return GANTRY_OK;
}

/* Of few weights and many pixels cuDNN's algorithm of one order is a few blocks that go through all pixels, 0.15 to 0.3
 * ms for 1,024 images of 16 x 16 (H200). Ours cuts them. In 16 bits cuDNN has tensor cores. */
static bool is_for_own(const handle *h, const gantry_launch *l, const gy_conv *shape)
{
    enum { MOST_TILES = 1, LEAST_PIECES = 16 };
    if (h->way != GY_CONV_GRAD_W || l->arg[RESULT].dtype != GANTRY_F32)
        return false;
    gy_conv_cut cut = gy_conv_cut_of(shape, GANTRY_F32, gy_cuda_image_splits(h->network.plain));
    return cut.by_pixels || (cut.tiles <= MOST_TILES && cut.pieces >= LEAST_PIECES);
}

static bool by_cudnn(const handle *h, const gantry_launch *l, const gy_conv *shape)
{
    return l->arg[RESULT].dtype != GANTRY_F64 && !is_empty(l) && !is_for_own(h, l, shape);
}

static gantry_status prepare_conv(const gantry_launch *l, uint64_t *scratch, gantry_error *err)
{
    handle *h = l->handle;
    gy_conv shape = gy_conv_of(l, ways[h->way].image, ways[h->way].filter, ways[h->way].result);
    const made *m = NULL;
    if (by_cudnn(h, l, &shape)) {
        if (!find(h, &shape, l->arg[RESULT].dtype))
            GY_TRY(add_plan(h, l, &shape, err));
        m = find(h, &shape, l->arg[RESULT].dtype);
    }
    if (m && !m->refused) {
        *scratch = m->bytes > *scratch ? m->bytes : *scratch;
        return GANTRY_OK;
    }
    gantry_launch plain = gy_network_plain(&h->network, l);
    return ways[h->way].own->prepare(&plain, scratch, err);
}

/* ---- launches ---- */

/* dw has what is there and the sum, all else is written. */
static gantry_status convolve(handle *h, const gantry_launch *l, made *m)
{
    float one = 1, beta = l->arg[RESULT].access == GANTRY_SUM ? 1 : 0;
    GY_TRY(CALL(h, cudnnSetStream, h->network.cudnn, l->stream));
    int status =
        h->call->convolve(h->network.cudnn, &one, m->a, l->arg[FIRST].data, m->b, l->arg[SECOND].data, m->convolution,
                          m->algorithm, m->bytes ? l->scratch : NULL, m->bytes, &beta, m->c, l->arg[RESULT].data);
    m->refused = gy_cudnn_refuses(status);
    return m->refused ? GANTRY_OK : gy_network_check(&h->network, status, h->call->convolve_name);
}

static gantry_status launch_conv(const gantry_launch *l)
{
    handle *h = l->handle;
    gy_conv shape = gy_conv_of(l, ways[h->way].image, ways[h->way].filter, ways[h->way].result);
    made *m = by_cudnn(h, l, &shape) ? find(h, &shape, l->arg[RESULT].dtype) : NULL;
    h->network.why[0] = 0;
    if (m && !m->refused)
        GY_TRY(convolve(h, l, m));
    if (m && !m->refused)
        return GANTRY_OK;
    gantry_launch plain = gy_network_plain(&h->network, l);
    return ways[h->way].own->launch(&plain);
}

#define CONV(name_, which)                                                                                             \
    static const gy_conv_way way_##name_ = which;                                                                      \
    const gy_cuda_kernel gy_library_##name_ = { .name = #name_,                                                        \
                                                .launch = launch_conv,                                                 \
                                                .open = open_conv,                                                     \
                                                .close = close_conv,                                                   \
                                                .data = &way_##name_,                                                  \
                                                .usable = gy_network_usable,                                           \
                                                .prepare = prepare_conv,                                               \
                                                .why = why_conv,                                                       \
                                                .loads = gy_linalg_loads };
CONV(conv2d, GY_CONV_FORWARD)
CONV(conv2d_grad_w, GY_CONV_GRAD_W)
CONV(conv2d_grad_x, GY_CONV_GRAD_X)
