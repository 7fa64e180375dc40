/* SPDX-License-Identifier: Apache-2.0 */
/* gemm, potrf, syrk, trsm: by NVIDIA's libraries where they are. This is the place where another way is put behind
 * them. */
#include "backends/cuda/kernels/choice.h"
#include "backends/cuda/kernels/linalg.h"
#include "backends/cuda/kernels/plain.h"

#define KERNEL(name, ...)                                                                                              \
    static const gy_cuda_choice choice_##name = { { __VA_ARGS__ } };                                                   \
    const gy_cuda_kernel gy_cuda_kernel_##name = GY_CHOICE_KERNEL(#name, choice_##name);
KERNEL(gemm, &gy_library_gemm, &gy_plain_gemm)
KERNEL(potrf, &gy_library_potrf, &gy_plain_potrf)
KERNEL(syrk, &gy_library_syrk, &gy_plain_syrk)
KERNEL(trsm, &gy_library_trsm, &gy_plain_trsm)
