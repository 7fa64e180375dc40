/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names that mean something else for the functions that a worker calls: a worker carries out the blocks of a call one after
 * the other, so where a function reads which block it is, and of how many, it reads what the worker says. Included before the source
 * of the functions, and taken back behind it.
 */
#ifndef GY_KERNELS_RESIDENT_PLACES_CUH
#define GY_KERNELS_RESIDENT_PLACES_CUH

#include <stdint.h>

struct gy_place {
    uint32_t x, y, z;
};
__shared__ gy_place gy_block, gy_blocks, gy_threads; /* the block, how many there are, threads of each */
alignas(16) __shared__ unsigned char gy_shared_bytes[17408]; /* the most that one of them asks for */

/* The thread of a block of two dimensions. */
template <typename Index> static __device__ inline gy_place gy_thread_of(const Index &flat)
{
    return { flat.x % gy_threads.x, flat.x / gy_threads.x, 0 };
}

#endif
