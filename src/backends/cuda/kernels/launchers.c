/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA versions that come with the module. */
#include "backends/cuda/kernels/kernels.h"

#define IMAGE(name)   extern const gy_cuda_kernel gy_cuda_kernel_##name;
#define LIBRARY(name) extern const gy_cuda_kernel gy_cuda_kernel_##name;
#define PLAIN(name)
#include "backends/cuda/kernels/kernels.def"

static const gy_cuda_kernel *const table[] = {
#define IMAGE(name)   &gy_cuda_kernel_##name,
#define LIBRARY(name) &gy_cuda_kernel_##name,
#define PLAIN(name)
#include "backends/cuda/kernels/kernels.def"
};

const gy_cuda_kernel *const *gy_cuda_kernels(size_t *count)
{
    *count = sizeof table / sizeof *table;
    return table;
}
