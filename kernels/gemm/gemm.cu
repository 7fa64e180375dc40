/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/begin.cuh"
#include "kernels/f8.cuh"
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

/* ---- f8 ---- */

static __device__ inline float gy_f8_scale(const float *scale) { return scale ? *scale : 1.0f; }

enum { RESULT_F32, RESULT_F16, RESULT_BF16 }; /* of c */

/* The scales of a and b may be NULL. */
template <typename T>
static __device__ void gemm_f8(int32_t ta, int32_t tb, float alpha, const T *a, int64_t lda, const T *b, int64_t ldb, float beta,
                               void *c, int32_t result, int64_t rows, int64_t columns, int64_t terms, uint32_t across)
{
    gy_factor<T> left = { a, rows, terms, lda, ta != 0 }, right = { b, columns, terms, ldb, tb == 0 };
    gy_product_with<float>(left, right, (int64_t)(blockIdx.x / across) * GY_PRODUCT_SIDE,
                           (int64_t)(blockIdx.x % across) * GY_PRODUCT_SIDE, [&](int64_t r, int64_t q, float sum) {
                               const int64_t at = r * columns + q;
                               if (result == RESULT_F32)
                                   gy_put_product(alpha, sum, beta, (float *)c + at);
                               else if (result == RESULT_F16)
                                   gy_put_product(alpha, sum, beta, (__half *)c + at);
                               else
                                   gy_put_product(alpha, sum, beta, (__nv_bfloat16 *)c + at);
                           });
}

#define F8_KERNEL(suffix, type, wide)                                                                                  \
    extern "C" __global__ void __launch_bounds__(GY_PRODUCT_THREADS)                                                   \
        gemm_##suffix(int32_t ta, int32_t tb, double alpha, const type *a, int64_t lda, const type *b, int64_t ldb,    \
                      double beta, void *c, int32_t result, int64_t rows, int64_t columns, int64_t terms,              \
                      uint32_t across, const float *scale_a, const float *scale_b)                                     \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        const float scale = (float)alpha * gy_f8_scale(scale_a) * gy_f8_scale(scale_b);                                \
        gemm_f8(ta, tb, scale, a, lda, b, ldb, (float)beta, c, result, rows, columns, terms, across);                  \
    }
GY_CUDA_F8_TYPES(F8_KERNEL)

/* to = from^T, of bytes: blocks are tiles, `across` in a row of `from`. */
enum { TURN = 64 };
static __device__ void turn(const uint8_t *from, uint8_t *to, int64_t rows, int64_t columns, uint32_t across)
{
    __shared__ uint8_t tile[TURN][TURN + 4];
    const int64_t row = (int64_t)(blockIdx.x / across) * TURN, column = (int64_t)(blockIdx.x % across) * TURN;
    for (int n = threadIdx.x; n < TURN * TURN; n += GY_PRODUCT_THREADS) {
        const int i = n / TURN, j = n % TURN;
        if (row + i < rows && column + j < columns)
            tile[i][j] = from[(row + i) * columns + column + j];
    }
    __syncthreads();
    for (int n = threadIdx.x; n < TURN * TURN; n += GY_PRODUCT_THREADS) {
        const int i = n % TURN, j = n / TURN;
        if (row + i < rows && column + j < columns)
            to[(column + j) * rows + row + i] = tile[i][j];
    }
}

#define F8_TURN(suffix, type, wide)                                                                                    \
    extern "C" __global__ void __launch_bounds__(GY_PRODUCT_THREADS)                                                   \
        gemm_turn_##suffix(const uint8_t *from, uint8_t *to, int64_t rows, int64_t columns, uint32_t across)           \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        turn(from, to, rows, columns, across);                                                                         \
    }
GY_CUDA_F8_TYPES(F8_TURN)
