/* SPDX-License-Identifier: Apache-2.0 */
/** Collective ops: by kernels and copies of the back end, or by NCCL. */
#ifndef GY_CUDA_COLLECTIVE_COLLECTIVE_H
#define GY_CUDA_COLLECTIVE_COLLECTIVE_H

#include "backends/cuda/stream/stream.h"

/* ---- collective.c ---- */

gantry_status gy_submit_collective(gy_submit *x);
uint64_t gy_collective_stage(const gy_cuda *h, uint32_t op); /* bytes of stage that the op needs */

/* ---- combine.c ---- */

/* Cuts collectives into shares, and opens the kernel that combines on each GPU that has one. */
gantry_status gy_combine_make(gy_cuda *h, gantry_error *err);
void gy_combine_free(gy_cuda *h);

/* ---- carry.c: copies between GPUs by kernels ---- */

/* Finds them; before gy_combine_make, which opens the kernel where they are. */
gantry_status gy_carry_make(gy_cuda *h, gantry_error *err);
/* The copy of an op that is made `by_kernel`, and those that it carries. */
gantry_status gy_carry_submit(gy_submit *x);

/* ---- nccl.c, nccl_order.c ---- */

/* Finds the ops that NCCL carries out. That it is not there, or cannot do an op, is no error: copies do it, and reports
 * say why. */
gantry_status gy_nccl_open(gy_cuda *h, gantry_error *err);
/* The same for what crosses, where there are several processes; whether NCCL is there is found out at the first start.
 */
gantry_status gy_nccl_open_ranks(gy_cuda *h, gantry_error *err);
void gy_nccl_connect(gy_cuda *h); /* begins to make communicators, in the background */
void gy_nccl_unlist(gy_cuda *h);  /* other runs of the process wait for this one no longer: before its events go */
void gy_nccl_free(gy_cuda *h);    /* when nothing runs and no graph is left */
const char *gy_nccl_replay(gy_cuda *h);
/* Around the submission of a start: communicators are there, and no other run of the process submits such work. `end`:
 * the event at its end; NULL: it failed. */
gantry_status gy_nccl_enter(gy_cuda *h, gantry_error *err);
void gy_nccl_leave(gy_cuda *h, CUevent end);
/* The op and the one before (`after`: behind) it in all its lanes are one pair, NCCL's both, of the same lanes. Each
 * lane goes from its part of the one to its part of the other: NCCL's kernels wait for their peers themselves. */
bool gy_nccl_tied(const gy_submit *x, bool after);
/* `queue` waits for the work on GPUs of this run that other runs have submitted to NCCL. */
gantry_status gy_nccl_await_others(gy_cuda *h, gy_queue queue, gantry_error *err);
/* E_DEVICE: NCCL has failed since; `op` is the first not known to have ended, GY_NONE: all have. The run is over then.
 */
gantry_status gy_nccl_watch(gy_cuda *h, uint32_t op, gantry_error *err);
/* NCCL may be waiting for another process, where the op is the first not known to have ended. */
bool gy_nccl_waits_for_ranks(const gy_cuda *h, uint32_t op);
gantry_status gy_nccl_submit_ranks(gy_submit *x); /* x->op, which NCCL carries out between processes */
/* Between processes a start that fails in the middle is the end of all: what has been submitted of it is let go. */
void gy_nccl_end_ranks(gy_cuda *h, const gantry_error *why);
/* If NCCL is used, the kernels of it that wait are let go, and the run is over. */
void gy_nccl_end(gy_cuda *h, const gantry_error *why);
/* Makes other communicators, if a capture spoilt them. */
gantry_status gy_nccl_renew(gy_cuda *h, gantry_error *err);

#endif
