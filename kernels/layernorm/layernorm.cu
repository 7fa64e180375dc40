/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/begin.cuh"
#include "kernels/norm.cuh"

#define KERNEL(name, LONG, type, wide)                                                                                 \
    extern "C" __global__ void __launch_bounds__(GY_ROW_BOUNDS(LONG, type))                                                  \
        name(double eps, const type *x, const type *gain, const type *bias, type *y, int64_t rows, int64_t width)      \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        gy_norm_forward<true, LONG, wide>(eps, x, gain, bias, y, rows, width);                                         \
    }
GY_ROW_KERNELS(layernorm, KERNEL)
