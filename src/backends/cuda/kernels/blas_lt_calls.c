/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/kernels/blas_lt_calls.h"

#include "base/error.h"
#include "kernel/dtype.h"
#include <string.h>

/* ---- handles ---- */

gantry_status gy_blas_lt_check(gy_blas_lt_calls *c, cublasStatus_t status, const char *call)
{
    return gy_blas_check_of(status, call, c->api.lib.name, c->why, sizeof c->why);
}

gantry_status gy_blas_lt_calls_open(gy_blas_lt_calls *c, int driver_version, gantry_error *err)
{
    GY_TRY(gy_blas_lt_open(&c->api, driver_version, err));
    if (!GY_BLAS_LT_CALL(c, cublasLtCreate, &c->lt))
        return GANTRY_OK;
    c->lt = NULL;
    return gy_linalg_fail(c->why, driver_version, err);
}

void gy_blas_lt_calls_close(gy_blas_lt_calls *c)
{
    if (c->lt)
        c->api.cublasLtDestroy(c->lt);
    c->lt = NULL;
    gy_vec_free(&c->plans);
}

/* ---- algorithms ---- */

#define WANT(what, value)                                                                                              \
    GY_BLAS_LT_CALL(c, cublasLtMatmulPreferenceSetAttribute, p->wanted, what, &(value), sizeof(value))

/* cuBLASLt sees transposes: its A is our b. */
static gantry_status want(gy_blas_lt_calls *c, const gy_blas_lt_shape *s, uint64_t workspace, gy_blas_lt_call *p)
{
    uint32_t sums = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE, result = s->c < s->bias ? s->c : s->bias;
    GY_TRY(GY_BLAS_LT_CALL(c, cublasLtMatmulPreferenceCreate, &p->wanted));
    GY_TRY(WANT(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace));
    GY_TRY(WANT(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, sums));
    GY_TRY(WANT(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, s->b));
    GY_TRY(WANT(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, s->a));
    GY_TRY(WANT(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, result));
    return WANT(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, result);
}

/* A product of f8 that a GPU or an older library does not do is called invalid, too. */
static bool is_refusal(cublasStatus_t status, int found, gantry_dtype dtype)
{
    return status == CUBLAS_STATUS_NOT_SUPPORTED || (status == CUBLAS_STATUS_SUCCESS && !found) ||
           (status == CUBLAS_STATUS_INVALID_VALUE && gy_dtype_is_f8(dtype));
}

static gantry_status make_plan(gy_blas_lt_calls *c, const gy_blas_lt_shape *s, gy_blas_lt_call *p, uint64_t workspace)
{
    cublasLtMatmulHeuristicResult_t best;
    int found = 0;
    gy_blas_lt_plan made = { .of = *s };
    memset(&best, 0, sizeof best);
    GY_TRY(want(c, s, workspace, p));
    cublasStatus_t status =
        c->api.cublasLtMatmulAlgoGetHeuristic(c->lt, p->product, p->b, p->a, p->c, p->c, p->wanted, 1, &best, &found);
    made.refused = is_refusal(status, found, s->dtype);
    if (!made.refused)
        GY_TRY(gy_blas_lt_check(c, status ? status : best.state, "cublasLtMatmulAlgoGetHeuristic"));
    made.algorithm = best.algo;
    return gy_vec_push(&c->plans, made) ? GANTRY_OK : GANTRY_E_NOMEM;
}

static const gy_blas_lt_plan *find(const gy_blas_lt_calls *c, const gy_blas_lt_shape *s)
{
    for (size_t i = 0; i < c->plans.count; i++)
        if (memcmp(&c->plans.at[i].of, s, sizeof *s) == 0)
            return &c->plans.at[i];
    return NULL;
}

gy_blas_lt_shape gy_blas_lt_shape_of(const gantry_arg *a, bool ta, const gantry_arg *c)
{
    gy_gpu_matrix factor = gy_gpu_matrix_of(a), product = gy_gpu_matrix_of(c);
    gy_blas_lt_shape s;
    memset(&s, 0, sizeof s); /* it is compared with its padding */
    s.rows = product.rows;
    s.columns = product.columns;
    s.depth = ta ? factor.rows : factor.columns;
    s.dtype = a->dtype;
    s.result = c->dtype;
    return s;
}

gantry_status gy_blas_lt_choose(gy_blas_lt_calls *c, const gy_blas_lt_shape *s, gy_blas_lt_call *p, uint64_t workspace,
                                const cublasLtMatmulAlgo_t **algorithm)
{
    if (!find(c, s))
        GY_TRY(make_plan(c, s, p, workspace));
    const gy_blas_lt_plan *plan = find(c, s);
    *algorithm = plan->refused ? NULL : &plan->algorithm;
    return GANTRY_OK;
}
