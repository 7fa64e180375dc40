/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA versions that come with the module. */
#include "backends/cuda/kernels/kernels.h"

#define KERNEL(name) extern const gy_cuda_kernel gy_cuda_kernel_##name;
#define DEVICE(name) KERNEL(name)
#include "kernels/kernels.def"

static const gy_cuda_kernel *const table[] = {
#define KERNEL(name) &gy_cuda_kernel_##name,
#define DEVICE(name) KERNEL(name)
#include "kernels/kernels.def"
};

const gy_cuda_kernel *const *gy_cuda_kernels(size_t *count)
{
    *count = sizeof table / sizeof *table;
    return table;
}
