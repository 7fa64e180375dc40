/* SPDX-License-Identifier: Apache-2.0 */
/* A warp for some columns of a row: entries are the same for all its lanes, and rows of x are read in order. A lane has
 * one column of narrow matrices and up to four of wide ones, for which it converts an entry once; several entries are
 * loaded at a time, as no load waits for the test of another: what has no row of x is replaced by the first. Sums are
 * taken in the host's order. */
#include "kernels/begin.cuh"
#include "kernels/status.cuh"
#include <stdint.h>

enum { LANES = 32, ROWS = 8 }; /* the launcher knows them as well */

template <typename Index, typename T> struct product {
    const Index *__restrict__ row, *__restrict__ column;
    const T *__restrict__ value, *__restrict__ x;
    int64_t rows, entries, columns, width;
};

/* `ahead` entries from `at` on, for `each` columns from j on, LANES apart. False if one is not there. */
template <int each, int ahead, typename Index, typename T>
static __device__ inline bool add(const product<Index, T> &p, int64_t at, int64_t j, double (&sum)[each])
{
    int64_t c[ahead];
    T value[ahead], from[ahead][each];
    bool good = true;
#pragma unroll
    for (int i = 0; i < ahead; i++) {
        c[i] = (int64_t)p.column[at + i];
        value[i] = p.value[at + i];
    }
#pragma unroll
    for (int i = 0; i < ahead; i++) {
        const bool there = c[i] >= 0 && c[i] < p.columns;
        good = good && there;
        c[i] = there ? c[i] : 0;
    }
#pragma unroll
    for (int i = 0; i < ahead; i++)
#pragma unroll
        for (int e = 0; e < each; e++)
            from[i][e] = j + e * LANES < p.width ? p.x[c[i] * p.width + j + e * LANES] : (T)0;
#pragma unroll
    for (int i = 0; i < ahead; i++)
#pragma unroll
        for (int e = 0; e < each; e++)
            sum[e] += (double)value[i] * (double)from[i][e];
    return good;
}

/* `across`: blocks beside each other. */
template <int each, int ahead, typename Index, typename T>
static __device__ void spmm(const product<Index, T> &p, T *__restrict__ y, uint32_t across, int32_t *status)
{
    const int64_t r = (int64_t)(blockIdx.x / across) * ROWS + threadIdx.y;
    const int64_t j = (int64_t)(blockIdx.x % across) * LANES * each + threadIdx.x;
    if (r >= p.rows || j >= p.width)
        return;
    double sum[each] = { 0 };
    int64_t k = (int64_t)p.row[r];
    const int64_t end = (int64_t)p.row[r + 1];
    bool good = k >= end || (k >= 0 && end <= p.entries && p.columns > 0);
    for (; good && k + ahead <= end; k += ahead)
        good = add<each, ahead>(p, k, j, sum);
    for (; good && k < end; k++)
        good = add<each, 1>(p, k, j, sum);
    if (!good)
        gy_tell_least(status, (int32_t)(r + 1));
#pragma unroll
    for (int e = 0; e < each; e++)
        if (j + e * LANES < p.width)
            y[r * p.width + j + e * LANES] = (T)sum[e];
}

#define KERNEL(name, index, type)                                                                                      \
    extern "C" __global__ void __launch_bounds__(LANES *ROWS)                                                          \
        spmm_csr##name(const index *row, const index *column, const type *value, const type *x, type *y, int64_t rows, \
                       int64_t entries, int64_t columns, int64_t width, uint32_t across, int32_t each,                 \
                       int32_t *status)                                                                                \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        const product<index, type> p = { row, column, value, x, rows, entries, columns, width };                       \
        if (each == 1)                                                                                                 \
            spmm<1, 8>(p, y, across, status);                                                                          \
        else if (each == 2)                                                                                            \
            spmm<2, 4>(p, y, across, status);                                                                          \
        else                                                                                                           \
            spmm<4, 4>(p, y, across, status);                                                                          \
    }
KERNEL(_i32_f32, int32_t, float)
KERNEL(_i32_f64, int32_t, double)
KERNEL(_i64_f32, int64_t, float)
KERNEL(_i64_f64, int64_t, double)
