/* SPDX-License-Identifier: Apache-2.0 */
/* conv2d, attention and their gradients of the real gantry-cuda.so, by a cuDNN of the tests on the fake driver: numbers
 * as on the host, what cuDNN refuses done by our own kernels, failures with their names, what is said where cuDNN is
 * missing or does not fit. */
#include "control.h"
#include "linalg_cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The ABI that is declared here against cuDNN's own, where its header is. */
#if defined __has_include && __has_include(<cudnn.h>)
#include "backends/cuda/nvidia/cudnn_graph.h"
#include <cudnn.h>
#include <stddef.h>
#define SAME_PLACE(ours, theirs)                                                                                       \
    _Static_assert(offsetof(gy_cudnn_algorithm, ours) == offsetof(struct cudnnConvolutionFwdAlgoPerfStruct, theirs),   \
                   "as cudnn.h has it")
_Static_assert(sizeof(gy_cudnn_algorithm) == sizeof(struct cudnnConvolutionFwdAlgoPerfStruct) &&
                   sizeof(gy_cudnn_algorithm) == sizeof(struct cudnnConvolutionBwdDataAlgoPerfStruct) &&
                   sizeof(gy_cudnn_algorithm) == sizeof(struct cudnnConvolutionBwdFilterAlgoPerfStruct),
               "as cudnn.h has it");
SAME_PLACE(algorithm, algo);
SAME_PLACE(status, status);
SAME_PLACE(memory, memory);
SAME_PLACE(determinism, determinism);
SAME_PLACE(math, mathType);
_Static_assert((int)CUDNN_STATUS_NOT_SUPPORTED == GY_CUDNN_NOT_SUPPORTED && (int)CUDNN_DATA_FLOAT == GY_CUDNN_FLOAT &&
                   (int)CUDNN_DATA_HALF == GY_CUDNN_HALF && (int)CUDNN_DATA_BFLOAT16 == GY_CUDNN_BFLOAT16 &&
                   (int)CUDNN_TENSOR_NCHW == GY_CUDNN_NCHW &&
                   (int)CUDNN_CROSS_CORRELATION == GY_CUDNN_CROSS_CORRELATION &&
                   (int)CUDNN_DETERMINISTIC == GY_CUDNN_DETERMINISTIC &&
                   (int)CUDNN_DEFAULT_MATH == GY_CUDNN_DEFAULT_MATH &&
                   (int)CUDNN_TENSOR_OP_MATH == GY_CUDNN_TENSOR_OP_MATH && (int)CUDNN_FMA_MATH == GY_CUDNN_FMA_MATH &&
                   (int)CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION == GY_CUDNN_ALLOW_CONVERSION,
               "as cudnn.h has it");
#define GY_X(name, value) _Static_assert((int)CUDNN_##name == value, "as cudnn.h has it");
GY_CUDNN_CONSTANTS(GY_X)
#undef GY_X
#endif

static const char *const replays[] = { "stream", "graph" };
static const char *const dtypes[] = { "f32", "f16", "bf16", "f64" };

typedef struct shape {
    int n, c, o, h, w, kh, kw, stride, pad;
} shape;
/* The last has no images. */
static const shape shapes[] = { { 1, 1, 1, 1, 1, 1, 1, 1, 0 },   { 2, 3, 4, 9, 7, 3, 3, 1, 1 },
                                { 3, 5, 2, 6, 11, 1, 4, 1, 2 },  { 2, 4, 3, 12, 12, 5, 5, 2, 2 },
                                { 1, 2, 5, 10, 13, 3, 2, 3, 0 }, { 0, 2, 5, 10, 13, 3, 2, 3, 0 } };
enum { SHAPES = sizeof shapes / sizeof *shapes };

typedef struct heads {
    int heads, of_keys, n, m, d, causal;
    bool by_cudnn; /* forward */
    int sequences; /* that heads lie side by side in, as products leave them; 0: heads follow each other */
} heads;
/* Three before the last: rows that are no multiple of 16 bytes, queries that see no key, no queries. */
static const heads attentions[] = { { 1, 1, 1, 3, 8, 0, true, 0 },   { 4, 2, 9, 9, 16, 1, true, 0 },
                                    { 6, 2, 5, 12, 24, 1, true, 0 }, { 3, 3, 12, 7, 8, 0, true, 0 },
                                    { 4, 1, 1, 33, 64, 1, true, 0 }, { 2, 2, 5, 5, 12, 0, false, 0 },
                                    { 2, 2, 8, 5, 16, 1, false, 0 }, { 2, 2, 0, 5, 16, 0, false, 0 },
                                    { 4, 2, 9, 9, 16, 1, true, 1 },  { 6, 2, 5, 12, 24, 1, true, 2 },
                                    { 6, 6, 7, 9, 8, 0, true, 3 },   { 6, 6, 5, 5, 12, 1, false, 2 } };
enum { ATTENTIONS = sizeof attentions / sizeof *attentions };

typedef struct world {
    gantry_graph *g;
    gantry_machine *m;
    gantry_schedule *s;
} world;

/* All three convolutions of a shape. */
static gantry_graph *convolutions(const shape *s, const char *dtype)
{
    char text[2048];
    gantry_graph *g = NULL;
    int high = (s->h + 2 * s->pad - s->kh) / s->stride + 1, wide = (s->w + 2 * s->pad - s->kw) / s->stride + 1;
    int n = snprintf(
        text, sizeof text,
        "{\"gantry\":1,\"buffers\":{"
        "\"x\":{\"dtype\":\"%s\",\"shape\":[%d,%d,%d,%d],\"init\":{\"random\":{\"seed\":1}}},"
        "\"w\":{\"dtype\":\"%s\",\"shape\":[%d,%d,%d,%d],\"init\":{\"random\":{\"seed\":2}}},"
        "\"dy\":{\"dtype\":\"%s\",\"shape\":[%d,%d,%d,%d],\"init\":{\"random\":{\"seed\":3}}},"
        "\"y\":{\"dtype\":\"%s\",\"shape\":[%d,%d,%d,%d],\"output\":true},"
        "\"dx\":{\"dtype\":\"%s\",\"shape\":[%d,%d,%d,%d],\"output\":true},"
        "\"dw\":{\"dtype\":\"%s\",\"shape\":[%d,%d,%d,%d],\"init\":1,\"output\":true}},\"nodes\":["
        "{\"id\":\"f\",\"kernel\":\"conv2d\",\"args\":{\"stride\":%d,\"pad\":%d,\"x\":\"x\",\"w\":\"w\",\"y\":\"y\"}},"
        "{\"id\":\"i\",\"kernel\":\"conv2d_grad_x\",\"args\":{\"stride\":%d,\"pad\":%d,\"w\":\"w\",\"dy\":\"dy\","
        "\"dx\":\"dx\"}},"
        "{\"id\":\"k\",\"kernel\":\"conv2d_grad_w\",\"args\":{\"stride\":%d,\"pad\":%d,\"x\":\"x\",\"dy\":\"dy\","
        "\"dw\":\"dw\"}}]}",
        dtype, s->n, s->c, s->h, s->w, dtype, s->o, s->c, s->kh, s->kw, dtype, s->n, s->o, high, wide, dtype, s->n,
        s->o, high, wide, dtype, s->n, s->c, s->h, s->w, dtype, s->o, s->c, s->kh, s->kw, s->stride, s->pad, s->stride,
        s->pad, s->stride, s->pad);
    ck_assert_int_lt(n, (int)sizeof text);
    MUST(gantry_graph_parse(&g, text, strlen(text), "text", NULL, NULL, MUST_ERR));
    return g;
}

/* Attention of a shape, and its gradients; with `lse` it keeps the logarithms of its sums, and they take them. */
static gantry_graph *attention(const heads *a, const char *dtype, bool lse)
{
    char text[2048], q[100], k[100], kept[120] = "", rows[60] = "";
    const char *given = lse ? ",\"lse\":\"lse\"" : "";
    gantry_graph *g = NULL;
    snprintf(q, sizeof q, "\"dtype\":\"%s\",\"shape\":[%d,%d,%d]", dtype, a->heads, a->n, a->d);
    snprintf(k, sizeof k, "\"dtype\":\"%s\",\"shape\":[%d,%d,%d]", dtype, a->of_keys, a->m, a->d);
    if (a->sequences) {
        int s = a->sequences;
        snprintf(q, sizeof q, "\"dtype\":\"%s\",\"shape\":[%d,%d]", dtype, s * a->n, a->heads / s * a->d);
        snprintf(k, sizeof k, "\"dtype\":\"%s\",\"shape\":[%d,%d]", dtype, s * a->m, a->of_keys / s * a->d);
        snprintf(rows, sizeof rows, ",\"dim\":%d,\"length\":%d", a->d, a->n);
    }
    if (lse && a->sequences)
        snprintf(kept, sizeof kept, ",\"lse\":{\"dtype\":\"%s\",\"shape\":[%d,%d,%d],\"output\":true}",
                 strcmp(dtype, "f64") == 0 ? "f64" : "f32", a->sequences, a->heads / a->sequences, a->n);
    else if (lse)
        snprintf(kept, sizeof kept, ",\"lse\":{\"dtype\":\"%s\",\"shape\":[%d,%d],\"output\":true}",
                 strcmp(dtype, "f64") == 0 ? "f64" : "f32", a->heads, a->n);
    int n = snprintf(
        text, sizeof text,
        "{\"gantry\":1,\"buffers\":{"
        "\"q\":{%s,\"init\":{\"normal\":{\"seed\":1}}},\"k\":{%s,\"init\":{\"normal\":{\"seed\":2}}},"
        "\"v\":{%s,\"init\":{\"normal\":{\"seed\":3}}},\"dy\":{%s,\"init\":{\"normal\":{\"seed\":4}}},"
        "\"y\":{%s,\"output\":true},\"dq\":{%s,\"output\":true},\"dk\":{%s,\"output\":true},"
        "\"dv\":{%s,\"output\":true}%s},\"nodes\":["
        "{\"id\":\"f\",\"kernel\":\"attention\",\"args\":{\"causal\":%d,\"scale\":0.3,\"q\":\"q\",\"k\":\"k\","
        "\"v\":\"v\",\"y\":\"y\"%s%s}},"
        "{\"id\":\"b\",\"kernel\":\"attention_grad\",\"args\":{\"causal\":%d,\"scale\":0.3,\"q\":\"q\",\"k\":\"k\","
        "\"v\":\"v\",\"y\":\"y\",\"dy\":\"dy\",\"dq\":\"dq\",\"dk\":\"dk\",\"dv\":\"dv\"%s%s}}]}",
        q, k, k, q, q, q, k, k, kept, a->causal, given, rows, a->causal, given, rows);
    ck_assert_int_lt(n, (int)sizeof text);
    MUST(gantry_graph_parse(&g, text, strlen(text), "text", NULL, NULL, MUST_ERR));
    return g;
}

static world make_world(const shape *s, const char *dtype, int gpus, const char *replay)
{
    world w = { .g = convolutions(s, dtype) };
    fakeCudaDevices(gpus, "all", 0);
    w.m = gpu_machine(gpus, false);
    w.s = make_schedule(w.g, w.m, replay, "round-robin");
    return w;
}

static world make_attention_of(const heads *a, const char *dtype, int gpus, const char *replay, bool lse)
{
    world w = { .g = attention(a, dtype, lse) };
    fakeCudaDevices(gpus, "all", 0);
    w.m = gpu_machine(gpus, false);
    w.s = make_schedule(w.g, w.m, replay, "round-robin");
    return w;
}

static world make_attention(const heads *a, const char *dtype, int gpus, const char *replay)
{
    return make_attention_of(a, dtype, gpus, replay, false);
}

static void free_world(world *w)
{
    char text[160];
    ck_assert_msg(fakeCudaAlive(text, sizeof text) == 0, "left behind: %s", text);
    gantry_schedule_free(w->s);
    gantry_machine_free(w->m);
    gantry_graph_free(w->g);
}

static gantry_status attempt(const world *w, gantry_error *err)
{
    gantry_run *run = NULL;
    uint64_t ticket = 0;
    gantry_run_options options = GANTRY_RUN_OPTIONS_INIT;
    options.backend = "cuda";
    gantry_status status = gantry_run_new(&run, w->s, &options, err);
    status = status ? status : gantry_run_start(run, &ticket, err);
    status = status ? status : gantry_run_wait(run, ticket, err);
    gantry_run_free(run);
    return status;
}

enum { FUNCTIONS = 5 };
static const char *const functions[FUNCTIONS] = { "cudnnConvolutionForward", "cudnnConvolutionBackwardData",
                                                  "cudnnConvolutionBackwardFilter", "cudnnBackendExecute",
                                                  "cublasGemmStridedBatchedEx" };

/* Some starts of both back ends; `by_cudnn`: a bit for each of the functions that must have been called, others must
 * not. */
static void compare_starts(const world *w, int starts, unsigned by_cudnn, const char *what)
{
    int before[FUNCTIONS];
    for (int i = 0; i < FUNCTIONS; i++)
        before[i] = fakeCudaCalls(functions[i]);
    gantry_run *host = open_run(w->s, "host"), *run = open_run(w->s, "cuda");
    for (int start = 0; start < starts; start++) {
        start_and_wait(host);
        start_and_wait(run);
        expect_near(run, host, w->g, what);
    }
    gantry_run_free(host);
    gantry_run_free(run);
    for (int i = 0; i < FUNCTIONS; i++)
        ck_assert_msg((fakeCudaCalls(functions[i]) > before[i]) == (by_cudnn >> i & 1), "%s: %s", what, functions[i]);
}

static void compare(const world *w, unsigned by_cudnn, const char *what)
{
    compare_starts(w, 2, by_cudnn, what);
}

START_TEST(numbers)
{
    for (int d = 0; d < 4; d++)
        for (int i = 0; i < SHAPES; i++) {
            char what[60];
            fakeCudaSeed((uint64_t)(i + 1));
            world w = make_world(&shapes[i], dtypes[d], 1 + i % 2, replays[_i]);
            snprintf(what, sizeof what, "%s, shape %d", dtypes[d], i);
            compare(&w, d == 3 || shapes[i].n == 0 ? 0 : 7, what);
            free_world(&w);
        }
}
END_TEST

enum { GRAPHS = 8, PRODUCTS = 16 }; /* bits of cudnnBackendExecute and cublasGemmStridedBatchedEx */

START_TEST(numbers_of_attention)
{
    for (int d = 0; d < 4; d++)
        for (int i = 0; i < ATTENTIONS; i++) {
            char what[60];
            fakeCudaSeed((uint64_t)(i + 1));
            world w = make_attention(&attentions[i], dtypes[d], 1 + i % 2, replays[_i]);
            snprintf(what, sizeof what, "%s, attention %d", dtypes[d], i);
            compare(&w, (d == 1 || d == 2) && attentions[i].by_cudnn ? GRAPHS : 0, what);
            free_world(&w);
        }
}
END_TEST

/* The device keeps the logarithms that the host keeps, and saves cuDNN one of three graphs; the last case is for
 * products. */
START_TEST(logarithms_that_are_kept)
{
    const heads many = { 4, 4, 512, 512, 4, 1, false, 0 };
    for (int d = 0; d < 4; d++)
        for (int i = 0; i <= ATTENTIONS; i++) {
            const heads *a = i < ATTENTIONS ? &attentions[i] : &many;
            bool by_cudnn = (d == 1 || d == 2) && a->by_cudnn;
            unsigned called = by_cudnn ? GRAPHS : (d == 0 || d == 3) && i == ATTENTIONS ? PRODUCTS : 0;
            int calls[2];
            for (int lse = 0; lse < 2; lse++) {
                char what[60];
                fakeCudaSeed((uint64_t)(i + 1));
                world w = make_attention_of(a, dtypes[d], 1 + i % 2, replays[_i], lse);
                int before = fakeCudaCalls("cudnnBackendExecute");
                snprintf(what, sizeof what, "%s, attention %d, kept: %d", dtypes[d], i, lse);
                compare_starts(&w, 1, called, what);
                calls[lse] = fakeCudaCalls("cudnnBackendExecute") - before;
                free_world(&w);
            }
            ck_assert_msg(2 * calls[0] == 3 * calls[1] && (calls[1] > 0) == by_cudnn, "%s, attention %d: %d and %d",
                          dtypes[d], i, calls[0], calls[1]);
        }
}
END_TEST

/* The gradients of the scores of all heads would take 768 MiB, 16 KiB each, so half of the heads are done at a time. */
START_TEST(gradients_of_some_heads_at_a_time)
{
    const heads many = { 49152, 24576, 1, 3, 8, 0, true, 0 };
    world w = make_attention(&many, "bf16", 1, replays[_i]);
    int before = fakeCudaCalls("cudnnBackendExecute");
    compare(&w, GRAPHS, "many heads");
    ck_assert_int_ge(fakeCudaCalls("cudnnBackendExecute") - before, 2 + 2);
    free_world(&w);
}
END_TEST

/* Large ones of f32 and f64: portions of several heads; heads that share keys; without cuDNN; bands of 256 rows under a
 * mask, and of 384 and 136 behind 10 keys that all see, twice, as two heads share keys; and the gradients alone, of f32
 * where the GPU has tensor cores for it, with three products behind a kernel that makes weights and slopes. `scores`:
 * that are computed, as counted by hand, once for each of two products and of five, of d multiplications each. */
START_TEST(large_attention_by_products)
{
    static const struct {
        heads of;
        const char *dtype, *capability;
        int products, portions, scores;
    } cases[] = {
        { { 33, 33, 1024, 1024, 1, 0, false, 0 }, "f64", "90", 7, 2, 33 * 1024 * 1024 },
        { { 4, 2, 400, 700, 6, 0, false, 0 }, "f32", "70", 7, 1, 4 * 400 * 700 },
        { { 4, 4, 512, 512, 4, 1, false, 0 }, "f32", "70", 7, 1, 4 * 512 * 512 },
        { { 32, 32, 512, 512, 1, 1, false, 0 }, "f32", "70", 7, 2, 32 * (256 * 256 + 256 * 512) },
        { { 64, 32, 520, 530, 1, 1, false, 0 }, "f64", "90", 7, 4, 64 * (384 * 394 + 136 * 530) },
        { { 4, 2, 400, 700, 6, 0, false, 0 }, "f32", "90", 3, 1, 4 * 400 * 700 },
        { { 4, 2, 400, 700, 6, 0, false, 0 }, "f32", "80", 3, 1, 4 * 400 * 700 },
        { { 4, 4, 512, 512, 4, 1, false, 1 }, "f32", "70", 7, 1, 4 * 512 * 512 },
        { { 4, 4, 512, 512, 4, 1, false, 2 }, "f64", "90", 7, 1, 4 * 512 * 512 },
        { { 12, 6, 300, 350, 4, 0, false, 2 }, "f32", "70", 7, 1, 12 * 300 * 350 },
    };
    setenv("FAKE_CUDA_CAPABILITY", cases[_i].capability, 1);
    if (_i == 2)
        setenv("FAKE_CUDNN_VERSION", "8907", 1);
    world w = make_attention(&cases[_i].of, cases[_i].dtype, 1, replays[_i % 2]);
    int before = fakeCudaCalls("cublasGemmStridedBatchedEx"), work = fakeCudaCalls("multiply-adds");
    compare_starts(&w, 1, PRODUCTS, cases[_i].dtype);
    int calls = fakeCudaCalls("cublasGemmStridedBatchedEx") - before, each = cases[_i].products * cases[_i].portions;
    int starts = calls / each;
    ck_assert_int_eq(calls % each, 0);
    ck_assert(_i % 2 == 0 ? starts == 2 : starts > 0); /* once to have code loaded, and a start */
    ck_assert_int_eq(fakeCudaCalls("multiply-adds") - work,
                     starts * cases[_i].products * cases[_i].of.d * cases[_i].scores);
    free_world(&w);
    unsetenv("FAKE_CUDA_CAPABILITY");
}
END_TEST

/* Calls of cuBLAS, and the launch of what softens; then it works again. */
START_TEST(products_that_fail)
{
    static const struct {
        const char *linalg, *driver, *told;
    } cases[] = {
        { "cublasCreate:1", NULL, "cublasCreate of libcublas.so.13 returned CUBLAS_STATUS_NOT_INITIALIZED (1)" },
        { "cublasSetMathMode:7", NULL, "cublasSetMathMode of libcublas.so.13 returned " },
        { "cublasSetStream:7", NULL, "cublasSetStream of libcublas.so.13 returned " },
        { "cublasSetWorkspace:7", NULL, "cublasSetWorkspace of libcublas.so.13 returned " },
        { "cublasGemmStridedBatchedEx:13", NULL, "cublasGemmStridedBatchedEx of libcublas.so.13 returned " },
        { NULL, "cuLaunchKernel:12:701", "launching it" }, /* behind ten that have code loaded, and a product */
        { NULL, "cuModuleLoadData:2:209", "loading the code of \"softmax" },
    };
    setenv("FAKE_CUDA_CAPABILITY", "70", 1); /* without tensor cores for f32 */
    world w = make_attention(&(heads){ 4, 4, 512, 512, 4, 1, false, 0 }, "f32", 1, "stream");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gantry_error err = { 0 };
        if (cases[i].linalg)
            setenv("FAKE_LINALG_FAIL", cases[i].linalg, 1);
        fakeCudaFail(cases[i].driver);
        gantry_status status = attempt(&w, &err);
        unsetenv("FAKE_LINALG_FAIL");
        fakeCudaFail(NULL);
        ck_assert_msg(status != GANTRY_OK, "case %d", (int)i);
        ck_assert_msg(strstr(err.text, cases[i].told) && strstr(err.text, "node \""), "%d: %s", (int)i, err.text);
    }
    free_world(&w);
    unsetenv("FAKE_CUDA_CAPABILITY");
}
END_TEST

/* cuDNN knows no engine for a graph; then its heuristics fail. */
START_TEST(graphs_are_refused)
{
    world w = make_attention(&attentions[1], "f16", 1, replays[_i]);
    gantry_error err = { 0 };
    setenv("FAKE_CUDNN_GRAPHS", "refused", 1);
    compare(&w, 0, "graphs that cuDNN does not know");
    unsetenv("FAKE_CUDNN_GRAPHS");
    compare(&w, GRAPHS, "graphs that it knows");
    static const char *const calls[] = { "cudnnBackendCreateDescriptor", "cudnnBackendSetAttribute",
                                         "cudnnBackendGetAttribute", "cudnnBackendFinalize", "cudnnBackendExecute" };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        char spec[60], told[200];
        snprintf(spec, sizeof spec, "%s:4000", calls[i]);
        snprintf(told, sizeof told, "%s of libcudnn.so.9 returned CUDNN_STATUS_OF_ANOTHER_KIND (4000)", calls[i]);
        setenv("FAKE_LINALG_FAIL", spec, 1);
        gantry_status status = attempt(&w, &err);
        unsetenv("FAKE_LINALG_FAIL");
        ck_assert_msg(status == GANTRY_E_DEVICE || status == GANTRY_E_KERNEL, "%s: %d", spec, (int)status);
        ck_assert_msg(strstr(err.text, told) && strstr(err.text, "node \""), "%s: %s", spec, err.text);
        MUST(attempt(&w, MUST_ERR));
    }
    free_world(&w);
}
END_TEST

/* When asked for an algorithm, for the workspace of each of them, or when called: our own kernels do it. */
START_TEST(refusals)
{
    static const struct {
        const char *spec;
        unsigned others;
    } cases[] = { { "cudnnGetConvolutionForwardAlgorithm_v7:3000", 6 },
                  { "cudnnGetConvolutionBackwardDataWorkspaceSize:3001", 5 },
                  { "cudnnConvolutionBackwardFilter:3000", 3 },
                  { "cudnnConvolutionForward:3007", 6 } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        world w = make_world(&shapes[3], dtypes[i % 3], 1, replays[_i]);
        setenv("FAKE_LINALG_FAIL", cases[i].spec, 1);
        compare(&w, cases[i].others, cases[i].spec);
        unsetenv("FAKE_LINALG_FAIL");
        free_world(&w);
    }
}
END_TEST

static const struct call {
    const char *spec, *told, *where;
} bad_calls[] = {
    { "cudnnCreate:1001",
      "cudnnCreate of libcudnn.so.9 returned CUDNN_STATUS_OF_ANOTHER_KIND (1001); the driver is for CUDA 13.0",
      " on device \"gpu0\": " },
    { "cudnnCreateTensorDescriptor:2000",
      "cudnnCreateTensorDescriptor of libcudnn.so.9 returned CUDNN_STATUS_BAD_PARAM (2000) for 2 "
      "images of 4 x 12 x 12 and 3 windows of 5 x 5",
      "node \"" },
    { "cudnnCreateFilterDescriptor:2000", "cudnnCreateFilterDescriptor of libcudnn.so.9 returned ", "node \"" },
    { "cudnnCreateConvolutionDescriptor:2000", "cudnnCreateConvolutionDescriptor of libcudnn.so.9 returned ",
      "node \"" },
    { "cudnnSetTensor4dDescriptor:2000", "cudnnSetTensor4dDescriptor of libcudnn.so.9 returned ", "node \"" },
    { "cudnnSetFilter4dDescriptor:2000", "cudnnSetFilter4dDescriptor of libcudnn.so.9 returned ", "node \"" },
    { "cudnnSetConvolution2dDescriptor:2000", "cudnnSetConvolution2dDescriptor of libcudnn.so.9 returned ", "node \"" },
    { "cudnnSetConvolutionMathType:2000", "cudnnSetConvolutionMathType of libcudnn.so.9 returned ", "node \"" },
    { "cudnnGetConvolutionForwardAlgorithm_v7:4000",
      "cudnnGetConvolutionForwardAlgorithm_v7 of libcudnn.so.9 returned ", "node \"f\"" },
    { "cudnnGetConvolutionBackwardDataAlgorithm_v7:4000",
      "cudnnGetConvolutionBackwardDataAlgorithm_v7 of libcudnn.so.9 returned ", "node \"i\"" },
    { "cudnnGetConvolutionBackwardFilterAlgorithm_v7:4000",
      "cudnnGetConvolutionBackwardFilterAlgorithm_v7 of libcudnn.so.9 returned ", "node \"k\"" },
    { "cudnnGetConvolutionForwardWorkspaceSize:4000",
      "cudnnGetConvolutionForwardWorkspaceSize of libcudnn.so.9 returned ", "node \"f\"" },
    { "cudnnSetStream:4000", "cudnnSetStream of libcudnn.so.9 returned ", "node \"" },
    { "cudnnConvolutionForward:5000", "cudnnConvolutionForward of libcudnn.so.9 returned ", "node \"f\" failed" },
    { "cudnnConvolutionBackwardData:5000", "cudnnConvolutionBackwardData of libcudnn.so.9 returned ",
      "node \"i\" failed" },
    { "cudnnConvolutionBackwardFilter:5000", "cudnnConvolutionBackwardFilter of libcudnn.so.9 returned ",
      "node \"k\" failed" },
};

/* Every function that can fail does; its name and status are told, with the node; then it works again. */
START_TEST(calls_fail)
{
    setenv("FAKE_CUDA_VERSION", "13000", 1);
    world w = make_world(&shapes[3], "f32", 1, replays[_i]);
    for (size_t i = 0; i < sizeof bad_calls / sizeof *bad_calls; i++) {
        const struct call *c = &bad_calls[i];
        gantry_error err = { 0 };
        setenv("FAKE_LINALG_FAIL", c->spec, 1);
        gantry_status status = attempt(&w, &err);
        unsetenv("FAKE_LINALG_FAIL");
        ck_assert_msg(status == GANTRY_E_DEVICE || status == GANTRY_E_KERNEL, "%s: %d", c->spec, (int)status);
        ck_assert_msg(strstr(err.text, c->told) && strstr(err.text, c->where), "%s: %s", c->spec, err.text);
        MUST(attempt(&w, MUST_ERR));
    }
    free_world(&w);
}
END_TEST

/* ---- a cuDNN that is not there, or does not fit ---- */

static void expect_line(const char *line)
{
    char *text = NULL;
    size_t i = 0;
    while (strcmp(gantry_backend_name(i), "cuda") != 0)
        i++;
    MUST(gantry_backend_describe(i, &text, MUST_ERR));
    ck_assert_msg(strstr(text, line), "no \"%s\" in:\n%s", line, text);
    gantry_free(text);
}

static void expect_own(void)
{
    world w = make_world(&shapes[2], "f32", 1, "stream");
    compare(&w, 0, "without cuDNN");
    free_world(&w);
}

/* Of few weights and many pixels our own kernel has tensor cores, where the GPU has some for floats; else cuDNN does
 * it, whose order of sums is one, too. */
START_TEST(few_weights_want_tensor_cores)
{
    static const struct {
        const char *capability;
        unsigned by_cudnn;
    } cases[] = { { "90", 1 | 2 }, { "80", 1 | 2 }, { "70", 1 | 2 | 4 } };
    const shape many = { .n = 64, .c = 8, .h = 18, .w = 18, .o = 20, .kh = 3, .kw = 3, .stride = 1, .pad = 1 };
    setenv("FAKE_CUDA_CAPABILITY", cases[_i].capability, 1);
    world w = make_world(&many, "f32", 1, "stream");
    compare_starts(&w, 1, cases[_i].by_cudnn, cases[_i].capability);
    free_world(&w);
    unsetenv("FAKE_CUDA_CAPABILITY");
}
END_TEST

START_TEST(version_is_told)
{
    setenv("FAKE_CUDNN_VERSION", "91203", 1);
    expect_line("\ncuDNN: libcudnn.so.9, version 9.12.3\n");
}
END_TEST

START_TEST(too_old)
{
    setenv("FAKE_CUDNN_VERSION", "8907", 1);
    expect_line(
        "\ncuDNN: libcudnn.so.9 says that it is version 8907; it must be 90000 or later; attention, attention_grad, "
        "conv2d, conv2d_grad_w and conv2d_grad_x run as plain kernels, which are slower\n");
    expect_own();
}
END_TEST

START_TEST(for_a_newer_driver)
{
    setenv("FAKE_CUDA_VERSION", "12080", 1);
    setenv("FAKE_CUDNN_CUDA", "13000", 1);
    expect_line(
        "\ncuDNN: libcudnn.so.9 is made for CUDA 13 and the driver is for CUDA 12; install the cuDNN 9 for CUDA 12; ");
    expect_own();
}
END_TEST

START_TEST(no_functions)
{
    setenv("GANTRY_CUDA_LIBRARIES", GANTRY_ABSENT, 1);
    expect_line("\ncuDNN: libcudnn.so.9 has no function cudnnGetVersion: it is too old; ");
    expect_own();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cuda cudnn");
    TCase *tests = tcase_create("cudnn");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, numbers, 0, 2);
    tcase_add_loop_test(tests, numbers_of_attention, 0, 2);
    tcase_add_loop_test(tests, logarithms_that_are_kept, 0, 2);
    tcase_add_loop_test(tests, large_attention_by_products, 0, 10);
    tcase_add_test(tests, products_that_fail);
    tcase_add_loop_test(tests, graphs_are_refused, 0, 2);
    tcase_add_loop_test(tests, gradients_of_some_heads_at_a_time, 0, 1);
    tcase_add_loop_test(tests, refusals, 0, 2);
    tcase_add_loop_test(tests, calls_fail, 0, 2);
    tcase_add_loop_test(tests, few_weights_want_tensor_cores, 0, 3);
    tcase_add_test(tests, version_is_told);
    tcase_add_test(tests, too_old);
    tcase_add_test(tests, for_a_newer_driver);
    tcase_add_test(tests, no_functions);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
