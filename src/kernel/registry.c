/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/registry.h"

#include <string.h>

size_t gantry_kernel_count(void)
{
    size_t count;
    gy_builtin_kernels(&count);
    return count;
}

const gantry_kernel *gantry_kernel_at(size_t i)
{
    size_t count;
    const gantry_kernel *const *kernels = gy_builtin_kernels(&count);
    return i < count ? kernels[i] : NULL;
}

const gantry_kernel *gantry_kernel_find(const char *name)
{
    size_t high, low = 0;
    const gantry_kernel *const *kernels = gy_builtin_kernels(&high);
    while (name && low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(name, kernels[middle]->name);
        if (order == 0)
            return kernels[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

bool gy_kernel_batches(const gantry_kernel *manifest)
{
    return manifest == gantry_kernel_find("gemm");
}

int gy_kernel_find_arg(const gantry_kernel *manifest, const char *name)
{
    for (int i = 0; i < manifest->args; i++)
        if (strcmp(manifest->arg[i].name, name) == 0)
            return i;
    return -1;
}
