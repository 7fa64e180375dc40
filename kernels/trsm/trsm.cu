/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/begin.cuh"
#include "kernels/triangle.cuh"

/* Blocks are GY_SQUARE rows of b each. */
#define KERNEL(suffix, type)                                                                                           \
    extern "C" __global__ void __launch_bounds__(GY_SQUARE_THREADS)                                                    \
        trsm_##suffix(const type *a, type *b, int64_t rows, int64_t n)                                                 \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        int64_t row = (int64_t)blockIdx.x * GY_SQUARE;                                                                 \
        gy_solve_rows(a, n, b + row * n, n, rows - row, n);                                                            \
    }
KERNEL(f32, float)
KERNEL(f64, double)
