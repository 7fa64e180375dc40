/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/begin.cuh"
#include "kernels/product.cuh"
#include "kernels/row_product.cuh"

/* Blocks are tiles of c, `across` in a row. `lda` and `ldb` are the lengths of rows, whatever is transposed. `wide`: c
 * is of the type that sums are computed in. */
template <typename Wide, typename T>
static __device__ void gemm(int32_t ta, int32_t tb, double alpha, const T *a, int64_t lda, const T *b, int64_t ldb,
                            double beta, void *c, int32_t wide, int64_t rows, int64_t columns, int64_t terms, uint32_t across)
{
    gy_factor<T> left = { a, rows, terms, lda, ta != 0 }, right = { b, columns, terms, ldb, tb == 0 };
    gy_product(left, right, (Wide)alpha, (Wide)beta, c, wide != 0, columns, (int64_t)(blockIdx.x / across) * GY_PRODUCT_SIDE,
               (int64_t)(blockIdx.x % across) * GY_PRODUCT_SIDE, false);
}

#define KERNEL(suffix, type, wide)                                                                                     \
    extern "C" __global__ void __launch_bounds__(GY_PRODUCT_THREADS)                                                   \
        gemm_##suffix(int32_t ta, int32_t tb, double alpha, const type *a, int64_t lda, const type *b, int64_t ldb,    \
                      double beta, void *c, int32_t to_wide, int64_t rows, int64_t columns, int64_t terms, uint32_t across)             \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        gemm<wide>(ta, tb, alpha, a, lda, b, ldb, beta, c, to_wide, rows, columns, terms, across);                     \
    }
KERNEL(f16, __half, float)
KERNEL(bf16, __nv_bfloat16, float)
KERNEL(f32, float, float)
KERNEL(f64, double, double)

/* Products of one row, one for each blockIdx.y. `list`: where their arguments are, as a batch has it, A, B and C by number;
 * NULL: there is one, of a, b and c. The host writes it before anything is launched. */
enum { A = 4, B, C };

template <typename Wide, typename T>
static __device__ void gemm_row(const gy_row_product &p, const T *a, const T *b, void *c, void *const *list, int32_t count)
{
    const int i = blockIdx.y;
    void *to = gy_row_of((T *)c, list, C, count, i);
    const Wide alpha = (Wide)p.alpha, beta = (Wide)p.beta;
    const auto old = [&](int64_t column) {
        if (beta == 0)
            return (Wide)0;
        return beta * (p.wide ? ((Wide *)to)[column] : gy_element<Wide>::load(((T *)to)[column]));
    };
    const auto put = [&](Wide sum, int64_t column, Wide before) {
        if (p.wide)
            ((Wide *)to)[column] = alpha * sum + before;
        else
            ((T *)to)[column] = gy_element<Wide>::template store<T>(alpha * sum + before);
    };
    gy_row_product_of<Wide>(p, gy_row_of((T *)a, list, A, count, i), gy_row_of((T *)b, list, B, count, i), old, put);
}

#define ROW(suffix, type, wide)                                                                                        \
    extern "C" __global__ void __launch_bounds__(GY_ROW_PRODUCT_THREADS)                                               \
        gemm_row_##suffix(gy_row_product p, const type *a, const type *b, void *c, void *const *list, int32_t count)   \
    {                                                                                                                  \
        gy_row_fetch(p, gy_row_of((type *)b, list, B, count, blockIdx.y));                                             \
        gy_begin();                                                                                                    \
        gemm_row<wide>(p, a, b, c, list, count);                                                                       \
    }
GY_CUDA_FLOAT_TYPES(ROW)
