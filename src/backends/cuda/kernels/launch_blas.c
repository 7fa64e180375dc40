/* SPDX-License-Identifier: Apache-2.0 */
/* gemm, syrk and trsm by cuBLAS. One handle per kernel and device; the workspace is the launch's scratch, which lanes
 * do not share. So nothing is allocated in flight, launches can be captured, and results are the same bits from run to
 * run on GPUs of one kind: without a workspace of one's own that is promised only where a single stream is in use. */
#include "backends/cuda/kernels/linalg.h"
#include "backends/cuda/nvidia/blas.h"

#include "base/error.h"
#include "base/memory.h"
#include <stdio.h>

typedef struct handle {
    const gy_driver *driver;
    gy_blas blas;
    cublasHandle_t cublas;
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
    gy_free(h);
}

/* f32 is never computed as TF32 in this mode, and sums of f16 and bf16 are kept in f32 from end to end. */
static const cublasMath_t math = CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION;
_Static_assert(CUBLAS_DEFAULT_MATH == 0, "the mode is a set of bits over the default");

static gantry_status open_blas(void **opened, const gy_cuda_kernel *kernel, const gy_driver *driver, gantry_error *err)
{
    (void)kernel;
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

/* gemm(alpha, beta, ta, tb, a, b, c). As the host version: writing forgets c, a sum adds to it. */
static gantry_status launch_gemm(const gantry_launch *l)
{
    enum { ALPHA, BETA, TA, TB, A, B, C };
    handle *h = l->handle;
    const gantry_arg *arg = l->arg;
    gy_gpu_matrix a = gy_gpu_matrix_of(&arg[A]), b = gy_gpu_matrix_of(&arg[B]), c = gy_gpu_matrix_of(&arg[C]);
    gantry_dtype dtype = arg[C].dtype;
    double own = arg[C].access == GANTRY_WRITE ? 0 : arg[C].access == GANTRY_SUM ? 1 : arg[BETA].number;
    factor alpha = factor_of(arg[ALPHA].number, dtype), beta = factor_of(own, dtype);
    cudaDataType type = type_of(dtype);
    int depth = arg[TA].number != 0 ? a.rows : a.columns;
    gantry_status status = begin(h, l);
    if (status || c.rows == 0 || c.columns == 0)
        return status;
    /* c^T = op(b)^T op(a)^T, and what cuBLAS sees of each is its transpose. */
    return check(h,
                 h->blas.cublasGemmEx(h->cublas, op(&arg[TB]), op(&arg[TA]), c.columns, c.rows, depth, &alpha, b.data,
                                      type, b.ld, a.data, type, a.ld, &beta, c.data, type, c.ld,
                                      dtype == GANTRY_F64 ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F,
                                      CUBLAS_GEMM_DEFAULT),
                 "cublasGemmEx");
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

#define KERNEL(name_)                                                                                                  \
    const gy_cuda_kernel gy_library_##name_ = { .name = #name_,                                                        \
                                                .launch = launch_##name_,                                              \
                                                .open = open_blas,                                                     \
                                                .close = close_blas,                                                   \
                                                .usable = usable_blas,                                                 \
                                                .prepare = prepare_blas,                                               \
                                                .why = why_blas };
KERNEL(gemm)
KERNEL(trsm)
KERNEL(syrk)
