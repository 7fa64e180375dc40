/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products of matrices, for where cuBLAS is not: plain, but in tiles. A block makes SIDE x SIDE elements of the result, a
 * thread EACH x EACH of these. Terms are added in their order, as in the host's plain version.
 */
#ifndef GY_KERNELS_PRODUCT_CUH
#define GY_KERNELS_PRODUCT_CUH

#include "kernels/element.cuh"

enum { GY_PRODUCT_SIDE = 64, GY_PRODUCT_DEPTH = 16, GY_PRODUCT_EACH = 4, GY_PRODUCT_THREADS = 256 };

/* Element (i, k) of a factor, where k counts the terms; `across` if elements follow each other along i. */
template <typename T> struct gy_factor {
    const T *at;
    int64_t rows, terms, ld;
    bool across;
};

template <typename Wide, typename T>
static __device__ inline void gy_load_factor(Wide (&tile)[GY_PRODUCT_DEPTH][GY_PRODUCT_SIDE + 1], const gy_factor<T> &f,
                                             int64_t row, int64_t term)
{
    enum { SIDE = GY_PRODUCT_SIDE, DEPTH = GY_PRODUCT_DEPTH };
    for (int n = threadIdx.x; n < SIDE * DEPTH; n += GY_PRODUCT_THREADS) {
        int i = f.across ? n % SIDE : n / DEPTH, k = f.across ? n / SIDE : n % DEPTH;
        bool inside = row + i < f.rows && term + k < f.terms;
        int64_t at = f.across ? (term + k) * f.ld + row + i : (row + i) * f.ld + term + k;
        tile[k][i] = inside ? gy_element<Wide>::load(f.at[at]) : (Wide)0;
    }
}

/* store(r, q, sum) for each element of a b^T from (row, column) on. */
template <typename Wide, typename T, typename F>
static __device__ inline void gy_product_with(const gy_factor<T> &a, const gy_factor<T> &b, int64_t row, int64_t column,
                                              const F &store)
{
    enum { SIDE = GY_PRODUCT_SIDE, DEPTH = GY_PRODUCT_DEPTH, EACH = GY_PRODUCT_EACH, LINE = SIDE / EACH };
    __shared__ Wide left[DEPTH][SIDE + 1], right[DEPTH][SIDE + 1];
    int x = threadIdx.x % LINE, y = threadIdx.x / LINE;
    bool mine = row + y < a.rows && column + x < b.rows; /* else none of the thread's elements is inside */
    Wide sum[EACH][EACH] = {};
    for (int64_t term = 0; term < a.terms; term += DEPTH) {
        gy_load_factor(left, a, row, term);
        gy_load_factor(right, b, column, term);
        __syncthreads();
        int depth = a.terms - term < DEPTH ? (int)(a.terms - term) : DEPTH;
#pragma unroll 4
        for (int k = 0; k < depth && mine; k++)
#pragma unroll
            for (int i = 0; i < EACH; i++)
#pragma unroll
                for (int j = 0; j < EACH; j++)
                    sum[i][j] += left[k][y + i * LINE] * right[k][x + j * LINE];
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < EACH; i++)
#pragma unroll
        for (int j = 0; j < EACH; j++) {
            int64_t r = row + y + i * LINE, q = column + x + j * LINE;
            if (r < a.rows && q < b.rows)
                store(r, q, sum[i][j]);
        }
}

template <typename Wide, typename C>
static __device__ inline void gy_put_product(Wide alpha, Wide sum, Wide beta, C *to)
{
    Wide old = beta != 0 ? beta * gy_element<Wide>::load(*to) : (Wide)0;
    *to = gy_element<Wide>::template store<C>(alpha * sum + old);
}

/* c = alpha a b^T + beta c from (row, column) on; beta 0 does not read c. With `lower`, only where row >= column. With
 * `wide` c has elements of Wide, else of T. */
template <typename Wide, typename T>
static __device__ inline void gy_product(const gy_factor<T> &a, const gy_factor<T> &b, Wide alpha, Wide beta, void *c,
                                         bool wide, int64_t ld, int64_t row, int64_t column, bool lower)
{
    gy_product_with<Wide>(a, b, row, column, [&](int64_t r, int64_t q, Wide sum) {
        if (lower && q > r)
            return;
        if (wide)
            gy_put_product(alpha, sum, beta, (Wide *)c + r * ld + q);
        else
            gy_put_product(alpha, sum, beta, (T *)c + r * ld + q);
    });
}

#endif
