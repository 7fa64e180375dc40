/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gemm of f8 by cuBLASLt (from compute capability 8.9 on), which wants op(a) and op(b)^T in rows whose length, as that
 * of c's rows and all addresses, is a multiple of 16 bytes: "cublasLtMatmul" in NVIDIA's documentation of cuBLAS. A
 * factor that lies otherwise is transposed into the launch's scratch first. Sums are kept in f32: its "fast
 * accumulation" is left off. The heuristics refuse what a GPU does not do.
 */
#include "backends/cuda/kernels/blas_f8.h"
#include "backends/cuda/kernels/blas_lt_calls.h"
#include "backends/cuda/kernels/plain.h"
#include "kernels/linalg.h"

#include "base/align.h"
#include "base/error.h"
#include "base/memory.h"

enum { ALPHA, BETA, TA, TB, A, B, C, SCALE_A, SCALE_B };
enum { ALIGNED = 16 };

struct gy_blas_f8 {
    gy_blas_lt_calls calls;
};

/* ---- handles ---- */

void gy_blas_f8_close(gy_blas_f8 *h)
{
    if (!h)
        return;
    gy_blas_lt_calls_close(&h->calls);
    gy_free(h);
}

gantry_status gy_blas_f8_open(gy_blas_f8 **f8, const gy_driver *driver, gantry_error *err)
{
    gy_blas_f8 *h = gy_calloc(1, sizeof *h);
    if (!h)
        return gy_fail_nomem(err);
    if (gy_blas_lt_calls_open(&h->calls, gy_linalg_driver_version(driver), NULL)) {
        gy_blas_f8_close(h);
        h = NULL;
    }
    *f8 = h;
    return GANTRY_OK;
}

const char *gy_blas_f8_why(const gy_blas_f8 *h)
{
    return h && h->calls.why[0] ? h->calls.why : NULL;
}

/* ---- matrices ---- */

static gy_blas_lt_shape shape_of(const gantry_launch *l)
{
    gy_blas_lt_shape s = gy_blas_lt_shape_of(&l->arg[A], l->arg[TA].number != 0, &l->arg[C]);
    s.is_added = gy_beta_of(&l->arg[BETA], &l->arg[C]) != 0;
    s.a = s.b = s.c = s.bias = ALIGNED;
    return s;
}

/* By its types and extents cuBLASLt may do it: a product of two factors of e5m2 it never does. */
static bool is_asked_for(const gy_blas_lt_shape *s)
{
    return s->dtype == GANTRY_F8E4M3 && s->depth > 0 && s->depth % ALIGNED == 0 && s->columns % ALIGNED == 0;
}

static uint64_t room_of(const gantry_arg *a, bool is_turned)
{
    return is_turned ? gy_aligned((uint64_t)(a->rows * a->row_bytes)) : 0;
}

uint64_t gy_blas_f8_room(const gantry_launch *l)
{
    gy_blas_lt_shape s = shape_of(l);
    if (!is_asked_for(&s))
        return 0;
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

static bool fits(const gantry_launch *l, const gy_blas_lt_shape *s)
{
    return is_asked_for(s) && (l->arg[TA].number != 0 || is_aligned(l->arg[A].data)) &&
           (l->arg[TB].number == 0 || is_aligned(l->arg[B].data)) && is_aligned(l->arg[C].data) &&
           l->scratch_bytes > gy_blas_f8_room(l);
}

/* ---- descriptions ---- */

#define SET(what, value) GY_BLAS_LT_CALL(h, cublasLtMatmulDescSetAttribute, c->product, what, &(value), sizeof(value))

/* c^T = op(b)^T op(a)^T, and what cuBLASLt sees of each is its transpose: its A is our b, by rows. */
static gantry_status describe(gy_blas_lt_calls *h, const gantry_launch *l, const gy_blas_lt_shape *s,
                              gy_blas_lt_call *c)
{
    cublasOperation_t by_rows = CUBLAS_OP_T, by_columns = CUBLAS_OP_N;
    const void *scale_a = l->arg[SCALE_A].data, *scale_b = l->arg[SCALE_B].data;
    uint64_t rows = (uint64_t)s->rows, columns = (uint64_t)s->columns, depth = (uint64_t)s->depth;
    cudaDataType factor = gy_blas_type_of(s->dtype);
    GY_TRY(GY_BLAS_LT_CALL(h, cublasLtMatmulDescCreate, &c->product, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    GY_TRY(SET(CUBLASLT_MATMUL_DESC_TRANSA, by_rows));
    GY_TRY(SET(CUBLASLT_MATMUL_DESC_TRANSB, by_columns));
    GY_TRY(scale_b ? SET(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, scale_b) : GANTRY_OK);
    GY_TRY(scale_a ? SET(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, scale_a) : GANTRY_OK);
    GY_TRY(GY_BLAS_LT_CALL(h, cublasLtMatrixLayoutCreate, &c->b, factor, depth, columns, s->depth));
    GY_TRY(GY_BLAS_LT_CALL(h, cublasLtMatrixLayoutCreate, &c->a, factor, depth, rows, s->depth));
    return GY_BLAS_LT_CALL(h, cublasLtMatrixLayoutCreate, &c->c, gy_blas_type_of(s->result), columns, rows, s->columns);
}

/* ---- launches ---- */

static gantry_status multiply(gy_blas_lt_calls *h, const gantry_launch *l, void *plain,
                              const cublasLtMatmulAlgo_t *algorithm, const gy_blas_lt_call *c)
{
    float alpha = (float)l->arg[ALPHA].number, beta = (float)gy_beta_of(&l->arg[BETA], &l->arg[C]);
    factors f;
    GY_TRY(lay(l, plain, &f));
    return GY_BLAS_LT_CALL(h, cublasLtMatmul, h->lt, c->product, &alpha, f.b, c->b, f.a, c->a, &beta, l->arg[C].data,
                           c->c, l->arg[C].data, c->c, algorithm, f.workspace, f.bytes, l->stream);
}

static gantry_status launch_chosen(gy_blas_lt_calls *h, const gantry_launch *l, void *plain, const gy_blas_lt_shape *s,
                                   gy_blas_lt_call *c, bool *refused)
{
    const cublasLtMatmulAlgo_t *algorithm;
    GY_TRY(describe(h, l, s, c));
    GY_TRY(gy_blas_lt_choose(h, s, c, l->scratch_bytes - gy_blas_f8_room(l), &algorithm));
    *refused = !algorithm;
    return algorithm ? multiply(h, l, plain, algorithm, c) : GANTRY_OK;
}

gantry_status gy_blas_f8_launch(gy_blas_f8 *h, const gantry_launch *l, void *plain, bool *refused)
{
    gy_blas_lt_shape s = shape_of(l);
    gy_blas_lt_call c = { 0 };
    if (h)
        h->calls.why[0] = 0;
    *refused = !h || !fits(l, &s);
    if (*refused)
        return GANTRY_OK;
    gantry_status status = launch_chosen(&h->calls, l, plain, &s, &c, refused);
    gy_blas_lt_forget(&h->calls.api, &c);
    return status;
}
