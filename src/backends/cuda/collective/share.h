/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Collectives cut into shares: which GPU carries out what of an op. Found out once, when a run is opened; submitted by
 * collective.c and combine.c.
 */
#ifndef GY_CUDA_COLLECTIVE_SHARE_H
#define GY_CUDA_COLLECTIVE_SHARE_H

#include "backends/cuda/collective/collective.h"
#include "schedule/exchange/exchange.h"

/* LITTLE, for each other GPU: bytes that links carry in about the time that it takes to have it begin and to learn that
 * it has ended (3 us). What crosses the links of one GPU if it does all is less: it does all.
 * LEAST: bytes of a share.
 * ROUNDS: from so many bytes on, what goes from one GPU to three or more is sent on by those that got a share of it.
 * ENGINE: from so many bytes on a copy engine is worth what it takes to begin, ten times as much as a kernel; it is
 * faster by a tenth, and leaves the GPU free. */
#define GY_SHARE_LITTLE (UINT64_C(1) << 20)
#define GY_SHARE_LEAST  (UINT64_C(64) << 10)
#define GY_SHARE_ROUNDS (UINT64_C(1) << 20)
#define GY_SHARE_ENGINE (UINT64_C(32) << 20)

typedef enum gy_share_way {
    GY_SHARE_KERNEL, /* by a kernel of the device, which reaches all ends */
    GY_SHARE_COPY,   /* one source, one target: copied */
    GY_SHARE_HOST    /* combined by the host, then copied */
} gy_share_way;

/* Bytes of ends of an op: all targets get the sources combined. Shares of one round have nothing to do with each other;
 * a round begins when the one before it has ended. */
typedef struct gy_share {
    uint32_t source, sources, target, targets; /* ranges of gy_exchange.end */
    uint64_t offset, bytes;                    /* of each end */
    uint32_t device;                           /* that does it; HOST: GY_NONE */
    uint32_t
        distance; /* ranks from the source to the target: who sends to all begins with the next, not all with one */
    uint8_t way;
    uint32_t round;
} gy_share;

/* ---- join.c ---- */

/* Gives batches of collectives one exchange, which their first ops carry out. */
gantry_status gy_collectives_join(gy_cuda *h, gantry_error *err);
/* The pieces that the op carries out: of all of its batch. */
const gy_exchange *gy_collective_exchange(const gy_cuda *h, uint32_t op);

/* ---- share.c, collective.c ---- */

/* In the order of rounds, ways, devices. Peers and handles of h->combine are known. */
gantry_status gy_shares_make(gy_cuda *h, uint32_t op, gantry_error *err);
/* Where an end of a piece (index of gy_exchange.end) of a collective is, `offset` bytes on. */
gy_location gy_collective_end(const gy_cuda *h, uint32_t op, uint32_t turn, uint32_t end, uint64_t offset);

/* ---- combine.c ---- */

/* Submits one launch for as many of the shares, from the first on, as go into it: *done. */
gantry_status gy_combine_submit(gy_submit *x, const gy_share *share, uint32_t count, uint32_t *done);
/* Submits a launch that does nothing: work that comes after all that the first lane waits for may come after this
 * instead. */
gantry_status gy_combine_meet(gy_submit *x);
/* One launch in a lane of the op for all shares of its GPU, which are combined; it meets those of the other lanes. */
gantry_status gy_combine_lane(gy_submit *x, gy_queue lane, const gy_cuda_meeting *meeting);
/* One launch that meets those of the other lanes, and does nothing else. */
gantry_status gy_combine_nothing(gy_submit *x, gy_queue lane, const gy_cuda_meeting *meeting);
/* Launches the kernel of that name in the table; `what` the driver refused to do, otherwise. */
gantry_status gy_combine_launch(gy_submit *x, const char *name, const gantry_launch *launch, const char *what);

#endif
