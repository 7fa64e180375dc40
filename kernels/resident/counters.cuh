/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counters by which blocks wait for each other (docs/design/counters.md), of one GPU or of several: of resident kernels and of
 * collectives whose kernels meet (kernels/combine). One thread waits by an acquire, a barrier lets the others of its block see what
 * it saw; a barrier, then a release by one thread, tells others.
 */
#ifndef GY_KERNELS_RESIDENT_COUNTERS_CUH
#define GY_KERNELS_RESIDENT_COUNTERS_CUH

#include "kernels/resident/counters.h"

#include <stdint.h>

#ifdef CUDA_EMULATOR_H
static inline uint64_t acquire(const uint64_t *at) { return emulator_acquire(at); }
static inline void release(uint64_t *at, uint64_t value) { emulator_release(at, value); }
static inline uint64_t acquire_near(const uint64_t *at) { return emulator_acquire(at); }
static inline void release_near(uint64_t *at, uint64_t value) { emulator_release(at, value); }
static inline void pause(void) { emulator_pause(); }
#else
static __device__ inline uint64_t acquire(const uint64_t *at)
{
    uint64_t value;
    asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(at) : "memory");
    return value;
}
static __device__ inline void release(uint64_t *at, uint64_t value)
{
    asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(at), "l"(value) : "memory");
}
/* Among blocks of a GPU. */
static __device__ inline uint64_t acquire_near(const uint64_t *at)
{
    uint64_t value;
    asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(at) : "memory");
    return value;
}
static __device__ inline void release_near(uint64_t *at, uint64_t value)
{
    asm volatile("st.release.gpu.global.u64 [%0], %1;" ::"l"(at), "l"(value) : "memory");
}
static __device__ inline void pause(void) {}
#endif

/* False: the start has failed. `near`: who writes it works on the same GPU. */
static __device__ inline bool await(const uint64_t *counter, uint64_t value, bool near)
{
    uint64_t now;
    while ((now = near ? acquire_near(counter) : acquire(counter)) < value)
        pause();
    return now < GY_COUNTER_STOP;
}

#endif
