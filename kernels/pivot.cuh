/* SPDX-License-Identifier: Apache-2.0 */
/* Exchanging rows, for where cuSOLVER is not. */
#ifndef GY_KERNELS_PIVOT_CUH
#define GY_KERNELS_PIVOT_CUH

#include "kernels/element.cuh"

/* Exchanges row i with row pivots[i] - 1 for i in [first, first + count), one after the other, a thread a column. Columns in
 * [but, but + width) are left alone. A pivot that is none of the n rows is told of, and nothing is exchanged from it on. */
template <typename T>
static __device__ inline void gy_exchange_rows(T *a, int64_t ld, int64_t n, int64_t columns, const int32_t *pivots,
                                               int64_t first, int64_t count, int64_t but, int64_t width, int32_t *status)
{
    GY_FOR_EACH (j, columns) {
        if (j >= but && j < but + width)
            continue;
        for (int64_t i = first; i < first + count; i++) {
            const int64_t with = (int64_t)pivots[i] - 1;
            if (with < 0 || with >= n) {
                *status = (int32_t)(i + 1);
                break;
            }
            if (with != i) {
                const T kept = a[i * ld + j];
                a[i * ld + j] = a[with * ld + j];
                a[with * ld + j] = kept;
            }
        }
    }
}

#endif
