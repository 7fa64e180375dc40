/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libcudnn.so.9 for tests: convolutions by their definition in double, on the fake driver. The heuristics put first
 * what must not be taken: an algorithm that is not deterministic, one that computes in another type, one that fails,
 * one that wants too much memory. A workspace that is missing or shared between launches in flight, and a call with
 * what was not asked for, end the program.
 *
 * The functions are those that cudnn_api.h declares, which is held against cudnn.h elsewhere: cuDNN's own headers need
 * not be there.
 */
#include "columns.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#pragma GCC visibility push(default)

enum { SUCCESS = 0, BAD_PARAM = 2000, NOT_SUPPORTED = 3000 };
enum { DETERMINISTIC = 1, TENSOR_OP = 1, ALLOW_CONVERSION = 2, FMA = 3 };
/* Algorithms as the heuristics list them. */
enum { RANDOM_ORDER, CONVERTS, FAILS, LARGE, REFUSES, RIGHT, ALGORITHMS };

typedef struct descriptor {
    bool filter, set;
    int type, extent[4]; /* 0: f32, 2: f16, 9: bf16 */
} descriptor;

typedef struct convolution {
    int pad, stride, math;
    bool set;
} convolution;

typedef struct handle {
    int device;
    CUstream stream;
} handle;

typedef struct algorithm {
    int algorithm, status;
    float time;
    size_t memory;
    int determinism, math, reserved[3];
} algorithm;

typedef enum way { FORWARD, GRAD_X, GRAD_W } way;

typedef struct job_conv {
    way way;
    descriptor x, w, y;
    int pad, stride;
    void *at_x, *at_w, *at_y, *workspace;
    size_t bytes;
    double beta;
} job_conv;

#define FAIL_IF_TOLD(name)                                                                                             \
    do {                                                                                                               \
        int told_ = columns_failure(#name);                                                                            \
        if (told_)                                                                                                     \
            return told_;                                                                                              \
    } while (0)

/* ---- versions, handles, descriptors ---- */

static size_t told_version(const char *name, size_t otherwise)
{
    const char *is = getenv(name);
    return is ? (size_t)atoi(is) : otherwise;
}

size_t cudnnGetVersion(void);
size_t cudnnGetCudartVersion(void);
const char *cudnnGetErrorString(int status);
int cudnnCreate(void **made);
int cudnnDestroy(void *cudnn);
int cudnnSetStream(void *cudnn, CUstream stream);

size_t cudnnGetVersion(void)
{
    return told_version("FAKE_CUDNN_VERSION", 91203);
}

size_t cudnnGetCudartVersion(void)
{
    return told_version("FAKE_CUDNN_CUDA", 12080);
}

const char *cudnnGetErrorString(int status)
{
    return status == SUCCESS         ? "CUDNN_STATUS_SUCCESS"
           : status == NOT_SUPPORTED ? "CUDNN_STATUS_NOT_SUPPORTED"
           : status == BAD_PARAM     ? "CUDNN_STATUS_BAD_PARAM"
                                     : "CUDNN_STATUS_OF_ANOTHER_KIND";
}

static void *make(size_t bytes)
{
    void *made = calloc(1, bytes);
    if (!made)
        columns_wrong("no memory");
    return made;
}

int cudnnCreate(void **made)
{
    FAIL_IF_TOLD(cudnnCreate);
    handle *h = make(sizeof *h);
    h->device = fakeCudaCurrent();
    *made = h;
    return SUCCESS;
}

int cudnnDestroy(void *cudnn)
{
    free(cudnn);
    return SUCCESS;
}

int cudnnSetStream(void *cudnn, CUstream stream)
{
    FAIL_IF_TOLD(cudnnSetStream);
    handle *h = cudnn;
    if (h->device != fakeCudaCurrent())
        columns_wrong("a handle of cuDNN is used on another device");
    h->stream = stream;
    return SUCCESS;
}

#define DESCRIPTOR(kind, type, what)                                                                                   \
    int cudnnCreate##kind##Descriptor(void **made);                                                                    \
    int cudnnDestroy##kind##Descriptor(void *made);                                                                    \
    int cudnnCreate##kind##Descriptor(void **made)                                                                     \
    {                                                                                                                  \
        FAIL_IF_TOLD(cudnnCreate##kind##Descriptor);                                                                   \
        type *d = make(sizeof *d);                                                                                     \
        what;                                                                                                          \
        *made = d;                                                                                                     \
        return SUCCESS;                                                                                                \
    }                                                                                                                  \
    int cudnnDestroy##kind##Descriptor(void *made)                                                                     \
    {                                                                                                                  \
        free(made);                                                                                                    \
        return SUCCESS;                                                                                                \
    }
DESCRIPTOR(Tensor, descriptor, d->filter = false)
DESCRIPTOR(Filter, descriptor, d->filter = true)
DESCRIPTOR(Convolution, convolution, d->set = false)

static int set(descriptor *d, bool filter, int format, int type, int n, int c, int h, int w)
{
    if (format != 0 || d->filter != filter || (type != 0 && type != 2 && type != 9))
        columns_wrong("a descriptor of cuDNN that these tests know nothing of");
    if (n < 1 || c < 1 || h < 1 || w < 1)
        return BAD_PARAM;
    *d = (descriptor){ filter, true, type, { n, c, h, w } };
    return SUCCESS;
}

int cudnnSetTensor4dDescriptor(void *to, int format, int type, int n, int c, int h, int w);
int cudnnSetFilter4dDescriptor(void *to, int type, int format, int k, int c, int h, int w);
int cudnnSetConvolution2dDescriptor(void *to, int pad_h, int pad_w, int stride_h, int stride_w, int dilation_h,
                                    int dilation_w, int mode, int computed_in);
int cudnnSetConvolutionMathType(void *to, int math);

int cudnnSetTensor4dDescriptor(void *to, int format, int type, int n, int c, int h, int w)
{
    FAIL_IF_TOLD(cudnnSetTensor4dDescriptor);
    return set(to, false, format, type, n, c, h, w);
}

int cudnnSetFilter4dDescriptor(void *to, int type, int format, int k, int c, int h, int w)
{
    FAIL_IF_TOLD(cudnnSetFilter4dDescriptor);
    return set(to, true, format, type, k, c, h, w);
}

int cudnnSetConvolution2dDescriptor(void *to, int pad_h, int pad_w, int stride_h, int stride_w, int dilation_h,
                                    int dilation_w, int mode, int computed_in)
{
    FAIL_IF_TOLD(cudnnSetConvolution2dDescriptor);
    if (dilation_h != 1 || dilation_w != 1 || mode != 1 || computed_in != 0 || pad_h != pad_w || stride_h != stride_w)
        columns_wrong("a convolution of cuDNN that is turned around, dilated or not computed in float");
    *(convolution *)to = (convolution){ pad_h, stride_h, 0, true };
    return SUCCESS;
}

int cudnnSetConvolutionMathType(void *to, int math)
{
    FAIL_IF_TOLD(cudnnSetConvolutionMathType);
    ((convolution *)to)->math = math;
    return SUCCESS;
}

/* ---- which algorithm ---- */

typedef struct call {
    const descriptor *x, *w, *y;
    const convolution *conv;
} call;

static call call_of(way which, const void *a, const void *b, const void *conv, const void *c)
{
    const descriptor *d[] = { a, b, c };
    static const int order[][3] = { { 0, 1, 2 }, { 2, 0, 1 }, { 0, 2, 1 } };
    call made = { d[order[which][0]], d[order[which][1]], d[order[which][2]], conv };
    bool all = made.x->set && made.w->set && made.y->set && made.conv->set;
    if (!all || made.x->filter || !made.w->filter || made.y->filter)
        columns_wrong("operands of a convolution of cuDNN that are not in its order");
    for (int axis = 2; axis < 4; axis++)
        if (made.y->extent[axis] !=
            (made.x->extent[axis] + 2 * made.conv->pad - made.w->extent[axis]) / made.conv->stride + 1)
            columns_wrong("a result of a convolution of cuDNN of another size");
    if (made.x->extent[1] != made.w->extent[1] || made.y->extent[1] != made.w->extent[0] ||
        made.x->extent[0] != made.y->extent[0] || made.x->type != made.y->type || made.x->type != made.w->type)
        columns_wrong("operands of a convolution of cuDNN that do not belong together");
    if (made.x->type == 0 && made.conv->math != FMA)
        columns_wrong("f32 is computed as TF32");
    return made;
}

/* Some number that is easy to get wrong; small ones need none. */
static size_t workspace_of(const call *c)
{
    int elements = c->x->extent[0] * c->x->extent[1] * c->x->extent[2] * c->x->extent[3];
    return elements < 8 ? 0 : (size_t)elements * 4 + 52;
}

static int list_algorithms(const call *c, int asked, int *found, algorithm *list)
{
    int math = c->x->type ? TENSOR_OP : FMA;
    for (*found = 0; *found < asked && *found < ALGORITHMS; ++*found) {
        algorithm *a = &list[*found];
        *a =
            (algorithm){ .algorithm = *found, .determinism = *found != RANDOM_ORDER ? DETERMINISTIC : 0, .math = math };
        a->math = *found == CONVERTS ? (c->x->type ? ALLOW_CONVERSION : TENSOR_OP) : math;
        a->status = *found == FAILS ? NOT_SUPPORTED : SUCCESS;
        a->memory = 17; /* it is only a guess */
    }
    return SUCCESS;
}

static int size_workspace(const call *c, int which, size_t *bytes)
{
    if (which != RIGHT && which != LARGE && which != REFUSES)
        columns_wrong("an algorithm of cuDNN that must not be taken");
    *bytes = which == LARGE ? (size_t)1 << 40 : workspace_of(c);
    return which == REFUSES ? NOT_SUPPORTED : SUCCESS;
}

/* ---- convolutions ---- */

static element type_of(const descriptor *d)
{
    return d->type == 0 ? F32 : d->type == 2 ? F16 : BF16;
}

static int64_t place(const descriptor *d, int n, int c, int h, int w)
{
    return (((int64_t)n * d->extent[1] + c) * d->extent[2] + h) * d->extent[3] + w;
}

/* Adds to `sum`, which is of the result, for each term of the convolution. */
static void add_all(const job_conv *j, double *sum)
{
    const int *x = j->x.extent, *w = j->w.extent, *y = j->y.extent;
    for (int n = 0; n < y[0]; n++)
        for (int k = 0; k < y[1]; k++)
            for (int p = 0; p < y[2] * y[3]; p++)
                for (int t = 0; t < w[1] * w[2] * w[3]; t++) {
                    int c = t / (w[2] * w[3]), i = t / w[3] % w[2], q = t % w[3];
                    int r = p / y[3] * j->stride + i - j->pad, s = p % y[3] * j->stride + q - j->pad;
                    if (r < 0 || r >= x[2] || s < 0 || s >= x[3])
                        continue;
                    int64_t in = place(&j->x, n, c, r, s), by = place(&j->w, k, c, i, q),
                            out = place(&j->y, n, k, p / y[3], p % y[3]);
                    if (j->way == FORWARD)
                        sum[out] +=
                            columns_load(type_of(&j->x), j->at_x, in) * columns_load(type_of(&j->w), j->at_w, by);
                    else if (j->way == GRAD_X)
                        sum[in] +=
                            columns_load(type_of(&j->w), j->at_w, by) * columns_load(type_of(&j->y), j->at_y, out);
                    else
                        sum[by] +=
                            columns_load(type_of(&j->x), j->at_x, in) * columns_load(type_of(&j->y), j->at_y, out);
                }
}

static void run(const fakeCudaLaunch *l, void **params)
{
    const job_conv *j = params[0];
    const descriptor *to = j->way == FORWARD ? &j->y : j->way == GRAD_X ? &j->x : &j->w;
    void *at = j->way == FORWARD ? j->at_y : j->way == GRAD_X ? j->at_x : j->at_w;
    int64_t count = (int64_t)to->extent[0] * to->extent[1] * to->extent[2] * to->extent[3];
    double *sum = make((size_t)count * sizeof *sum);
    (void)l;
    if (j->bytes)
        memset(j->workspace, 0x5C, j->bytes);
    add_all(j, sum);
    for (int64_t i = 0; i < count; i++)
        columns_store(type_of(to), at, i, sum[i] + (j->beta != 0 ? j->beta * columns_load(type_of(to), at, i) : 0));
    free(sum);
}

static int queue(const handle *h, const job_conv *j, const call *c, const float *alpha, int which)
{
    static const size_t size = sizeof(job_conv);
    if (*alpha != 1 || which != RIGHT || j->bytes != workspace_of(c) || (j->bytes && !j->workspace))
        columns_wrong("a convolution of cuDNN is called with another algorithm or workspace than it was asked for");
    CUresult code = cuLaunchKernel(fakeCudaFunction("cuDNN", run, &size, 1), 1, 1, 1, 1, 1, 1, 0, h->stream,
                                   (void *[]){ (void *)(uintptr_t)j }, NULL);
    return code == CUDA_SUCCESS ? SUCCESS : 5000;
}

#define CONVOLUTION(which, get, size, convolve, X, W, Y)                                                               \
    int get(void *cudnn, void *a, void *b, void *conv, void *c, int asked, int *found, algorithm *list);               \
    int size(void *cudnn, void *a, void *b, void *conv, void *c, int algorithm_, size_t *bytes);                       \
    int convolve(void *cudnn, const void *alpha, void *a, const void *a_at, void *b, const void *b_at, void *conv,     \
                 int algorithm_, void *workspace, size_t bytes, const void *beta, void *c, void *c_at);                \
    int get(void *cudnn, void *a, void *b, void *conv, void *c, int asked, int *found, algorithm *list)                \
    {                                                                                                                  \
        FAIL_IF_TOLD(get);                                                                                             \
        (void)cudnn;                                                                                                   \
        call k = call_of(which, a, b, conv, c);                                                                        \
        return list_algorithms(&k, asked, found, list);                                                                \
    }                                                                                                                  \
    int size(void *cudnn, void *a, void *b, void *conv, void *c, int algorithm_, size_t *bytes)                        \
    {                                                                                                                  \
        FAIL_IF_TOLD(size);                                                                                            \
        (void)cudnn;                                                                                                   \
        call k = call_of(which, a, b, conv, c);                                                                        \
        return size_workspace(&k, algorithm_, bytes);                                                                  \
    }                                                                                                                  \
    int convolve(void *cudnn, const void *alpha, void *a, const void *a_at, void *b, const void *b_at, void *conv,     \
                 int algorithm_, void *workspace, size_t bytes, const void *beta, void *c, void *c_at)                 \
    {                                                                                                                  \
        FAIL_IF_TOLD(convolve);                                                                                        \
        fakeCudaInjected(#convolve); /* counts it */                                                                   \
        call k = call_of(which, a, b, conv, c);                                                                        \
        void *first = (void *)(uintptr_t)a_at, *second = (void *)(uintptr_t)b_at, *third = c_at;                       \
        job_conv j = { .way = which, .x = *k.x, .w = *k.w, .y = *k.y, .pad = k.conv->pad, .stride = k.conv->stride };  \
        j.at_x = X;                                                                                                    \
        j.at_w = W;                                                                                                    \
        j.at_y = Y;                                                                                                    \
        j.workspace = workspace;                                                                                       \
        j.bytes = bytes;                                                                                               \
        j.beta = (double)*(const float *)beta;                                                                         \
        return queue(cudnn, &j, &k, alpha, algorithm_);                                                                \
    }
CONVOLUTION(FORWARD, cudnnGetConvolutionForwardAlgorithm_v7, cudnnGetConvolutionForwardWorkspaceSize,
            cudnnConvolutionForward, first, second, third)
CONVOLUTION(GRAD_X, cudnnGetConvolutionBackwardDataAlgorithm_v7, cudnnGetConvolutionBackwardDataWorkspaceSize,
            cudnnConvolutionBackwardData, third, first, second)
CONVOLUTION(GRAD_W, cudnnGetConvolutionBackwardFilterAlgorithm_v7, cudnnGetConvolutionBackwardFilterWorkspaceSize,
            cudnnConvolutionBackwardFilter, first, third, second)

#pragma GCC visibility pop
