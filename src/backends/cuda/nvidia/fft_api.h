/* SPDX-License-Identifier: Apache-2.0 */
/**
 * cuFFT, opened at run time as cuBLAS is (blas.h). Built only where cufft.h is.
 */
#ifndef GY_CUDA_NVIDIA_FFT_API_H
#define GY_CUDA_NVIDIA_FFT_API_H

#include "backends/cuda/nvidia/library.h"
#include <cufft.h>

/* All of them are in every cuFFT from CUDA 11 on. */
#define GY_CUFFT_FUNCTIONS(X)                                                                                          \
    X(cufftGetVersion)                                                                                                 \
    X(cufftCreate)                                                                                                     \
    X(cufftDestroy)                                                                                                    \
    X(cufftSetAutoAllocation)                                                                                          \
    X(cufftMakePlanMany64)                                                                                             \
    X(cufftSetStream)                                                                                                  \
    X(cufftSetWorkArea)                                                                                                \
    X(cufftExecC2C)                                                                                                    \
    X(cufftExecZ2Z)

typedef struct gy_cufft {
    gy_library lib;
#define GY_X(name) __typeof__(name) *name;
    GY_CUFFT_FUNCTIONS(GY_X)
#undef GY_X
} gy_cufft;

/* As gy_blas_open. */
gantry_status gy_cufft_open(gy_cufft *fft, int driver_version, gantry_error *err);
/* "CUFFT_ALLOC_FAILED"; never NULL. */
const char *gy_cufft_status_name(cufftResult status);

#endif
