/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/begin.cuh"
#include "kernels/element.cuh"

#define KERNEL(suffix, type, wide)                                                                                     \
    extern "C" __global__ void relu_grad_##suffix(const type *x, const type *dy, type *dx, int64_t n, int64_t head)    \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        typedef gy_element<wide> e;                                                                                    \
        gy_stream(x, dy, dx, n, head, [](type v, type d) { return e::load(v) > 0 ? d : e::store<type>(0); });          \
    }
GY_CUDA_FLOAT_TYPES(KERNEL)
