/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/module/module.h"

void gy_linalg_describe(gy_text *to, int driver)
{
    (void)driver;
    gy_text_add(to, "cuBLAS, cuSOLVER, cuFFT: this module was built without their headers; fft, gemm, gemm_batched, "
                    "gemm_bias, getrf, getrs, "
                    "potrf, qr, syrk and trsm run as plain kernels, which are slower\n");
}
