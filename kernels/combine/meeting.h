/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Kernels of several GPUs that wait for each other when they begin, or end, block by block: block i of each of them for
 * block i of each other, by a counter for each pair of GPUs, direction and i (docs/design/collectives.md). The value of
 * a counter is how often its two blocks have met, so it is the epoch's share and the place in the start in one number.
 */
#ifndef GY_KERNELS_COMBINE_MEETING_H
#define GY_KERNELS_COMBINE_MEETING_H

#include <stdint.h>

enum {
    GY_MEETING_PEERS = 15,  /* of a GPU */
    GY_MEETING_BLOCKS = 128 /* of a kernel: links are busy with so many, and every GPU has room for them */
};

/* Addresses; those of block i are i * GY_MEETING_STEP and i words further on. */
#define GY_MEETING_STEP 128
typedef struct gy_combine_peer {
    uint64_t hear; /* counter in memory of this GPU that the peer writes */
    uint64_t tell; /* counter in memory of the peer that this GPU writes */
    uint64_t met;  /* in memory of this GPU, for itself: how often they have met */
} gy_combine_peer;

typedef struct gy_combine_meeting {
    uint32_t peers;        /* 0: nobody is waited for */
    uint16_t begins, ends; /* 1: they meet before all loads and stores, behind all of them */
    gy_combine_peer peer[GY_MEETING_PEERS];
} gy_combine_meeting;

#endif
