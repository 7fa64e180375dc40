/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stable sorting by one digit of 8 bits (radix.h) in three launches: each block counts the digits of its chunk; a warp
 * for each digit finds where those of each chunk start; each block goes along the tiles of its chunk, puts keys in the
 * order of their digit in shared memory, and writes what has the same digit to neighbouring places.
 *
 * Lanes of a warp that have the same digit find each other by ballots, and the lowest of them counts for all: there are
 * no atomics, so nothing depends on how keys are distributed, nor on which thread is first.
 */
#ifndef GY_KERNELS_RADIX_CUH
#define GY_KERNELS_RADIX_CUH

#include "kernels/scan.cuh"

enum {
    GY_RADIX_DIGITS = 256,
    GY_RADIX_THREADS = 256,
    GY_RADIX_WARPS = GY_RADIX_THREADS / 32,
    GY_RADIX_ITEMS = 16,
    GY_RADIX_TILE = GY_RADIX_THREADS * GY_RADIX_ITEMS,
    GY_RADIX_TURN = 32 * GY_RADIX_ITEMS /* neighbours of a tile that a warp has */
};

/* As in radix.h. */
struct gy_radix_order {
    uint64_t infinity;
    int32_t is_signed, descending;
};

struct gy_radix_pass {
    gy_radix_order order;
    int64_t n, chunk; /* keys in all; keys of a block: whole tiles */
    int32_t shift;    /* of the digit */
};

/* The number by which a key is sorted; radix.c does the same. */
template <typename K> static __device__ __forceinline__ K gy_radix_number(K bits, const gy_radix_order &order)
{
    const K sign = (K)((K)1 << (8 * sizeof(K) - 1)), magnitude = (K)(bits & (K)(sign - 1));
    if (order.infinity)
        bits = magnitude > (K)order.infinity ? (K)~(K)0 : magnitude == 0 ? sign : (K)(bits & sign ? ~bits : bits | sign);
    else if (order.is_signed)
        bits = (K)(bits ^ sign);
    return order.descending ? (K)~bits : bits;
}

template <typename K> static __device__ __forceinline__ unsigned gy_radix_digit(K key, const gy_radix_pass &p)
{
    return (unsigned)(gy_radix_number(key, p.order) >> p.shift) & 255u;
}

/* Lanes whose digit is the same. */
static __device__ __forceinline__ unsigned gy_radix_alike(unsigned digit)
{
    unsigned alike = ~0u;
#pragma unroll
    for (int bit = 0; bit < 8; bit++) {
        const unsigned set = __ballot_sync(~0u, digit >> bit & 1);
        alike &= digit >> bit & 1 ? set : ~set;
    }
    return alike;
}

/* Keys of a tile come in turns of a warp, rows of 32 neighbours. A row that ends behind the last key has what counts as the
 * last digit there; rows behind the last key are nothing. */
template <typename K>
static __device__ __forceinline__ void gy_radix_load(const K *keys, int64_t tile, const gy_radix_pass &p, int64_t end,
                                                     K key[GY_RADIX_ITEMS], unsigned digit[GY_RADIX_ITEMS])
{
    const int64_t first = tile + threadIdx.x / 32 * GY_RADIX_TURN + threadIdx.x % 32;
#pragma unroll
    for (int k = 0; k < GY_RADIX_ITEMS; k++)
        key[k] = first + 32 * k < end ? keys[first + 32 * k] : (K)0;
#pragma unroll
    for (int k = 0; k < GY_RADIX_ITEMS; k++)
        digit[k] = first + 32 * k < end ? gy_radix_digit(key[k], p) : 255u;
}

/* True if the k-th row of the warp has a key: the same for all its lanes. */
static __device__ __forceinline__ bool gy_radix_has_row(int64_t tile, int k, int64_t end)
{
    return tile + threadIdx.x / 32 * GY_RADIX_TURN + 32 * k < end;
}

/* Counts a row for the warp; returns how many keys of its turn with the same digit come before this one. */
static __device__ __forceinline__ unsigned gy_radix_rank(uint32_t *count, unsigned digit)
{
    const unsigned alike = gy_radix_alike(digit), before = __popc(alike & ((1u << threadIdx.x % 32) - 1));
    const unsigned counted = count[digit];
    __syncwarp();
    if (before == 0)
        count[digit] = counted + __popc(alike);
    __syncwarp();
    return counted + before;
}

/* ---- counting ---- */

/* counts[digit * chunks + chunk] */
template <typename K>
static __device__ void gy_radix_count(const K *keys, uint32_t *counts, const gy_radix_pass &p)
{
    __shared__ uint32_t count[GY_RADIX_WARPS][GY_RADIX_DIGITS];
    const int64_t begin = blockIdx.x * p.chunk, end = begin + p.chunk < p.n ? begin + p.chunk : p.n;
    for (int w = 0; w < GY_RADIX_WARPS; w++)
        count[w][threadIdx.x] = 0;
    __syncthreads();
    for (int64_t tile = begin; tile < end; tile += GY_RADIX_TILE) {
        K key[GY_RADIX_ITEMS];
        unsigned digit[GY_RADIX_ITEMS];
        gy_radix_load(keys, tile, p, end, key, digit);
#pragma unroll
        for (int k = 0; k < GY_RADIX_ITEMS; k++)
            if (gy_radix_has_row(tile, k, end))
                gy_radix_rank(count[threadIdx.x / 32], digit[k]);
    }
    __syncthreads();
    uint32_t sum = threadIdx.x == 255 ? 0u - (uint32_t)((begin - end) & 31) : 0u; /* the last row was counted whole */
    for (int w = 0; w < GY_RADIX_WARPS; w++)
        sum += count[w][threadIdx.x];
    counts[(int64_t)threadIdx.x * gridDim.x + blockIdx.x] = sum;
}

/* A warp for each digit: where the digits of each chunk start among all of that digit, and behind the counts of all
 * digits how many there are of it. */
static __device__ void gy_radix_starts(uint32_t *counts, int64_t chunks)
{
    const int digit = blockIdx.x * GY_RADIX_WARPS + threadIdx.x / 32;
    uint32_t *of = counts + digit * chunks;
    const uint32_t total = gy_scan<uint32_t>(of, of, 0, chunks, 0u, 1, 0);
    if (threadIdx.x % 32 == 0)
        counts[GY_RADIX_DIGITS * chunks + digit] = total;
}

/* ---- moving ---- */

/* The sum of the values of all threads before this one. */
static __device__ __forceinline__ uint32_t gy_radix_before(uint32_t value, uint32_t of_warp[GY_RADIX_WARPS])
{
    const uint32_t upto = gy_scan_lanes(value);
    if (threadIdx.x % 32 == 31)
        of_warp[threadIdx.x / 32] = upto;
    __syncthreads();
    uint32_t before = upto - value;
    for (int w = 0; w < (int)threadIdx.x / 32; w++)
        before += of_warp[w];
    __syncthreads();
    return before;
}

/* Shared memory of a block: a tile of keys, or of values. */
template <typename K, typename V> struct gy_radix_room {
    union {
        K key[GY_RADIX_TILE];
        V value[GY_RADIX_TILE];
    };
    uint32_t count[GY_RADIX_WARPS][GY_RADIX_DIGITS];
    uint32_t go[GY_RADIX_DIGITS]; /* added to a place in the tile: where the key goes */
    uint32_t of_warp[GY_RADIX_WARPS];
};

/* Places in the tile, in the order of digits; `start` of a thread's digit goes on. */
template <typename K, typename V>
static __device__ __forceinline__ void gy_radix_place(gy_radix_room<K, V> &room, int64_t tile, int64_t end,
                                                      const unsigned digit[GY_RADIX_ITEMS],
                                                      unsigned place[GY_RADIX_ITEMS], uint32_t &start)
{
    const int warp = threadIdx.x / 32;
    for (int w = 0; w < GY_RADIX_WARPS; w++)
        room.count[w][threadIdx.x] = 0;
    __syncthreads();
#pragma unroll
    for (int k = 0; k < GY_RADIX_ITEMS; k++)
        place[k] = gy_radix_has_row(tile, k, end) ? gy_radix_rank(room.count[warp], digit[k]) : 0;
    __syncthreads();
    uint32_t sum = 0;
    for (int w = 0; w < GY_RADIX_WARPS; w++)
        sum += room.count[w][threadIdx.x];
    uint32_t before = gy_radix_before(sum, room.of_warp);
    room.go[threadIdx.x] = start - before;
    start += sum;
    for (int w = 0; w < GY_RADIX_WARPS; w++) {
        const uint32_t own = room.count[w][threadIdx.x];
        room.count[w][threadIdx.x] = before;
        before += own;
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < GY_RADIX_ITEMS; k++)
        place[k] += room.count[warp][digit[k]];
}

/* Values follow their keys. */
template <typename K, typename V>
static __device__ __forceinline__ void gy_radix_values(gy_radix_room<K, V> &room, const V *values, V *values_to,
                                                       int64_t tile, int64_t end, const unsigned place[GY_RADIX_ITEMS],
                                                       const uint32_t to[GY_RADIX_ITEMS])
{
    const int64_t first = tile + threadIdx.x / 32 * GY_RADIX_TURN + threadIdx.x % 32;
    __syncthreads();
#pragma unroll
    for (int k = 0; k < GY_RADIX_ITEMS; k++)
        if (first + 32 * k < end)
            room.value[place[k]] = values ? values[first + 32 * k] : (V)(first + 32 * k);
    __syncthreads();
#pragma unroll
    for (int k = 0; k < GY_RADIX_ITEMS; k++) {
        const int at = threadIdx.x + k * GY_RADIX_THREADS;
        if (at < end - tile)
            values_to[to[k]] = room.value[at];
    }
}

template <bool VALUES, typename K, typename V>
static __device__ __forceinline__ void gy_radix_tile(gy_radix_room<K, V> &room, const K *keys, K *keys_to,
                                                     const V *values, V *values_to, int64_t tile, int64_t end,
                                                     const gy_radix_pass &p, uint32_t &start)
{
    K key[GY_RADIX_ITEMS];
    unsigned digit[GY_RADIX_ITEMS], place[GY_RADIX_ITEMS];
    uint32_t to[GY_RADIX_ITEMS];
    gy_radix_load(keys, tile, p, end, key, digit);
    gy_radix_place(room, tile, end, digit, place, start);
    const int64_t first = tile + threadIdx.x / 32 * GY_RADIX_TURN + threadIdx.x % 32;
#pragma unroll
    for (int k = 0; k < GY_RADIX_ITEMS; k++)
        if (first + 32 * k < end)
            room.key[place[k]] = key[k];
    __syncthreads();
#pragma unroll
    for (int k = 0; k < GY_RADIX_ITEMS; k++) {
        const int at = threadIdx.x + k * GY_RADIX_THREADS;
        to[k] = 0;
        if (at < end - tile) {
            const K moved = room.key[at];
            to[k] = room.go[gy_radix_digit(moved, p)] + at;
            keys_to[to[k]] = moved;
        }
    }
    if (VALUES)
        gy_radix_values(room, values, values_to, tile, end, place, to);
    __syncthreads();
}

template <bool VALUES, typename K, typename V>
static __device__ void gy_radix_move(const K *keys, K *keys_to, const V *values, V *values_to, const uint32_t *counts,
                                     const gy_radix_pass &p)
{
    __shared__ gy_radix_room<K, V> room;
    const int64_t begin = blockIdx.x * p.chunk, end = begin + p.chunk < p.n ? begin + p.chunk : p.n;
    const uint32_t total = counts[(int64_t)GY_RADIX_DIGITS * gridDim.x + threadIdx.x];
    uint32_t start = gy_radix_before(total, room.of_warp) + counts[(int64_t)threadIdx.x * gridDim.x + blockIdx.x];
    for (int64_t tile = begin; tile < end; tile += GY_RADIX_TILE)
        gy_radix_tile<VALUES>(room, keys, keys_to, values, values_to, tile, end, p, start);
}

/* DO(suffix, type): a type for each size of keys. */
#define GY_RADIX_KEYS(DO)                                                                                              \
    DO(u8, uint8_t)                                                                                                    \
    DO(f16, uint16_t)                                                                                                  \
    DO(u32, uint32_t)                                                                                                  \
    DO(u64, uint64_t)

/* The launches but for the one that moves. */
#define GY_RADIX_KERNELS(name, suffix, key)                                                                            \
    extern "C" __global__ void __launch_bounds__(GY_RADIX_THREADS)                                                     \
        name##_count_##suffix(const key *keys, uint32_t *counts, gy_radix_pass p)                                      \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        gy_radix_count(keys, counts, p);                                                                               \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(GY_RADIX_THREADS)                                                     \
        name##_starts_##suffix(uint32_t *counts, int64_t chunks)                                                       \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        gy_radix_starts(counts, chunks);                                                                               \
    }
#define GY_RADIX_MOVE(name, suffix, key, with_values, value)                                                           \
    extern "C" __global__ void __launch_bounds__(GY_RADIX_THREADS)                                                     \
        name##_##suffix(const key *keys, key *keys_to, const value *values, value *values_to, const uint32_t *counts,  \
                        gy_radix_pass p)                                                                               \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        gy_radix_move<with_values>(keys, keys_to, values, values_to, counts, p);                                       \
    }

#endif
