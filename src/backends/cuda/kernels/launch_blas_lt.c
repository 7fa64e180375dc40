/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gemm_bias by cuBLASLt, whose products go on with the bias and the activation before they are rounded. One plan for
 * each shape and alignment: the algorithm that the heuristics put first among those that add up parts of sums in f32.
 * Nothing is tried out by the clock. The workspace is the launch's scratch, as in launch_blas.c. What cuBLASLt does not
 * do (f64, what it refuses) cuBLAS does, and a kernel of our own behind it.
 */
#include "backends/cuda/kernels/blas_calls.h"
#include "backends/cuda/kernels/plain.h"
#include "backends/cuda/nvidia/blas_lt.h"
#include "kernels/gemm_bias/gemm_bias.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/vec.h"
#include <string.h>

enum {
    TA = GY_GEMM_BIAS_TA,
    TB = GY_GEMM_BIAS_TB,
    ACTIVATION = GY_GEMM_BIAS_ACTIVATION,
    A = GY_GEMM_BIAS_A,
    B = GY_GEMM_BIAS_B,
    BIAS = GY_GEMM_BIAS_BIAS,
    C = GY_GEMM_BIAS_C
};

/* An algorithm is chosen by these. */
typedef struct shape {
    int rows, columns, depth, ta, tb, activation;
    gantry_dtype dtype;
    uint32_t a, b, c, bias; /* alignment in bytes */
} shape;

typedef struct plan {
    shape of;
    bool refused;
    cublasLtMatmulAlgo_t algorithm;
} plan;

typedef struct handle {
    gy_blas_lt api;
    cublasLtHandle_t lt;
    void *product; /* of gy_library_gemm */
    void *plain;   /* of gy_plain_gemm_bias */
    GY_VEC(plan) plans;
    char why[160];
} handle;

static gantry_status check(handle *h, cublasStatus_t status, const char *call)
{
    return gy_blas_told(status, call, h->api.lib.name, h->why, sizeof h->why);
}
#define CALL(h, name, ...) check(h, (h)->api.name(__VA_ARGS__), #name)

/* ---- handles ---- */

static gantry_status usable_lt(const gy_cuda_kernel *kernel, const gy_driver *driver, gantry_error *err)
{
    gy_blas_lt api;
    (void)kernel;
    GY_TRY(gy_library_gemm.usable(&gy_library_gemm, driver, err));
    return gy_blas_lt_open(&api, gy_linalg_driver_version(driver), err) ? GANTRY_E_UNSUPPORTED : GANTRY_OK;
}

static void close_lt(void *opened)
{
    handle *h = opened;
    if (h->lt)
        h->api.cublasLtDestroy(h->lt);
    if (h->product)
        gy_library_gemm.close(h->product);
    if (h->plain)
        gy_cuda_image_close(h->plain);
    gy_vec_free(&h->plans);
    gy_free(h);
}

static gantry_status open_all(handle *h, const gy_driver *driver, gantry_error *err)
{
    int version = gy_linalg_driver_version(driver);
    GY_TRY(gy_blas_lt_open(&h->api, version, err));
    if (CALL(h, cublasLtCreate, &h->lt)) {
        h->lt = NULL;
        return gy_linalg_fail(h->why, version, err);
    }
    GY_TRY(gy_library_gemm.open(&h->product, &gy_library_gemm, driver, err));
    return gy_cuda_image_open(&h->plain, &gy_plain_gemm_bias, driver, err);
}

static gantry_status open_lt(void **opened, const gy_cuda_kernel *kernel, const gy_driver *driver, gantry_error *err)
{
    (void)kernel;
    handle *h = gy_calloc(1, sizeof *h);
    gantry_status status = h ? open_all(h, driver, err) : gy_fail_nomem(err);
    if (status && h)
        close_lt(h);
    *opened = status ? NULL : h;
    return status;
}

static const char *why_lt(const void *opened)
{
    const handle *h = opened;
    const char *why = gy_cuda_image_why(h->plain);
    return h->why[0] ? h->why : why ? why : gy_library_gemm.why(h->product);
}

/* ---- descriptions ---- */

/* Rows become columns. */
static gantry_status describe_matrix(handle *h, const gantry_arg *a, cublasLtMatrixLayout_t *layout)
{
    gy_gpu_matrix m = gy_gpu_matrix_of(a);
    cudaDataType type = a->dtype == GANTRY_F32 ? CUDA_R_32F : a->dtype == GANTRY_F16 ? CUDA_R_16F : CUDA_R_16BF;
    return CALL(h, cublasLtMatrixLayoutCreate, layout, type, (uint64_t)m.columns, (uint64_t)m.rows, m.ld);
}

#define SET(what, value) CALL(h, cublasLtMatmulDescSetAttribute, c->product, what, &(value), sizeof(value))

/* c^T = op(b)^T op(a)^T, and what cuBLASLt sees of each is its transpose: the bias is for rows of what it writes. */
static gantry_status describe(handle *h, const gantry_launch *l, const shape *s, gy_blas_lt_call *c)
{
    static const cublasLtEpilogue_t epilogues[] = { [GY_ACTIVATION_NONE] = CUBLASLT_EPILOGUE_BIAS,
                                                    [GY_ACTIVATION_RELU] = CUBLASLT_EPILOGUE_RELU_BIAS,
                                                    [GY_ACTIVATION_GELU] = CUBLASLT_EPILOGUE_GELU_BIAS };
    cublasLtEpilogue_t epilogue = epilogues[s->activation];
    cublasOperation_t op_a = s->ta ? CUBLAS_OP_T : CUBLAS_OP_N, op_b = s->tb ? CUBLAS_OP_T : CUBLAS_OP_N;
    const void *bias = l->arg[BIAS].data;
    GY_TRY(CALL(h, cublasLtMatmulDescCreate, &c->product, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    GY_TRY(SET(CUBLASLT_MATMUL_DESC_TRANSA, op_b));
    GY_TRY(SET(CUBLASLT_MATMUL_DESC_TRANSB, op_a));
    GY_TRY(SET(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue));
    GY_TRY(SET(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias));
    GY_TRY(describe_matrix(h, &l->arg[A], &c->a));
    GY_TRY(describe_matrix(h, &l->arg[B], &c->b));
    return describe_matrix(h, &l->arg[C], &c->c);
}

#define WANT(what, value) CALL(h, cublasLtMatmulPreferenceSetAttribute, c->wanted, what, &(value), sizeof(value))

static gantry_status want(handle *h, const gantry_launch *l, const shape *s, gy_blas_lt_call *c)
{
    uint64_t bytes = l->scratch_bytes;
    uint32_t sums = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE, result = s->c < s->bias ? s->c : s->bias;
    GY_TRY(CALL(h, cublasLtMatmulPreferenceCreate, &c->wanted));
    GY_TRY(WANT(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, bytes));
    GY_TRY(WANT(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, sums));
    GY_TRY(WANT(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, s->b));
    GY_TRY(WANT(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, s->a));
    GY_TRY(WANT(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, result));
    return WANT(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, result);
}

/* ---- plans ---- */

/* The largest power of two that divides the address, 256 at most: what heuristics count on unless they are told. */
static uint32_t alignment_of(const gantry_arg *a)
{
    uintptr_t bits = (uintptr_t)a->data | 256;
    return (uint32_t)(bits & (~bits + 1));
}

static shape shape_of(const gantry_launch *l)
{
    gy_gpu_matrix a = gy_gpu_matrix_of(&l->arg[A]), c = gy_gpu_matrix_of(&l->arg[C]);
    shape s;
    memset(&s, 0, sizeof s); /* it is compared with its padding */
    s.rows = c.rows;
    s.columns = c.columns;
    s.ta = l->arg[TA].number != 0;
    s.tb = l->arg[TB].number != 0;
    s.depth = s.ta ? a.rows : a.columns;
    s.activation = (int)l->arg[ACTIVATION].integer;
    s.dtype = l->arg[C].dtype;
    s.a = alignment_of(&l->arg[A]);
    s.b = alignment_of(&l->arg[B]);
    s.c = alignment_of(&l->arg[C]);
    s.bias = alignment_of(&l->arg[BIAS]);
    return s;
}

static gantry_status make_plan(handle *h, const gantry_launch *l, const shape *s, gy_blas_lt_call *c)
{
    cublasLtMatmulHeuristicResult_t best;
    int found = 0;
    plan made = { .of = *s };
    memset(&best, 0, sizeof best);
    GY_TRY(want(h, l, s, c));
    cublasStatus_t status =
        h->api.cublasLtMatmulAlgoGetHeuristic(h->lt, c->product, c->b, c->a, c->c, c->c, c->wanted, 1, &best, &found);
    made.refused = status == CUBLAS_STATUS_NOT_SUPPORTED || (status == CUBLAS_STATUS_SUCCESS && !found);
    if (!made.refused)
        GY_TRY(check(h, status ? status : best.state, "cublasLtMatmulAlgoGetHeuristic"));
    made.algorithm = best.algo;
    return gy_vec_push(&h->plans, made) ? GANTRY_OK : GANTRY_E_NOMEM;
}

static const plan *find(const handle *h, const shape *s)
{
    for (size_t i = 0; i < h->plans.count; i++)
        if (memcmp(&h->plans.at[i].of, s, sizeof *s) == 0)
            return &h->plans.at[i];
    return NULL;
}

/* ---- launches ---- */

/* As launch_blas.c and our own kernel see it. */
static gantry_status launch_apart(handle *h, const gantry_launch *l)
{
    gantry_arg arg[7];
    gantry_launch product = gy_launch_with(l, h->product), own = gy_launch_with(l, h->plain);
    memset(arg, 0, sizeof arg);
    arg[0] = (gantry_arg){ .name = "alpha", .number = 1, .integer = 1 };
    arg[1] = (gantry_arg){ .name = "beta" };
    arg[2] = l->arg[TA];
    arg[3] = l->arg[TB];
    arg[4] = l->arg[A];
    arg[5] = l->arg[B];
    arg[6] = l->arg[C];
    product.arg = arg;
    product.args = 7;
    GY_TRY(gy_library_gemm.launch(&product));
    return gy_plain_finish_gemm_bias(&own);
}

static gantry_status launch_planned(handle *h, const gantry_launch *l, const shape *s, gy_blas_lt_call *c,
                                    bool *refused)
{
    static const float one = 1, zero = 0;
    GY_TRY(describe(h, l, s, c));
    if (!find(h, s))
        GY_TRY(make_plan(h, l, s, c));
    const plan *p = find(h, s);
    *refused = p->refused;
    if (p->refused)
        return GANTRY_OK;
    return CALL(h, cublasLtMatmul, h->lt, c->product, &one, l->arg[B].data, c->b, l->arg[A].data, c->a, &zero,
                l->arg[C].data, c->c, l->arg[C].data, c->c, &p->algorithm, l->scratch, (size_t)l->scratch_bytes,
                l->stream);
}

static gantry_status launch_gemm_bias(const gantry_launch *l)
{
    handle *h = l->handle;
    shape s = shape_of(l);
    gy_blas_lt_call c = { 0 };
    bool refused = s.dtype == GANTRY_F64 || s.depth == 0 || s.activation == GY_ACTIVATION_GELU_ERF;
    h->why[0] = 0;
    if (s.rows == 0 || s.columns == 0)
        return GANTRY_OK;
    if (gy_plain_gemm_bias_is_row(l)) {
        gantry_launch own = gy_launch_with(l, h->plain);
        return gy_plain_gemm_bias_row(&own);
    }
    gy_cuda_image_early(h->plain, GY_EARLY_NONE); /* nothing of ours comes early behind a library's */
    gantry_status status = refused ? GANTRY_OK : launch_planned(h, l, &s, &c, &refused);
    gy_blas_lt_forget(&h->api, &c);
    return status || !refused ? status : launch_apart(h, l);
}

static gantry_status prepare_gemm_bias(const gantry_launch *l, uint64_t *scratch, gantry_error *err)
{
    const handle *h = l->handle;
    gantry_launch product = gy_launch_with(l, h->product), own = gy_launch_with(l, h->plain);
    GY_TRY(gy_cuda_image_prepare(&own, scratch, err));
    return gy_library_gemm.prepare(&product, scratch, err);
}

static bool early_lt(void *opened, gy_early which)
{
    const handle *h = opened;
    return gy_cuda_image_early(h->plain, which);
}

const gy_cuda_kernel gy_library_gemm_bias = { .name = "gemm_bias",
                                              .launch = launch_gemm_bias,
                                              .open = open_lt,
                                              .close = close_lt,
                                              .usable = usable_lt,
                                              .prepare = prepare_gemm_bias,
                                              .early = early_lt,
                                              .why = why_lt,
                                              .loads = gy_linalg_loads };
