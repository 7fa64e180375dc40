/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A block for each row. It finds the last number that belongs to the best, digit by digit from the highest: of those
 * that begin as that number does it counts the next digit. Then it takes all that are better, those that are equal in
 * the order of their places, and sorts them. Counts do not depend on which thread is first, and sorting settles the rest.
 */
#include "kernels/begin.cuh"
#include "kernels/radix.cuh"

enum { MOST = 1024, THREADS = GY_RADIX_THREADS };

template <typename K> struct room {
    uint32_t count[GY_RADIX_DIGITS], of_warp[GY_RADIX_WARPS];
    uint32_t digit, before, taken;
    K number[MOST];
    uint32_t at[MOST];
};

/* The k-th number; `want` is k, then how many of those that are equal to it are wanted. */
template <typename K>
static __device__ K find_last(room<K> &s, const K *__restrict__ x, uint32_t width, const gy_radix_order &order,
                              uint32_t &want)
{
    K last = 0, above = 0;
    for (int shift = 8 * (int)sizeof(K) - 8; shift >= 0; shift -= 8) {
        s.count[threadIdx.x] = 0;
        __syncthreads();
        for (uint32_t i = threadIdx.x; i < width; i += THREADS) {
            const K number = gy_radix_number(x[i], order);
            if (((number ^ last) & above) == 0)
                atomicAdd(&s.count[(unsigned)(number >> shift) & 255u], 1u);
        }
        __syncthreads();
        const uint32_t own = s.count[threadIdx.x], before = gy_radix_before(own, s.of_warp);
        if (before < want && want <= before + own) { /* one thread's digit */
            s.digit = threadIdx.x;
            s.before = before;
        }
        __syncthreads();
        last = (K)(last | (K)((K)s.digit << shift));
        above = (K)(above | (K)((K)255 << shift));
        want -= s.before;
    }
    return last;
}

template <typename K>
static __device__ void take_best(room<K> &s, const K *__restrict__ x, uint32_t width, const gy_radix_order &order,
                                 uint32_t k, uint32_t want, K last)
{
    uint32_t seen = 0; /* equal ones in what was gone along */
    if (threadIdx.x == 0)
        s.taken = 0;
    __syncthreads();
    for (uint32_t first = 0; first < width; first += THREADS) {
        const uint32_t i = first + threadIdx.x;
        const K number = i < width ? gy_radix_number(x[i], order) : (K)0;
        const bool equal = i < width && number == last;
        uint32_t to = i < width && number < last ? atomicAdd(&s.taken, 1u) : k;
        const uint32_t equals = __syncthreads_count(equal);
        if (equals && seen < want) {
            const uint32_t rank = seen + gy_radix_before(equal ? 1u : 0u, s.of_warp);
            to = equal && rank < want ? k - want + rank : to;
        }
        seen += equals;
        if (to < k) {
            s.number[to] = number;
            s.at[to] = i;
        }
    }
}

/* Bitonic (Batcher 1968), of a power of two; what is behind k comes last. */
template <typename K> static __device__ void sort_best(room<K> &s, uint32_t k)
{
    uint32_t count = 1;
    while (count < k)
        count *= 2;
    for (uint32_t i = k + threadIdx.x; i < count; i += THREADS) {
        s.number[i] = (K)~(K)0;
        s.at[i] = ~0u;
    }
    __syncthreads();
    for (uint32_t size = 2; size <= count; size *= 2)
        for (uint32_t by = size / 2; by > 0; by /= 2) {
            for (uint32_t t = threadIdx.x; t < count / 2; t += THREADS) {
                const uint32_t a = 2 * t - (t & (by - 1)), b = a + by;
                const K left = s.number[a], right = s.number[b];
                const uint32_t left_at = s.at[a], right_at = s.at[b];
                const bool falls = left != right ? left > right : left_at > right_at;
                if (falls == ((a & size) == 0)) {
                    s.number[a] = right;
                    s.number[b] = left;
                    s.at[a] = right_at;
                    s.at[b] = left_at;
                }
            }
            __syncthreads();
        }
}

template <typename K, typename Index>
static __device__ void top_k(const K *x, K *values, Index *indices, int64_t rows, uint32_t width, uint32_t k,
                             const gy_radix_order &order)
{
    __shared__ room<K> s;
    for (int64_t r = blockIdx.x; r < rows; r += gridDim.x) {
        const K *row = x + r * width;
        uint32_t want = k;
        const K last = find_last(s, row, width, order, want);
        take_best(s, row, width, order, k, want, last);
        sort_best(s, k);
        for (uint32_t i = threadIdx.x; i < k; i += THREADS) {
            values[r * k + i] = row[s.at[i]];
            indices[r * k + i] = (Index)s.at[i];
        }
        __syncthreads();
    }
}

#define KERNEL_OF(suffix, key, index)                                                                                  \
    extern "C" __global__ void __launch_bounds__(THREADS)                                                              \
        top_k_##suffix(const key *x, key *values, index *indices, int64_t rows, uint32_t width, uint32_t k,            \
                       gy_radix_order order)                                                                           \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        top_k(x, values, indices, rows, width, k, order);                                                              \
    }
#define KERNEL(suffix, key)                                                                                            \
    KERNEL_OF(i32_##suffix, key, int32_t)                                                                              \
    KERNEL_OF(i64_##suffix, key, int64_t)
GY_RADIX_KEYS(KERNEL)
