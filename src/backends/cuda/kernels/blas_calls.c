/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/kernels/blas_calls.h"

#include "base/error.h"
#include <stdio.h>

gantry_status gy_blas_check_of(cublasStatus_t status, const char *call, const char *library, char *why, size_t size)
{
    if (status == CUBLAS_STATUS_SUCCESS)
        return GANTRY_OK;
    snprintf(why, size, "%s of %s returned %s (%d)", call, library, gy_blas_status_name(status), (int)status);
    return GANTRY_E_DEVICE;
}

gantry_status gy_blas_check(gy_blas_calls *c, cublasStatus_t status, const char *call)
{
    return gy_blas_check_of(status, call, c->blas.lib.name, c->why, sizeof c->why);
}

gantry_status gy_blas_usable(const gy_cuda_kernel *kernel, const gy_driver *driver, gantry_error *err)
{
    gy_blas blas;
    (void)kernel;
    return gy_blas_open(&blas, gy_linalg_driver_version(driver), err) ? GANTRY_E_UNSUPPORTED : GANTRY_OK;
}

/* f32 is never computed as TF32 in this mode, and sums of f16 and bf16 are kept in f32 from end to end. */
static const cublasMath_t math = CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION;
_Static_assert(CUBLAS_DEFAULT_MATH == 0, "the mode is a set of bits over the default");

gantry_status gy_blas_calls_open(gy_blas_calls *c, const gy_driver *driver, gantry_error *err)
{
    int version = gy_linalg_driver_version(driver);
    c->driver = driver;
    GY_TRY(gy_blas_open(&c->blas, version, err));
    gantry_status status = gy_blas_check(c, c->blas.cublasCreate(&c->cublas), "cublasCreate");
    c->cublas = status ? NULL : c->cublas;
    status = status ? status : gy_blas_check(c, c->blas.cublasSetMathMode(c->cublas, math), "cublasSetMathMode");
    return status ? gy_linalg_fail(c->why, version, err) : GANTRY_OK;
}

void gy_blas_calls_close(gy_blas_calls *c)
{
    if (c->cublas)
        c->blas.cublasDestroy(c->cublas);
    c->cublas = NULL;
}

/* The size that NVIDIA recommends; it is the same for all launches, since how a product is computed may depend on it.
 */
uint64_t gy_blas_workspace(const gy_driver *d, int ordinal)
{
    CUdevice device;
    int major = 0;
    if (d->cuDeviceGet(&device, ordinal) != CUDA_SUCCESS ||
        d->cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device) != CUDA_SUCCESS)
        major = 0;
    uint64_t mib = major == 9 || major == 10 ? 32 : major > 10 ? 12 : 4;
    return mib << 20;
}

/* The stream is set first: another stream takes the workspace away. */
gantry_status gy_blas_begin(gy_blas_calls *c, const gantry_launch *l, uint64_t bytes)
{
    GY_TRY(gy_blas_check(c, c->blas.cublasSetStream(c->cublas, l->stream), "cublasSetStream"));
    return gy_blas_check(c, c->blas.cublasSetWorkspace(c->cublas, l->scratch, (size_t)bytes), "cublasSetWorkspace");
}

cudaDataType gy_blas_type_of(gantry_dtype dtype)
{
    switch (dtype) {
    case GANTRY_F16:
        return CUDA_R_16F;
    case GANTRY_BF16:
        return CUDA_R_16BF;
    case GANTRY_F32:
        return CUDA_R_32F;
    case GANTRY_F8E4M3:
        return CUDA_R_8F_E4M3;
    case GANTRY_F8E5M2:
        return CUDA_R_8F_E5M2;
    default:
        return CUDA_R_64F;
    }
}

gy_factor gy_factor_of(double number, gantry_dtype dtype)
{
    return dtype == GANTRY_F64 ? (gy_factor){ .wide = number } : (gy_factor){ .single = (float)number };
}

gy_blas_product gy_blas_product_of(gantry_dtype dtype, gantry_dtype result, double alpha, double beta, gy_gpu_matrix a,
                                   bool ta, gy_gpu_matrix b, bool tb, gy_gpu_matrix c)
{
    return (gy_blas_product){ .a = a,
                              .b = b,
                              .c = c,
                              .alpha = gy_factor_of(alpha, dtype),
                              .beta = gy_factor_of(beta, dtype),
                              .op_a = ta ? CUBLAS_OP_T : CUBLAS_OP_N,
                              .op_b = tb ? CUBLAS_OP_T : CUBLAS_OP_N,
                              .type = gy_blas_type_of(dtype),
                              .result = gy_blas_type_of(result),
                              .compute = dtype == GANTRY_F64 ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F,
                              .depth = ta ? a.rows : a.columns };
}

/* c^T = op(b)^T op(a)^T, and what cuBLAS sees of each is its transpose. */
gantry_status gy_blas_multiply(gy_blas_calls *c, const gy_blas_product *p, int count, const long long step[3])
{
    return gy_blas_check(c,
                         c->blas.cublasGemmStridedBatchedEx(
                             c->cublas, p->op_b, p->op_a, p->c.columns, p->c.rows, p->depth, &p->alpha, p->b.data,
                             p->type, p->b.ld, step[1], p->a.data, p->type, p->a.ld, step[0], &p->beta, p->c.data,
                             p->result, p->c.ld, step[2], count, p->compute, CUBLAS_GEMM_DEFAULT),
                         "cublasGemmStridedBatchedEx");
}
