/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/begin.cuh"
#include "kernels/product.cuh"

/* Blocks are tiles of c, `across` in a row; those above the diagonal have nothing to do. */
template <typename T>
static __device__ void syrk(double alpha, const T *a, double beta, T *c, int64_t rows, int64_t terms, uint32_t across)
{
    gy_factor<T> factor = { a, rows, terms, terms, false };
    uint32_t row = blockIdx.x / across, column = blockIdx.x % across;
    if (column <= row)
        gy_product(factor, factor, (T)alpha, (T)beta, c, false, rows, (int64_t)row * GY_PRODUCT_SIDE,
                   (int64_t)column * GY_PRODUCT_SIDE, true);
}

#define KERNEL(suffix, type)                                                                                           \
    extern "C" __global__ void __launch_bounds__(GY_PRODUCT_THREADS)                                                   \
        syrk_##suffix(double alpha, const type *a, double beta, type *c, int64_t rows, int64_t terms, uint32_t across) \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        syrk(alpha, a, beta, c, rows, terms, across);                                                                  \
    }
KERNEL(f32, float)
KERNEL(f64, double)
