/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The dense part of cuSOLVER, opened at run time as cuBLAS is (blas.h). Built only where cusolverDn.h is.
 */
#ifndef GY_CUDA_NVIDIA_SOLVER_H
#define GY_CUDA_NVIDIA_SOLVER_H

#include "backends/cuda/nvidia/library.h"
#include <cusolverDn.h>

/* All of them are in every cuSOLVER from CUDA 11.4 on. */
#define GY_SOLVER_FUNCTIONS(X)                                                                                         \
    X(cusolverGetProperty)                                                                                             \
    X(cusolverDnCreate)                                                                                                \
    X(cusolverDnDestroy)                                                                                               \
    X(cusolverDnSetStream)                                                                                             \
    X(cusolverDnSpotrf_bufferSize)                                                                                     \
    X(cusolverDnDpotrf_bufferSize)                                                                                     \
    X(cusolverDnSpotrf)                                                                                                \
    X(cusolverDnDpotrf)                                                                                                \
    X(cusolverDnSgetrf_bufferSize)                                                                                     \
    X(cusolverDnDgetrf_bufferSize)                                                                                     \
    X(cusolverDnSgetrf)                                                                                                \
    X(cusolverDnDgetrf)                                                                                                \
    X(cusolverDnSgeqrf_bufferSize)                                                                                     \
    X(cusolverDnDgeqrf_bufferSize)                                                                                     \
    X(cusolverDnSgeqrf)                                                                                                \
    X(cusolverDnDgeqrf)                                                                                                \
    X(cusolverDnSorgqr_bufferSize)                                                                                     \
    X(cusolverDnDorgqr_bufferSize)                                                                                     \
    X(cusolverDnSorgqr)                                                                                                \
    X(cusolverDnDorgqr)

typedef struct gy_solver {
    gy_library lib;
#define GY_X(name) __typeof__(name) *name;
    GY_SOLVER_FUNCTIONS(GY_X)
#undef GY_X
} gy_solver;

/* As gy_blas_open. */
gantry_status gy_solver_open(gy_solver *solver, int driver_version, gantry_error *err);
/* "CUSOLVER_STATUS_NOT_SUPPORTED"; never NULL. */
const char *gy_solver_status_name(cusolverStatus_t status);

#endif
