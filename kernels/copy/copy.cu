/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/element.cuh"

#define KERNEL(suffix, type, wide)                                                                                     \
    extern "C" __global__ void copy_##suffix(const type *x, type *y, int64_t n)                                        \
    {                                                                                                                  \
        GY_FOR_EACH (i, n)                                                                                             \
            y[i] = x[i];                                                                                               \
    }
GY_CUDA_TYPES(KERNEL)
