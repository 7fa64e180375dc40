/* SPDX-License-Identifier: Apache-2.0 */
/**
 * A start as one graph for each GPU (docs/design/gpu-graphs.md). No edge leads from GPU to GPU: what an edge would say,
 * a *word* in the memory of the GPU that waits says. Words are 0 between starts. A node of the GPU whose work is waited
 * for sets one to 1, behind all of that work that a gate waits for, or is a small copy that sets it itself; the *gate*,
 * a node of the GPU that waits, waits until all of its words are 1, and sets them to 0. Each word has one such node and
 * is in one gate.
 *
 * A gate comes behind all nodes of its GPU that set words, and all gates of it, that stand before it in one order over
 * all GPUs. So, of all of them that have not ended, the first never waits for anything that is behind a gate.
 */
#ifndef GY_CUDA_STREAM_GATES_H
#define GY_CUDA_STREAM_GATES_H

#include "backends/cuda/stream/stream.h"

enum { GY_GATES_MOST = 1 << 16 }; /* words of a GPU */

typedef struct gy_gates gy_gates;

/* ---- at open ---- */

/* Decides whether starts are captured so: where the environment says it (GANTRY_CUDA_GRAPHS), or what gates cost is
 * known and less than edges do (schedule/gates), if they can be. Once it is known how ops are carried out, and memory
 * can be allocated. h->gates stays NULL where there is nothing to decide. */
gantry_status gy_gates_make(gy_cuda *h, gantry_error *err);
void gy_gates_free(gy_cuda *h);
bool gy_gates_on(const gy_cuda *h); /* starts that are captured are */
/* The driver has refused such graphs: captures make one for all GPUs from now on. */
void gy_gates_leave(gy_cuda *h, const gantry_error *why);
/* That word for a report, and what was decided, and why. */
const char *gy_gates_replay(gy_cuda *h, const char *replay);

/* ---- a capture ---- */

/* The stream in which a capture of that device's GPU begins and ends: the end stream, if there is one graph for all. */
gy_queue gy_gates_origin(const gy_cuda *h, uint32_t device);
/* True for one device of each GPU that has a graph of its own: that of the end stream alone, if one is for all. */
bool gy_gates_begins(const gy_cuda *h, uint32_t device);
/* Behind the beginning of all captures. */
gantry_status gy_gates_fork(gy_submit *x);
/* True if x captures graphs of their own for the GPUs of the two devices. */
bool gy_gates_between(const gy_submit *x, uint32_t from, uint32_t to);
/* All that follows on `to` comes after all that is on `from`, a queue of another GPU, by now. */
gantry_status gy_gates_order(gy_submit *x, gy_queue from, gy_queue to);
/* Where x captures such graphs, keeps what the op ends with, on its queue, if other GPUs wait for that. */
gantry_status gy_gates_end(gy_submit *x, uint32_t op, gy_queue queue);
/* False if nobody waits for the event of the op: all that do are on other GPUs. */
bool gy_gates_within(const gy_submit *x, uint32_t op);
/* True if the op comes after the op `from` by a row that leads between GPUs. */
bool gy_gates_crosses(const gy_cuda *h, uint32_t op, uint32_t from);
/* Waits for several ops in one gate of the GPU of `to`: each is wanted, then the gate is closed, then queues of that
 * GPU go on behind it. */
bool gy_gates_passed(const gy_cuda *h, uint32_t op,
                     uint32_t to);                     /* a gate there, or the one that is open, has the op */
bool gy_gates_captured(const gy_cuda *h, uint32_t op); /* a gate can take in the op: the capture is past its end */
bool gy_gates_full(const gy_cuda *h, uint32_t to);     /* the gate takes no more */
gantry_status gy_gates_want(gy_submit *x, uint32_t op, uint32_t to);
/* Ops of the GPU of `to` that may want something in a gate ahead of the op, up to *last, which is none. */
const uint32_t *gy_gates_waiters(const gy_cuda *h, uint32_t op, uint32_t to, const uint32_t **last);
/* The predicted end of all that the op waits for. */
gy_ticks gy_gates_awaited(const gy_cuda *h, uint32_t op);
gantry_status gy_gates_close(gy_submit *x, uint32_t to, gy_ticks end); /* end: it is predicted to open by then */
gantry_status gy_gates_pass(gy_submit *x, gy_queue queue, uint32_t op);
/* The queue has come behind the end of an op of its own GPU by an event. */
void gy_gates_follow(const gy_submit *x, gy_queue queue, uint32_t op);
/* Where x captures such graphs and x->op is a collective whose lanes meet: what comes next on the queue is its kernel
 * there, which waits for those of other GPUs. So it comes behind all gates of its GPU and all that has set words there
 * (meet); and once it is captured, all gates to come are behind it (met). */
gantry_status gy_gates_meet(gy_submit *x, gy_queue queue);
gantry_status gy_gates_met(gy_submit *x, gy_queue queue);
/* True if copies of these pairs, of the op and of those that it carries, set the words that other GPUs wait for by
 * themselves: few bytes, by one block. */
bool gy_gates_copies(const gy_submit *x, const gantry_arg *arg, int32_t args);
/* Launches them in the first lane of the op. */
gantry_status gy_gates_copy(gy_submit *x, const gantry_arg *arg, int32_t args);
/* At the end of a capture: gates wait for all words that are set. */
gantry_status gy_gates_check(gy_submit *x);

/* ---- a start ---- */

/* Launches the graphs of the turn: behind the end stream, which then comes behind all of them. `alone`: nothing is on
 * the end stream that has not ended. */
gantry_status gy_gates_launch(gy_cuda *h, uint32_t turn, bool alone, gantry_error *err);
/* Where starts are given to the GPUs so: lets go of whoever waits in one that was given to them in part, or does not
 * come to its end. */
void gy_gates_raise(gy_cuda *h);
void gy_gates_clear(gy_cuda *h); /* once streams are quiet: words are 0 again */
/* Writes which op waits for which, the first of those that wait at a gate, and its word: if that op is ahead of
 * `before`, another one that waits; GY_NONE: no other does. */
void gy_gates_tell_stuck(gy_cuda *h, uint32_t before, char *to, size_t size);

#endif
