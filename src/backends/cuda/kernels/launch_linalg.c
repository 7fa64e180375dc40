/* SPDX-License-Identifier: Apache-2.0 */
/* Linear algebra and Fourier transforms: by NVIDIA's libraries where they are. This is the place where another way is
 * put behind them. */
#include "backends/cuda/kernels/choice.h"
#include "backends/cuda/kernels/linalg.h"
#include "backends/cuda/kernels/plain.h"

#define KERNEL(name)
#define DEVICE(name)
#define LIBRARY(name)                                                                                                  \
    static const gy_cuda_choice choice_##name = { { &gy_library_##name, &gy_plain_##name } };                          \
    const gy_cuda_kernel gy_cuda_kernel_##name = GY_CHOICE_KERNEL(#name, choice_##name);
/* gy_else_NAME: without cuDNN, which does it for what that refuses. */
#define PRODUCTS(name)                                                                                                 \
    static const gy_cuda_choice else_##name = { { &gy_products_##name, &gy_plain_##name } };                           \
    const gy_cuda_kernel gy_else_##name = GY_CHOICE_KERNEL(#name, else_##name);                                        \
    static const gy_cuda_choice choice_##name = { { &gy_library_##name, &gy_else_##name } };                           \
    const gy_cuda_kernel gy_cuda_kernel_##name = GY_CHOICE_KERNEL(#name, choice_##name);
#include "kernels/kernels.def"
