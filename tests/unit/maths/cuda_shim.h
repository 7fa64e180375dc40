/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA C of formulas as C++ of the CPU: what a thread is, and the functions that round as they say. Contraction is off
 * in the build, so plain operators do. */
#ifndef TEST_UNIT_MATHS_CUDA_SHIM_H
#define TEST_UNIT_MATHS_CUDA_SHIM_H

#include <cmath>
#include <cstring>
#include <pthread.h>
#include <thread>
#include <vector>

using std::ceil;
using std::floor;

#define __device__
#define __global__
#define __forceinline__ inline
#define __launch_bounds__(...)

struct place {
    unsigned x;
};
static thread_local place threadIdx;
static place blockIdx;

/* Blocks one after the other, the threads of each one after the other: for code whose threads do not wait for others.
 */
template <class Body> static void run_threads(unsigned blocks, unsigned threads, Body body)
{
    for (blockIdx.x = 0; blockIdx.x < blocks; blockIdx.x++)
        for (threadIdx.x = 0; threadIdx.x < threads; threadIdx.x++)
            body();
}

/* Blocks of whole warps one after the other, the threads of each at once. */
enum { WARP = 32, MOST_WARPS = 32 };
static pthread_barrier_t of_block, of_warp[MOST_WARPS];
#define __shared__      static
#define __syncthreads() pthread_barrier_wait(&of_block)

/* All threads of a warp come here. */
template <class T> static T __shfl_down_sync(unsigned, T mine, int by)
{
    static T room[MOST_WARPS * WARP];
    room[threadIdx.x] = mine;
    pthread_barrier_wait(&of_warp[threadIdx.x / WARP]);
    T theirs = threadIdx.x % WARP + by < WARP ? room[threadIdx.x + by] : mine;
    pthread_barrier_wait(&of_warp[threadIdx.x / WARP]);
    return theirs;
}

template <class Body> static void run_together(unsigned blocks, unsigned threads, Body body)
{
    std::vector<std::thread> all;
    pthread_barrier_init(&of_block, nullptr, threads);
    for (unsigned warp = 0; warp < threads / WARP; warp++)
        pthread_barrier_init(&of_warp[warp], nullptr, WARP);
    for (unsigned i = 0; i < threads; i++) {
        all.emplace_back([=] {
            for (unsigned block = 0; block < blocks; block++) {
                if (i == 0)
                    blockIdx.x = block;
                __syncthreads();
                threadIdx.x = i;
                body();
                __syncthreads();
            }
        });
    }
    for (std::thread &one : all)
        one.join();
    pthread_barrier_destroy(&of_block);
    for (unsigned warp = 0; warp < threads / WARP; warp++)
        pthread_barrier_destroy(&of_warp[warp]);
}

template <class To, class From> static inline To same_bits(From x)
{
    To to;
    static_assert(sizeof(To) == sizeof(From), "the same number of bits");
    std::memcpy(&to, &x, sizeof to);
    return to;
}
#define __umul64hi(x, y)        ((unsigned long long)((unsigned __int128)(x) * (y) >> 64))
#define __uint_as_float(x)      same_bits<float>((unsigned)(x))
#define __float_as_uint(x)      same_bits<unsigned>((float)(x))
#define __longlong_as_double(x) same_bits<double>((long long)(x))
#define __ll2float_rn(x)        ((float)(long long)(x))
#define __ll2double_rn(x)       ((double)(long long)(x))
#define __double2float_rn(x)    ((float)(double)(x))
#define __fadd_rn(x, y)         ((float)(x) + (float)(y))
#define __fsub_rn(x, y)         ((float)(x) - (float)(y))
#define __fmul_rn(x, y)         ((float)(x) * (float)(y))
#define __fdiv_rn(x, y)         ((float)(x) / (float)(y))
#define __fsqrt_rn(x)           std::sqrt((float)(x))
#define __dadd_rn(x, y)         ((double)(x) + (double)(y))
#define __dsub_rn(x, y)         ((double)(x) - (double)(y))
#define __dmul_rn(x, y)         ((double)(x) * (double)(y))
#define __ddiv_rn(x, y)         ((double)(x) / (double)(y))
#define __dsqrt_rn(x)           std::sqrt((double)(x))

#endif
