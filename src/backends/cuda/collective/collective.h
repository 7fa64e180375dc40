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

/* ---- order.c: work that waits for its peers on other GPUs (order.h) ---- */

/* Around the submission of a start that `waits`, that is, with such work: no other run of the process submits any.
 * `end`: the event at its end; NULL: it failed. */
void gy_order_enter(gy_cuda *h, bool waits);
void gy_order_leave(gy_cuda *h, CUevent end);
void gy_order_unlist(gy_cuda *h); /* other runs of the process wait for this one no longer: before its events go */
/* `queue` waits for the work on GPUs of this run that other runs with such work have submitted. */
gantry_status gy_order_await_others(gy_cuda *h, gy_queue queue, gantry_error *err);
/* The event at the end of the kernel of each start on that device, which other runs wait for, too; NULL: there is none.
 */
void gy_order_kernel(gy_cuda *h, uint32_t device, CUevent end);
/* The op and the one before (`after`: behind) it in all its lanes are one pair, both such work of one sort, of the same
 * lanes. Each lane goes from its part of the one to its part of the other: their kernels wait for their peers
 * themselves.
 */
bool gy_order_tied(const gy_submit *x, bool after);

/* ---- counted.c: collectives that meet by counters (counted.h) ---- */

gantry_status gy_counted_find(gy_cuda *h, gantry_error *err); /* which ones may; ahead of shares */
gantry_status gy_counted_fit(gy_cuda *h, gantry_error *err);  /* which ones do; shares are known */
gantry_status gy_counted_make(gy_cuda *h, gantry_error *err); /* their counters */
void gy_counted_free(gy_cuda *h);
/* Appends the first op, by position, in which a GPU waits for another one, and for which: "; op 3, "sum": gpu0 waits
 * for gpu1". GPUs that wait in later ones wait for those that have not come to it. Returns the op; GY_NONE: none waits.
 */
uint32_t gy_counted_tell(gy_cuda *h, char *to, size_t size);
/* `replay` of the run with what there is to say of them. */
const char *gy_counted_replay(gy_cuda *h, const char *replay);
void gy_counted_raise(gy_cuda *h); /* lets go of kernels that wait, without results */
void gy_counted_clear(gy_cuda *h); /* once streams are quiet: counters are 0 again */

/* ---- nccl.c ---- */

/* Finds the ops that NCCL carries out. That it is not there, or cannot do an op, is no error: copies do it, and reports
 * say why. */
gantry_status gy_nccl_open(gy_cuda *h, gantry_error *err);
/* The same for what crosses, where there are several processes; whether NCCL is there is found out at the first start.
 */
gantry_status gy_nccl_open_ranks(gy_cuda *h, gantry_error *err);
void gy_nccl_connect(gy_cuda *h); /* begins to make communicators, in the background */
void gy_nccl_free(gy_cuda *h);    /* when nothing runs and no graph is left */
const char *gy_nccl_replay(gy_cuda *h);
/* Before each start: communicators are there. */
gantry_status gy_nccl_enter(gy_cuda *h, gantry_error *err);
bool gy_nccl_on(const gy_cuda *h); /* it carries out ops of the run */
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
