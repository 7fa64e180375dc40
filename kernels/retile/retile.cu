/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of one row take one box; a word a thread. Boxes of less than 2^32 words, which are nearly all, are counted in 32
 * bits, since every word takes three divisions. */
#include "kernels/begin.cuh"
#include "kernels/retile/retile.h"

template <typename T, typename Count> static __device__ void copy_box(const gy_retile_box &b, Count words)
{
    const T *from = (const T *)b.from;
    T *to = (T *)b.to;
    for (Count i = (Count)blockIdx.x * blockDim.x + threadIdx.x; i < words; i += (Count)gridDim.x * blockDim.x) {
        const Count last = (Count)b.count[GY_RETILE_AXES - 1];
        Count rest = i / last;
        int64_t source = i - rest * last, target = source;
#pragma unroll
        for (int k = GY_RETILE_AXES - 2; k >= 0; k--) {
            const Count count = (Count)b.count[k], next = rest / count;
            source += (int64_t)(rest - next * count) * b.from_stride[k];
            target += (int64_t)(rest - next * count) * b.to_stride[k];
            rest = next;
        }
        to[target] = from[source];
    }
}

template <typename T> static __device__ void retile(const gy_retile_box &b)
{
    const int64_t words = b.count[0] * b.count[1] * b.count[2] * b.count[3];
    if (words + (int64_t)gridDim.x * blockDim.x <= UINT32_MAX)
        copy_box<T, uint32_t>(b, (uint32_t)words);
    else
        copy_box<T, uint64_t>(b, (uint64_t)words);
}

#define KERNEL(name, type)                                                                                             \
    extern "C" __global__ void __launch_bounds__(256) retile##name(gy_retile_boxes boxes)                             \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        retile<type>(boxes.box[blockIdx.y]);                                                                           \
    }
KERNEL(_u8, uint8_t)
KERNEL(_f16, uint16_t)
KERNEL(_f32, uint32_t)
KERNEL(_f64, uint64_t)
