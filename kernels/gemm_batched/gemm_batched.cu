/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/begin.cuh"
#include "kernels/product.cuh"

/* The sides of each product. A factor's step from matrix to matrix is 0 where one is for all. */
struct stack {
    int64_t rows, columns, terms, step_a, step_b;
    uint32_t across, tiles; /* tiles of c in a row, and of each matrix */
    int32_t ta, tb, wide; /* wide: c is of the type that sums are computed in */
};

template <typename Wide, typename T>
static __device__ void multiply(const stack &s, double alpha, const T *a, const T *b, double beta, void *c)
{
    const int64_t i = blockIdx.x / s.tiles;
    const uint32_t tile = blockIdx.x % s.tiles;
    const gy_factor<T> left = { a + i * s.step_a, s.rows, s.terms, s.ta ? s.rows : s.terms, s.ta != 0 };
    const gy_factor<T> right = { b + i * s.step_b, s.columns, s.terms, s.tb ? s.terms : s.columns, s.tb == 0 };
    void *to = (char *)c + i * s.rows * s.columns * (int64_t)(s.wide ? sizeof(Wide) : sizeof(T));
    gy_product(left, right, (Wide)alpha, (Wide)beta, to, s.wide != 0, s.columns,
               (int64_t)(tile / s.across) * GY_PRODUCT_SIDE, (int64_t)(tile % s.across) * GY_PRODUCT_SIDE, false);
}

#define KERNEL(suffix, type, wide)                                                                                     \
    extern "C" __global__ void __launch_bounds__(GY_PRODUCT_THREADS)                                                   \
        gemm_batched_##suffix(stack s, double alpha, const type *a, const type *b, double beta, void *c)               \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        multiply<wide>(s, alpha, a, b, beta, c);                                                                       \
    }
GY_CUDA_FLOAT_TYPES(KERNEL)
