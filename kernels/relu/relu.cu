/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/begin.cuh"
#include "kernels/element.cuh"

#define KERNEL(suffix, type, wide)                                                                                     \
    extern "C" __global__ void relu_##suffix(const type *x, type *y, int64_t n, int64_t head)                          \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        typedef gy_element<wide> e;                                                                                    \
        gy_stream(x, y, n, head, [](type v) { return e::load(v) > 0 ? v : e::store<type>(0); });                       \
    }
GY_CUDA_FLOAT_TYPES(KERNEL)
