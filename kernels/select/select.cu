/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three launches: each block counts what its chunk has; a warp finds where the rows of each chunk go, and how many there
 * are; each block goes along the tiles of its chunk, lists in shared memory which rows of a tile are taken, and copies
 * them to neighbouring places. What is left of y becomes zeros.
 */
#include "kernels/begin.cuh"
#include "kernels/scan.cuh"
#include "kernels/select/select.h"

enum { THREADS = 256, WARPS = THREADS / 32, TURN = GY_SELECT_TILE / WARPS /* neighbours of a tile that a warp has */ };

struct gy_select_sides {
    int64_t rows, chunk, chunks, y_rows, width; /* width: elements of a row */
    int32_t mask_bytes, count_bytes;
};

static __device__ __forceinline__ bool is_set(const void *mask, int bytes, int64_t i)
{
    return bytes == 1   ? ((const uint8_t *)mask)[i] != 0
           : bytes == 4 ? ((const uint32_t *)mask)[i] != 0
                        : ((const uint64_t *)mask)[i] != 0;
}

static __device__ void count_chunk(const gy_select_sides &s, const void *mask, uint64_t *start)
{
    __shared__ unsigned sums[WARPS];
    const int64_t begin = blockIdx.x * s.chunk, end = begin + s.chunk < s.rows ? begin + s.chunk : s.rows;
    unsigned count = 0;
    for (int64_t i = begin + threadIdx.x; i < end; i += THREADS)
        count += is_set(mask, s.mask_bytes, i);
    for (int by = 16; by > 0; by /= 2)
        count += __shfl_xor_sync(~0u, count, by);
    if (threadIdx.x % 32 == 0)
        sums[threadIdx.x / 32] = count;
    __syncthreads();
    if (threadIdx.x == 0) {
        uint64_t all = 0;
        for (int w = 0; w < WARPS; w++)
            all += sums[w];
        start[blockIdx.x] = all;
    }
}

static __device__ void find_starts(const gy_select_sides &s, uint64_t *start, void *count, int32_t *status)
{
    const uint64_t all = gy_scan<uint64_t>(start, start, 0, s.chunks, (uint64_t)0, 1, 1);
    if (threadIdx.x != 0)
        return;
    start[s.chunks] = all;
    if (s.count_bytes == 4)
        *(int32_t *)count = (int32_t)all;
    else
        *(int64_t *)count = (int64_t)all;
    if (all > (uint64_t)s.y_rows)
        *status = all < 0x7fffffffu ? (int32_t)all : 0x7fffffff;
}

/* Lists the rows of a tile that are taken, counted from its first; returns their number. */
static __device__ int list_tile(const gy_select_sides &s, const void *mask, int64_t tile, int64_t end, uint16_t *list)
{
    __shared__ unsigned sums[WARPS];
    const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    unsigned set[TURN / 32], own = 0, before = 0, all = 0;
#pragma unroll
    for (int k = 0; k < TURN / 32; k++) {
        const int64_t i = tile + warp * TURN + k * 32 + lane;
        set[k] = __ballot_sync(~0u, i < end && is_set(mask, s.mask_bytes, i));
        own += __popc(set[k]);
    }
    if (lane == 0)
        sums[warp] = own;
    __syncthreads();
    for (unsigned w = 0; w < WARPS; w++) {
        before += w < warp ? sums[w] : 0;
        all += sums[w];
    }
#pragma unroll
    for (int k = 0; k < TURN / 32; k++) {
        if (set[k] >> lane & 1)
            list[before + __popc(set[k] & ((1u << lane) - 1))] = (uint16_t)(warp * TURN + k * 32 + lane);
        before += __popc(set[k]);
    }
    __syncthreads();
    return (int)all;
}

template <typename T>
static __device__ void take_chunk(const gy_select_sides &s, const T *x, const void *mask, T *y, const uint64_t *start)
{
    __shared__ uint16_t list[GY_SELECT_TILE];
    const int64_t begin = blockIdx.x * s.chunk, end = begin + s.chunk < s.rows ? begin + s.chunk : s.rows;
    int64_t to = begin < s.rows ? (int64_t)start[blockIdx.x] : 0;
    for (int64_t tile = begin; tile < end; tile += GY_SELECT_TILE) {
        const int count = list_tile(s, mask, tile, end, list);
        const int64_t room = s.y_rows - to, rows = count < room ? count : room;
        for (int64_t e = threadIdx.x; e < rows * s.width; e += THREADS) {
            const int64_t row = s.width == 1 ? e : e / s.width;
            y[to * s.width + e] = x[(tile + list[row]) * s.width + (e - row * s.width)];
        }
        to += count;
        __syncthreads();
    }
    const int64_t all = (int64_t)start[s.chunks] * s.width;
    for (int64_t e = all + (int64_t)blockIdx.x * THREADS + threadIdx.x; e < s.y_rows * s.width;
         e += (int64_t)gridDim.x * THREADS)
        y[e] = (T)0;
}

#define KERNEL(suffix, type)                                                                                           \
    extern "C" __global__ void __launch_bounds__(THREADS)                                                              \
        select_counts_##suffix(gy_select_sides s, const void *mask, uint64_t *start)                                   \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        count_chunk(s, mask, start);                                                                                   \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(32)                                                                   \
        select_starts_##suffix(gy_select_sides s, uint64_t *start, void *count, int32_t *status)                       \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        find_starts(s, start, count, status);                                                                          \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(THREADS)                                                              \
        select_##suffix(gy_select_sides s, const type *x, const void *mask, type *y, const uint64_t *start)            \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        take_chunk(s, x, mask, y, start);                                                                              \
    }
KERNEL(u8, uint8_t)
KERNEL(f16, uint16_t)
KERNEL(u32, uint32_t)
KERNEL(u64, uint64_t)
