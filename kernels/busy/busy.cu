/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/begin.cuh"
#include "kernels/element.cuh"

/* Until the time is over. Should the clock stand still, the cycles of the processor end it: none makes more than four
 * in a nanosecond. */
static __device__ void wait_for(int64_t ns)
{
#ifdef __CUDA_ARCH__
    int64_t from, now, cycles = clock64();
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(from));
    do
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    while (now - from < ns && clock64() - cycles < 4 * ns);
#else
    for (volatile int64_t i = 0; i < 1000 && i < ns; i = i + 1)
        ;
#endif
}

/* One thread of the first block waits; others do their part at once, since more blocks than fit at a time would take
 * the time as often. */
template <typename Wide, typename T>
static __device__ void busy(int64_t ns, gy_multiplier number, const T *x, T *y, int64_t n)
{
    typedef gy_element<Wide> e;
    const Wide a = e::scalar(number);
    if (blockIdx.x == 0) {
        if (threadIdx.x == 0)
            wait_for(ns);
        __syncthreads();
    }
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (int64_t)gridDim.x * blockDim.x)
        y[i] = e::template store<T>(a * e::load(x[i]));
}

#define KERNEL(suffix, type, wide)                                                                                     \
    extern "C" __global__ void busy_##suffix(int64_t ns, gy_multiplier number, const type *x, type *y, int64_t n)      \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        busy<wide>(ns, number, x, y, n);                                                                               \
    }
GY_CUDA_TYPES(KERNEL)
