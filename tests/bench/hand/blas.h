// SPDX-License-Identifier: Apache-2.0
// Calls of cuBLAS by element type, and a handle for each stream with a workspace of its own.
#pragma once
#include "work.h"

#include <cublas_v2.h>
#include <cuda_bf16.h>

template <typename T> struct Blas;
template <> struct Blas<double> {
    typedef double scalar;
    static constexpr cudaDataType type = CUDA_R_64F;
    static constexpr cublasComputeType_t compute = CUBLAS_COMPUTE_64F;
};
template <> struct Blas<float> {
    typedef float scalar;
    static constexpr cudaDataType type = CUDA_R_32F;
    static constexpr cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
};
template <> struct Blas<__nv_bfloat16> {
    typedef float scalar;
    static constexpr cudaDataType type = CUDA_R_16BF;
    static constexpr cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
};

inline cublasHandle_t new_blas(cudaStream_t stream)
{
    enum { WORKSPACE = 32 << 20 }; // what cuBLAS asks for on this generation
    cublasHandle_t handle;
    LIBRARY(cublasCreate(&handle));
    LIBRARY(cublasSetStream(handle, stream));
    LIBRARY(cublasSetWorkspace(handle, new_array<char>(WORKSPACE), WORKSPACE));
    return handle;
}

// Column by column: C = alpha op(A) op(B) + beta C.
template <typename T>
void gemm(cublasHandle_t h, bool ta, bool tb, long m, long n, long k, double alpha, const T *a, long lda, const T *b,
          long ldb, double beta, T *c, long ldc)
{
    typename Blas<T>::scalar factor = (typename Blas<T>::scalar)alpha, old = (typename Blas<T>::scalar)beta;
    LIBRARY(cublasGemmEx(h, ta ? CUBLAS_OP_T : CUBLAS_OP_N, tb ? CUBLAS_OP_T : CUBLAS_OP_N, (int)m, (int)n, (int)k,
                         &factor, a, Blas<T>::type, (int)lda, b, Blas<T>::type, (int)ldb, &old, c, Blas<T>::type,
                         (int)ldc, Blas<T>::compute, CUBLAS_GEMM_DEFAULT));
}

// Row by row, and dense: C [m, n] = op(A) op(B) + beta C. What is a row here is a column for cuBLAS.
template <typename T>
void gemm_rows(cublasHandle_t h, bool ta, bool tb, long m, long n, long k, double alpha, const T *a, const T *b,
               double beta, T *c)
{
    gemm(h, tb, ta, n, m, k, alpha, b, tb ? k : n, a, ta ? m : k, beta, c, n);
}

inline void trsm(cublasHandle_t h, cublasSideMode_t side, cublasFillMode_t part, cublasOperation_t op,
                 cublasDiagType_t diagonal, long m, long n, const double *a, long lda, double *b, long ldb)
{
    double one = 1;
    LIBRARY(cublasDtrsm(h, side, part, op, diagonal, (int)m, (int)n, &one, a, (int)lda, b, (int)ldb));
}

inline void trsm(cublasHandle_t h, cublasSideMode_t side, cublasFillMode_t part, cublasOperation_t op,
                 cublasDiagType_t diagonal, long m, long n, const float *a, long lda, float *b, long ldb)
{
    float one = 1;
    LIBRARY(cublasStrsm(h, side, part, op, diagonal, (int)m, (int)n, &one, a, (int)lda, b, (int)ldb));
}

inline void syrk(cublasHandle_t h, long n, long k, const double *a, long lda, double *c, long ldc)
{
    double minus = -1, one = 1;
    LIBRARY(
        cublasDsyrk(h, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N, (int)n, (int)k, &minus, a, (int)lda, &one, c, (int)ldc));
}

inline void syrk(cublasHandle_t h, long n, long k, const float *a, long lda, float *c, long ldc)
{
    float minus = -1, one = 1;
    LIBRARY(
        cublasSsyrk(h, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N, (int)n, (int)k, &minus, a, (int)lda, &one, c, (int)ldc));
}
