/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names that mean something else for the functions that a worker calls: a worker carries out the blocks of a call one after
 * the other, so where a function reads which block it is, and of how many, it reads what the worker says. Included before the source
 * of the functions, and taken back behind it. Each warp has a place of its own, so that it goes on to the next block when others
 * are still at the one before. What they store by GY_STORE goes to other GPUs as well, where their packet sends.
 */
#ifndef GY_KERNELS_RESIDENT_PLACES_CUH
#define GY_KERNELS_RESIDENT_PLACES_CUH

#include "kernels/resident/resident.h"

#include <stdint.h>

enum { STAGES = 8, AHEAD = STAGES - 2 };
__shared__ gy_resident_packet staged[STAGES]; /* packets that have been fetched */

struct gy_place {
    uint32_t x, y;
};
struct alignas(16) gy_warp {
    gy_place block, blocks; /* the block, and how many there are */
    gy_place threads;       /* of a block */
    uint32_t sends, send;   /* of its packet; from which word of `staged` on */
};
__shared__ gy_warp gy_warps[8];
/* Shared memory that functions ask for by GY_SHARED. A worker calls one at a time. Where formulas are linked to them, all have one room, which the
 * launch gives. */
#ifdef GY_RESIDENT_OPEN
extern __shared__ __align__(16) unsigned char gy_room[];
static __device__ __forceinline__ void *gy_shared_bytes(void) { return gy_room + GY_RESIDENT_PLACES; }
#else
alignas(16) __shared__ unsigned char gy_kept_bytes[GY_RESIDENT_KEPT];
static __device__ __forceinline__ void *gy_shared_bytes(void) { return gy_kept_bytes; }
#endif

static __device__ inline gy_warp &gy_here(void)
{
    return gy_warps[threadIdx.x / 32];
}

/* The thread of a block of two dimensions, of which each divides 256. */
static __device__ inline gy_place gy_thread(void)
{
    const gy_place threads = gy_here().threads;
    return { threadIdx.x & (threads.x - 1), threadIdx.x * threads.y / 256 };
}

#define GY_STORE(at, value) gy_store(at, value)
template <typename T> static __device__ __forceinline__ void gy_store(T *at, const T &value)
{
    *at = value;
    const uint32_t sends = gy_here().sends;
    const gy_resident_send *send = (const gy_resident_send *)((const uint64_t *)staged + gy_here().send);
#pragma unroll 1
    for (uint32_t i = 0; i < sends; i++) {
        const uint64_t offset = (uint64_t)(uintptr_t)at - send[i].from;
        if (offset < send[i].bytes)
            *(T *)(uintptr_t)(send[i].to + offset) = value;
    }
}

/* Threads of a block of one dimension: a constant, by which the compiler divides in no time. */
struct gy_row {
    static const uint32_t x = 256, y = 1;
};

#endif
