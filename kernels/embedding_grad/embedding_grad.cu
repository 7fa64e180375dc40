/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two launches, so that sums are taken in the order of ids: first each id finds the next place with the same id, and
 * says whether there is one before it; then the lanes of a row go along its places, from the first on. Finding takes
 * time with the square of the number of ids, at worst.
 */
#include "kernels/begin.cuh"
#include "kernels/rows.cuh"
#include "kernels/status.cuh"

/* link[i]: the next place, or `count`; below 0: ~ of that, where there is one before. */
template <typename Id>
static __device__ void find_places(const Id *__restrict__ ids, int64_t *__restrict__ link, int64_t count, int64_t rows,
                                   int32_t *status)
{
    GY_FOR_EACH (i, count) {
        Id id = ids[i];
        int64_t next = i + 1, before = i - 1;
        if (id < 0 || (int64_t)id >= rows)
            gy_tell_least(status, i < INT32_MAX ? (int32_t)i + 1 : INT32_MAX);
        while (next < count && ids[next] != id)
            next++;
        while (before >= 0 && ids[before] != id)
            before--;
        link[i] = before >= 0 ? ~next : next;
    }
}

template <typename Wide, typename T, typename Id>
static __device__ void add_rows(const Id *__restrict__ ids, const int64_t *__restrict__ link, const T *__restrict__ dy,
                                T *__restrict__ dtable, int64_t count, int64_t rows, int64_t width)
{
    typedef gy_element<Wide> e;
    GY_FOR_EACH_ROW (i, count) {
        int64_t id = ids[i];
        if (link[i] < 0 || id < 0 || id >= rows)
            continue;
        for (int64_t c = threadIdx.x; c < width; c += blockDim.x) {
            double sum = 0;
            for (int64_t at = i; at < count; at = link[at] < 0 ? ~link[at] : link[at])
                sum += (double)e::load(dy[at * width + c]);
            T *to = &dtable[id * width + c];
            *to = e::template store<T>(e::load(*to) + (Wide)sum);
        }
    }
}

#define KERNEL_OF(suffix, type, wide, id)                                                                              \
    extern "C" __global__ void embedding_grad_places_##suffix(const id *ids, int64_t *link, int64_t count, int64_t rows,\
                                                              int32_t *status)                                         \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        find_places(ids, link, count, rows, status);                                                                   \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(GY_LANES *GY_ROW_WARPS)                                               \
        embedding_grad_##suffix(const id *ids, const int64_t *link, const type *dy, type *dtable, int64_t count,       \
                                int64_t rows, int64_t width)                                                           \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        add_rows<wide>(ids, link, dy, dtable, count, rows, width);                                                     \
    }
#define KERNEL(suffix, type, wide)                                                                                     \
    KERNEL_OF(i32_##suffix, type, wide, int32_t)                                                                       \
    KERNEL_OF(i64_##suffix, type, wide, int64_t)
GY_CUDA_FLOAT_TYPES(KERNEL)
