/* SPDX-License-Identifier: Apache-2.0 */
/** Starts: preparing ops, giving them to streams or capturing them as a graph, and waiting for them. */
#ifndef GY_CUDA_SUBMIT_SUBMIT_H
#define GY_CUDA_SUBMIT_SUBMIT_H

#include "backends/cuda/collective/collective.h"
#include "backends/cuda/kernels/kernels.h"

/* ---- ops.c: everything that is prepared at open ---- */

/* Begins to compile what opening ops would compile, as gy_user_kernels_begin; needs no context. */
struct gy_user_ahead *gy_cuda_compile_begin(gy_cuda *h);
gantry_status gy_cuda_ops_make(gy_cuda *h, gantry_error *err);
void gy_cuda_ops_free(gy_cuda *h);
/* The CUDA version of the op's kernel. NULL: its function is the user's CUDA code, or one of the program, or of the
 * CPU. */
const gy_cuda_kernel *gy_cuda_kernel_of(const gy_cuda *h, const gy_op *op, uint32_t device);
void gy_cuda_ops_stage(gy_cuda *h);                /* finds how much each lane has to stage */
void gy_cuda_ops_point(gy_cuda *h, uint32_t turn); /* sets the addresses that launches of the turn are given */
void gy_cuda_ops_scalars(gy_cuda *h);              /* takes dynamic scalars from the job */
/* Iteration 0 of a task means `first` from now on. *changed: captured launches have stale arguments. */
gantry_status gy_cuda_ops_advance(gy_cuda *h, int64_t first, bool *changed, gantry_error *err);
/* Launches of GPUs have other arguments in each start of a phase. */
bool gy_cuda_ops_vary(const gy_cuda *h);
/* The error of an op whose function returned `status`, or whose status word is `word`. */
gantry_status gy_cuda_op_fail(const gy_cuda *h, uint32_t op, gantry_status status, int32_t word, gantry_error *err);

/* ---- batch.c: batches that one call carries out, where the kernel has one ---- */

gantry_status gy_cuda_batches_make(gy_cuda *h, gantry_error *err); /* once the memory of GPUs can be allocated */
void gy_cuda_batches_free(gy_cuda *h);
/* Gives the call the addresses that launches of the turn have. */
gantry_status gy_cuda_batches_point(gy_cuda *h, uint32_t turn, gantry_error *err);
gantry_status gy_cuda_batch_launch(gy_cuda *h, uint32_t op, uint32_t turn);

/* ---- when.c: ops of nodes with `when` on GPUs ---- */

/* Finds them, and opens what asks their flags. E_UNSUPPORTED: one of them cannot be left out here. */
gantry_status gy_when_make(gy_cuda *h, gantry_error *err);
void gy_when_free(gy_cuda *h);
gantry_status gy_when_submit(gy_submit *x); /* x->op; under capture too */

/* ---- cross.c: ops of several ranks, by messages (schedule/part.h) in the stream of the network ---- */

/* Finds what this rank has to do. E_UNSUPPORTED: it has no GPU. */
gantry_status gy_cross_make(gy_cuda *h, gantry_error *err);
void gy_cross_free(gy_cuda *h);
gantry_status gy_cross_op_make(gy_cuda *h, uint32_t op, gantry_error *err);
uint64_t gy_cross_stage(const gy_cuda *h, uint32_t op); /* bytes that the op has to stage */
gantry_status gy_cross_submit(gy_submit *x);
/* Contents of an instance, which rank 0 has (`in`) or gets. */
gantry_status gy_cross_contents(gy_cuda *h, uint32_t instance, char *rows, bool in, gantry_error *err);

/* ---- warm.c: what libraries load when they are first called ---- */

/* Makes calls of libraries that load code, by threads, once memory has addresses. NULL: none. */
struct gy_warm *gy_warm_begin(gy_cuda *h);
void gy_warm_end(struct gy_warm *warm, uint32_t devices); /* waits for them */

/* ---- submit.c: one start, as streams and events; under capture too ---- */

gantry_status gy_submit_start(gy_submit *x);
/* Will resident kernels do all of a start? Then no stream is made to wait for them: the host looks at the end of each,
 * which is sooner than if one GPU waited for another. */
bool gy_submit_ends_apart(const gy_cuda *h, bool after_caller);
gantry_status gy_submit_op(gy_submit *x); /* x->op */
/* E_CANCELED: x->op is not to be submitted. A graph is captured as a whole. */
gantry_status gy_submit_check_canceled(const gy_submit *x);

/* ---- gate.c: where each GPU has a graph of its own (stream/gates.h) ---- */

/* The queue comes after the op `from`, which is in the graph of another GPU. */
gantry_status gy_submit_gate(gy_submit *x, gy_queue queue, uint32_t from);

/* ---- start.c ---- */

/* Makes a start as streams or as a graph: behind what is on `stream` and before what comes on it, unless it is NULL. */
gantry_status gy_cuda_begin(gy_cuda *h, uint64_t start, const CUstream *stream, gantry_error *err);

/* ---- submitters.c: a thread for each GPU, where that pays and the schedule is fit for it; else h->submitters is NULL
 * ---- */

gantry_status gy_submitters_make(gy_cuda *h, gantry_error *err);
void gy_submitters_free(gy_cuda *h);
gantry_status gy_submitters_submit(gy_submit *x); /* all ops of a start */
/* Waits until the op's event has been recorded, by whichever thread. An error: it will not be, as that thread says. */
gantry_status gy_submitters_await(const gy_submit *x, uint32_t op);
void gy_submitters_signal(const gy_submit *x); /* x->op's event has been recorded */

/* ---- capture.c ---- */

/* Captures a start of the turn. Where that is refused starts go on as streams and `replay` says so. */
gantry_status gy_graph_make(gy_cuda *h, uint32_t turn, gantry_error *err);

/* ---- replay.c ---- */

void gy_replay_begin(gy_cuda *h);  /* at open, once ops are known */
void gy_replay_settle(gy_cuda *h); /* once it is known whether NCCL is used between processes */
gantry_status gy_replay_prepare(gy_cuda *h, uint32_t turn, gantry_error *err); /* before each start */
void gy_replay_record(gy_cuda *h, int64_t elapsed_ns);                         /* after each that succeeded */
void gy_replay_changed(gy_cuda *h); /* arguments of launches have changed: graphs are dropped */

/* ---- ways.c ---- */

gantry_status gy_ways_turn_to(gy_cuda *h, gy_lead way, bool for_good, gantry_error *err); /* of the back end's table */
int64_t gy_ways_turn_ns(const gy_cuda *h);

/* ---- wait.c ---- */

gantry_status gy_cuda_finish(gy_cuda *h, uint64_t start, int64_t *elapsed_ns, gantry_error *err);
void gy_cuda_tell(void *run, char *text, size_t size); /* a gy_tell: what the start that is waited for is at */
bool gy_cuda_idle(gy_cuda *h);
bool gy_cuda_by_gates(const gy_cuda *h); /* starts are graphs of GPUs now, whose gates wait for each other */
/* Lets go of kernels that wait for their peers, at gates and in collectives, and waits until streams are quiet. What
 * they wait for is as before a start again. */
void gy_cuda_release(gy_cuda *h);
/* Waits until all starts have ended, or nothing moves any more. */
void gy_cuda_drain(gy_cuda *h);

#endif
