/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two launches, so that sums are taken in the order of ids: first each id finds the next place with the same id, and
 * says whether there is one before it; then the lanes of a row go along its places, from the first on. Finding takes
 * time with the square of the number of ids, at worst; a block has as many ids at a time as it has threads in shared
 * memory, for all of them to compare with.
 */
#include "kernels/begin.cuh"
#include "kernels/rows.cuh"
#include "kernels/status.cuh"

enum { THREADS = 256 }; /* of a block that finds places; as gy_grid_for has it */

/* The first of the places [from, from + THREADS) and after `place`, or the last before it, that has the id of the
 * thread; -1: none has. The tile has the ids of these places. */
template <bool FORWARD, typename Id>
static __device__ int64_t find_in(const Id *tile, int64_t from, int64_t count, int64_t place, Id id)
{
    const int end = count - from < THREADS ? (int)(count - from) : THREADS;
    int found = -1;
    for (int j = 0; j < end; j++) {
        const bool matches = tile[j] == id && (FORWARD ? from + j > place : from + j < place);
        if (matches && (!FORWARD || found < 0))
            found = j;
    }
    return found < 0 ? -1 : from + found;
}

/* Of the places on one side of the thread's own, tile by tile from its block's on, until all threads have found theirs.
 * All threads of the block come here. */
template <bool FORWARD, typename Id>
static __device__ int64_t find_place(const Id *__restrict__ ids, Id *tile, int64_t count, int64_t block, int64_t place, Id id)
{
    int64_t found = -1;
    for (int64_t from = block; from >= 0 && from < count; from += FORWARD ? THREADS : -THREADS) {
        if (!__syncthreads_or(place < count && found < 0))
            break;
        if (from + threadIdx.x < count)
            tile[threadIdx.x] = ids[from + threadIdx.x];
        __syncthreads();
        if (place < count && found < 0)
            found = find_in<FORWARD>(tile, from, count, place, id);
    }
    return found;
}

/* link[i]: the next place, or `count`; below 0: ~ of that, where there is one before. The table has `of` rows. */
template <typename Id>
static __device__ void find_places(const Id *__restrict__ ids, int64_t *__restrict__ link, int64_t count, int64_t of,
                                   int32_t *status)
{
    __shared__ Id tile[THREADS];
    for (int64_t block = (int64_t)blockIdx.x * THREADS; block < count; block += (int64_t)gridDim.x * THREADS) {
        const int64_t i = block + threadIdx.x;
        const Id id = i < count ? ids[i] : (Id)0;
        if (i < count && (id < 0 || (int64_t)id >= of))
            gy_tell_least(status, i < INT32_MAX ? (int32_t)i + 1 : INT32_MAX);
        const int64_t next = find_place<true>(ids, tile, count, block, i, id);
        const int64_t before = find_place<false>(ids, tile, count, block, i, id);
        if (i < count)
            link[i] = before >= 0 ? ~(next < 0 ? count : next) : next < 0 ? count : next;
    }
}

/* Those from `first` on are here, `rows` of them. */
template <typename Wide, typename T, typename Id>
static __device__ void add_rows(const Id *__restrict__ ids, const int64_t *__restrict__ link, const T *__restrict__ dy,
                                T *__restrict__ dtable, int64_t count, int64_t rows, int64_t width,
                                int64_t first)
{
    typedef gy_element<Wide> e;
    GY_FOR_EACH_ROW (i, count) {
        const int64_t row = (int64_t)ids[i] - first;
        if (link[i] < 0 || row < 0 || row >= rows)
            continue;
        for (int64_t c = threadIdx.x; c < width; c += blockDim.x) {
            double sum = 0;
            for (int64_t at = i; at < count; at = link[at] < 0 ? ~link[at] : link[at])
                sum += (double)e::load(dy[at * width + c]);
            T *to = &dtable[row * width + c];
            *to = e::template store<T>(e::load(*to) + (Wide)sum);
        }
    }
}

#define KERNEL_OF(suffix, type, wide, id)                                                                              \
    extern "C" __global__ void embedding_grad_places_##suffix(const id *ids, int64_t *link, int64_t count, int64_t of,  \
                                                              int32_t *status)                                         \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        find_places(ids, link, count, of, status);                                                                     \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(GY_LANES *GY_ROW_WARPS)                                               \
        embedding_grad_##suffix(const id *ids, const int64_t *link, const type *dy, type *dtable, int64_t count,       \
                                int64_t rows, int64_t width, int64_t first)                                            \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        add_rows<wide>(ids, link, dy, dtable, count, rows, width, first);                                              \
    }
#define KERNEL(suffix, type, wide)                                                                                     \
    KERNEL_OF(i32_##suffix, type, wide, int32_t)                                                                       \
    KERNEL_OF(i64_##suffix, type, wide, int64_t)
GY_CUDA_FLOAT_TYPES(KERNEL)
