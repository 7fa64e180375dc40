/* SPDX-License-Identifier: Apache-2.0 */
/* libcusolver.so.12 for tests: as cusolverDn.h declares it, on the fake driver. A handle has memory of its own, so one
 * that is used on two streams ends the program. */
#pragma GCC visibility push(default)
#include <cusolverDn.h>
#pragma GCC visibility pop

#include "columns.h"

#include <stdint.h>
#include <stdlib.h>

struct cusolverDnContext {
    CUdeviceptr pool;
    CUstream stream;
};

#define FAIL_IF_TOLD(name)                                                                                             \
    do {                                                                                                               \
        int told_ = columns_failure(#name);                                                                            \
        if (told_)                                                                                                     \
            return (cusolverStatus_t)told_;                                                                            \
    } while (0)

cusolverStatus_t cusolverGetProperty(libraryPropertyType type, int *value)
{
    *value = type == MAJOR_VERSION ? 12 : type == MINOR_VERSION ? 96 : 4;
    return CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t cusolverDnCreate(cusolverDnHandle_t *handle)
{
    FAIL_IF_TOLD(cusolverDnCreate);
    cusolverDnHandle_t h = calloc(1, sizeof *h);
    if (cuMemAlloc(&h->pool, 65536) != CUDA_SUCCESS) {
        free(h);
        return CUSOLVER_STATUS_ALLOC_FAILED;
    }
    *handle = h;
    return CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t cusolverDnDestroy(cusolverDnHandle_t handle)
{
    cuMemFree(handle->pool);
    free(handle);
    return CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t cusolverDnSetStream(cusolverDnHandle_t handle, cudaStream_t stream)
{
    FAIL_IF_TOLD(cusolverDnSetStream);
    if (handle->stream && handle->stream != stream)
        columns_wrong("a handle of cuSOLVER is used on two streams");
    handle->stream = stream;
    return CUSOLVER_STATUS_SUCCESS;
}

/* Some number that is easy to get wrong. */
static int elements_of(int n)
{
    return 3 * n + 7;
}

static cusolverStatus_t ask(int n, int lda, int *lwork)
{
    if (n < 0 || lda < (n > 1 ? n : 1))
        return CUSOLVER_STATUS_INVALID_VALUE;
    *lwork = elements_of(n);
    return CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t cusolverDnSpotrf_bufferSize(cusolverDnHandle_t handle, cublasFillMode_t uplo, int n, float *A, int lda,
                                             int *Lwork)
{
    (void)handle;
    (void)uplo;
    (void)A;
    FAIL_IF_TOLD(cusolverDnSpotrf_bufferSize);
    return ask(n, lda, Lwork);
}

cusolverStatus_t cusolverDnDpotrf_bufferSize(cusolverDnHandle_t handle, cublasFillMode_t uplo, int n, double *A,
                                             int lda, int *Lwork)
{
    (void)handle;
    (void)uplo;
    (void)A;
    FAIL_IF_TOLD(cusolverDnDpotrf_bufferSize);
    return ask(n, lda, Lwork);
}

static cusolverStatus_t potrf(cusolverDnHandle_t handle, element type, cublasFillMode_t uplo, int n, void *A, int lda,
                              void *workspace, int lwork, int *info)
{
    if (n < 1 || lda < n || lwork < elements_of(n) || !workspace || !info)
        return CUSOLVER_STATUS_INVALID_VALUE;
    job j = { .kind = POTRF, .type = type, .upper = uplo == CUBLAS_FILL_MODE_UPPER, .n = n, .info = info };
    j.a = (columns){ A, lda };
    j.workspace = workspace;
    j.workspace_bytes = (size_t)elements_of(n) * (type == F32 ? 4 : 8);
    return columns_queue(&j, handle->stream) == CUDA_SUCCESS ? CUSOLVER_STATUS_SUCCESS
                                                             : CUSOLVER_STATUS_EXECUTION_FAILED;
}

cusolverStatus_t cusolverDnSpotrf(cusolverDnHandle_t handle, cublasFillMode_t uplo, int n, float *A, int lda,
                                  float *Workspace, int Lwork, int *devInfo)
{
    FAIL_IF_TOLD(cusolverDnSpotrf);
    return potrf(handle, F32, uplo, n, A, lda, Workspace, Lwork, devInfo);
}

cusolverStatus_t cusolverDnDpotrf(cusolverDnHandle_t handle, cublasFillMode_t uplo, int n, double *A, int lda,
                                  double *Workspace, int Lwork, int *devInfo)
{
    FAIL_IF_TOLD(cusolverDnDpotrf);
    return potrf(handle, F64, uplo, n, A, lda, Workspace, Lwork, devInfo);
}

cusolverStatus_t cusolverDnSgetrf_bufferSize(cusolverDnHandle_t handle, int m, int n, float *A, int lda, int *Lwork)
{
    (void)handle;
    (void)A;
    FAIL_IF_TOLD(cusolverDnSgetrf_bufferSize);
    return m == n ? ask(n, lda, Lwork) : CUSOLVER_STATUS_INVALID_VALUE;
}

cusolverStatus_t cusolverDnDgetrf_bufferSize(cusolverDnHandle_t handle, int m, int n, double *A, int lda, int *Lwork)
{
    (void)handle;
    (void)A;
    FAIL_IF_TOLD(cusolverDnDgetrf_bufferSize);
    return m == n ? ask(n, lda, Lwork) : CUSOLVER_STATUS_INVALID_VALUE;
}

static cusolverStatus_t getrf(cusolverDnHandle_t handle, element type, int n, void *A, int lda, void *workspace,
                              int *pivots, int *info)
{
    if (n < 1 || lda < n || !workspace || !pivots || !info)
        return CUSOLVER_STATUS_INVALID_VALUE;
    job j = { .kind = GETRF, .type = type, .n = n, .info = info, .pivots = pivots };
    j.a = (columns){ A, lda };
    j.workspace = workspace;
    j.workspace_bytes = (size_t)elements_of(n) * (type == F32 ? 4 : 8);
    return columns_queue(&j, handle->stream) == CUDA_SUCCESS ? CUSOLVER_STATUS_SUCCESS
                                                             : CUSOLVER_STATUS_EXECUTION_FAILED;
}

cusolverStatus_t cusolverDnSgetrf(cusolverDnHandle_t handle, int m, int n, float *A, int lda, float *Workspace,
                                  int *devIpiv, int *devInfo)
{
    FAIL_IF_TOLD(cusolverDnSgetrf);
    return m == n ? getrf(handle, F32, n, A, lda, Workspace, devIpiv, devInfo) : CUSOLVER_STATUS_INVALID_VALUE;
}

cusolverStatus_t cusolverDnDgetrf(cusolverDnHandle_t handle, int m, int n, double *A, int lda, double *Workspace,
                                  int *devIpiv, int *devInfo)
{
    FAIL_IF_TOLD(cusolverDnDgetrf);
    return m == n ? getrf(handle, F64, n, A, lda, Workspace, devIpiv, devInfo) : CUSOLVER_STATUS_INVALID_VALUE;
}

cusolverStatus_t cusolverDnSgeqrf_bufferSize(cusolverDnHandle_t handle, int m, int n, float *A, int lda, int *lwork)
{
    (void)handle;
    (void)A;
    FAIL_IF_TOLD(cusolverDnSgeqrf_bufferSize);
    return n <= m ? ask(m, lda, lwork) : CUSOLVER_STATUS_INVALID_VALUE;
}

cusolverStatus_t cusolverDnSorgqr_bufferSize(cusolverDnHandle_t handle, int m, int n, int k, const float *A, int lda,
                                             const float *tau, int *lwork)
{
    (void)handle;
    (void)A;
    (void)tau;
    FAIL_IF_TOLD(cusolverDnSorgqr_bufferSize);
    return k == n && n <= m ? ask(m, lda, lwork) : CUSOLVER_STATUS_INVALID_VALUE;
}

cusolverStatus_t cusolverDnDgeqrf_bufferSize(cusolverDnHandle_t handle, int m, int n, double *A, int lda, int *lwork)
{
    (void)handle;
    (void)A;
    FAIL_IF_TOLD(cusolverDnDgeqrf_bufferSize);
    return n <= m ? ask(m, lda, lwork) : CUSOLVER_STATUS_INVALID_VALUE;
}

cusolverStatus_t cusolverDnDorgqr_bufferSize(cusolverDnHandle_t handle, int m, int n, int k, const double *A, int lda,
                                             const double *tau, int *lwork)
{
    (void)handle;
    (void)A;
    (void)tau;
    FAIL_IF_TOLD(cusolverDnDorgqr_bufferSize);
    return k == n && n <= m ? ask(m, lda, lwork) : CUSOLVER_STATUS_INVALID_VALUE;
}

static cusolverStatus_t qr(cusolverDnHandle_t handle, job_kind kind, element type, int m, int n, void *A, int lda,
                           void *tau, void *workspace, int lwork, int *info)
{
    if (n < 1 || m < n || lda < m || lwork < elements_of(m) || !workspace || !tau || !info)
        return CUSOLVER_STATUS_INVALID_VALUE;
    if ((uintptr_t)workspace % 16)
        columns_wrong("the workspace of cuSOLVER lies at an odd address");
    job j = { .kind = kind, .type = type, .m = m, .n = n, .info = info };
    j.a = (columns){ A, lda };
    j.b = (columns){ tau, n };
    j.workspace = workspace;
    j.workspace_bytes = (size_t)elements_of(m) * (type == F32 ? 4 : 8);
    return columns_queue(&j, handle->stream) == CUDA_SUCCESS ? CUSOLVER_STATUS_SUCCESS
                                                             : CUSOLVER_STATUS_EXECUTION_FAILED;
}

cusolverStatus_t cusolverDnSgeqrf(cusolverDnHandle_t handle, int m, int n, float *A, int lda, float *TAU,
                                  float *Workspace, int Lwork, int *devInfo)
{
    FAIL_IF_TOLD(cusolverDnSgeqrf);
    return qr(handle, GEQRF, F32, m, n, A, lda, TAU, Workspace, Lwork, devInfo);
}

cusolverStatus_t cusolverDnSorgqr(cusolverDnHandle_t handle, int m, int n, int k, float *A, int lda, const float *tau,
                                  float *work, int lwork, int *devInfo)
{
    FAIL_IF_TOLD(cusolverDnSorgqr);
    if (k != n)
        return CUSOLVER_STATUS_INVALID_VALUE;
    return qr(handle, ORGQR, F32, m, n, A, lda, (void *)(uintptr_t)tau, work, lwork, devInfo);
}

cusolverStatus_t cusolverDnDgeqrf(cusolverDnHandle_t handle, int m, int n, double *A, int lda, double *TAU,
                                  double *Workspace, int Lwork, int *devInfo)
{
    FAIL_IF_TOLD(cusolverDnDgeqrf);
    return qr(handle, GEQRF, F64, m, n, A, lda, TAU, Workspace, Lwork, devInfo);
}

cusolverStatus_t cusolverDnDorgqr(cusolverDnHandle_t handle, int m, int n, int k, double *A, int lda, const double *tau,
                                  double *work, int lwork, int *devInfo)
{
    FAIL_IF_TOLD(cusolverDnDorgqr);
    if (k != n)
        return CUSOLVER_STATUS_INVALID_VALUE;
    return qr(handle, ORGQR, F64, m, n, A, lda, (void *)(uintptr_t)tau, work, lwork, devInfo);
}
