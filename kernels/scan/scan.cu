/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three launches: the sums of all chunks, the starts of all chunks by one warp, and the elements. x is read twice; blocks
 * that wait for the sums of those before them would read it once, but could not add floats in one order.
 */
#include "kernels/begin.cuh"
#include "kernels/scan.cuh"

enum { THREADS = 256, WARPS = THREADS / 32 };

template <typename Wide, typename T>
static __device__ void sum_chunk(const T *x, void *partial, int64_t n, int64_t chunk, int aligned,
                                 int step)
{
    const int64_t c = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32, begin = c * chunk;
    if (begin >= n)
        return;
    const typename gy_scan_of<Wide>::in total =
        gy_scan_total<Wide>(x, begin, begin + chunk < n ? begin + chunk : n, aligned, step);
    if (threadIdx.x % 32 == 0)
        ((typename gy_scan_of<Wide>::in *)partial)[c] = total;
}

template <typename Sum> static __device__ void find_starts(Sum *partial, int64_t chunks)
{
    gy_scan<Sum>(partial, partial, 0, chunks, (Sum)0, 1, 1);
}

/* Without partial results there is one chunk. */
template <typename Wide, typename T>
static __device__ void scan_chunk(const T *x, T *y, const void *partial, int64_t n, int64_t chunk, int exclusive,
                                  int aligned, int step)
{
    typedef typename gy_scan_of<Wide>::in sum;
    const int64_t c = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32, begin = c * chunk;
    if (begin < n)
        gy_scan<Wide>(x, y, begin, begin + chunk < n ? begin + chunk : n, partial ? ((const sum *)partial)[c] : (sum)0,
                      exclusive, aligned, step);
}

#define KERNEL(suffix, type, wide)                                                                                     \
    extern "C" __global__ void __launch_bounds__(THREADS)                                                              \
        scan_sums_##suffix(const type *x, void *partial, int64_t n, int64_t chunk, int aligned, int step)              \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        sum_chunk<wide>(x, partial, n, chunk, aligned, step);                                                          \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(32) scan_starts_##suffix(void *partial, int64_t chunks)               \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        find_starts((gy_scan_of<wide>::in *)partial, chunks);                                                          \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(THREADS)                                                              \
        scan_##suffix(const type *x, type *y, const void *partial, int64_t n, int64_t chunk, int exclusive,            \
                      int aligned, int step)                                                                           \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        scan_chunk<wide>(x, y, partial, n, chunk, exclusive, aligned, step);                                           \
    }
GY_CUDA_TYPES(KERNEL)
