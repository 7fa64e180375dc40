/* SPDX-License-Identifier: Apache-2.0 */
/**
 * cuBLAS, opened at run time: nothing here is linked with libcublas. A member of gy_blas has the name that cublas_v2.h
 * gives the function. Built only where that header is.
 */
#ifndef GY_CUDA_NVIDIA_BLAS_H
#define GY_CUDA_NVIDIA_BLAS_H

#include "backends/cuda/nvidia/library.h"
#include <cublas_v2.h>

/* All of them are in every cuBLAS from CUDA 11.4 on. */
#define GY_BLAS_FUNCTIONS(X)                                                                                           \
    X(cublasCreate)                                                                                                    \
    X(cublasDestroy)                                                                                                   \
    X(cublasGetProperty)                                                                                               \
    X(cublasSetStream)                                                                                                 \
    X(cublasSetWorkspace)                                                                                              \
    X(cublasSetMathMode)                                                                                               \
    X(cublasGemmEx)                                                                                                    \
    X(cublasGemmBatchedEx)                                                                                             \
    X(cublasGemmStridedBatchedEx)                                                                                      \
    X(cublasStrsm)                                                                                                     \
    X(cublasDtrsm)                                                                                                     \
    X(cublasSsyrk)                                                                                                     \
    X(cublasDsyrk)

typedef struct gy_blas {
    gy_library lib;
#define GY_X(name) __typeof__(name) *name;
    GY_BLAS_FUNCTIONS(GY_X)
#undef GY_X
} gy_blas;

/* The newest that is there and that a driver for CUDA `driver_version` (as cuDriverGetVersion tells it; 0: not known)
 * can run, with all of its functions. E_DEVICE: there is none, or a function is missing. It stays loaded. */
gantry_status gy_blas_open(gy_blas *blas, int driver_version, gantry_error *err);
/* "CUBLAS_STATUS_NOT_SUPPORTED"; never NULL. */
const char *gy_blas_status_name(cublasStatus_t status);

#endif
