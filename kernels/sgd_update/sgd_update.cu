/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/begin.cuh"
#include "kernels/element.cuh"

#define KERNEL(suffix, type, wide)                                                                                     \
    extern "C" __global__ void sgd_update_##suffix(gy_multiplier number, type *w, const type *g, int64_t n,            \
                                                   int64_t head)                                                       \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        typedef gy_element<wide> e;                                                                                    \
        const wide rate = e::scalar(number);                                                                           \
        gy_stream(w, g, w, n, head, [=](type v, type d) { return e::store<type>(e::load(v) - rate * e::load(d)); });   \
    }
GY_CUDA_FLOAT_TYPES(KERNEL)
