/* SPDX-License-Identifier: Apache-2.0 */
/* A warp for 32 columns of a row: entries are the same for all its lanes, and rows of x are read in order. Sums are taken in the
 * host's order. */
#include "kernels/begin.cuh"
#include "kernels/status.cuh"
#include <stdint.h>

enum { LANES = 32, ROWS = 8 }; /* the launcher knows them as well */

/* `across`: blocks beside each other. */
template <typename Index, typename T>
static __device__ void spmm(const Index *__restrict__ row, const Index *__restrict__ column, const T *__restrict__ value,
                            const T *__restrict__ x, T *__restrict__ y, int64_t rows, int64_t entries, int64_t columns,
                            int64_t width, uint32_t across, int32_t *status)
{
    const int64_t r = (int64_t)(blockIdx.x / across) * ROWS + threadIdx.y;
    const int64_t j = (int64_t)(blockIdx.x % across) * LANES + threadIdx.x;
    if (r >= rows || j >= width)
        return;
    double sum = 0;
    const int64_t end = (int64_t)row[r + 1];
    for (int64_t k = (int64_t)row[r]; k < end; k++) {
        const int64_t c = k >= 0 && k < entries ? (int64_t)column[k] : -1;
        if (c < 0 || c >= columns) {
            gy_tell_least(status, (int32_t)(r + 1));
            break;
        }
        sum += (double)value[k] * (double)x[c * width + j];
    }
    y[r * width + j] = (T)sum;
}

#define KERNEL(name, index, type)                                                                                      \
    extern "C" __global__ void __launch_bounds__(LANES *ROWS)                                                          \
        spmm_csr##name(const index *row, const index *column, const type *value, const type *x, type *y, int64_t rows, \
                       int64_t entries, int64_t columns, int64_t width, uint32_t across, int32_t *status)              \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        spmm(row, column, value, x, y, rows, entries, columns, width, across, status);                                 \
    }
KERNEL(_i32_f32, int32_t, float)
KERNEL(_i32_f64, int32_t, double)
KERNEL(_i64_f32, int64_t, float)
KERNEL(_i64_f64, int64_t, double)
