/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Collectives of NCCL on a test bed, on stream 0 of each of its first GPUs: f32, added where the kind adds, from one
 * half of each block to the other, rank 0 being the root. The calls are those that a run makes for whole, even parts.
 */
#ifndef GY_CUDA_MEASURE_HARNESS_NCCL_H
#define GY_CUDA_MEASURE_HARNESS_NCCL_H

#include "backends/cuda/measure/harness.h"
#include "backends/cuda/nvidia/nccl_clique.h"

typedef struct gy_bed_nccl {
    gy_bed *bed;
    const gy_nccl_api *api;
    gy_nccl_comm *comm;
    uint32_t ranks;
} gy_bed_nccl;

/* Whether the first so many GPUs can be ranks: none of them twice, and all of one kind. */
bool gy_bed_nccl_can(const gy_bed *bed, uint32_t ranks);
/* E_DEVICE: NCCL refuses, or does not end it. Close on success. */
gantry_status gy_bed_nccl_open(gy_bed_nccl *n, gy_bed *bed, const gy_nccl_api *api, uint32_t ranks, gantry_error *err);
/* All that was queued has ended, and no chain is left. */
void gy_bed_nccl_close(gy_bed_nccl *n);
/* After a failure: ends what hangs. An error: the bed cannot be used any more. No chain is left. */
gantry_status gy_bed_nccl_abort(gy_bed_nccl *n, gantry_error *err);

/* One after another, K times: in a graph over all ranks, or, where that is refused, as calls on the streams. */
typedef struct gy_bed_chain {
    gy_bed_nccl *nccl;
    gantry_collective kind;
    uint64_t bytes; /* as in gy_collective_table, rounded by gy_bed_nccl_bytes */
    uint32_t calls;
    gy_bed_graph graph; /* not made: calls */
} gy_bed_chain;

/* `bytes`, or a little less, so that parts are even; 0: too few, or more than the bed has room for. */
uint64_t gy_bed_nccl_bytes(const gy_bed_nccl *n, gantry_collective kind, uint64_t bytes);
/* Captures it. On errors communicators may be of no more use. */
gantry_status gy_bed_chain_capture(gy_bed_chain *c, gantry_error *err);
void gy_bed_chain_free(gy_bed_chain *c); /* what runs of it is freed when it ends */
/* us from its begin to its end on the first GPU. */
gantry_status gy_bed_chain_time(const gy_bed_chain *c, double *us, gantry_error *err);

#endif
