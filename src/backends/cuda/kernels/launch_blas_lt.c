/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gemm_bias by cuBLASLt, whose products go on with the bias and the activation before they are rounded. The workspace
 * is the launch's scratch, as in launch_blas.c. What cuBLASLt does not do (f64, what it refuses) cuBLAS does, and a
 * kernel of our own behind it.
 */
#include "backends/cuda/kernels/blas_lt_calls.h"
#include "backends/cuda/kernels/plain.h"
#include "kernels/gemm_bias/gemm_bias.h"

#include "base/error.h"
#include "base/memory.h"
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

typedef struct handle {
    gy_blas_lt_calls calls;
    void *product; /* of gy_library_gemm */
    void *plain;   /* of gy_plain_gemm_bias */
} handle;

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
    gy_blas_lt_calls_close(&h->calls);
    if (h->product)
        gy_library_gemm.close(h->product);
    if (h->plain)
        gy_cuda_image_close(h->plain);
    gy_free(h);
}

static gantry_status open_all(handle *h, const gy_driver *driver, gantry_error *err)
{
    GY_TRY(gy_blas_lt_calls_open(&h->calls, gy_linalg_driver_version(driver), err));
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
    return h->calls.why[0] ? h->calls.why : why ? why : gy_library_gemm.why(h->product);
}

/* ---- descriptions ---- */

/* Rows become columns. */
static gantry_status describe_matrix(gy_blas_lt_calls *h, const gantry_arg *a, cublasLtMatrixLayout_t *layout)
{
    gy_gpu_matrix m = gy_gpu_matrix_of(a);
    return GY_BLAS_LT_CALL(h, cublasLtMatrixLayoutCreate, layout, gy_blas_type_of(a->dtype), (uint64_t)m.columns,
                           (uint64_t)m.rows, m.ld);
}

#define SET(what, value) GY_BLAS_LT_CALL(h, cublasLtMatmulDescSetAttribute, c->product, what, &(value), sizeof(value))

/* c^T = op(b)^T op(a)^T, and what cuBLASLt sees of each is its transpose: the bias is for rows of what it writes. */
static gantry_status describe(gy_blas_lt_calls *h, const gantry_launch *l, const gy_blas_lt_shape *s,
                              gy_blas_lt_call *c)
{
    static const cublasLtEpilogue_t epilogues[] = { [GY_ACTIVATION_NONE] = CUBLASLT_EPILOGUE_BIAS,
                                                    [GY_ACTIVATION_RELU] = CUBLASLT_EPILOGUE_RELU_BIAS,
                                                    [GY_ACTIVATION_GELU] = CUBLASLT_EPILOGUE_GELU_BIAS };
    cublasLtEpilogue_t epilogue = epilogues[s->activation];
    cublasOperation_t op_a = s->ta ? CUBLAS_OP_T : CUBLAS_OP_N, op_b = s->tb ? CUBLAS_OP_T : CUBLAS_OP_N;
    const void *bias = l->arg[BIAS].data;
    GY_TRY(GY_BLAS_LT_CALL(h, cublasLtMatmulDescCreate, &c->product, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    GY_TRY(SET(CUBLASLT_MATMUL_DESC_TRANSA, op_b));
    GY_TRY(SET(CUBLASLT_MATMUL_DESC_TRANSB, op_a));
    GY_TRY(SET(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue));
    GY_TRY(SET(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias));
    GY_TRY(describe_matrix(h, &l->arg[A], &c->a));
    GY_TRY(describe_matrix(h, &l->arg[B], &c->b));
    return describe_matrix(h, &l->arg[C], &c->c);
}

/* ---- launches ---- */

/* The largest power of two that divides the address, 256 at most: what heuristics count on unless they are told. */
static uint32_t alignment_of(const gantry_arg *a)
{
    uintptr_t bits = (uintptr_t)a->data | 256;
    return (uint32_t)(bits & (~bits + 1));
}

static gy_blas_lt_shape shape_of(const gantry_launch *l)
{
    gy_blas_lt_shape s = gy_blas_lt_shape_of(&l->arg[A], l->arg[TA].number != 0, &l->arg[C]);
    s.ta = l->arg[TA].number != 0;
    s.tb = l->arg[TB].number != 0;
    s.activation = (int)l->arg[ACTIVATION].integer;
    s.a = alignment_of(&l->arg[A]);
    s.b = alignment_of(&l->arg[B]);
    s.c = alignment_of(&l->arg[C]);
    s.bias = alignment_of(&l->arg[BIAS]);
    return s;
}

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

static gantry_status launch_chosen(gy_blas_lt_calls *h, const gantry_launch *l, const gy_blas_lt_shape *s,
                                   gy_blas_lt_call *c, bool *refused)
{
    static const float one = 1, zero = 0;
    const cublasLtMatmulAlgo_t *algorithm;
    GY_TRY(describe(h, l, s, c));
    GY_TRY(gy_blas_lt_choose(h, s, c, l->scratch_bytes, &algorithm));
    *refused = !algorithm;
    if (!algorithm)
        return GANTRY_OK;
    return GY_BLAS_LT_CALL(h, cublasLtMatmul, h->lt, c->product, &one, l->arg[B].data, c->b, l->arg[A].data, c->a,
                           &zero, l->arg[C].data, c->c, l->arg[C].data, c->c, algorithm, l->scratch,
                           (size_t)l->scratch_bytes, l->stream);
}

static gantry_status launch_gemm_bias(const gantry_launch *l)
{
    handle *h = l->handle;
    gy_blas_lt_shape s = shape_of(l);
    gy_blas_lt_call c = { 0 };
    bool refused = s.dtype == GANTRY_F64 || s.depth == 0 || s.activation == GY_ACTIVATION_GELU_ERF;
    h->calls.why[0] = 0;
    if (s.rows == 0 || s.columns == 0)
        return GANTRY_OK;
    if (gy_plain_gemm_bias_is_row(l)) {
        gantry_launch own = gy_launch_with(l, h->plain);
        return gy_plain_gemm_bias_row(&own);
    }
    gy_cuda_image_early(h->plain, GY_EARLY_NONE); /* nothing of ours comes early behind a library's */
    gantry_status status = refused ? GANTRY_OK : launch_chosen(&h->calls, l, &s, &c, &refused);
    gy_blas_lt_forget(&h->calls.api, &c);
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
