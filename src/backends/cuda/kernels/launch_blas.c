/* SPDX-License-Identifier: Apache-2.0 */
/* gemm, gemm_batched, syrk, trsm and getrs by cuBLAS. One handle per kernel and device; the workspace is the launch's
 * scratch, which lanes do not share. So nothing is allocated in flight, launches can be captured, and results are the
 * same bits from run to run on GPUs of one kind: without a workspace of one's own that is promised only where a single
 * stream is in use. */
#include "backends/cuda/kernels/linalg.h"
#include "backends/cuda/kernels/plain.h"
#include "backends/cuda/nvidia/blas.h"

#include "base/error.h"
#include "base/memory.h"
#include <stdio.h>

typedef struct handle {
    const gy_driver *driver;
    gy_blas blas;
    cublasHandle_t cublas;
    void *plain; /* of the kernel's `data`, which does what cuBLAS does not; NULL: nothing */
    char why[160];
} handle;

static gantry_status check(handle *h, cublasStatus_t status, const char *call)
{
    if (status == CUBLAS_STATUS_SUCCESS)
        return GANTRY_OK;
    snprintf(h->why, sizeof h->why, "%s of %s returned %s (%d)", call, h->blas.lib.name, gy_blas_status_name(status),
             (int)status);
    return GANTRY_E_DEVICE;
}

/* ---- handles ---- */

static gantry_status usable_blas(const gy_cuda_kernel *kernel, const gy_driver *driver, gantry_error *err)
{
    gy_blas blas;
    (void)kernel;
    return gy_blas_open(&blas, gy_linalg_driver_version(driver), err) ? GANTRY_E_UNSUPPORTED : GANTRY_OK;
}

static void close_blas(void *opened)
{
    handle *h = opened;
    if (h->cublas)
        h->blas.cublasDestroy(h->cublas);
    if (h->plain)
        gy_cuda_image_close(h->plain);
    gy_free(h);
}

/* f32 is never computed as TF32 in this mode, and sums of f16 and bf16 are kept in f32 from end to end. */
static const cublasMath_t math = CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION;
_Static_assert(CUBLAS_DEFAULT_MATH == 0, "the mode is a set of bits over the default");

static gantry_status open_blas(void **opened, const gy_cuda_kernel *kernel, const gy_driver *driver, gantry_error *err)
{
    handle *h = gy_calloc(1, sizeof *h);
    if (!h)
        return gy_fail_nomem(err);
    h->driver = driver;
    int version = gy_linalg_driver_version(driver);
    gantry_status status = gy_blas_open(&h->blas, version, err);
    if (status == GANTRY_OK) {
        status = check(h, h->blas.cublasCreate(&h->cublas), "cublasCreate");
        h->cublas = status ? NULL : h->cublas;
        status = status ? status : check(h, h->blas.cublasSetMathMode(h->cublas, math), "cublasSetMathMode");
        status = status ? gy_linalg_fail(h->why, version, err) : GANTRY_OK;
        status = status || !kernel->data ? status : gy_cuda_image_open(&h->plain, kernel->data, driver, err);
    }
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
    return h->why;
}

/* ---- launches ---- */

/* The size that NVIDIA recommends; it is the same for all launches, since how a product is computed may depend on it.
 */
static uint64_t workspace_of(const gy_driver *d, int ordinal)
{
    CUdevice device;
    int major = 0;
    if (d->cuDeviceGet(&device, ordinal) != CUDA_SUCCESS ||
        d->cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device) != CUDA_SUCCESS)
        major = 0;
    uint64_t mib = major == 9 || major == 10 ? 32 : major > 10 ? 12 : 4;
    return mib << 20;
}

static gantry_status prepare_blas(const gantry_launch *l, uint64_t *scratch, gantry_error *err)
{
    const handle *h = l->handle;
    uint64_t need = workspace_of(h->driver, l->device_ordinal);
    *scratch = need > *scratch ? need : *scratch;
    return gy_linalg_check_sizes(l, err);
}

/* The stream is set first: another stream takes the workspace away. */
static gantry_status begin(handle *h, const gantry_launch *l)
{
    gantry_status status = check(h, h->blas.cublasSetStream(h->cublas, l->stream), "cublasSetStream");
    return status ? status
                  : check(h, h->blas.cublasSetWorkspace(h->cublas, l->scratch, (size_t)l->scratch_bytes),
                          "cublasSetWorkspace");
}

static cublasOperation_t op(const gantry_arg *transposed)
{
    return transposed->number != 0 ? CUBLAS_OP_T : CUBLAS_OP_N;
}

static cudaDataType type_of(gantry_dtype dtype)
{
    switch (dtype) {
    case GANTRY_F16:
        return CUDA_R_16F;
    case GANTRY_BF16:
        return CUDA_R_16BF;
    case GANTRY_F32:
        return CUDA_R_32F;
    default:
        return CUDA_R_64F;
    }
}

/* A factor as the sums are computed: f64, else f32. */
typedef union factor {
    float single;
    double wide;
} factor;

static factor factor_of(double number, gantry_dtype dtype)
{
    return dtype == GANTRY_F64 ? (factor){ .wide = number } : (factor){ .single = (float)number };
}

/* gemm(alpha, beta, ta, tb, a, b, c), as cuBLAS is told. */
typedef struct product {
    gy_gpu_matrix a, b, c;
    factor alpha, beta;
    cublasOperation_t op_a, op_b;
    cudaDataType type;
    cublasComputeType_t compute;
    int depth;
} product;
enum { ALPHA, BETA, TA, TB, A, B, C };

/* As the host version: writing forgets c, a sum adds to it. */
static product product_of(const gantry_launch *l)
{
    const gantry_arg *arg = l->arg;
    gantry_dtype dtype = arg[C].dtype;
    double own = arg[C].access == GANTRY_WRITE ? 0 : arg[C].access == GANTRY_SUM ? 1 : arg[BETA].number;
    product p = { gy_gpu_matrix_of(&arg[A]), gy_gpu_matrix_of(&arg[B]), gy_gpu_matrix_of(&arg[C]),
                  .type = type_of(dtype) };
    p.alpha = factor_of(arg[ALPHA].number, dtype);
    p.beta = factor_of(own, dtype);
    p.op_a = op(&arg[TA]);
    p.op_b = op(&arg[TB]);
    p.compute = dtype == GANTRY_F64 ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F;
    p.depth = arg[TA].number != 0 ? p.a.rows : p.a.columns;
    return p;
}

/* c^T = op(b)^T op(a)^T, and what cuBLAS sees of each is its transpose. */
static gantry_status launch_gemm(const gantry_launch *l)
{
    handle *h = l->handle;
    product p = product_of(l);
    gantry_status status = begin(h, l);
    if (status || p.c.rows == 0 || p.c.columns == 0)
        return status;
    return check(h,
                 h->blas.cublasGemmEx(h->cublas, p.op_b, p.op_a, p.c.columns, p.c.rows, p.depth, &p.alpha, p.b.data,
                                      p.type, p.b.ld, p.a.data, p.type, p.a.ld, &p.beta, p.c.data, p.type, p.c.ld,
                                      p.compute, CUBLAS_GEMM_DEFAULT),
                 "cublasGemmEx");
}

/* `step`: elements from matrix to matrix of a, b and c. */
static gantry_status multiply_steps(handle *h, const product *p, int count, const long long *step)
{
    return check(h,
                 h->blas.cublasGemmStridedBatchedEx(h->cublas, p->op_b, p->op_a, p->c.columns, p->c.rows, p->depth,
                                                    &p->alpha, p->b.data, p->type, p->b.ld, step[1], p->a.data, p->type,
                                                    p->a.ld, step[0], &p->beta, p->c.data, p->type, p->c.ld, step[2],
                                                    count, p->compute, CUBLAS_GEMM_DEFAULT),
                 "cublasGemmStridedBatchedEx");
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
    product p = product_of(l);
    p.a = matrix_of_stack(&arg[A]);
    p.b = matrix_of_stack(&arg[B]);
    p.c = matrix_of_stack(&arg[C]);
    p.depth = arg[TA].number != 0 ? p.a.rows : p.a.columns;
    gantry_status status = begin(h, l);
    if (status || p.c.rows == 0 || p.c.columns == 0 || arg[C].rows == 0)
        return status;
    return multiply_steps(h, &p, (int)arg[C].rows,
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

static gantry_status multiply_lists(handle *h, const product *p, const gy_cuda_batch *batch)
{
    void **list = (void **)(uintptr_t)batch->data;
    return check(h,
                 h->blas.cublasGemmBatchedEx(h->cublas, p->op_b, p->op_a, p->c.columns, p->c.rows, p->depth, &p->alpha,
                                             (const void *const *)(list + (size_t)B * batch->count), p->type, p->b.ld,
                                             (const void *const *)(list + (size_t)A * batch->count), p->type, p->a.ld,
                                             &p->beta, list + (size_t)C * batch->count, p->type, p->c.ld,
                                             (int)batch->count, p->compute, CUBLAS_GEMM_DEFAULT),
                 "cublasGemmBatchedEx");
}

static gantry_status launch_gemms(const gantry_launch *first, const gy_cuda_batch *batch)
{
    handle *h = first->handle;
    product p = product_of(first);
    long long step[3];
    gantry_status status = begin(h, first);
    if (status || p.c.rows == 0 || p.c.columns == 0)
        return status;
    bool steps = step_of(batch, A, &step[0]) && step_of(batch, B, &step[1]) && step_of(batch, C, &step[2]);
    return steps ? multiply_steps(h, &p, (int)batch->count, step) : multiply_lists(h, &p, batch);
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
        return check(h,
                     h->blas.cublasStrsm(h->cublas, CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_UPPER, CUBLAS_OP_T,
                                         CUBLAS_DIAG_NON_UNIT, b.columns, b.rows, &one, a.data, a.ld, b.data, b.ld),
                     "cublasStrsm");
    }
    return check(h,
                 h->blas.cublasDtrsm(h->cublas, CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_UPPER, CUBLAS_OP_T,
                                     CUBLAS_DIAG_NON_UNIT, b.columns, b.rows, &wide_one, a.data, a.ld, b.data, b.ld),
                 "cublasDtrsm");
}

/* The launch as the plain version sees it. */
static gantry_launch plain_of(const gantry_launch *l)
{
    const handle *h = l->handle;
    gantry_launch plain = *l;
    plain.handle = h->plain;
    return plain;
}

static gantry_status prepare_getrs(const gantry_launch *l, uint64_t *scratch, gantry_error *err)
{
    gantry_launch plain = plain_of(l);
    GY_TRY(gy_cuda_image_prepare(&plain, scratch, err));
    return prepare_blas(l, scratch, err);
}

/* a x = b in C order is x'^T a^T = b^T of columns: cuBLAS sees a^T, so a's lower triangle is an upper one. */
static gantry_status solve(handle *h, const gantry_launch *l, cublasFillMode_t which, cublasDiagType_t diagonal)
{
    static const float one = 1;
    static const double wide_one = 1;
    gy_gpu_matrix a = gy_gpu_matrix_of(&l->arg[0]), b = gy_gpu_matrix_of(&l->arg[2]);
    if (l->arg[0].dtype == GANTRY_F32)
        return check(h,
                     h->blas.cublasStrsm(h->cublas, CUBLAS_SIDE_RIGHT, which, CUBLAS_OP_N, diagonal, b.columns, b.rows,
                                         &one, a.data, a.ld, b.data, b.ld),
                     "cublasStrsm");
    return check(h,
                 h->blas.cublasDtrsm(h->cublas, CUBLAS_SIDE_RIGHT, which, CUBLAS_OP_N, diagonal, b.columns, b.rows,
                                     &wide_one, a.data, a.ld, b.data, b.ld),
                 "cublasDtrsm");
}

/* getrs(a, pivots, b) */
static gantry_status launch_getrs(const gantry_launch *l)
{
    handle *h = l->handle;
    gy_gpu_matrix b = gy_gpu_matrix_of(&l->arg[2]);
    gantry_launch plain = plain_of(l);
    gantry_status status = begin(h, l);
    if (status || b.rows == 0 || b.columns == 0)
        return status;
    status = gy_plain_exchange_rows(&plain);
    if (status) {
        snprintf(h->why, sizeof h->why, "the driver refused to launch the kernel that exchanges rows");
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
    factor alpha = factor_of(l->arg[0].number, dtype), beta = factor_of(l->arg[1].number, dtype);
    gantry_status status = begin(h, l);
    if (status || c.rows == 0)
        return status;
    if (dtype == GANTRY_F32) {
        return check(h,
                     h->blas.cublasSsyrk(h->cublas, CUBLAS_FILL_MODE_UPPER, CUBLAS_OP_T, c.rows, a.columns,
                                         &alpha.single, a.data, a.ld, &beta.single, c.data, c.ld),
                     "cublasSsyrk");
    }
    return check(h,
                 h->blas.cublasDsyrk(h->cublas, CUBLAS_FILL_MODE_UPPER, CUBLAS_OP_T, c.rows, a.columns, &alpha.wide,
                                     a.data, a.ld, &beta.wide, c.data, c.ld),
                 "cublasDsyrk");
}

#define KERNEL(name_, prepare_, ...)                                                                                   \
    const gy_cuda_kernel gy_library_##name_ = { .name = #name_,                                                        \
                                                .launch = launch_##name_,                                              \
                                                .open = open_blas,                                                     \
                                                .close = close_blas,                                                   \
                                                .usable = usable_blas,                                                 \
                                                .prepare = prepare_,                                                   \
                                                .why = why_blas,                                                       \
                                                .loads = gy_linalg_loads,                                              \
                                                __VA_ARGS__ };
KERNEL(gemm, prepare_blas, .launch_batch = launch_gemms)
KERNEL(gemm_batched, prepare_blas, .launch_batch = NULL)
KERNEL(trsm, prepare_blas, .launch_batch = NULL)
KERNEL(syrk, prepare_blas, .launch_batch = NULL)
KERNEL(getrs, prepare_getrs, .data = &gy_plain_getrs)
