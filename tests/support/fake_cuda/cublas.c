/* SPDX-License-Identifier: Apache-2.0 */
/* libcublas.so.13 for tests: as cublas_v2.h declares it, on the fake driver. What a real cuBLAS would do slowly or in
 * another order ends the program: a call without a workspace of one's own, one that two streams share. */
#pragma GCC visibility push(default)
#include <cublas_v2.h>
#pragma GCC visibility pop

#include "columns.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

struct cublasContext {
    CUdeviceptr pool; /* a real one has memory, too */
    CUstream stream;
    void *workspace;
    size_t bytes;
    cublasMath_t math;
};

#define FAIL_IF_TOLD(name)                                                                                             \
    do {                                                                                                               \
        int told_ = columns_failure(#name);                                                                            \
        if (told_)                                                                                                     \
            return (cublasStatus_t)told_;                                                                              \
    } while (0)

cublasStatus_t cublasCreate_v2(cublasHandle_t *handle)
{
    FAIL_IF_TOLD(cublasCreate);
    cublasHandle_t h = calloc(1, sizeof *h);
    if (cuMemAlloc(&h->pool, 65536) != CUDA_SUCCESS) {
        free(h);
        return CUBLAS_STATUS_ALLOC_FAILED;
    }
    *handle = h;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle)
{
    cuMemFree(handle->pool);
    free(handle);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetProperty(libraryPropertyType type, int *value)
{
    *value = type == MAJOR_VERSION ? 13 : type == MINOR_VERSION ? 97 : 5;
    return CUBLAS_STATUS_SUCCESS;
}

/* Takes the workspace away. */
cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream)
{
    FAIL_IF_TOLD(cublasSetStream);
    handle->stream = stream;
    handle->workspace = NULL;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void *workspace, size_t bytes)
{
    FAIL_IF_TOLD(cublasSetWorkspace);
    if ((uintptr_t)workspace % 256)
        return CUBLAS_STATUS_INVALID_VALUE;
    handle->workspace = workspace;
    handle->bytes = bytes;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode)
{
    FAIL_IF_TOLD(cublasSetMathMode);
    handle->math = mode;
    return CUBLAS_STATUS_SUCCESS;
}

/* Addresses of the fake are not used again, so a workspace belongs to one stream for good. */
static void check_workspace(cublasHandle_t h)
{
    enum { MOST = 8192 };
    static struct {
        void *workspace;
        CUstream stream;
    } known[MOST];
    static int count;
    static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
    int i = 0;
    if (!h->workspace)
        columns_wrong("a call without a workspace of its own");
    if (fakeCudaInBody(h->stream))
        return;
    pthread_mutex_lock(&guard);
    while (i < count && known[i].workspace != h->workspace)
        i++;
    if (i == count && count < MOST) {
        known[count].workspace = h->workspace;
        known[count++].stream = h->stream;
    } else if (i < count && known[i].stream != h->stream) {
        columns_wrong("two streams share a workspace");
    }
    pthread_mutex_unlock(&guard);
}

static cublasStatus_t queue(cublasHandle_t h, job *j)
{
    check_workspace(h);
    j->workspace = h->workspace;
    j->workspace_bytes = h->bytes;
    return h->bytes < 16384                              ? CUBLAS_STATUS_ALLOC_FAILED
           : columns_queue(j, h->stream) == CUDA_SUCCESS ? CUBLAS_STATUS_SUCCESS
                                                         : CUBLAS_STATUS_EXECUTION_FAILED;
}

/* True if a matrix with so many rows can have this leading dimension. */
static bool fits(int ld, int rows)
{
    return ld >= (rows > 1 ? rows : 1);
}

static bool element_of(cudaDataType type, element *made)
{
    *made = type == CUDA_R_16F ? F16 : type == CUDA_R_16BF ? BF16 : type == CUDA_R_32F ? F32 : F64;
    return type == CUDA_R_16F || type == CUDA_R_16BF || type == CUDA_R_32F || type == CUDA_R_64F;
}

/* The three calls have this in common: shapes, types and factors. */
static cublasStatus_t describe(cublasHandle_t handle, job *j, cublasOperation_t transa, cublasOperation_t transb,
                               const void *alpha, const void *beta, const cudaDataType *types,
                               cublasComputeType_t computeType, cublasGemmAlgo_t algo)
{
    j->wide = types[2] == CUDA_R_32F && (types[0] == CUDA_R_16F || types[0] == CUDA_R_16BF);
    if (!element_of(types[0], &j->type) || types[1] != types[0] || (types[2] != types[0] && !j->wide) ||
        algo != CUBLAS_GEMM_DEFAULT || computeType != (j->type == F64 ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    if (handle->math != CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION)
        columns_wrong("sums of 16 bits");
    j->transpose_a = transa != CUBLAS_OP_N;
    j->transpose_b = transb != CUBLAS_OP_N;
    if (j->m < 0 || j->n < 0 || j->k < 0 || j->batch < 0 || !fits(j->a.ld, j->transpose_a ? j->k : j->m) ||
        !fits(j->b.ld, j->transpose_b ? j->n : j->k) || !fits(j->c.ld, j->m))
        return CUBLAS_STATUS_INVALID_VALUE;
    j->alpha = j->type == F64 ? *(const double *)alpha : (double)*(const float *)alpha;
    j->beta = j->type == F64 ? *(const double *)beta : (double)*(const float *)beta;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n,
                            int k, const void *alpha, const void *A, cudaDataType Atype, int lda, const void *B,
                            cudaDataType Btype, int ldb, const void *beta, void *C, cudaDataType Ctype, int ldc,
                            cublasComputeType_t computeType, cublasGemmAlgo_t algo)
{
    FAIL_IF_TOLD(cublasGemmEx);
    job j = { .kind = GEMM, .m = m, .n = n, .k = k };
    j.a = (columns){ (void *)(uintptr_t)A, lda };
    j.b = (columns){ (void *)(uintptr_t)B, ldb };
    j.c = (columns){ C, ldc };
    cudaDataType types[] = { Atype, Btype, Ctype };
    cublasStatus_t status = describe(handle, &j, transa, transb, alpha, beta, types, computeType, algo);
    return status ? status : queue(handle, &j);
}

cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb,
                                          int m, int n, int k, const void *alpha, const void *A, cudaDataType Atype,
                                          int lda, long long int strideA, const void *B, cudaDataType Btype, int ldb,
                                          long long int strideB, const void *beta, void *C, cudaDataType Ctype, int ldc,
                                          long long int strideC, int batchCount, cublasComputeType_t computeType,
                                          cublasGemmAlgo_t algo)
{
    FAIL_IF_TOLD(cublasGemmStridedBatchedEx);
    fakeCudaInjected("cublasGemmStridedBatchedEx"); /* counts it */
    job j = { .kind = GEMM, .m = m, .n = n, .k = k, .batch = batchCount };
    j.a = (columns){ (void *)(uintptr_t)A, lda };
    j.b = (columns){ (void *)(uintptr_t)B, ldb };
    j.c = (columns){ C, ldc };
    cudaDataType types[] = { Atype, Btype, Ctype };
    cublasStatus_t status = describe(handle, &j, transa, transb, alpha, beta, types, computeType, algo);
    int64_t size = j.type == F64 ? 8 : j.type == F32 ? 4 : 2;
    j.step_a = strideA * size;
    j.step_b = strideB * size;
    j.step_c = strideC * (j.wide ? 4 : size);
    if (!status && batchCount > 1 && strideC < (n > 0 ? (long long)ldc * (n - 1) + m : 0))
        columns_wrong("products of one batch that write the same elements");
    fakeCudaCount("multiply-adds", (int)((int64_t)m * n * k * batchCount));
    return status ? status : queue(handle, &j);
}

cublasStatus_t cublasGemmBatchedEx(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m,
                                   int n, int k, const void *alpha, const void *const Aarray[], cudaDataType Atype,
                                   int lda, const void *const Barray[], cudaDataType Btype, int ldb, const void *beta,
                                   void *const Carray[], cudaDataType Ctype, int ldc, int batchCount,
                                   cublasComputeType_t computeType, cublasGemmAlgo_t algo)
{
    FAIL_IF_TOLD(cublasGemmBatchedEx);
    job j = { .kind = GEMM, .m = m, .n = n, .k = k, .batch = batchCount };
    j.a.ld = lda;
    j.b.ld = ldb;
    j.c.ld = ldc;
    j.list_a = Aarray;
    j.list_b = Barray;
    j.list_c = Carray;
    cudaDataType types[] = { Atype, Btype, Ctype };
    cublasStatus_t status = describe(handle, &j, transa, transb, alpha, beta, types, computeType, algo);
    return status ? status : queue(handle, &j);
}

static cublasStatus_t trsm(cublasHandle_t handle, element type, cublasSideMode_t side, cublasFillMode_t uplo,
                           cublasOperation_t trans, cublasDiagType_t diag, int m, int n, double alpha, const void *A,
                           int lda, void *B, int ldb)
{
    bool right = side == CUBLAS_SIDE_RIGHT;
    if (m < 0 || n < 0 || !fits(lda, right ? n : m) || !fits(ldb, m))
        return CUBLAS_STATUS_INVALID_VALUE;
    job j = { .kind = TRSM, .type = type, .right = right, .m = m, .n = n, .alpha = alpha };
    j.upper = uplo == CUBLAS_FILL_MODE_UPPER;
    j.transpose_a = trans != CUBLAS_OP_N;
    j.unit = diag == CUBLAS_DIAG_UNIT;
    j.a = (columns){ (void *)(uintptr_t)A, lda };
    j.b = (columns){ B, ldb };
    return queue(handle, &j);
}

cublasStatus_t cublasStrsm_v2(cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t uplo,
                              cublasOperation_t trans, cublasDiagType_t diag, int m, int n, const float *alpha,
                              const float *A, int lda, float *B, int ldb)
{
    FAIL_IF_TOLD(cublasStrsm);
    return trsm(handle, F32, side, uplo, trans, diag, m, n, (double)*alpha, A, lda, B, ldb);
}

cublasStatus_t cublasDtrsm_v2(cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t uplo,
                              cublasOperation_t trans, cublasDiagType_t diag, int m, int n, const double *alpha,
                              const double *A, int lda, double *B, int ldb)
{
    FAIL_IF_TOLD(cublasDtrsm);
    return trsm(handle, F64, side, uplo, trans, diag, m, n, *alpha, A, lda, B, ldb);
}

static cublasStatus_t syrk(cublasHandle_t handle, element type, cublasFillMode_t uplo, cublasOperation_t trans, int n,
                           int k, double alpha, const void *A, int lda, double beta, void *C, int ldc)
{
    bool transposed = trans != CUBLAS_OP_N;
    if (n < 0 || k < 0 || !fits(lda, transposed ? k : n) || !fits(ldc, n))
        return CUBLAS_STATUS_INVALID_VALUE;
    job j = { .kind = SYRK, .type = type, .transpose_a = transposed, .n = n, .k = k, .alpha = alpha, .beta = beta };
    j.upper = uplo == CUBLAS_FILL_MODE_UPPER;
    j.a = (columns){ (void *)(uintptr_t)A, lda };
    j.c = (columns){ C, ldc };
    return queue(handle, &j);
}

cublasStatus_t cublasSsyrk_v2(cublasHandle_t handle, cublasFillMode_t uplo, cublasOperation_t trans, int n, int k,
                              const float *alpha, const float *A, int lda, const float *beta, float *C, int ldc)
{
    FAIL_IF_TOLD(cublasSsyrk);
    return syrk(handle, F32, uplo, trans, n, k, (double)*alpha, A, lda, (double)*beta, C, ldc);
}

cublasStatus_t cublasDsyrk_v2(cublasHandle_t handle, cublasFillMode_t uplo, cublasOperation_t trans, int n, int k,
                              const double *alpha, const double *A, int lda, const double *beta, double *C, int ldc)
{
    FAIL_IF_TOLD(cublasDsyrk);
    return syrk(handle, F64, uplo, trans, n, k, *alpha, A, lda, *beta, C, ldc);
}
