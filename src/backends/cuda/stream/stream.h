/* SPDX-License-Identifier: Apache-2.0 */
/** Work that is given to streams: their order, copies, fills, host functions, and waiting until a stream is done. */
#ifndef GY_CUDA_STREAM_STREAM_H
#define GY_CUDA_STREAM_STREAM_H

#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/memory/memory.h"

/* ---- submission.c ---- */

/* The submission of one start, or of one op of it. */
typedef struct gy_submit {
    gy_cuda *h;
    uint64_t start;
    uint32_t turn;
    bool capture,
        after_caller; /* after_caller: lanes begin after the end stream, which follows a stream of the caller */
    uint32_t op;
    uint32_t segment;    /* of the start, beside resident kernels (resident/cut.c) */
    uint32_t passage;    /* the next one (resident/detour.c) */
    bool untied;         /* beside these, ops that are tied begin and end as others do */
    gy_queue first_lane; /* the stream of the op's first lane */
    bool behind_ours;    /* in a capture: the node ahead of the op in its lane is a kernel of the library */
    gy_callbacks *callbacks;
    struct gy_submitter *submitter; /* the thread that submits for this GPU; NULL: one thread submits all ops */
    gantry_error *err;
} gy_submit;

/* Fails as gy_cuda_fail does, and names the op that is submitted. */
gantry_status gy_submit_check(gy_submit *x, CUresult code, gy_queue queue, const char *what);
/* The run was cancelled before this op: what comes behind "start 3 ended ". */
gantry_status gy_cuda_op_cut(const gy_cuda *h, uint32_t op, gantry_error *err);
gantry_status gy_submit_record(gy_submit *x, gy_queue queue, CUevent event);
/* Both are on one GPU, or no graphs of GPUs are captured (stream/gates.h). */
gantry_status gy_submit_await(gy_submit *x, gy_queue queue, CUevent event);
/* Records a scratch event of the queue's device. Others that come after it must have been waited for by then. */
gantry_status gy_submit_record_scratch(gy_submit *x, gy_queue queue, CUevent *event);
/* All that follows on `to` comes after all that is on `from` by now. */
gantry_status gy_submit_order(gy_submit *x, gy_queue from, gy_queue to);
/* The i-th lane of the op. */
gy_queue gy_submit_lane(const gy_submit *x, uint32_t i);
/* Finds the stream for work of the op that this GPU has to do: a lane of the op there, or the GPU's auxiliary stream.
 */
gantry_status gy_submit_on(gy_submit *x, uint32_t device, gy_queue *queue);
/* The first lane waits for all work of the op that other streams were given. */
gantry_status gy_submit_join(gy_submit *x);
/* Queues a host function, which does what the callback says. */
gantry_status gy_submit_callback(gy_submit *x, gy_queue queue, gy_callback callback);

/* ---- callbacks.c ---- */

/* Does what a callback says, as a host function of a stream; does nothing after a failure in the run. */
void gy_callback_run(void *callback);

/* ---- caller.c: streams of the caller ---- */

/* The end stream comes after all that is on the caller's stream by now. *caller: that stream with its GPU. */
gantry_status gy_cuda_after_caller(gy_cuda *h, CUstream stream, gy_queue *caller, gantry_error *err);
/* All that comes on the caller's stream next comes after the event. */
gantry_status gy_cuda_before_caller(gy_cuda *h, gy_queue caller, CUevent end, gantry_error *err);

/* ---- copy.c ---- */

gantry_status gy_submit_copy(gy_submit *x, gy_location to, gy_location from, uint64_t bytes);
uint64_t gy_copy_stage(const gy_cuda *h, gy_location to, gy_location from,
                       uint64_t bytes); /* bytes of stage it needs */
/* True if the copy needs no stream of another GPU than this device's. */
bool gy_copy_alone(const gy_cuda *h, gy_location to, gy_location from, uint32_t device);

/* ---- fill.c ---- */

gantry_status gy_fill_prepare(gy_cuda *h, uint32_t op, gantry_error *err);
gantry_status gy_submit_fill(gy_submit *x);
/* The bytes of one element of use number `use` of the op, if all are alike. */
bool gy_fill_pattern(const gy_cuda *h, uint32_t op, uint32_t use, uint64_t *bits);
void gy_fill_free(gy_cuda *h, uint32_t op);
/* Elements of `size` bytes, all with these. */
CUresult gy_fill_set(const gy_driver *d, CUdeviceptr at, uint64_t bits, size_t size, uint64_t count, CUstream stream);

/* ---- fill_kernel.c ---- */

/* Rows [first, last) of a buffer, packed, in memory of a GPU. */
typedef struct gy_fill_target {
    const gy_buffer *buffer;
    const gy_init *what;
    int64_t first, last;
    gy_location to;
} gy_fill_target;

/* Opens the kernel of fills where an op or the contents of an instance want it. Ahead of gy_fill_prepare. */
gantry_status gy_fill_open(gy_cuda *h, gantry_error *err);
void gy_fill_close(gy_cuda *h);
/* The target of a use; `what` is NULL where the op of the use is no fill node. */
gy_fill_target gy_fill_target_of(const gy_cuda *h, const gy_use *use, const gy_init *what, uint32_t turn);
/* Does the kernel make that? Else it is a pattern, or the host does. */
bool gy_fill_by_kernel(const gy_cuda *h, const gy_fill_target *target);
/* Returns as the launcher does, which has the words for it. The context of the GPU is current. */
gantry_status gy_fill_launch(gy_cuda *h, const gy_fill_target *target, CUstream stream);
const char *gy_fill_why(const gy_cuda *h, const gy_fill_target *target);
/* Launches are written down instead, until the recorder is NULL again. */
void gy_fill_record(gy_cuda *h, const gy_fill_target *target, gy_cuda_recorder *to);

/* ---- contents.c: contents of instances, while no start is in flight ---- */

/* Copies the rows of an instance, packed, to it (`in`) or from it. */
gantry_status gy_cuda_contents_move(gy_cuda *h, uint32_t instance, char *rows, bool in, gantry_error *err);
/* Has the GPU make what the init of its buffer says, if it can: *made. */
gantry_status gy_cuda_contents_make(gy_cuda *h, uint32_t instance, bool *made, gantry_error *err);

/* ---- land.c: contents that come beside a start ---- */

/* Begins to bring the rows of an instance, packed, in page-locked memory: the start that is begun next has them. They
 * stay as they are until it has ended, or gy_land_forget or gy_land_settle was called. E_CAPACITY: no memory. */
gantry_status gy_land(gy_cuda *h, uint32_t instance, const void *rows, gantry_error *err);
/* While no start is in flight: copies into the instances, and has the end stream wait for these copies. *some: there
 * are some. */
gantry_status gy_land_bring(gy_cuda *h, bool *some, gantry_error *err);
/* The instance gets other contents. */
void gy_land_forget(gy_cuda *h, uint32_t instance);
void gy_land_settle(gy_cuda *h); /* waits until nothing is under way */
void gy_land_free(gy_cuda *h);

/* ---- graph.c ---- */

/* Frees the executable graphs of a turn: that of a start, if there is one, and those of ops by themselves. */
void gy_graph_free(gy_cuda *h, uint32_t turn);

/* ---- settle.c ---- */

/* One pause of a thread that polls; `polls` counts from 0. It spins first, then yields, then sleeps. */
void gy_cuda_rest(unsigned polls);
/* Nanoseconds after which a start that does not move is taken for hung. */
int64_t gy_cuda_patience(const gy_cuda *h);
/* Waits until everything queued so far on the queue is done. CUDA_ERROR_LAUNCH_TIMEOUT: it hangs. */
CUresult gy_cuda_settle(gy_cuda *h, gy_queue queue);
/* Calls `let_go` until everything queued so far on the queue is done, or for as long as a start may not move. */
void gy_cuda_quieten(gy_cuda *h, gy_queue queue, void (*let_go)(gy_cuda *h));
void gy_cuda_quieten_for(gy_cuda *h, gy_queue queue, void (*let_go)(gy_cuda *h), int64_t most_ns);
void gy_cuda_quieten_all(gy_cuda *h, void (*let_go)(gy_cuda *h)); /* of all streams that ops are given to */
/* Does so for all streams of the run, so that nothing runs that uses what is freed next, or sets `stuck`. */
void gy_cuda_settle_all(gy_cuda *h);

#endif
