/* SPDX-License-Identifier: Apache-2.0 */
/* Philox4x32-10 (src/run/philox.h says whose) for kernels, on the host and on GPUs: the numbers of buffers that are
 * filled by a seed. */
#ifndef GY_KERNELS_PHILOX4_H
#define GY_KERNELS_PHILOX4_H

#include <stdint.h>

#ifdef __CUDACC__
#define GY_PHILOX_CODE static __device__ inline
#else
#define GY_PHILOX_CODE static inline
#endif

typedef struct gy_philox4 {
    uint32_t word[4];
} gy_philox4;

/* Four numbers: elements 4 * index to 4 * index + 3 of the stream of a seed. */
GY_PHILOX_CODE gy_philox4 gy_philox4_at(uint64_t seed, uint64_t index)
{
    uint32_t key0 = (uint32_t)seed, key1 = (uint32_t)(seed >> 32);
    uint32_t w0 = (uint32_t)index, w1 = (uint32_t)(index >> 32), w2 = 0, w3 = 0;
    for (int i = 0; i < 10; i++) {
        uint64_t a = UINT64_C(0xD2511F53) * w0, b = UINT64_C(0xCD9E8D57) * w2;
        w0 = (uint32_t)(b >> 32) ^ w1 ^ key0;
        w1 = (uint32_t)b;
        w2 = (uint32_t)(a >> 32) ^ w3 ^ key1;
        w3 = (uint32_t)a;
        key0 += UINT32_C(0x9E3779B9);
        key1 += UINT32_C(0xBB67AE85);
    }
    gy_philox4 block;
    block.word[0] = w0;
    block.word[1] = w1;
    block.word[2] = w2;
    block.word[3] = w3;
    return block;
}

#endif
