/* SPDX-License-Identifier: Apache-2.0 */
/* A warp for some columns of a row: its lanes load entries side by side and tell them to each other, and read rows of x
 * in order. Loads of several entries are under way at a time, since none waits for the test of another. Sums are taken
 * in the host's order. */
#include "kernels/begin.cuh"
#include "kernels/status.cuh"
#include <stdint.h>

enum { LANES = 32, ROWS = 8, MANY = 4, AHEAD = 8 }; /* the launcher knows the first three as well */

/* `each`: columns of a lane, LANES apart; `across`: blocks beside each other. */
template <int each, typename Index, typename T>
static __device__ void spmm(const Index *__restrict__ row, const Index *__restrict__ column, const T *__restrict__ value,
                            const T *__restrict__ x, T *__restrict__ y, int64_t rows, int64_t entries, int64_t columns,
                            int64_t width, uint32_t across, int32_t *status)
{
    const int lane = (int)threadIdx.x;
    const int64_t r = (int64_t)(blockIdx.x / across) * ROWS + threadIdx.y;
    const int64_t j = (int64_t)(blockIdx.x % across) * LANES * each + lane;
    if (r >= rows) /* of all lanes of the warp */
        return;
    double sum[each];
#pragma unroll
    for (int e = 0; e < each; e++)
        sum[e] = 0;
    const int64_t begin = (int64_t)row[r], end = (int64_t)row[r + 1];
    bool good = begin >= end || (begin >= 0 && end <= entries);
    for (int64_t at = begin; at < end && good; at += LANES) {
        const int count = end - at < LANES ? (int)(end - at) : LANES;
        const int64_t c = lane < count ? (int64_t)column[at + lane] : 0;
        const double v = lane < count ? (double)value[at + lane] : 0;
        good = __all_sync(0xffffffffu, c >= 0 && c < columns);
        if (!good)
            break;
        for (int first = 0; first < count; first += AHEAD) {
            T from[AHEAD][each];
#pragma unroll
            for (int i = 0; i < AHEAD; i++) {
                const int64_t at_row = __shfl_sync(0xffffffffu, c, first + i) * width;
#pragma unroll
                for (int e = 0; e < each; e++)
                    from[i][e] = first + i < count && j + e * LANES < width ? x[at_row + j + e * LANES] : (T)0;
            }
#pragma unroll
            for (int i = 0; i < AHEAD; i++) {
                const double factor = __shfl_sync(0xffffffffu, v, first + i);
#pragma unroll
                for (int e = 0; e < each; e++)
                    if (first + i < count)
                        sum[e] += factor * (double)from[i][e];
            }
        }
    }
    if (!good && lane == 0)
        gy_tell_least(status, (int32_t)(r + 1));
#pragma unroll
    for (int e = 0; e < each; e++)
        if (j + e * LANES < width)
            y[r * width + j + e * LANES] = (T)sum[e];
}

#define KERNEL(name, index, type)                                                                                      \
    extern "C" __global__ void __launch_bounds__(LANES *ROWS)                                                          \
        spmm_csr##name(const index *row, const index *column, const type *value, const type *x, type *y, int64_t rows, \
                       int64_t entries, int64_t columns, int64_t width, uint32_t across, int32_t *status)              \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        if ((int64_t)across * LANES >= width)                                                                          \
            spmm<1>(row, column, value, x, y, rows, entries, columns, width, across, status);                          \
        else                                                                                                           \
            spmm<MANY>(row, column, value, x, y, rows, entries, columns, width, across, status);                       \
    }
KERNEL(_i32_f32, int32_t, float)
KERNEL(_i32_f64, int32_t, double)
KERNEL(_i64_f32, int64_t, float)
KERNEL(_i64_f64, int64_t, double)
