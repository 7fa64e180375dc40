/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/begin.cuh"
#include "kernels/reduce.cuh"

/* reduce_sum_DTYPE is of x, reduce_sum_finish_DTYPE of out. */
#define KERNEL(suffix, type, wide)                                                                                     \
    extern "C" __global__ void reduce_sum_##suffix(const type *x, void *partial, int64_t n, int64_t chunk,             \
                                                   int aligned)                                                        \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        typedef gy_sum<wide> sum;                                                                                      \
        gy_reduce_chunk<1>(                                                                                            \
            x, x, (sum::total *)partial, n, chunk, aligned, (sum::total)0,                                             \
            [](sum::total a, type v, type) { return a + sum::load(v); }, gy_plus());                                   \
    }                                                                                                                  \
    extern "C" __global__ void reduce_sum_finish_##suffix(const void *partial, int64_t count, type *out)               \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        gy_sum_finish<type, wide>(partial, count, out);                                                                \
    }
GY_CUDA_TYPES(KERNEL)
