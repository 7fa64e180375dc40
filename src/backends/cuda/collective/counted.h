/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Collectives of the algorithm "counters". Their shares are those of "two_shot", but no event orders the lanes of one:
 * each lane begins and ends by itself, and kernels of all GPUs meet by counters in their memories before and behind
 * what they combine (docs/design/collectives.md). Between two that follow each other in all their lanes (order.h) they
 * meet once. One that is not fit for it is carried out as "two_shot" is.
 *
 * counted.c   which ones, their counters, what happens when a start fails
 * combine.c   their launches
 * push.c      those whose GPUs send what they give: they meet once, and are never tied
 */
#ifndef GY_CUDA_COLLECTIVE_COUNTED_H
#define GY_CUDA_COLLECTIVE_COUNTED_H

#include "backends/cuda/collective/order.h"
#include "backends/cuda/collective/share.h"
#include "base/vec.h"

/* How many blocks the kernels of an op have, on each GPU. */
typedef struct gy_counted_op {
    uint32_t columns, parts;
    bool moves; /* of one that is pushed: nothing is combined */
} gy_counted_op;

typedef struct gy_counted_gpu {
    CUdeviceptr block; /* counters that others write, by device and number of a block; then how often they have met;
                          then slots that others write, by device (kernels/push) */
    uint64_t *seen;    /* page-locked: what the host fetches of counters, and of how often they have met */
    char *raised;      /* page-locked: what the host writes over counters to let go of who waits */
    gy_queue aside;    /* the host's copies while kernels run */
} gy_counted_gpu;

typedef struct gy_counted {
    gy_counted_op *op;                /* per op */
    gy_counted_gpu *gpu;              /* per device */
    uint32_t count;                   /* of counted ops */
    uint32_t once;                    /* of those, how many meet once */
    uint32_t slot_bytes, slot_blocks; /* the most that one of these needs; 0: there is none */
    char text[1200];                  /* what reports say */
} gy_counted;

/* Ahead of x->op and behind it, if NCCL carries it out: a kernel of one block in each lane meets those of the others.
 * When it has, all that the op comes after is done on all GPUs, or all of the op is. Where ops are tied, nothing is
 * submitted between them. */
gantry_status gy_counted_come(gy_submit *x);
gantry_status gy_counted_leave(gy_submit *x);
/* Where slots of GPU `to` that `from` writes begin. */
CUdeviceptr gy_counted_slots(const gy_cuda *h, uint32_t to, uint32_t from);

/* ---- push.c ---- */

typedef struct gy_far_bytes {
    uint32_t memory;
    uint8_t space;
    uint64_t first, last;
} gy_far_bytes;
typedef GY_VEC(gy_far_bytes) gy_far_list;

/* Finds which of the counted ops meet once, and opens their kernel. */
gantry_status gy_push_find(gy_cuda *h, gantry_error *err);
void gy_push_free(gy_cuda *h);
/* The launch in lane `me` of the op, which is pushed. */
gantry_status gy_push_lane(gy_submit *x, gy_queue lane, uint32_t me, const gy_cuda_meeting *meeting);

/* ---- counted.c ---- */

/* Submits x->op, which is counted. */
gantry_status gy_counted_submit(gy_submit *x);

#endif
