/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The CUDA back end. A lane is a stream, a kept dependency an event, a memory of a GPU one allocation at whose start
 * the schedule's offsets count. Ops are submitted by the calling thread in the order of their positions; nothing but
 * lanes and the sync table orders them on the devices (submission may add order, never remove it). Graph replay
 * captures the same submission.
 *
 * CPU devices of a schedule have lanes too: their streams belong to the first GPU, and their ops are host functions in
 * stream order.
 */
#ifndef GY_CUDA_STATE_STATE_H
#define GY_CUDA_STATE_STATE_H

#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/nvidia/driver.h"
#include "backends/cuda/stream/notes.h"
#include "backends/cuda/stream/ranges.h"
#include "run/backend.h"
#include <pthread.h>
#include <stdatomic.h>

enum { GY_CUDA_MARKS = 8 };
#define GY_CUDA_CHUNK    (UINT64_C(4) << 20)  /* bytes that are staged at once */
#define GY_CUDA_REGISTER (UINT64_C(64) << 10) /* arrays of users from this size on are page-locked, others mirrored */

/* A stream and the GPU that it belongs to (index of the machine's device). */
typedef struct gy_queue {
    CUstream stream;
    uint32_t device;
} gy_queue;

/* A device of the machine. All but `gpu` is for GPUs that are `used`: by an op, or for their memory. */
typedef struct gy_cuda_device {
    bool gpu, used;
    int ordinal;
    CUdevice id;
    CUcontext context;
    gy_queue side;                /* what a lane of another device needs done here */
    CUevent mark[GY_CUDA_MARKS];  /* recorded and waited for at once, in turn */
    uint32_t next_mark, launches; /* launches: ops with a status word */
    CUdeviceptr status;           /* per turn a word per op that launches here */
    int32_t *told;                /* in gy_cuda.told: the words of each start in flight */
    CUevent base;                 /* recorded when nothing ran: times of its events count from it */
    int64_t base_ns;
} gy_cuda_device;

typedef struct gy_cuda_memory {
    uint32_t device;  /* the GPU whose memory it is; GY_NONE: host memory */
    CUdeviceptr base; /* of a GPU */
    char *host;       /* of the host: pinned */
} gy_cuda_memory;

/* `stage`: pinned, used in stream order: chunks on their way, or what a collective combines. */
typedef struct gy_cuda_lane {
    gy_queue queue;
    CUdeviceptr scratch;
    uint64_t scratch_bytes, stage_bytes;
    char *stage;
    bool used;
} gy_cuda_lane;

/* Launch or host op: one for each turn, since addresses differ. */
typedef struct gy_cuda_call {
    gantry_kernel_fn function;
    gantry_launch launch;
    gantry_arg **arg; /* per use of the op */
    int32_t word;     /* CPU: its status word */
} gy_cuda_call;

/* A scalar of a launch that may change between starts. */
typedef struct gy_cuda_dynamic {
    gantry_arg *arg;
    uint32_t scalar;
} gy_cuda_dynamic;

/* Everything prepared for an op. */
typedef struct gy_cuda_op {
    gy_cuda_call *call;        /* per turn; NULL: no launch */
    struct gy_exchange *parts; /* of a collective */
    struct gy_share *share;    /* of it: who does what */
    uint32_t shares;           /* entries of it */
    char **image;              /* per use of a fill without a pattern: what to upload; else NULL */
    uint32_t wait, waits;      /* range of gy_cuda.wait */
    uint32_t event;            /* recorded after it: index of gy_cuda.event, in turn `ring` of them; GY_NONE */
    uint32_t word;             /* its status word on its device */
} gy_cuda_op;

typedef struct gy_cuda_wait {
    uint32_t from, distance;
} gy_cuda_wait;

/* Memory of a user that we page-locked, shared by what is bound to it. */
typedef struct gy_cuda_lock {
    const void *at;
    uint64_t bytes;
    uint32_t uses;
} gy_cuda_lock;

/* What a buffer is bound to in a turn: how copies reach it. */
typedef struct gy_cuda_array {
    const void *at;
    uint32_t bound;      /* of the job, when it was looked at */
    bool pinned, locked; /* locked: by us */
    char *mirror;        /* room for it that is page-locked; NULL: none */
} gy_cuda_array;

/* Devices see the mirror. */
static inline bool gy_array_mirrored(const gy_cuda_array *a)
{
    return a->mirror && !a->pinned;
}

/* The start that has a turn, or had it last. */
typedef struct gy_cuda_turn {
    uint64_t start; /* 0: none yet */
    CUevent end;
    int64_t begin_ns;
    gy_notes notes;
    uint64_t version;              /* of the bindings that `input` and `output` are for; 0: none */
    gy_cuda_array *input, *output; /* per buffer */
    CUgraphExec exec;              /* NULL: to be captured */
    gy_notes exec_notes;
    char *mirrors;  /* all of its arrays */
    bool by_stream; /* host functions bring and take what is mirrored */
} gy_cuda_turn;

typedef struct gy_cuda_failure {
    atomic_uint op; /* of the first host function that failed; GY_NONE */
    gantry_status status;
    int32_t word;
} gy_cuda_failure;

/* Replay "auto" (replay.c). Least times of starts that had `version` of the bindings or an older one. */
typedef struct gy_cuda_auto {
    bool on;
    uint64_t version;
    uint32_t calm, tried; /* starts as streams since something changed; starts as a graph */
    int64_t stream_ns, graph_ns;
} gy_cuda_auto;

typedef struct gy_cuda {
    const gy_job *job;
    gy_driver d;
    gy_arena arena;
    CUcontext before; /* the caller's, while a call of the back end runs */
    uint32_t current; /* device whose context is current; GY_NONE: not known */
    bool shared;      /* several threads submit just now: each makes its context current by itself */
    gy_cuda_device *device;
    gy_cuda_memory *memory;
    gy_cuda_lane *lane;
    gy_cuda_op *op;
    gy_cuda_wait *wait;
    CUevent *event;
    uint32_t events, ring; /* ring: of each event, more than the largest distance */
    uint32_t devices, memories, lanes, turns, first_gpu;
    gy_queue tail; /* where a start ends; origin of captures */
    char *staging; /* of the schedule */
    int32_t *told; /* pinned: status words of all devices, as they were fetched */
    char *chunk;   /* pinned: what states and constants pass through; NULL: none did */
    uint64_t chunk_bytes;
    bool borrowed;  /* slabs and staging are those of another run, which comes before or after this one */
    void **handle;  /* kernels x devices */
    uint8_t *peer;  /* devices x devices: access is enabled both ways */
    void **combine; /* per device: handle of what combines and stores for collectives there; NULL: there is none */
    GY_VEC(gy_cuda_lock) locks;
    GY_VEC(gy_cuda_dynamic) dynamic;

    bool graphs;        /* starts are replayed as graphs */
    uint8_t *aside;     /* per device: beside the first lane, it works for the op that is submitted */
    uint8_t *behind;    /* per device: its side stream comes after work that no lane waits for */
    const char *replay; /* for reports */
    gy_cuda_auto automatic;
    gy_ranges *ranges; /* NULL: no profiler */
    gy_cuda_turn *turn;
    uint64_t begun, ended; /* starts */
    gy_cuda_failure failed;
    bool dirty_words;         /* status words have to be cleared before the next start */
    bool stuck;               /* something runs that could not be waited for */
    gantry_error broken;      /* status not OK: the run is over, and this is why */
    pthread_mutex_t breaking; /* around setting it */
    bool aborted;             /* it is over since NCCL was ended; the driver goes on with what was queued */
    struct gy_nccl *nccl;     /* NULL: no op asks for it */
    struct gy_crew *crew;     /* NULL: whoever makes a start submits all of it */

    struct gy_cupti *cupti; /* NULL: no times are recorded */
    CUevent *clock;         /* record: two per turn and op */
    gy_op_time *time;       /* record: of the last start that ended */
} gy_cuda;

/* ---- device.c: contexts, streams, events ---- */
gantry_status gy_cuda_devices_make(gy_cuda *h, gantry_error *err);
void gy_cuda_devices_free(gy_cuda *h);
void gy_cuda_enter(gy_cuda *h); /* remembers the caller's context */
void gy_cuda_leave(gy_cuda *h); /* and makes it current again */
gantry_status gy_cuda_use(gy_cuda *h, uint32_t device, gantry_error *err);
void gy_cuda_forget(gy_cuda *h); /* another context may be current */
gantry_status gy_cuda_event_new(gy_cuda *h, CUevent *event, uint32_t device, bool timed, gantry_error *err);
/* A failed call of the driver: text "WHAT on device "gpu0"", device and native code; later errors are taken for this
 * one if no call can succeed any more. */
gantry_status gy_cuda_fail(gy_cuda *h, CUresult code, uint32_t device, const char *what, gantry_error *err);

/* Two devices of the machine may be one GPU. */
static inline bool gy_cuda_same_gpu(const gy_cuda *h, uint32_t a, uint32_t b)
{
    return h->device[a].context == h->device[b].context;
}
/* Each can read and write the memory of the other. */
static inline bool gy_cuda_reaches(const gy_cuda *h, uint32_t a, uint32_t b)
{
    return gy_cuda_same_gpu(h, a, b) || h->peer[a * h->devices + b];
}

/* ---- memory.c ---- */
void gy_cuda_memory_owners(gy_cuda *h); /* whose each memory is; owners of memory that is needed are used */
gantry_status gy_cuda_memory_make(gy_cuda *h, gantry_error *err);
void gy_cuda_memory_free(gy_cuda *h);
gantry_status gy_cuda_pinned(gy_cuda *h, void **to, uint64_t bytes, gantry_error *err);
/* E_CAPACITY: `bytes` for "what" are not there. */
gantry_status gy_cuda_allocate(gy_cuda *h, CUdeviceptr *to, uint32_t device, uint64_t bytes, const char *what,
                               gantry_error *err);
/* Peer access between all pairs of GPUs that ops copy between. */
gantry_status gy_cuda_peers_make(gy_cuda *h, gantry_error *err);

/* Bytes at a place: memory of a GPU (`device`), or of the host. */
typedef struct gy_place {
    uint32_t device; /* GY_NONE: host */
    bool pinned;     /* host memory that devices can copy from and to on their own */
    CUdeviceptr at;
    char *host;
} gy_place;
gy_place gy_cuda_place(const gy_cuda *h, const gy_use *use, uint32_t turn);
/* Of the op: when it began (end 0) and ended (1); recording only. */
static inline CUevent *gy_cuda_clock(const gy_cuda *h, uint32_t turn, uint32_t op, uint32_t end)
{
    return &h->clock[2 * (turn * h->job->schedule->ops.count + op) + end];
}
static inline gy_place gy_place_at(gy_place p, uint64_t offset)
{
    p.at += offset;
    p.host = p.host ? p.host + offset : NULL;
    return p;
}
static inline bool gy_place_same(gy_place a, gy_place b)
{
    return a.device == b.device && a.at == b.at && a.host == b.host;
}
/* The pointer that a kernel is given. */
static inline void *gy_place_pointer(gy_place p)
{
    return p.device == GY_NONE ? p.host : (void *)(uintptr_t)p.at;
}
/* bind.c: arrays of users in a turn that is not in flight: page-locked where that pays. */
gantry_status gy_cuda_bind(gy_cuda *h, uint32_t turn, gantry_error *err);
void gy_cuda_unbind(gy_cuda *h);

/* ---- mirror.c: small arrays of users ---- */
gantry_status gy_cuda_mirrors_make(gy_cuda *h, gantry_error *err);
void gy_cuda_mirrors_free(gy_cuda *h);
void gy_cuda_mirrors_bring(gy_cuda *h, uint32_t turn); /* inputs, before the start */
void gy_cuda_mirrors_take(gy_cuda *h, uint32_t turn);  /* results, after it */

/* ---- ops.c: what is prepared at open ---- */
gantry_status gy_cuda_ops_make(gy_cuda *h, gantry_error *err);
void gy_cuda_ops_free(gy_cuda *h);
void gy_cuda_ops_stage(gy_cuda *h);                /* how much each lane has to stage */
void gy_cuda_ops_point(gy_cuda *h, uint32_t turn); /* addresses that launches of the turn are given */
void gy_cuda_ops_scalars(gy_cuda *h);              /* dynamic ones, from the job */
/* An op failed: its function returned `status`, or its status word is `word`. */
gantry_status gy_cuda_op_fail(const gy_cuda *h, uint32_t op, gantry_status status, int32_t word, gantry_error *err);

/* ---- caller.c: memory and streams of the program ---- */
/* What CUDA knows of an address: CU_MEMORYTYPE_HOST (page-locked), CU_MEMORYTYPE_DEVICE; false: nothing. */
bool gy_cuda_memory_type(gy_cuda *h, const void *at, unsigned *type, int *ordinal);
/* Whether the bytes are in that memory. Its errors say what they are instead, not which buffer is meant. */
gantry_status gy_cuda_locate(gy_cuda *h, uint32_t memory, const void *at, uint64_t bytes, gantry_error *err);
/* The tail comes after what is on the stream by now; *caller: the stream with its GPU. */
gantry_status gy_cuda_follow(gy_cuda *h, CUstream stream, gy_queue *caller, gantry_error *err);
/* What comes on the stream next comes after the event. */
gantry_status gy_cuda_lead(gy_cuda *h, gy_queue caller, CUevent end, gantry_error *err);

/* ---- submit.c: one start, as streams and events; under capture too ---- */
typedef struct gy_crew gy_crew;
typedef struct gy_member gy_member;
typedef struct gy_submit {
    gy_cuda *h;
    uint64_t start;
    uint32_t turn;
    bool capture, behind; /* behind: lanes go on after the tail */
    uint32_t op;
    gy_queue lead; /* of the op's first lane */
    gy_notes *notes;
    gy_member *member; /* of the crew; NULL: one thread submits all */
    gantry_error *err;
} gy_submit;
gantry_status gy_submit_start(gy_submit *x);
gantry_status gy_submit_op(gy_submit *x); /* x->op */
/* All that follows on `to` comes after all that is on `from` by now. */
gantry_status gy_submit_order(gy_submit *x, gy_queue from, gy_queue to);
/* Where work for the op goes that has to be done by this GPU: a lane of the op there, or the GPU's side stream. */
gantry_status gy_submit_on(gy_submit *x, uint32_t device, gy_queue *queue);
/* What went elsewhere is awaited by the first lane. */
gantry_status gy_submit_join(gy_submit *x);
gantry_status gy_submit_check(gy_submit *x, CUresult code, gy_queue queue, const char *what);
gantry_status gy_submit_note(gy_submit *x, gy_queue queue, gy_note note);

/* crew.c: a thread for each GPU, where that pays and the schedule is fit for it; else there is no crew */
gantry_status gy_crew_make(gy_cuda *h, gantry_error *err);
void gy_crew_free(gy_cuda *h);
gantry_status gy_crew_submit(gy_submit *x); /* all ops of a start */
/* Until the op's event has been recorded, by whichever thread. Not OK: that will not be, as somebody else says. */
gantry_status gy_crew_await(const gy_submit *x, uint32_t op);
void gy_crew_tell(const gy_submit *x); /* x->op's event has been recorded */

/* copy.c, fill.c, collective.c */
gantry_status gy_submit_copy(gy_submit *x, gy_place to, gy_place from, uint64_t bytes);
uint64_t gy_copy_stage(const gy_cuda *h, gy_place to, gy_place from, uint64_t bytes); /* bytes of stage it needs */
/* Whether it needs no stream of another GPU than this device's. */
bool gy_copy_alone(const gy_cuda *h, gy_place to, gy_place from, uint32_t device);
gantry_status gy_fill_prepare(gy_cuda *h, uint32_t op, gantry_error *err);
gantry_status gy_submit_fill(gy_submit *x);
void gy_fill_free(gy_cuda *h, uint32_t op);
gantry_status gy_submit_collective(gy_submit *x);
uint64_t gy_collective_stage(const gy_cuda *h, uint32_t op);
/* An end of a piece (index of gy_exchange.end) of a collective, `offset` bytes on. */
gy_place gy_collective_end(const gy_cuda *h, uint32_t op, uint32_t turn, uint32_t end, uint64_t offset);

/* combine.c: who does what of collectives, and what kernels do of them */
struct gy_share;
gantry_status gy_combine_make(gy_cuda *h, gantry_error *err);
void gy_combine_free(gy_cuda *h);
/* One launch, for as many of the shares from the first on as go into it: *done. */
gantry_status gy_combine_submit(gy_submit *x, const struct gy_share *share, uint32_t count, uint32_t *done);
/* A launch that does nothing: what comes after all that the lead waits for may come after this instead. */
gantry_status gy_combine_meet(gy_submit *x);

/* ---- nccl.c, nccl_order.c ---- */
/* Which ops NCCL does. That it is not there, or cannot do an op, is no error: copies do it, and reports say why. */
gantry_status gy_nccl_open(gy_cuda *h, gantry_error *err);
void gy_nccl_make(gy_cuda *h); /* begins to make communicators, in the background */
void gy_nccl_part(gy_cuda *h); /* other runs of the process wait for this one no longer: before its events go */
void gy_nccl_free(gy_cuda *h); /* when nothing runs and no graph is left */
const char *gy_nccl_replay(gy_cuda *h);
/* Around the submission of a start: communicators are there, and no other run of the process submits such work. `end`:
 * the event at its end; NULL: it failed. */
gantry_status gy_nccl_enter(gy_cuda *h, gantry_error *err);
void gy_nccl_leave(gy_cuda *h, CUevent end);
bool gy_nccl_does(const gy_submit *x);
/* The op and the one before (`after`: behind) it in all its lanes are one pair, NCCL's both, of the same lanes. Each
 * lane goes from its part of the one to its part of the other: NCCL's kernels wait for their peers themselves. */
bool gy_nccl_tied(const gy_submit *x, bool after);
gantry_status gy_nccl_submit(gy_submit *x);
/* `queue` waits for what other runs of the process have submitted to NCCL on GPUs of this run. */
gantry_status gy_nccl_await_others(gy_cuda *h, gy_queue queue, gantry_error *err);
/* E_DEVICE: NCCL has failed since; `op` is the first not known to have ended, GY_NONE: all have. The run is over then.
 */
gantry_status gy_nccl_watch(gy_cuda *h, uint32_t op, gantry_error *err);
/* If NCCL is used: what waits in its kernels is let go, and the run is over. */
void gy_nccl_end(gy_cuda *h, const gantry_error *why);
/* Other communicators, if a capture spoilt them. */
gantry_status gy_nccl_renew(gy_cuda *h, gantry_error *err);

/* ---- cupti.c, cupti_times.c: times of ops by CUPTI; all do nothing where there is none, or nothing is recorded ----
 */
gantry_status gy_cupti_open(gy_cuda *h, gantry_error *err);
void gy_cupti_close(gy_cuda *h);
bool gy_cupti_on(const gy_cuda *h);      /* times are CUPTI's */
const char *gy_cupti_replay(gy_cuda *h); /* what reports say: `replay`, and what times are from */
void gy_cupti_begin(gy_cuda *h);         /* before a start is given to the driver */
/* Around what this thread gives to the driver for a start, or to a graph until that is instantiated. */
void gy_cupti_enter(gy_cuda *h, bool capture);
void gy_cupti_op(gy_cuda *h, uint32_t op); /* in between: it is for this op; GY_NONE: for none */
void gy_cupti_leave(gy_cuda *h);
void gy_cupti_ran(gy_cuda *h, uint32_t op, int64_t began_ns); /* a host function of the op has ended */
/* It may not hear of all work of this op, as other threads may give it: in streams it has events, too. */
bool gy_cupti_unsure(const gy_cuda *h, uint32_t op);
bool gy_cupti_leaves(const gy_cuda *h, uint32_t op); /* after `take`: the time of this op is that of its events */
/* False: it tells no times. Else times of all ops of the start that has ended. If CUPTI has told nothing at all, starts
 * go on as streams, and times are those of events. */
bool gy_cupti_take(gy_cuda *h, int64_t begin_ns);

/* ---- graph.c ---- */
/* Captures a start of the turn. Where that is refused starts go on as streams and `replay` says so. */
gantry_status gy_graph_make(gy_cuda *h, uint32_t turn, gantry_error *err);
void gy_graph_free(gy_cuda *h, uint32_t turn);

/* ---- replay.c ---- */
void gy_replay_begin(gy_cuda *h);                    /* at open, once ops are known */
void gy_replay_choose(gy_cuda *h);                   /* before each start */
void gy_replay_note(gy_cuda *h, int64_t elapsed_ns); /* after each that succeeded */
void gy_replay_changed(gy_cuda *h);                  /* what launches are given is something else now */

/* ---- wait.c ---- */
gantry_status gy_cuda_finish(gy_cuda *h, uint64_t start, int64_t *elapsed_ns, gantry_error *err);
bool gy_cuda_idle(gy_cuda *h);
/* Until all starts have ended, or nothing moves any more. */
void gy_cuda_drain(gy_cuda *h);
/* Until everything queued so far on the queue is done. CUDA_ERROR_LAUNCH_TIMEOUT: it hangs. */
CUresult gy_cuda_settle(gy_cuda *h, gy_queue queue);
/* No call of the driver can succeed any more, and nothing runs. */
static inline bool gy_cuda_lost(const gy_cuda *h)
{
    return h->broken.status && !h->aborted;
}

#endif
