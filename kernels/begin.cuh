/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How every kernel begins, before it touches memory. In a CUDA graph a launch may come early: as soon as each block of
 * the kernel ahead of it has begun. Then it waits here until that kernel has ended and its stores are seen. That kernel
 * waited in the same way before it ended, so all that was ahead of it has ended, too.
 */
#ifndef GY_KERNELS_BEGIN_CUH
#define GY_KERNELS_BEGIN_CUH

static __device__ inline void gy_begin(void)
{
#ifdef CUDA_EMULATOR_H
    emulator_begin();
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

#endif
