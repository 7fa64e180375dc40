/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/begin.cuh"
#include "kernels/rows.cuh"
#include "kernels/status.cuh"

/* Of a table of `of` rows those from `first` on are here; the others count as zeros. */
template <typename Wide, typename T, typename Id>
static __device__ void rows_of_table(const T *__restrict__ table, const Id *__restrict__ ids, T *__restrict__ y,
                                     int64_t count, int64_t rows, int64_t width, int64_t first, int64_t of, int adds,
                                     int32_t *status)
{
    typedef gy_element<Wide> e;
    GY_FOR_EACH_ROW (i, count) {
        const int64_t id = ids[i], row = id - first;
        const bool is_here = row >= 0 && row < rows;
        if (id < 0 || id >= of) {
            if (threadIdx.x == 0)
                gy_tell_least(status, i < INT32_MAX ? (int32_t)i + 1 : INT32_MAX);
            continue;
        }
        if (!is_here && adds)
            continue;
        for (int64_t c = threadIdx.x; c < width; c += blockDim.x) {
            T *to = &y[i * width + c];
            if (!is_here)
                *to = e::template store<T>((Wide)0);
            else if (adds)
                *to = e::template store<T>(e::load(*to) + e::load(table[row * width + c]));
            else
                *to = table[row * width + c];
        }
    }
}

#define KERNEL_OF(suffix, type, wide, id)                                                                                  \
    extern "C" __global__ void __launch_bounds__(GY_LANES *GY_ROW_WARPS)                                               \
        embedding_##suffix(const type *table, const id *ids, type *y, int64_t count, int64_t rows, int64_t width,      \
                           int64_t first, int64_t of, int adds, int32_t *status)                                       \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        rows_of_table<wide>(table, ids, y, count, rows, width, first, of, adds, status);                               \
    }
#define KERNEL(suffix, type, wide)                                                                                     \
    KERNEL_OF(i32_##suffix, type, wide, int32_t)                                                                       \
    KERNEL_OF(i64_##suffix, type, wide, int64_t)
GY_CUDA_FLOAT_TYPES(KERNEL)
