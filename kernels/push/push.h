/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Collectives whose GPUs send what they give: each stores it into *slots* in memory of those that take it, and those
 * combine from there (docs/design/collectives.md). So nothing but slots is touched from another GPU, and GPUs meet
 * once. Two slots for each pair of GPUs, direction and block take turns, meeting by meeting.
 */
#ifndef GY_KERNELS_PUSH_PUSH_H
#define GY_KERNELS_PUSH_PUSH_H

#include "kernels/combine/meeting.h"

enum {
    GY_PUSH_LINE = 16,  /* bytes that are stored at once */
    GY_PUSH_PARTS = 64, /* of a launch */
    GY_PUSH_SELF = 0xFF /* in place of a peer */
};

/* Slot s, of 0 and 1, of block i is (2 * i + s) * slot_bytes further on. */
typedef struct gy_push_peer {
    gy_combine_peer counters;
    uint64_t to, from; /* slots in memory of the peer that this GPU writes; in its own that the peer writes */
} gy_push_peer;

/* Elements that the target gets from all sources, combined in their order. */
typedef struct gy_push_part {
    uint64_t source, target; /* of this GPU; 0: it gives nothing, or takes nothing */
    uint32_t n;
    uint16_t sources, takers;            /* takers: bits of peers */
    uint8_t order[GY_MEETING_PEERS + 1]; /* of sources: peers, or GY_PUSH_SELF */
} gy_push_part;

typedef struct gy_push {
    uint32_t slot_bytes, peers;
    gy_push_peer peer[GY_MEETING_PEERS];
} gy_push;

#endif
