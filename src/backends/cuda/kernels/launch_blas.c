/* SPDX-License-Identifier: Apache-2.0 */
/* gemm, gemm_batched, syrk, trsm and getrs by cuBLAS, products of one row by an image of this module, those of f8 by
 * cuBLASLt. One handle per kernel and device; the workspace is the launch's scratch, which lanes do not share. So
 * nothing is allocated in flight, launches can be captured, and results are the same bits from run to run on GPUs of
 * one kind: without a workspace of one's own that is promised only where a single stream is in use. */
#include "backends/cuda/kernels/blas_f8.h"
#include "backends/cuda/kernels/plain.h"
#include "kernels/linalg.h"

#include "base/error.h"
#include "base/memory.h"
#include <stdio.h>

typedef struct handle {
    gy_blas_calls calls;
    void *plain;    /* of the kernel's `data`, which does what cuBLAS does not; NULL: nothing */
    gy_blas_f8 *f8; /* of gemm of f8, from when it is prepared; NULL: products of f8 are `plain` */
    bool is_f8;
} handle;

/* ---- handles ---- */

static void close_blas(void *opened)
{
    handle *h = opened;
    gy_blas_calls_close(&h->calls);
    gy_blas_f8_close(h->f8);
    if (h->plain)
        gy_cuda_image_close(h->plain);
    gy_free(h);
}

static gantry_status open_blas(void **opened, const gy_cuda_kernel *kernel, const gy_driver *driver, gantry_error *err)
{
    handle *h = gy_calloc(1, sizeof *h);
    if (!h)
        return gy_fail_nomem(err);
    gantry_status status = gy_blas_calls_open(&h->calls, driver, err);
    status = status || !kernel->data ? status : gy_cuda_image_open(&h->plain, kernel->data, driver, err);
    if (status) {
        close_blas(h);
        return status;
    }
    *opened = h;
    return GANTRY_OK;
}

static const char *why_blas(const void *opened)
{
    const handle *h = opened;
    const char *why = h->is_f8 ? gy_blas_f8_why(h->f8) : h->calls.why;
    return h->is_f8 && !why ? gy_cuda_image_why(h->plain) : why;
}

/* ---- launches ---- */

static gantry_status prepare_blas(const gantry_launch *l, uint64_t *scratch, gantry_error *err)
{
    const handle *h = l->handle;
    uint64_t need = gy_blas_workspace(h->calls.driver, l->device_ordinal);
    *scratch = need > *scratch ? need : *scratch;
    return gy_linalg_check_sizes(l, err);
}

/* Their functions are found and the workspace is known before anything is launched. */
static gantry_status prepare_both(const gantry_launch *l, uint64_t *scratch, gantry_error *err)
{
    gantry_launch plain = gy_launch_with(l, ((const handle *)l->handle)->plain);
    GY_TRY(gy_cuda_image_prepare(&plain, scratch, err));
    return prepare_blas(l, scratch, err);
}

static gantry_status prepare_gemm(const gantry_launch *l, uint64_t *scratch, gantry_error *err)
{
    handle *h = l->handle;
    GY_TRY(prepare_both(l, scratch, err));
    h->is_f8 = gy_dtype_is_f8(l->arg[4].dtype);
    if (h->is_f8 && !h->f8)
        GY_TRY(gy_blas_f8_open(&h->f8, h->calls.driver, err));
    if (h->is_f8 && h->f8)
        *scratch += gy_blas_f8_room(l);
    return GANTRY_OK;
}

static gantry_status begin(handle *h, const gantry_launch *l)
{
    return gy_blas_begin(&h->calls, l, l->scratch_bytes);
}

/* gemm(alpha, beta, ta, tb, a, b, c) */
enum { ALPHA, BETA, TA, TB, A, B, C };

static gy_blas_product product_of(const gantry_launch *l)
{
    const gantry_arg *arg = l->arg;
    return gy_blas_product_of(arg[A].dtype, arg[C].dtype, arg[ALPHA].number, gy_beta_of(&arg[BETA], &arg[C]),
                              gy_gpu_matrix_of(&arg[A]), arg[TA].number != 0, gy_gpu_matrix_of(&arg[B]),
                              arg[TB].number != 0, gy_gpu_matrix_of(&arg[C]));
}

/* Products of one row by the image, with what is known of why they were not launched. */
static gantry_status launch_rows(handle *h, const gantry_launch *l, const gy_cuda_batch *batch)
{
    gantry_launch plain = gy_launch_with(l, h->plain);
    gantry_status status = gy_plain_gemm_rows(&plain, batch);
    const char *why = status ? gy_cuda_image_why(h->plain) : NULL;
    snprintf(h->calls.why, sizeof h->calls.why, "%s", why ? why : "");
    return status;
}

static gantry_status launch_f8(handle *h, const gantry_launch *l)
{
    gantry_launch plain = gy_launch_with(l, h->plain);
    bool refused = true;
    if (l->arg[C].rows == 0 || l->arg[C].row_bytes == 0)
        return GANTRY_OK;
    gy_cuda_image_early(h->plain, GY_EARLY_NONE); /* nothing of ours comes early behind a library's */
    GY_TRY(gy_blas_f8_launch(h->f8, l, h->plain, &refused));
    return refused ? gy_plain_gemm_launch(&plain) : GANTRY_OK;
}

/* c^T = op(b)^T op(a)^T, and what cuBLAS sees of each is its transpose. */
static gantry_status launch_gemm(const gantry_launch *l)
{
    handle *h = l->handle;
    if (gy_dtype_is_f8(l->arg[A].dtype))
        return launch_f8(h, l);
    if (gy_plain_gemm_is_row(l))
        return launch_rows(h, l, NULL);
    gy_blas_product p = product_of(l);
    gantry_status status = begin(h, l);
    if (status || p.c.rows == 0 || p.c.columns == 0)
        return status;
    return gy_blas_check(&h->calls,
                         h->calls.blas.cublasGemmEx(h->calls.cublas, p.op_b, p.op_a, p.c.columns, p.c.rows, p.depth,
                                                    &p.alpha, p.b.data, p.type, p.b.ld, p.a.data, p.type, p.a.ld,
                                                    &p.beta, p.c.data, p.result, p.c.ld, p.compute,
                                                    CUBLAS_GEMM_DEFAULT),
                         "cublasGemmEx");
}

/* Matrix 0 of a stack. */
static gy_gpu_matrix matrix_of_stack(const gantry_arg *a)
{
    int columns = (int)a->shape[2];
    return (gy_gpu_matrix){ a->data, (int)a->shape[1], columns, columns > 0 ? columns : 1 };
}

/* Elements from matrix to matrix; one matrix is for all. */
static long long step_of_stack(const gantry_arg *a)
{
    return a->rows == 1 ? 0 : (long long)a->shape[1] * a->shape[2];
}

static gantry_status launch_gemm_batched(const gantry_launch *l)
{
    handle *h = l->handle;
    const gantry_arg *arg = l->arg;
    gy_blas_product p = product_of(l);
    p.a = matrix_of_stack(&arg[A]);
    p.b = matrix_of_stack(&arg[B]);
    p.c = matrix_of_stack(&arg[C]);
    p.depth = arg[TA].number != 0 ? p.a.rows : p.a.columns;
    gantry_status status = begin(h, l);
    if (status || p.c.rows == 0 || p.c.columns == 0 || arg[C].rows == 0)
        return status;
    return gy_blas_multiply(&h->calls, &p, (int)arg[C].rows,
                            (long long[]){ step_of_stack(&arg[A]), step_of_stack(&arg[B]), step_of_stack(&arg[C]) });
}

/* ---- many products ---- */

/* Elements from the argument of each launch to that of the next. false: they differ, or go backwards. */
static bool step_of(const gy_cuda_batch *batch, int arg, long long *step)
{
    const gantry_arg *first = &batch->launch[0]->arg[arg];
    int64_t size = (int64_t)gantry_dtype_size(first->dtype), bytes = 0;
    for (uint32_t i = 1; i < batch->count; i++) {
        int64_t here =
            (const char *)batch->launch[i]->arg[arg].data - (const char *)batch->launch[i - 1]->arg[arg].data;
        if (here < 0 || here % size || (i > 1 && here != bytes))
            return false;
        bytes = here;
    }
    *step = bytes / size;
    return true;
}

static gantry_status multiply_lists(handle *h, const gy_blas_product *p, const gy_cuda_batch *batch)
{
    void **list = (void **)(uintptr_t)batch->data;
    return gy_blas_check(
        &h->calls,
        h->calls.blas.cublasGemmBatchedEx(h->calls.cublas, p->op_b, p->op_a, p->c.columns, p->c.rows, p->depth,
                                          &p->alpha, (const void *const *)(list + (size_t)B * batch->count), p->type,
                                          p->b.ld, (const void *const *)(list + (size_t)A * batch->count), p->type,
                                          p->a.ld, &p->beta, list + (size_t)C * batch->count, p->result, p->c.ld,
                                          (int)batch->count, p->compute, CUBLAS_GEMM_DEFAULT),
        "cublasGemmBatchedEx");
}

/* cuBLASLt takes one at a time. */
static gantry_status launch_f8s(handle *h, const gy_cuda_batch *batch)
{
    for (uint32_t i = 0; i < batch->count; i++)
        GY_TRY(launch_f8(h, batch->launch[i]));
    return GANTRY_OK;
}

static gantry_status launch_gemms(const gantry_launch *first, const gy_cuda_batch *batch)
{
    handle *h = first->handle;
    bool rows = true;
    if (gy_dtype_is_f8(first->arg[A].dtype))
        return launch_f8s(h, batch);
    for (uint32_t i = 0; i < batch->count && rows; i++)
        rows = gy_plain_gemm_is_row(batch->launch[i]);
    if (rows)
        return launch_rows(h, first, batch);
    gy_blas_product p = product_of(first);
    long long step[3];
    gantry_status status = begin(h, first);
    if (status || p.c.rows == 0 || p.c.columns == 0)
        return status;
    bool steps = step_of(batch, A, &step[0]) && step_of(batch, B, &step[1]) && step_of(batch, C, &step[2]);
    return steps ? gy_blas_multiply(&h->calls, &p, (int)batch->count, step) : multiply_lists(h, &p, batch);
}

/* trsm(a, b): b = b a^-T, so a b'^T = b^T for the new b'. */
static gantry_status launch_trsm(const gantry_launch *l)
{
    static const float one = 1;
    static const double wide_one = 1;
    handle *h = l->handle;
    gy_gpu_matrix a = gy_gpu_matrix_of(&l->arg[0]), b = gy_gpu_matrix_of(&l->arg[1]);
    gantry_status status = begin(h, l);
    if (status || b.rows == 0 || b.columns == 0)
        return status;
    if (l->arg[1].dtype == GANTRY_F32) {
        return gy_blas_check(&h->calls,
                             h->calls.blas.cublasStrsm(h->calls.cublas, CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_UPPER,
                                                       CUBLAS_OP_T, CUBLAS_DIAG_NON_UNIT, b.columns, b.rows, &one,
                                                       a.data, a.ld, b.data, b.ld),
                             "cublasStrsm");
    }
    return gy_blas_check(&h->calls,
                         h->calls.blas.cublasDtrsm(h->calls.cublas, CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_UPPER,
                                                   CUBLAS_OP_T, CUBLAS_DIAG_NON_UNIT, b.columns, b.rows, &wide_one,
                                                   a.data, a.ld, b.data, b.ld),
                         "cublasDtrsm");
}

/* a x = b in C order is x'^T a^T = b^T of columns: cuBLAS sees a^T, so a's lower triangle is an upper one. One right
 * side is a column in any order, and then a x = b takes a quarter of the time (H200, f64 and f32, 256 to 8,192 rows).
 */
static gantry_status solve(handle *h, const gantry_launch *l, cublasFillMode_t which, cublasDiagType_t diagonal)
{
    static const float one = 1;
    static const double wide_one = 1;
    gy_gpu_matrix a = gy_gpu_matrix_of(&l->arg[0]), b = gy_gpu_matrix_of(&l->arg[2]);
    bool is_one = b.columns == 1 && b.ld == 1;
    cublasSideMode_t side = is_one ? CUBLAS_SIDE_LEFT : CUBLAS_SIDE_RIGHT;
    cublasOperation_t turned = is_one ? CUBLAS_OP_T : CUBLAS_OP_N;
    int m = is_one ? b.rows : b.columns, n = is_one ? 1 : b.rows, ld = is_one ? b.rows : b.ld;
    if (l->arg[0].dtype == GANTRY_F32)
        return gy_blas_check(&h->calls,
                             h->calls.blas.cublasStrsm(h->calls.cublas, side, which, turned, diagonal, m, n, &one,
                                                       a.data, a.ld, b.data, ld),
                             "cublasStrsm");
    return gy_blas_check(&h->calls,
                         h->calls.blas.cublasDtrsm(h->calls.cublas, side, which, turned, diagonal, m, n, &wide_one,
                                                   a.data, a.ld, b.data, ld),
                         "cublasDtrsm");
}

/* getrs(a, pivots, b) */
static gantry_status launch_getrs(const gantry_launch *l)
{
    handle *h = l->handle;
    gy_gpu_matrix b = gy_gpu_matrix_of(&l->arg[2]);
    gantry_launch plain = gy_launch_with(l, h->plain);
    gantry_status status = begin(h, l);
    if (status || b.rows == 0 || b.columns == 0)
        return status;
    status = gy_plain_exchange_rows(&plain);
    if (status) {
        snprintf(h->calls.why, sizeof h->calls.why, "the driver refused to launch the kernel that exchanges rows");
        return status;
    }
    GY_TRY(solve(h, l, CUBLAS_FILL_MODE_UPPER, CUBLAS_DIAG_UNIT));
    return solve(h, l, CUBLAS_FILL_MODE_LOWER, CUBLAS_DIAG_NON_UNIT);
}

/* syrk(alpha, beta, a, c): the lower triangle of c = alpha a a^T + beta c. */
static gantry_status launch_syrk(const gantry_launch *l)
{
    handle *h = l->handle;
    gy_gpu_matrix a = gy_gpu_matrix_of(&l->arg[2]), c = gy_gpu_matrix_of(&l->arg[3]);
    gantry_dtype dtype = l->arg[3].dtype;
    gy_factor alpha = gy_factor_of(l->arg[0].number, dtype), beta = gy_factor_of(l->arg[1].number, dtype);
    gantry_status status = begin(h, l);
    if (status || c.rows == 0)
        return status;
    if (dtype == GANTRY_F32) {
        return gy_blas_check(&h->calls,
                             h->calls.blas.cublasSsyrk(h->calls.cublas, CUBLAS_FILL_MODE_UPPER, CUBLAS_OP_T, c.rows,
                                                       a.columns, &alpha.single, a.data, a.ld, &beta.single, c.data,
                                                       c.ld),
                             "cublasSsyrk");
    }
    return gy_blas_check(&h->calls,
                         h->calls.blas.cublasDsyrk(h->calls.cublas, CUBLAS_FILL_MODE_UPPER, CUBLAS_OP_T, c.rows,
                                                   a.columns, &alpha.wide, a.data, a.ld, &beta.wide, c.data, c.ld),
                         "cublasDsyrk");
}

/* Where no row was multiplied, none of them was launched. */
static bool early_rows(void *opened, gy_early which)
{
    handle *h = opened;
    return gy_cuda_image_early(h->plain, which);
}

#define KERNEL(name_, open_, prepare_, ...)                                                                            \
    const gy_cuda_kernel gy_library_##name_ = { .name = #name_,                                                        \
                                                .launch = launch_##name_,                                              \
                                                .open = open_,                                                         \
                                                .close = close_blas,                                                   \
                                                .usable = gy_blas_usable,                                              \
                                                .prepare = prepare_,                                                   \
                                                .why = why_blas,                                                       \
                                                .loads = gy_linalg_loads,                                              \
                                                __VA_ARGS__ };
KERNEL(gemm, open_blas, prepare_gemm, .launch_batch = launch_gemms, .early = early_rows, .data = &gy_plain_gemm)
KERNEL(gemm_batched, open_blas, prepare_blas, .launch_batch = NULL)
KERNEL(trsm, open_blas, prepare_blas, .launch_batch = NULL)
KERNEL(syrk, open_blas, prepare_blas, .launch_batch = NULL)
KERNEL(getrs, open_blas, prepare_both, .data = &gy_plain_getrs)
