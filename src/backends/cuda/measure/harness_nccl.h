/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Collectives of NCCL on the GPUs of a harness, on stream 0 of each of its first GPUs: f32, added where the kind adds,
 * from one half of each block to the other, rank 0 being the root. The calls are those that a run makes for whole, even
 * parts.
 */
#ifndef GY_CUDA_MEASURE_HARNESS_NCCL_H
#define GY_CUDA_MEASURE_HARNESS_NCCL_H

#include "backends/cuda/measure/harness.h"
#include "backends/cuda/nvidia/nccl_clique.h"

typedef struct gy_harness_nccl {
    gy_harness *harness;
    const gy_nccl_api *api;
    gy_nccl_comm *comm;
    uint32_t ranks;
} gy_harness_nccl;

/* True if the first so many GPUs can be ranks: none of them twice, and all of one kind. */
bool gy_harness_nccl_can(const gy_harness *harness, uint32_t ranks);
/* E_DEVICE: NCCL refuses, or does not end it. Close on success. */
gantry_status gy_harness_nccl_open(gy_harness_nccl *n, gy_harness *harness, const gy_nccl_api *api, uint32_t ranks,
                                   gantry_error *err);
/* All that was queued has ended, and no chain is left. */
void gy_harness_nccl_close(gy_harness_nccl *n);
/* After a failure: ends what hangs. An error: the harness cannot be used any more. No chain is left. */
gantry_status gy_harness_nccl_abort(gy_harness_nccl *n, gantry_error *err);

/* One after another, K times: in a graph over all ranks, or, where that is refused, as calls on the streams. */
typedef struct gy_harness_chain {
    gy_harness_nccl *nccl;
    gantry_collective kind;
    uint64_t bytes; /* as in gy_collective_table, rounded by gy_harness_nccl_bytes */
    uint32_t calls;
    gy_harness_graph graph; /* not made: calls */
} gy_harness_chain;

/* `bytes`, or a little less, so that parts are even; 0: too few, or more than the harness has room for. */
uint64_t gy_harness_nccl_bytes(const gy_harness_nccl *n, gantry_collective kind, uint64_t bytes);
/* Captures it. On errors communicators may be of no more use. */
gantry_status gy_harness_chain_capture(gy_harness_chain *c, gantry_error *err);
void gy_harness_chain_free(gy_harness_chain *c); /* what runs of it is freed when it ends */
/* us from its begin to its end on the first GPU. */
gantry_status gy_harness_chain_time(const gy_harness_chain *c, double *us, gantry_error *err);

#endif
