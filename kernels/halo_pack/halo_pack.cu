/* SPDX-License-Identifier: Apache-2.0 */
/* A block takes one piece, or a stretch of it; an element a thread. Only the size of an element matters. */
#include "kernels/begin.cuh"
#include "kernels/halo.h"

template <typename T> static __device__ void halo_pack(const T *__restrict__ x, const gy_halo_boxes *p)
{
    const gy_halo_box *b = &p->box[blockIdx.y];
    T *to = (T *)b->to;
    const int64_t count = (int64_t)b->count[0] * b->count[1] * b->count[2] * b->count[3];
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += (int64_t)gridDim.x * blockDim.x) {
        int64_t rest = i, from = 0, stride = 1;
#pragma unroll
        for (int k = GY_HALO_AXES - 1; k >= 0; k--) {
            from += (b->first[k] + rest % b->count[k]) * stride;
            rest /= b->count[k];
            stride *= p->shape[k];
        }
        to[i] = x[from];
    }
}

#define KERNEL(name, type)                                                                                             \
    extern "C" __global__ void __launch_bounds__(256) halo_pack##name(const type *x, gy_halo_boxes pieces)            \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        halo_pack<type>(x, &pieces);                                                                                   \
    }
KERNEL(_u8, uint8_t)
KERNEL(_f16, uint16_t)
KERNEL(_f32, uint32_t)
KERNEL(_f64, uint64_t)
