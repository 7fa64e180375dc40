/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names that mean something else for the functions that a worker calls: a worker carries out the blocks of a call one after
 * the other, so where a function reads which block it is, and of how many, it reads what the worker says. Included before the source
 * of the functions, and taken back behind it. Each warp has a place of its own, so that it goes on to the next block when others
 * are still at the one before.
 */
#ifndef GY_KERNELS_RESIDENT_PLACES_CUH
#define GY_KERNELS_RESIDENT_PLACES_CUH

#include <stdint.h>

struct gy_place {
    uint32_t x, y;
};
struct alignas(16) gy_warp {
    gy_place block, blocks; /* the block, and how many there are */
    gy_place threads;       /* of a block */
};
__shared__ gy_warp gy_warps[8];
alignas(16) __shared__ unsigned char gy_shared_bytes[17408]; /* the most that one of them asks for */

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

/* Threads of a block of one dimension: a constant, by which the compiler divides in no time. */
struct gy_row {
    static const uint32_t x = 256, y = 1;
};

#endif
