/* SPDX-License-Identifier: Apache-2.0 */
/* A thread has the elements of a block of four numbers. */
#include "kernels/begin.cuh"
#include "kernels/element.cuh"
#include "kernels/philox4.h"

template <typename Wide, typename T>
static __device__ void drop(uint64_t seed, uint64_t first, uint64_t least, double factor, const T *__restrict__ x,
                            T *__restrict__ y, int64_t n)
{
    typedef gy_element<Wide> e;
    int64_t before = (int64_t)(first % 4); /* elements of the first block that are not here */
    GY_FOR_EACH (b, (before + n + 3) / 4) {
        gy_philox4 block = gy_philox4_at(seed, first / 4 + (uint64_t)b);
        for (int k = 0; k < 4; k++) {
            int64_t i = 4 * b + k - before;
            if (i >= 0 && i < n)
                y[i] = e::template store<T>(block.word[k] >= least ? e::load(x[i]) * (Wide)factor : (Wide)0);
        }
    }
}

#define KERNEL(suffix, type, wide)                                                                                     \
    extern "C" __global__ void dropout_##suffix(uint64_t seed, uint64_t first, uint64_t least, double factor,          \
                                                const type *x, type *y, int64_t n)                                     \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        drop<wide>(seed, first, least, factor, x, y, n);                                                               \
    }
GY_CUDA_FLOAT_TYPES(KERNEL)
