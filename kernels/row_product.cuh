/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A row times a matrix, which is as fast as the matrix is read. A block has neighbouring columns, `across` threads for
 * 16 bytes each of them, and its other threads are down the rows. So each element is read once, all of a block's loads
 * are whole sectors, and AHEAD of a thread are under way. Terms come together in an order that the shape alone decides.
 */
#ifndef GY_KERNELS_ROW_PRODUCT_CUH
#define GY_KERNELS_ROW_PRODUCT_CUH

#include "kernels/fetch_ahead.cuh"
#include "kernels/product.cuh"

enum { GY_ROW_PRODUCT_THREADS = 512, GY_ROW_PRODUCT_LANES = 32, GY_ROW_PRODUCT_MOST = 8 };

/* As gemm.h has it. */
struct gy_row_product {
    int64_t terms, columns;
    double alpha, beta;
    int32_t across, wide;
};

/* Where product number i has its argument: `own`, or what the list of pointers says, `count` for each argument. */
template <typename T> static __device__ inline T *gy_row_of(T *own, void *const *list, int argument, int count, int i)
{
    return list ? (T *)list[argument * count + i] : own;
}

template <typename Wide, typename T>
static __device__ inline void gy_row_add(Wide (&sum)[gy_pack<T>::COUNT], T x, const gy_pack<T> &w)
{
#pragma unroll
    for (int j = 0; j < gy_pack<T>::COUNT; j++)
        sum[j] += gy_element<Wide>::load(x) * gy_element<Wide>::load(w.at[j]);
}

/* Of the thread's rows, each `step`th from `first` on. */
template <typename Wide, typename T>
static __device__ inline void gy_row_terms(Wide (&sum)[gy_pack<T>::COUNT], const gy_row_product &p, int64_t first,
                                           int64_t step, const T *__restrict__ x, const T *__restrict__ w)
{
    enum { AHEAD = 4 };
    int64_t row = first;
    for (; row + (AHEAD - 1) * step < p.terms; row += AHEAD * step) {
        gy_pack<T> pack[AHEAD];
        T factor[AHEAD];
#pragma unroll
        for (int k = 0; k < AHEAD; k++) {
            pack[k].bits = *(const uint4 *)(w + (row + k * step) * p.columns);
            factor[k] = x[row + k * step];
        }
#pragma unroll
        for (int k = 0; k < AHEAD; k++)
            gy_row_add<Wide>(sum, factor[k], pack[k]);
    }
    for (; row < p.terms; row += step) {
        gy_pack<T> pack;
        pack.bits = *(const uint4 *)(w + row * p.columns);
        gy_row_add<Wide>(sum, x[row], pack);
    }
}

/* The first of what the block will read of the matrix, a sector of memory by every other thread. */
template <typename T> static __device__ inline void gy_row_fetch(const gy_row_product &p, const T *w)
{
    enum { MOST = 8, COUNT = gy_pack<T>::COUNT };
    const int at = threadIdx.x % p.across;
    const int64_t column = ((int64_t)blockIdx.x * p.across + at) * COUNT, step = GY_ROW_PRODUCT_THREADS / p.across;
    for (int64_t row = threadIdx.x / p.across; row < p.terms && row < MOST * step && column < p.columns; row += step)
        if (at % 2 == 0)
            gy_fetch_ahead(w + row * p.columns + column);
}

/* put(sum, column, with) for each of the block's columns of x w, where `with` is what with(column) said. That loads what
 * the sum goes with: at first, so that it is there when the sum is. Threads of a warp that have the same columns add up
 * what they have, then warps do, in their order. */
template <typename Wide, typename T, typename With, typename Put>
static __device__ void gy_row_product_of(const gy_row_product &p, const T *x, const T *w, const With &with, const Put &put)
{
    enum { COUNT = gy_pack<T>::COUNT, LANES = GY_ROW_PRODUCT_LANES, WARPS = GY_ROW_PRODUCT_THREADS / LANES };
    __shared__ Wide room[WARPS][GY_ROW_PRODUCT_MOST * COUNT];
    const int lane = threadIdx.x % LANES, warp = threadIdx.x / LANES, at = threadIdx.x % p.across;
    const int64_t first = (int64_t)blockIdx.x * p.across * COUNT, column = first + at * COUNT;
    const int mine = threadIdx.x;
    const bool puts = mine < p.across * COUNT && first + mine < p.columns;
    const Wide other = puts ? with(first + mine) : (Wide)0;
    Wide sum[COUNT] = {};
    if (column < p.columns)
        gy_row_terms<Wide>(sum, p, threadIdx.x / p.across, GY_ROW_PRODUCT_THREADS / p.across, x, w + column);
#pragma unroll
    for (int j = 0; j < COUNT; j++) {
        for (int by = LANES / 2; by >= p.across; by /= 2)
            sum[j] += __shfl_xor_sync(~0u, sum[j], by);
        if (lane < p.across)
            room[warp][at * COUNT + j] = sum[j];
    }
    __syncthreads();
    if (!puts)
        return;
    Wide total = 0;
    for (int k = 0; k < WARPS; k++)
        total += room[k][mine];
    put(total, first + mine, other);
}

#endif
