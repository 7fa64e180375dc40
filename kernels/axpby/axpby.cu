/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/begin.cuh"
#include "kernels/element.cuh"

#define KERNEL(suffix, type, wide)                                                                                     \
    extern "C" __global__ void axpby_##suffix(gy_multiplier of_x, const type *x, gy_multiplier of_y, type *y,          \
                                              int64_t n, int64_t head)                                                 \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        typedef gy_element<wide> e;                                                                                    \
        const wide a = e::scalar(of_x), b = e::scalar(of_y);                                                           \
        gy_stream(x, y, y, n, head,                                                                                    \
                  [=](type v, type w) { return e::store<type>(a * e::load(v) + b * e::load(w)); });                    \
    }
GY_CUDA_TYPES(KERNEL)
