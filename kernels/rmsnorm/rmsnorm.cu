/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/begin.cuh"
#include "kernels/norm.cuh"

#define KERNEL(suffix, type, wide)                                                                                     \
    extern "C" __global__ void __launch_bounds__(GY_LANES *GY_ROW_WARPS)                                               \
        rmsnorm_##suffix(double eps, const type *x, const type *gain, type *y, int64_t rows, int64_t width)            \
    {                                                                                                                  \
        gy_norm_fetch(gain, width);                                                                                    \
        gy_begin();                                                                                                    \
        gy_norm_forward<false, false, wide>(eps, x, gain, (const type *)nullptr, y, rows, width);                      \
    }
GY_CUDA_FLOAT_TYPES(KERNEL)
#undef KERNEL

#define KERNEL(suffix, type, wide)                                                                                     \
    extern "C" __global__ void __launch_bounds__(GY_LANES *GY_ROW_WARPS)                                               \
        rmsnorm_long_##suffix(double eps, const type *x, const type *gain, type *y, int64_t rows, int64_t width)       \
    {                                                                                                                  \
        gy_norm_fetch(gain, width);                                                                                    \
        gy_begin();                                                                                                    \
        __shared__ gy_kept kept;                                                                                       \
        gy_norm_forward<false, true, wide>(eps, x, gain, (const type *)nullptr, y, rows, width,                        \
                                           kept.pack + threadIdx.x);                                                   \
    }
GY_CUDA_FLOAT_TYPES(KERNEL)
