/* SPDX-License-Identifier: Apache-2.0 */
/**
 * cuBLASLt, opened at run time as cuBLAS is (blas.h): products of matrices that go on with what follows them. A member
 * of gy_blas_lt has the name that cublasLt.h gives the function. Built only where that header is.
 */
#ifndef GY_CUDA_NVIDIA_BLAS_LT_H
#define GY_CUDA_NVIDIA_BLAS_LT_H

#include "backends/cuda/nvidia/library.h"
#include <cublasLt.h>

/* All of them are in every cuBLASLt from CUDA 11.4 on. */
#define GY_BLAS_LT_FUNCTIONS(X)                                                                                        \
    X(cublasLtCreate)                                                                                                  \
    X(cublasLtDestroy)                                                                                                 \
    X(cublasLtMatmul)                                                                                                  \
    X(cublasLtMatmulAlgoGetHeuristic)                                                                                  \
    X(cublasLtMatmulDescCreate)                                                                                        \
    X(cublasLtMatmulDescDestroy)                                                                                       \
    X(cublasLtMatmulDescSetAttribute)                                                                                  \
    X(cublasLtMatmulPreferenceCreate)                                                                                  \
    X(cublasLtMatmulPreferenceDestroy)                                                                                 \
    X(cublasLtMatmulPreferenceSetAttribute)                                                                            \
    X(cublasLtMatrixLayoutCreate)                                                                                      \
    X(cublasLtMatrixLayoutDestroy)

typedef struct gy_blas_lt {
    gy_library lib;
#define GY_X(name) __typeof__(name) *name;
    GY_BLAS_LT_FUNCTIONS(GY_X)
#undef GY_X
} gy_blas_lt;

/* As gy_blas_open. */
gantry_status gy_blas_lt_open(gy_blas_lt *blas, int driver_version, gantry_error *err);

/* The descriptions of one product, each NULL until it is made. */
typedef struct gy_blas_lt_call {
    cublasLtMatmulDesc_t product;
    cublasLtMatrixLayout_t a, b, c;
    cublasLtMatmulPreference_t wanted;
} gy_blas_lt_call;

/* Gives back those that were made. */
void gy_blas_lt_forget(const gy_blas_lt *blas, gy_blas_lt_call *call);

#endif
