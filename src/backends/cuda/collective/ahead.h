/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Ops ahead, on its own GPU, of each lane of a collective whose lanes begin apart and meet by counters. A kernel
 * that waits for its peers must not hold back what these peers wait for. So lane r waits for every op of its GPU that
 * the collective comes after on any way: by rows of the sync table, in a stream, and behind collectives that came
 * before. Then all that is left to wait for is work of other GPUs, which needs nothing of this GPU any more.
 */
#ifndef GY_CUDA_COLLECTIVE_AHEAD_H
#define GY_CUDA_COLLECTIVE_AHEAD_H

#include "backends/cuda/stream/stream.h"

/* Lane `lane` of an op waits for the op `from`, beside the rows of the sync table. */
typedef struct gy_ahead_row {
    uint32_t from, lane;
} gy_ahead_row;

/* Rows of op i are first[i] to first[i + 1]. */
typedef struct gy_cuda_ahead {
    uint32_t *first;
    gy_ahead_row *row;
} gy_cuda_ahead;

/* Makes h->ahead; lanes have their streams. It stays NULL where no op asks for such a collective, and where there are
 * too many ops and lanes to look at. */
gantry_status gy_ahead_make(gy_cuda *h, gantry_error *err);

/* So many events has the op if others wait for it: one for each lane where its lanes may end by themselves, else one.
 */
uint32_t gy_ahead_events(const gy_cuda *h, uint32_t op);

/* The lane of the op on that GPU; 0: it has none there. A row of the sync table is for the lane on the GPU of the op
 * that is waited for, and who waits for an op whose lanes have met waits for the one on its own GPU. */
uint32_t gy_ahead_lane_on(const gy_cuda *h, uint32_t op, uint32_t device);

#endif
