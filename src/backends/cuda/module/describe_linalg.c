/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/module/module.h"
#include "backends/cuda/nvidia/blas.h"
#include "backends/cuda/nvidia/fft_api.h"
#include "backends/cuda/nvidia/solver.h"

static void describe_blas(gy_text *to, int driver)
{
    gy_blas blas;
    gantry_error why = { 0 };
    int major = 0, minor = 0, patch = 0;
    if (gy_blas_open(&blas, driver, &why)) {
        gy_text_printf(
            to,
            "cuBLAS: %s; gemm, gemm_batched, gemm_bias, getrs, syrk and trsm run as plain kernels, which are slower\n",
            why.text);
        return;
    }
    blas.cublasGetProperty(MAJOR_VERSION, &major);
    blas.cublasGetProperty(MINOR_VERSION, &minor);
    blas.cublasGetProperty(PATCH_LEVEL, &patch);
    gy_text_printf(to, "cuBLAS: %s, version %d.%d.%d\n", blas.lib.name, major, minor, patch);
}

static void describe_solver(gy_text *to, int driver)
{
    gy_solver solver;
    gantry_error why = { 0 };
    int major = 0, minor = 0, patch = 0;
    if (gy_solver_open(&solver, driver, &why)) {
        gy_text_printf(to, "cuSOLVER: %s; getrf, potrf and qr run as plain kernels, which are slower\n", why.text);
        return;
    }
    solver.cusolverGetProperty(MAJOR_VERSION, &major);
    solver.cusolverGetProperty(MINOR_VERSION, &minor);
    solver.cusolverGetProperty(PATCH_LEVEL, &patch);
    gy_text_printf(to, "cuSOLVER: %s, version %d.%d.%d\n", solver.lib.name, major, minor, patch);
}

static void describe_fft(gy_text *to, int driver)
{
    gy_cufft fft;
    gantry_error why = { 0 };
    int version = 0;
    if (gy_cufft_open(&fft, driver, &why)) {
        gy_text_printf(to, "cuFFT: %s; fft runs as plain kernels, which are slower\n", why.text);
        return;
    }
    fft.cufftGetVersion(&version);
    gy_text_printf(to, "cuFFT: %s, version %d.%d.%d\n", fft.lib.name, version / 1000, version / 100 % 10,
                   version % 100);
}

void gy_linalg_describe(gy_text *to, int driver)
{
    describe_blas(to, driver);
    describe_solver(to, driver);
    describe_fft(to, driver);
}
