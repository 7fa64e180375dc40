/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stable sorting by one digit of 8 bits (radix.h) in three launches: each block counts the digits of its chunk; a warp
 * for each digit finds where those of each chunk start; each block goes along the tiles of its chunk, puts keys in the
 * order of their digit in shared memory, and writes what has the same digit to neighbouring places. The larger a tile,
 * the longer the pieces that are written: tiles are as large as shared memory and registers bear.
 *
 * Lanes of a warp that have the same digit find each other by a word of shared memory for each digit, where each sets
 * its bit, and one of them counts for all (as CUB's BLOCK_RADIX_RANK_MATCH does). Each warp has words and counts of its
 * own, so no result depends on which thread is first.
 */
#ifndef GY_KERNELS_RADIX_CUH
#define GY_KERNELS_RADIX_CUH

#include "kernels/scan.cuh"

enum {
    GY_RADIX_DIGITS = 256,
    GY_RADIX_THREADS = 256, /* one for each digit */
    GY_RADIX_WARPS = GY_RADIX_THREADS / 32,
    GY_RADIX_MOVERS = 512, /* threads of a block that counts or moves */
    GY_RADIX_MOVER_WARPS = GY_RADIX_MOVERS / 32,
    GY_RADIX_COUNTED = 16 /* keys that a thread has under way as it counts */
};

/* Keys of a tile that a thread moves; radix_launch.h has the same. */
template <typename K, typename V> struct gy_radix_shape {
    static const int ITEMS = sizeof(K) > 4 || sizeof(V) > 4 ? 9 : 16;
    static const int TILE = GY_RADIX_MOVERS * ITEMS;
    static const int TURN = 32 * ITEMS; /* neighbours of a tile that a warp has */
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

/* ---- counting ---- */

/* counts[digit * chunks + chunk]. Atomic additions of 1 in shared memory take no longer where all keys are the same. */
template <typename K>
static __device__ void gy_radix_count(const K *keys, uint32_t *counts, const gy_radix_pass &p)
{
    __shared__ uint32_t count[GY_RADIX_DIGITS];
    const int64_t begin = blockIdx.x * p.chunk, end = begin + p.chunk < p.n ? begin + p.chunk : p.n;
    if (threadIdx.x < GY_RADIX_DIGITS)
        count[threadIdx.x] = 0;
    __syncthreads();
    for (int64_t at = begin + threadIdx.x; at < end; at += GY_RADIX_COUNTED * GY_RADIX_MOVERS) {
        K key[GY_RADIX_COUNTED];
#pragma unroll
        for (int k = 0; k < GY_RADIX_COUNTED; k++)
            key[k] = at + k * GY_RADIX_MOVERS < end ? keys[at + k * GY_RADIX_MOVERS] : (K)0;
#pragma unroll
        for (int k = 0; k < GY_RADIX_COUNTED; k++)
            if (at + k * GY_RADIX_MOVERS < end)
                atomicAdd(&count[gy_radix_digit(key[k], p)], 1u);
    }
    __syncthreads();
    if (threadIdx.x < GY_RADIX_DIGITS)
        counts[(int64_t)threadIdx.x * gridDim.x + blockIdx.x] = count[threadIdx.x];
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

/* The sum of the values of all threads before this one, among those that have a digit. */
static __device__ __forceinline__ uint32_t gy_radix_before(uint32_t value, uint32_t of_warp[GY_RADIX_WARPS])
{
    const uint32_t upto = gy_scan_lanes(value);
    if (threadIdx.x % 32 == 31 && threadIdx.x < GY_RADIX_THREADS)
        of_warp[threadIdx.x / 32] = upto;
    __syncthreads();
    uint32_t before = upto - value;
    for (int w = 0; w < GY_RADIX_WARPS && w < (int)threadIdx.x / 32; w++)
        before += of_warp[w];
    __syncthreads();
    return before;
}

/* Shared memory of a block. Lanes have met before keys are put there, and keys are gone before values. */
template <typename K, typename V> struct gy_radix_room {
    union {
        K key[gy_radix_shape<K, V>::TILE];
        V value[gy_radix_shape<K, V>::TILE];
        uint32_t alike[GY_RADIX_MOVER_WARPS][GY_RADIX_DIGITS]; /* lanes that have the digit */
    };
    uint16_t count[GY_RADIX_MOVER_WARPS][GY_RADIX_DIGITS];
    uint32_t go[GY_RADIX_DIGITS]; /* added to a place in the tile: where the key goes */
    uint32_t of_warp[GY_RADIX_WARPS];
};

/* Counts a row for the warp; returns how many keys of its turn with the same digit come before this one. `alike` is all
 * 0 before and after. */
static __device__ __forceinline__ unsigned gy_radix_rank(uint32_t *alike, uint16_t *count, unsigned digit)
{
    const unsigned lane = threadIdx.x % 32;
    atomicOr(&alike[digit], 1u << lane);
    __syncwarp();
    const unsigned all = alike[digit], counted = count[digit], before = __popc(all & ((1u << lane) - 1));
    __syncwarp();
    if (before == 0) {
        alike[digit] = 0;
        count[digit] = (uint16_t)(counted + __popc(all));
    }
    __syncwarp();
    return counted + before;
}

/* Keys of a tile come in turns of a warp, rows of 32 neighbours. A row that ends behind the last key has what counts as
 * the last digit there; rows behind the last key are nothing. `left` keys are left from the lane's first on; `place` is
 * the rank among keys of the warp that have the digit. */
template <typename K, typename V, int ITEMS>
static __device__ __forceinline__ void gy_radix_rank_rows(gy_radix_room<K, V> &room, const K (&key)[ITEMS],
                                                          int left, const gy_radix_pass &p,
                                                          unsigned (&digit)[ITEMS], unsigned (&place)[ITEMS])
{
    const int warp = threadIdx.x / 32, row_left = left + threadIdx.x % 32;
    for (int w = threadIdx.x / GY_RADIX_DIGITS; w < GY_RADIX_MOVER_WARPS; w += GY_RADIX_MOVERS / GY_RADIX_DIGITS) {
        room.count[w][threadIdx.x % GY_RADIX_DIGITS] = 0;
        room.alike[w][threadIdx.x % GY_RADIX_DIGITS] = 0;
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        digit[k] = 32 * k < left ? gy_radix_digit(key[k], p) : GY_RADIX_DIGITS - 1u;
        place[k] = 32 * k < row_left ? gy_radix_rank(room.alike[warp], room.count[warp], digit[k]) : 0;
    }
    __syncthreads();
}

/* Places in the tile, in the order of digits, of ranks that each warp has found; `start` of a thread's digit goes on. */
template <typename K, typename V, int ITEMS>
static __device__ __forceinline__ void gy_radix_place(gy_radix_room<K, V> &room, const unsigned (&digit)[ITEMS],
                                                      unsigned (&place)[ITEMS], uint32_t &start)
{
    uint32_t sum = 0;
    if (threadIdx.x < GY_RADIX_DIGITS)
        for (int w = 0; w < GY_RADIX_MOVER_WARPS; w++) {
            const uint32_t own = room.count[w][threadIdx.x];
            room.count[w][threadIdx.x] = (uint16_t)sum;
            sum += own;
        }
    const uint32_t before = gy_radix_before(sum, room.of_warp);
    if (threadIdx.x < GY_RADIX_DIGITS) {
        room.go[threadIdx.x] = start - before;
        start += sum;
        for (int w = 0; w < GY_RADIX_MOVER_WARPS; w++)
            room.count[w][threadIdx.x] = (uint16_t)(room.count[w][threadIdx.x] + before);
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < ITEMS; k++)
        place[k] += room.count[threadIdx.x / 32][digit[k]];
}

/* Values follow their keys. */
template <typename K, typename V, int ITEMS>
static __device__ __forceinline__ void gy_radix_values(gy_radix_room<K, V> &room, const V *values, V *values_to,
                                                       int64_t first, int left, int in_tile,
                                                       const unsigned (&place)[ITEMS], const uint32_t (&to)[ITEMS])
{
    __syncthreads();
#pragma unroll
    for (int k = 0; k < ITEMS; k++)
        if (32 * k < left)
            room.value[place[k]] = values ? values[first + 32 * k] : (V)(first + 32 * k);
    __syncthreads();
#pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        const int at = threadIdx.x + k * GY_RADIX_MOVERS;
        if (at < in_tile)
            values_to[to[k]] = room.value[at];
    }
}

template <bool VALUES, typename K, typename V>
static __device__ __forceinline__ void gy_radix_tile(gy_radix_room<K, V> &room, const K *keys, K *keys_to,
                                                     const V *values, V *values_to, int64_t tile, int64_t end,
                                                     const gy_radix_pass &p, uint32_t &start)
{
    typedef gy_radix_shape<K, V> shape;
    K key[shape::ITEMS];
    unsigned digit[shape::ITEMS], place[shape::ITEMS];
    uint32_t to[shape::ITEMS];
    const int in_tile = end - tile < shape::TILE ? (int)(end - tile) : shape::TILE;
    const int own = threadIdx.x / 32 * shape::TURN + threadIdx.x % 32, left = in_tile - own;
    const int64_t first = tile + own;
#pragma unroll
    for (int k = 0; k < shape::ITEMS; k++)
        key[k] = 32 * k < left ? keys[first + 32 * k] : (K)0;
    gy_radix_rank_rows<K, V>(room, key, left, p, digit, place);
    gy_radix_place<K, V>(room, digit, place, start);
#pragma unroll
    for (int k = 0; k < shape::ITEMS; k++)
        if (32 * k < left)
            room.key[place[k]] = key[k];
    __syncthreads();
#pragma unroll
    for (int k = 0; k < shape::ITEMS; k++) {
        const int at = threadIdx.x + k * GY_RADIX_MOVERS;
        to[k] = 0;
        if (at < in_tile) {
            const K moved = room.key[at];
            to[k] = room.go[gy_radix_digit(moved, p)] + at;
            keys_to[to[k]] = moved;
        }
    }
    if (VALUES)
        gy_radix_values<K, V>(room, values, values_to, first, left, in_tile, place, to);
    __syncthreads();
}

template <bool VALUES, typename K, typename V>
static __device__ void gy_radix_move(const K *keys, K *keys_to, const V *values, V *values_to, const uint32_t *counts,
                                     const gy_radix_pass &p)
{
    __shared__ gy_radix_room<K, V> room;
    const int64_t begin = blockIdx.x * p.chunk, end = begin + p.chunk < p.n ? begin + p.chunk : p.n;
    const bool has_digit = threadIdx.x < GY_RADIX_DIGITS;
    const uint32_t total = has_digit ? counts[(int64_t)GY_RADIX_DIGITS * gridDim.x + threadIdx.x] : 0;
    uint32_t start = gy_radix_before(total, room.of_warp);
    start += has_digit ? counts[(int64_t)threadIdx.x * gridDim.x + blockIdx.x] : 0;
    for (int64_t tile = begin; tile < end; tile += gy_radix_shape<K, V>::TILE)
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
    extern "C" __global__ void __launch_bounds__(GY_RADIX_MOVERS)                                                      \
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
    extern "C" __global__ void __launch_bounds__(GY_RADIX_MOVERS, 2)                                                   \
        name##_##suffix(const key *keys, key *keys_to, const value *values, value *values_to, const uint32_t *counts,  \
                        gy_radix_pass p)                                                                               \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        gy_radix_move<with_values>(keys, keys_to, values, values_to, counts, p);                                       \
    }

#endif
