/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/begin.cuh"
#include "kernels/element.cuh"

#define KERNEL(suffix, type, wide)                                                                                     \
    extern "C" __global__ void copy_##suffix(const type *x, type *y, int64_t n, int64_t head)                          \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        gy_stream(x, y, n, head);                                                            \
    }
GY_CUDA_TYPES(KERNEL)
