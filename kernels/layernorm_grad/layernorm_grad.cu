/* SPDX-License-Identifier: Apache-2.0 */
/* Two launches: rows first, then sums of columns, in an order that does not depend on which block is first. */
#include "kernels/begin.cuh"
#include "kernels/norm.cuh"

#define KERNEL(suffix, type, wide)                                                                                     \
    extern "C" __global__ void __launch_bounds__(GY_LANES *GY_ROW_WARPS)                                               \
        layernorm_grad_rows_##suffix(double eps, const type *x, const type *gain, const type *dy, type *dx,            \
        gy_norm *norm, int64_t rows, int64_t width)                                                                    \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        gy_norm_backward<true, wide>(eps, x, gain, dy, dx, norm, rows, width);                                         \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(GY_LANES *GY_LANES)                                                   \
        layernorm_grad_columns_##suffix(const type *x, const type *dy, const gy_norm *norm, type *dgain, type *dbias,  \
        int64_t rows, int64_t width)                                                                                   \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        gy_norm_columns<true, wide>(x, dy, norm, dgain, dbias, rows, width);                                           \
    }
GY_CUDA_FLOAT_TYPES(KERNEL)
