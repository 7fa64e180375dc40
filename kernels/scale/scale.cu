/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/begin.cuh"
#include "kernels/element.cuh"

#define KERNEL(suffix, type, wide)                                                                                     \
    extern "C" __global__ void scale_##suffix(gy_multiplier number, const type *x, type *y, int64_t n, int64_t head)   \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        typedef gy_element<wide> e;                                                                                    \
        const wide a = e::scalar(number);                                                                              \
        gy_stream(x, y, n, head, [=](type v) { return e::store<type>(a * e::load(v)); });                              \
    }
GY_CUDA_TYPES(KERNEL)
