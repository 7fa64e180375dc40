/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Communicators of NCCL, one for each rank of some GPUs (a clique). They never block: a call that takes its time
 * returns "in progress", and the communicators are asked until they say otherwise, so that nothing hangs that cannot be
 * ended.
 */
#ifndef GY_CUDA_NVIDIA_NCCL_CLIQUE_H
#define GY_CUDA_NVIDIA_NCCL_CLIQUE_H

#include "backends/cuda/nvidia/nccl_api.h"

/* The communicators of some GPUs, in the order of ranks; NULL: not made, or another process has it. The owner of the
 * array owns them. */
typedef struct gy_nccl_clique {
    const gy_nccl_api *api;
    gy_nccl_comm *comm;
    uint32_t ranks;
} gy_nccl_clique;

/* Begins to make all, in one group; `use` makes the context of a rank's GPU current. A result of NCCL: they are there
 * when it is no longer "in progress". */
int gy_nccl_clique_begin(gy_nccl_clique c, gantry_status (*use)(void *user, uint32_t rank), void *user);
/* The same for those that are `mine` of a clique of several processes, which all have the id (ncclGetUniqueId) of one
 * of them; NULL: all. */
int gy_nccl_clique_join(gy_nccl_clique c, const gy_nccl_id *id, const bool *mine,
                        gantry_status (*use)(void *user, uint32_t rank), void *user);
/* The worst of its ranks: an error, else "in progress", else success. */
int gy_nccl_clique_state(gy_nccl_clique c);
/* The same once nothing is in progress, or the clock (gy_now_ns) says so. */
int gy_nccl_clique_settle(gy_nccl_clique c, int64_t until_ns);
/* Aborts all in one group, so that all ranks know before any is waited for. Graphs that have their work go first, or
 * NCCL would wait for these forever. */
void gy_nccl_clique_abort(gy_nccl_clique c);
/* The orderly end, of communicators that are well and have nothing to do. False: they are to be aborted. */
bool gy_nccl_clique_finalize(gy_nccl_clique c, int64_t until_ns);
void gy_nccl_clique_destroy(gy_nccl_clique c); /* finalized before */

#endif
