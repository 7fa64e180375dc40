/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/kernels/kernels.h"

#include <string.h>

const gy_cuda_kernel *gy_cuda_kernel_find(const char *name)
{
    size_t count;
    const gy_cuda_kernel *const *kernels = gy_cuda_kernels(&count);
    for (size_t i = 0; i < count; i++)
        if (strcmp(kernels[i]->name, name) == 0)
            return kernels[i];
    return NULL;
}
