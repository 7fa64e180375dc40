/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/begin.cuh"
#include "kernels/gemm_bias/gemm_bias.h"
#include "kernels/product.cuh"
#include "kernels/row_product.cuh"

template <typename Wide> static __device__ Wide activate(Wide x, int32_t activation)
{
    if (activation == GY_ACTIVATION_RELU)
        return x < 0 ? 0 : x;
    if (activation == GY_ACTIVATION_GELU)
        return (Wide)0.5 * x * (1 + tanh((Wide)GY_GELU_SLOPE * (x + (Wide)GY_GELU_CUBE * x * x * x)));
    if (activation == GY_ACTIVATION_GELU_ERF)
        return (Wide)0.5 * x * (1 + erf((Wide)GY_GELU_INNER * x));
    return x;
}

/* Blocks as those of gemm.cu. The bias is added to sums that are not rounded yet. */
template <typename Wide, typename T>
static __device__ void gemm_bias(int32_t ta, int32_t tb, int32_t activation, const T *a, int64_t lda, const T *b,
                                 int64_t ldb, const T *bias, T *c, int64_t rows, int64_t columns, int64_t terms,
                                 uint32_t across)
{
    gy_factor<T> left = { a, rows, terms, lda, ta != 0 }, right = { b, columns, terms, ldb, tb == 0 };
    gy_product_with<Wide>(left, right, (int64_t)(blockIdx.x / across) * GY_PRODUCT_SIDE,
                    (int64_t)(blockIdx.x % across) * GY_PRODUCT_SIDE, [&](int64_t row, int64_t column, Wide sum) {
                        const Wide x = activate(sum + gy_element<Wide>::load(bias[column]), activation);
                        c[row * columns + column] = gy_element<Wide>::template store<T>(x);
                    });
}

/* Of a product that a library has made. */
template <typename Wide, typename T>
static __device__ void finish(int32_t activation, const T *bias, T *c, int64_t rows, int64_t columns)
{
    GY_FOR_EACH (i, rows * columns)
        c[i] = gy_element<Wide>::template store<T>(
            activate(gy_element<Wide>::load(c[i]) + gy_element<Wide>::load(bias[i % columns]), activation));
}

#define KERNEL(suffix, type, wide)                                                                                     \
    extern "C" __global__ void __launch_bounds__(GY_PRODUCT_THREADS)                                                   \
        gemm_bias_##suffix(int32_t ta, int32_t tb, int32_t activation, const type *a, int64_t lda, const type *b,      \
                           int64_t ldb, const type *bias, type *c, int64_t rows, int64_t columns, int64_t terms,       \
                           uint32_t across)                                                                            \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        gemm_bias<wide>(ta, tb, activation, a, lda, b, ldb, bias, c, rows, columns, terms, across);                    \
    }                                                                                                                  \
    extern "C" __global__ void gemm_bias_finish_##suffix(int32_t activation, const type *bias, type *c, int64_t rows,  \
                                                         int64_t columns)                                              \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        finish<wide>(activation, bias, c, rows, columns);                                                              \
    }
GY_CUDA_FLOAT_TYPES(KERNEL)

/* A product of one row. */
template <typename Wide, typename T>
static __device__ void gemm_bias_row(const gy_row_product &p, int32_t activation, const T *a, const T *b, const T *bias,
                                     T *c)
{
    const auto shift = [&](int64_t column) { return gy_element<Wide>::load(bias[column]); };
    const auto put = [&](Wide sum, int64_t column, Wide by) {
        c[column] = gy_element<Wide>::template store<T>(activate(sum + by, activation));
    };
    gy_row_product_of<Wide>(p, a, b, shift, put);
}

#define ROW(suffix, type, wide)                                                                                        \
    extern "C" __global__ void __launch_bounds__(GY_ROW_PRODUCT_THREADS)                                               \
        gemm_bias_row_##suffix(gy_row_product p, int32_t activation, const type *a, const type *b, const type *bias,   \
                               type *c)                                                                                \
    {                                                                                                                  \
        gy_row_fetch(p, b);                                                                                            \
        gy_begin();                                                                                                    \
        gemm_bias_row<wide>(p, activation, a, b, bias, c);                                                             \
    }
GY_CUDA_FLOAT_TYPES(ROW)
