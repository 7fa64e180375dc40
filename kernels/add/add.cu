/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/begin.cuh"
#include "kernels/element.cuh"

#define KERNEL(suffix, type, wide)                                                                                     \
    extern "C" __global__ void add_##suffix(const type *x, const type *y, type *z, int64_t n, int64_t head)            \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        typedef gy_element<wide> e;                                                                                    \
        gy_stream(x, y, z, n, head, [](type v, type w) { return e::store<type>(e::load(v) + e::load(w)); });           \
    }
GY_CUDA_TYPES(KERNEL)
