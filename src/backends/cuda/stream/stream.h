/* SPDX-License-Identifier: Apache-2.0 */
/** Work that is given to streams: their order, copies, fills, host functions, and waiting until a stream is done. */
#ifndef GY_CUDA_STREAM_STREAM_H
#define GY_CUDA_STREAM_STREAM_H

#include "backends/cuda/memory/memory.h"

/* ---- submission.c ---- */

/* The submission of one start, or of one op of it. */
typedef struct gy_submit {
    gy_cuda *h;
    uint64_t start;
    uint32_t turn;
    bool capture, behind; /* behind: lanes go on after the tail */
    uint32_t op;
    gy_queue lead; /* of the op's first lane */
    gy_notes *notes;
    struct gy_member *member; /* of the crew; NULL: one thread submits all */
    gantry_error *err;
} gy_submit;

/* Fails as gy_cuda_fail does, and names the op that is submitted. */
gantry_status gy_submit_check(gy_submit *x, CUresult code, gy_queue queue, const char *what);
gantry_status gy_submit_record(gy_submit *x, gy_queue queue, CUevent event);
gantry_status gy_submit_await(gy_submit *x, gy_queue queue, CUevent event);
/* Records an event of the queue's device that has been waited for before its turn comes again. */
gantry_status gy_submit_mark(gy_submit *x, gy_queue queue, CUevent *event);
/* All that follows on `to` comes after all that is on `from` by now. */
gantry_status gy_submit_order(gy_submit *x, gy_queue from, gy_queue to);
/* The i-th lane of the op. */
gy_queue gy_submit_lane(const gy_submit *x, uint32_t i);
/* Finds the stream for work of the op that has to be done by this GPU: a lane of the op there, or the GPU's side
 * stream. */
gantry_status gy_submit_on(gy_submit *x, uint32_t device, gy_queue *queue);
/* The first lane waits for all work of the op that other streams were given. */
gantry_status gy_submit_join(gy_submit *x);
/* Queues a host function: gy_note_run with a copy of the note. */
gantry_status gy_submit_note(gy_submit *x, gy_queue queue, gy_note note);

/* ---- notes.c ---- */

/* Does what a note says, as a host function of a stream; nothing after a failure in the run. */
void gy_note_run(void *note);

/* ---- caller.c: streams of the caller ---- */

/* The tail comes after what is on the stream by now; *caller: the stream with its GPU. */
gantry_status gy_cuda_follow(gy_cuda *h, CUstream stream, gy_queue *caller, gantry_error *err);
/* What comes on the stream next comes after the event. */
gantry_status gy_cuda_lead(gy_cuda *h, gy_queue caller, CUevent end, gantry_error *err);

/* ---- copy.c ---- */

gantry_status gy_submit_copy(gy_submit *x, gy_place to, gy_place from, uint64_t bytes);
uint64_t gy_copy_stage(const gy_cuda *h, gy_place to, gy_place from, uint64_t bytes); /* bytes of stage it needs */
/* True if the copy needs no stream of another GPU than this device's. */
bool gy_copy_alone(const gy_cuda *h, gy_place to, gy_place from, uint32_t device);

/* ---- fill.c ---- */

gantry_status gy_fill_prepare(gy_cuda *h, uint32_t op, gantry_error *err);
gantry_status gy_submit_fill(gy_submit *x);
void gy_fill_free(gy_cuda *h, uint32_t op);

/* ---- contents.c: contents of instances, while no start is in flight ---- */

/* Copies the rows of an instance, packed, to it (`in`) or from it. */
gantry_status gy_cuda_contents_move(gy_cuda *h, uint32_t instance, char *rows, bool in, gantry_error *err);

/* ---- graph.c ---- */

/* Frees the executable graph of a turn, if there is one. */
void gy_graph_free(gy_cuda *h, uint32_t turn);

/* ---- settle.c ---- */

/* One pause of a thread that polls; `turn` counts from 0. It spins first, then yields, then sleeps. */
void gy_cuda_rest(unsigned turn);
/* Nanoseconds after which a start that does not move is taken for hung. */
int64_t gy_cuda_patience(const gy_cuda *h);
/* Waits until everything queued so far on the queue is done. CUDA_ERROR_LAUNCH_TIMEOUT: it hangs. */
CUresult gy_cuda_settle(gy_cuda *h, gy_queue queue);
/* Does so for all streams of the run, so that nothing runs that uses what is freed next, or sets `stuck`. */
void gy_cuda_settle_all(gy_cuda *h);

#endif
