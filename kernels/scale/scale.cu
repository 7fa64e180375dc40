/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/element.cuh"

#define KERNEL(suffix, type, wide)                                                                                     \
    extern "C" __global__ void scale_##suffix(double number, const type *x, type *y, int64_t n)                        \
    {                                                                                                                  \
        typedef gy_element<wide> e;                                                                                    \
        const wide a = e::scalar(number);                                                                              \
        GY_FOR_EACH (i, n)                                                                                             \
            y[i] = e::store<type>(a * e::load(x[i]));                                                                  \
    }
GY_CUDA_TYPES(KERNEL)
