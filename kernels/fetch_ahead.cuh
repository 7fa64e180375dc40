/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that a kernel asks for ahead of gy_begin (begin.cuh). */
#ifndef GY_KERNELS_FETCH_AHEAD_CUH
#define GY_KERNELS_FETCH_AHEAD_CUH

/* Bytes that are wanted behind gy_begin are brought to the L2 cache ahead of it, while the kernel ahead is still at work.
 * Others may write them until then: the cache has what they write. */
static __device__ inline void gy_fetch_ahead(const void *at)
{
#if defined(__CUDA_ARCH__) && !defined(CUDA_EMULATOR_H)
    asm volatile("prefetch.global.L2 [%0];" ::"l"(at));
#else
    (void)at;
#endif
}

#endif
