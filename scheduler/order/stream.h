/* SPDX-License-Identifier: Apache-2.0 */
/* State of the pass that gives ops their lanes (stream.c), and the part of it for workers (stream_workers.c). */
#ifndef GY_SCHEDULER_ORDER_STREAM_H
#define GY_SCHEDULER_ORDER_STREAM_H

#include "scheduler/plan/plan.h"

typedef struct gy_stream_lane {
    uint32_t device, index, final; /* final: its number in the schedule */
    uint8_t kind;
    bool urgent;
    uint32_t tail;    /* compute: position of its last op */
    gy_ticks free_at; /* compute: when that has ended */
    uint32_t needs;   /* where workers carry ops out: thousandths of the GPU's, for the widest of its ops */
} gy_stream_lane;

typedef struct gy_stream_queue {
    uint32_t lane;
    gy_ticks free_at;
} gy_stream_queue;

/* The lanes of one kind of one device; for copies a heap by the time at which they are free. */
typedef GY_VEC(gy_stream_queue) gy_stream_queues;

/* Workers of a GPU, in thousandths: a lane keeps those that it has for a whole start. */
typedef struct gy_stream_crew {
    uint32_t needed; /* by all lanes so far */
    uint32_t widest; /* lane so far: its needs */
    uint32_t most;   /* that any op needs, to come or not */
} gy_stream_crew;

typedef struct gy_stream {
    gy_plan *p;
    GY_VEC(gy_stream_lane) lanes;
    gy_stream_queues *of; /* device * 3 + kind; then, where starts overlap, those of routes */
    size_t queues;
    uint32_t *host_lane;      /* device * 2 + direction: the lane of long copies from (0) and to (1) host memory */
    GY_VEC(uint32_t) op_lane; /* by op, unnumbered lanes */
    gy_ticks *end;            /* by op: when it may have ended, ops of a device waiting for their lane only */
    bool *urgent;             /* by op: the end waits for it; NULL: ops of a device do not compute beside each other */
    bool *has_urgent;         /* by device: the first compute lane is kept for such ops */
    gy_stream_crew *crews;    /* by device, where workers carry ops out */
} gy_stream;

/* Does the op at that position wait for another one? */
static inline bool gy_stream_waits(const gy_plan *p, uint32_t position)
{
    return p->sequence.need_first[position] < p->sequence.need_first[position + 1];
}

/* The n-th lane of that kind of the device, which is made if need be. false: out of memory. */
bool gy_stream_nth_lane(gy_stream *st, uint32_t device, uint8_t kind, size_t n, uint32_t *lane_id);
/* Do ops of the device compute in several lanes? */
bool gy_stream_spreads(const gy_plan *p, uint32_t device);

/* Of the ops that compute on a device, what the widest needs: called for each op before any has a lane. */
void gy_stream_note_needs(gy_stream *st, uint32_t position);
/* A lane for an op that computes, or copies between GPUs, by workers, and when the op can begin there. false: out of
 * memory. */
bool gy_stream_choose_worker(gy_stream *st, const gy_draft_op *d, uint32_t position, uint32_t *lane_id,
                             gy_ticks *begin);

#endif
