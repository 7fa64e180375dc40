/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/begin.cuh"
#include "kernels/reduce.cuh"

/* dot_DTYPE is of x and y, dot_finish_DTYPE of out. */
#define KERNEL(suffix, type, wide)                                                                                     \
    extern "C" __global__ void dot_##suffix(const type *x, const type *y, void *partial, int64_t n, int64_t chunk,     \
                                            int aligned)                                                               \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        typedef gy_sum<wide> sum;                                                                                      \
        gy_reduce_chunk<2>(                                                                                            \
            x, y, (double *)partial, n, chunk, aligned, 0.0,                                                           \
            [](double a, type v, type w) { return a + sum::load(v) * sum::load(w); }, gy_plus());                      \
    }                                                                                                                  \
    extern "C" __global__ void dot_finish_##suffix(const void *partial, int64_t count, type *out)                      \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        gy_sum_finish<type, wide>(partial, count, out);                                                                \
    }
GY_CUDA_FLOAT_TYPES(KERNEL)
