/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Its products of f8 (from compute capability 8.9 on) want op(a) and op(b)^T in rows whose length, as that of c's rows
 * and all addresses, is a multiple of 16 bytes: "cublasLtMatmul" in NVIDIA's documentation of cuBLAS. A factor that
 * lies otherwise is transposed into the launch's scratch first. Sums are kept in f32: its "fast accumulation" is left
 * off. As in launch_blas_lt.c, the algorithm that the heuristics put first is taken, once for each shape; heuristics
 * refuse what a GPU does not do.
 */
#include "backends/cuda/kernels/blas_f8.h"
#include "backends/cuda/kernels/plain.h"
#include "backends/cuda/nvidia/blas_lt.h"

#include "base/align.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/vec.h"
#include "kernel/dtype.h"
#include <string.h>

enum { ALPHA, BETA, TA, TB, A, B, C, SCALE_A, SCALE_B };
enum { ALIGNED = 16 };

/* An algorithm is chosen by these. */
typedef struct shape {
    int rows, columns, depth;
    gantry_dtype dtype, result;
    uint32_t is_added; /* to what c was */
} shape;

typedef struct plan {
    shape of;
    bool refused;
    cublasLtMatmulAlgo_t algorithm;
} plan;

struct gy_blas_f8 {
    gy_blas_lt api;
    cublasLtHandle_t lt;
    GY_VEC(plan) plans;
    char why[160];
};

static gantry_status check(gy_blas_f8 *h, cublasStatus_t status, const char *call)
{
    return gy_blas_told(status, call, h->api.lib.name, h->why, sizeof h->why);
}
#define CALL(h, name, ...) check(h, (h)->api.name(__VA_ARGS__), #name)

/* ---- handles ---- */

void gy_blas_f8_close(gy_blas_f8 *h)
{
    if (!h)
        return;
    if (h->lt)
        h->api.cublasLtDestroy(h->lt);
    gy_vec_free(&h->plans);
    gy_free(h);
}

gantry_status gy_blas_f8_open(gy_blas_f8 **f8, const gy_driver *driver, gantry_error *err)
{
    int version = gy_linalg_driver_version(driver);
    gy_blas_f8 *h = gy_calloc(1, sizeof *h);
    *f8 = NULL;
    if (!h)
        return gy_fail_nomem(err);
    if (gy_blas_lt_open(&h->api, version, NULL)) {
        gy_free(h);
        return GANTRY_OK;
    }
    if (CALL(h, cublasLtCreate, &h->lt)) {
        h->lt = NULL;
        gy_blas_f8_close(h);
        return GANTRY_OK;
    }
    *f8 = h;
    return GANTRY_OK;
}

const char *gy_blas_f8_why(const gy_blas_f8 *h)
{
    return h && h->why[0] ? h->why : NULL;
}

/* ---- matrices ---- */

static uint64_t room_of(const gantry_arg *a, bool is_turned)
{
    return is_turned ? gy_aligned((uint64_t)(a->rows * a->row_bytes)) : 0;
}

uint64_t gy_blas_f8_room(const gantry_launch *l)
{
    return room_of(&l->arg[A], l->arg[TA].number != 0) + room_of(&l->arg[B], l->arg[TB].number == 0);
}

/* The arrays that the library is given, once the factors lie as it wants them. */
typedef struct factors {
    const void *a, *b;
    char *workspace;
    size_t bytes;
} factors;

static gantry_status lay(const gantry_launch *l, void *plain, factors *f)
{
    gantry_launch turning = gy_launch_with(l, plain);
    bool ta = l->arg[TA].number != 0, tb = l->arg[TB].number != 0;
    char *at = l->scratch, *b = at + room_of(&l->arg[A], ta);
    uint64_t room = gy_blas_f8_room(l);
    f->a = ta ? at : l->arg[A].data;
    f->b = tb ? l->arg[B].data : b;
    f->workspace = at + room;
    f->bytes = (size_t)(l->scratch_bytes - room);
    GY_TRY(ta ? gy_plain_turn_f8(&turning, &l->arg[A], at) : GANTRY_OK);
    return tb ? GANTRY_OK : gy_plain_turn_f8(&turning, &l->arg[B], b);
}

static bool is_aligned(const void *at)
{
    return (uintptr_t)at % ALIGNED == 0;
}

static bool fits(const gantry_launch *l, const shape *s)
{
    int64_t size = (int64_t)gantry_dtype_size(s->result);
    return s->depth > 0 && s->depth % ALIGNED == 0 && s->columns % ALIGNED == 0 && s->columns * size % ALIGNED == 0 &&
           (l->arg[TA].number != 0 || is_aligned(l->arg[A].data)) &&
           (l->arg[TB].number == 0 || is_aligned(l->arg[B].data)) && is_aligned(l->arg[C].data) &&
           l->scratch_bytes > gy_blas_f8_room(l);
}

/* ---- descriptions ---- */

static cudaDataType type_of(gantry_dtype dtype)
{
    return dtype == GANTRY_F32      ? CUDA_R_32F
           : dtype == GANTRY_F16    ? CUDA_R_16F
           : dtype == GANTRY_BF16   ? CUDA_R_16BF
           : dtype == GANTRY_F8E4M3 ? CUDA_R_8F_E4M3
                                    : CUDA_R_8F_E5M2;
}

#define SET(what, value) CALL(h, cublasLtMatmulDescSetAttribute, c->product, what, &(value), sizeof(value))

/* c^T = op(b)^T op(a)^T, and what cuBLASLt sees of each is its transpose: its A is our b, by rows. */
static gantry_status describe(gy_blas_f8 *h, const gantry_launch *l, const shape *s, gy_blas_lt_call *c)
{
    cublasOperation_t by_rows = CUBLAS_OP_T, by_columns = CUBLAS_OP_N;
    const void *scale_a = l->arg[SCALE_A].data, *scale_b = l->arg[SCALE_B].data;
    uint64_t rows = (uint64_t)s->rows, columns = (uint64_t)s->columns, depth = (uint64_t)s->depth;
    cudaDataType factor = type_of(s->dtype);
    GY_TRY(CALL(h, cublasLtMatmulDescCreate, &c->product, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    GY_TRY(SET(CUBLASLT_MATMUL_DESC_TRANSA, by_rows));
    GY_TRY(SET(CUBLASLT_MATMUL_DESC_TRANSB, by_columns));
    GY_TRY(scale_b ? SET(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, scale_b) : GANTRY_OK);
    GY_TRY(scale_a ? SET(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, scale_a) : GANTRY_OK);
    GY_TRY(CALL(h, cublasLtMatrixLayoutCreate, &c->b, factor, depth, columns, s->depth));
    GY_TRY(CALL(h, cublasLtMatrixLayoutCreate, &c->a, factor, depth, rows, s->depth));
    return CALL(h, cublasLtMatrixLayoutCreate, &c->c, type_of(s->result), columns, rows, s->columns);
}

#define WANT(what, value) CALL(h, cublasLtMatmulPreferenceSetAttribute, c->wanted, what, &(value), sizeof(value))

static gantry_status want(gy_blas_f8 *h, size_t workspace, gy_blas_lt_call *c)
{
    uint64_t bytes = workspace;
    uint32_t sums = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE, aligned = ALIGNED;
    GY_TRY(CALL(h, cublasLtMatmulPreferenceCreate, &c->wanted));
    GY_TRY(WANT(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, bytes));
    GY_TRY(WANT(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, sums));
    GY_TRY(WANT(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, aligned));
    GY_TRY(WANT(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, aligned));
    GY_TRY(WANT(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, aligned));
    return WANT(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, aligned);
}

/* ---- plans ---- */

static double beta_of(const gantry_launch *l)
{
    gantry_access access = l->arg[C].access;
    return access == GANTRY_WRITE ? 0 : access == GANTRY_SUM ? 1 : l->arg[BETA].number;
}

static shape shape_of(const gantry_launch *l)
{
    gy_gpu_matrix a = gy_gpu_matrix_of(&l->arg[A]), c = gy_gpu_matrix_of(&l->arg[C]);
    shape s;
    memset(&s, 0, sizeof s); /* it is compared with its padding */
    s.rows = c.rows;
    s.columns = c.columns;
    s.depth = l->arg[TA].number != 0 ? a.rows : a.columns;
    s.dtype = l->arg[A].dtype;
    s.result = l->arg[C].dtype;
    s.is_added = beta_of(l) != 0;
    return s;
}

static const plan *find(const gy_blas_f8 *h, const shape *s)
{
    for (size_t i = 0; i < h->plans.count; i++)
        if (memcmp(&h->plans.at[i].of, s, sizeof *s) == 0)
            return &h->plans.at[i];
    return NULL;
}

static gantry_status make_plan(gy_blas_f8 *h, const shape *s, size_t workspace, gy_blas_lt_call *c)
{
    cublasLtMatmulHeuristicResult_t best;
    int found = 0;
    plan made = { .of = *s };
    memset(&best, 0, sizeof best);
    GY_TRY(want(h, workspace, c));
    cublasStatus_t status =
        h->api.cublasLtMatmulAlgoGetHeuristic(h->lt, c->product, c->b, c->a, c->c, c->c, c->wanted, 1, &best, &found);
    made.refused = status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE ||
                   (status == CUBLAS_STATUS_SUCCESS && !found);
    if (!made.refused)
        GY_TRY(check(h, status ? status : best.state, "cublasLtMatmulAlgoGetHeuristic"));
    made.algorithm = best.algo;
    return gy_vec_push(&h->plans, made) ? GANTRY_OK : GANTRY_E_NOMEM;
}

/* ---- launches ---- */

static gantry_status multiply(gy_blas_f8 *h, const gantry_launch *l, void *plain, const plan *p, gy_blas_lt_call *c)
{
    float alpha = (float)l->arg[ALPHA].number, beta = (float)beta_of(l);
    factors f;
    GY_TRY(lay(l, plain, &f));
    return CALL(h, cublasLtMatmul, h->lt, c->product, &alpha, f.b, c->b, f.a, c->a, &beta, l->arg[C].data, c->c,
                l->arg[C].data, c->c, &p->algorithm, f.workspace, f.bytes, l->stream);
}

static gantry_status launch_planned(gy_blas_f8 *h, const gantry_launch *l, void *plain, const shape *s,
                                    gy_blas_lt_call *c, bool *refused)
{
    GY_TRY(describe(h, l, s, c));
    if (!find(h, s))
        GY_TRY(make_plan(h, s, (size_t)(l->scratch_bytes - gy_blas_f8_room(l)), c));
    const plan *p = find(h, s);
    *refused = p->refused;
    return p->refused ? GANTRY_OK : multiply(h, l, plain, p, c);
}

gantry_status gy_blas_f8_launch(gy_blas_f8 *h, const gantry_launch *l, void *plain, bool *refused)
{
    shape s = shape_of(l);
    gy_blas_lt_call c = { 0 };
    if (h)
        h->why[0] = 0;
    *refused = !h || !fits(l, &s);
    if (*refused)
        return GANTRY_OK;
    gantry_status status = launch_planned(h, l, plain, &s, &c, refused);
    gy_blas_lt_forget(&h->api, &c);
    return status;
}
