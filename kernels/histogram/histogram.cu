/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A block counts in shared memory, with a counter for every value and lane: the lanes of a warp never meet, neither at
 * an address nor at a bank, however the values are distributed. At its end it adds its counts to those of the result,
 * whole numbers, so the order does not matter. Signed counts wrap as unsigned ones do.
 */
#include "kernels/begin.cuh"
#include "kernels/chunk.cuh"

enum { THREADS = 512, VALUES = 256, LANES = 32, BYTES = 16 };

template <typename Count> static __device__ void histogram(const uint8_t *__restrict__ x, Count *out, int64_t n)
{
    __shared__ uint32_t count[VALUES * LANES];
    uint32_t *mine = count + threadIdx.x % LANES;
    for (int i = threadIdx.x; i < VALUES * LANES; i += THREADS)
        count[i] = 0;
    __syncthreads();
    int64_t head = (int64_t)(-(uintptr_t)x % BYTES);
    head = head < n ? head : n;
    int64_t chunks = (n - head) / BYTES, body = head + chunks * BYTES;
    const uint32_t *words = (const uint32_t *)(const void *)(x + head);
#pragma unroll 2
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < chunks; i += (int64_t)gridDim.x * THREADS) {
        gy_chunk<uint32_t, BYTES / 4> word = gy_load_chunk<BYTES / 4>(words, i);
#pragma unroll
        for (int j = 0; j < BYTES; j++)
            atomicAdd(mine + (word.at[j / 4] >> j % 4 * 8 & 255) * LANES, 1u);
    }
    if (blockIdx.x == 0) { /* what is before the first whole chunk and behind the last */
        for (int64_t i = threadIdx.x; i < head; i += THREADS)
            atomicAdd(mine + x[i] * LANES, 1u);
        for (int64_t i = body + threadIdx.x; i < n; i += THREADS)
            atomicAdd(mine + x[i] * LANES, 1u);
    }
    __syncthreads();
    for (int value = threadIdx.x; value < VALUES; value += THREADS) {
        uint32_t sum = 0;
        for (int i = 0; i < LANES; i++) /* each thread begins at another bank */
            sum += count[value * LANES + (i + value) % LANES];
        if (sum)
            atomicAdd(out + value, (Count)sum);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) histogram_u32(const uint8_t *x, unsigned int *out, int64_t n)
{
    gy_begin();
    histogram(x, out, n);
}
extern "C" __global__ void __launch_bounds__(THREADS) histogram_u64(const uint8_t *x, unsigned long long *out, int64_t n)
{
    gy_begin();
    histogram(x, out, n);
}
