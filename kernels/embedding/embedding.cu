/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/begin.cuh"
#include "kernels/rows.cuh"
#include "kernels/status.cuh"

template <typename T, typename Id>
static __device__ void rows_of_table(const T *__restrict__ table, const Id *__restrict__ ids, T *__restrict__ y,
                                     int64_t count, int64_t rows, int64_t width, int32_t *status)
{
    GY_FOR_EACH_ROW (i, count) {
        int64_t id = ids[i];
        if (id < 0 || id >= rows) {
            if (threadIdx.x == 0)
                gy_tell_least(status, i < INT32_MAX ? (int32_t)i + 1 : INT32_MAX);
            continue;
        }
        for (int64_t c = threadIdx.x; c < width; c += blockDim.x)
            y[i * width + c] = table[id * width + c];
    }
}

#define KERNEL_OF(suffix, type, id)                                                                                    \
    extern "C" __global__ void __launch_bounds__(GY_LANES *GY_ROW_WARPS)                                               \
        embedding_##suffix(const type *table, const id *ids, type *y, int64_t count, int64_t rows, int64_t width,      \
                           int32_t *status)                                                                            \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        rows_of_table(table, ids, y, count, rows, width, status);                                                      \
    }
#define KERNEL(suffix, type, wide) KERNEL_OF(i32_##suffix, type, int32_t) KERNEL_OF(i64_##suffix, type, int64_t)
GY_CUDA_FLOAT_TYPES(KERNEL)
