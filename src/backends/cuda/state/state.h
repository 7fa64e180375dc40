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

#include "backends/cuda/nvidia/driver.h"
#include "backends/cuda/state/callbacks.h"
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
    bool nccl;                 /* NCCL carries it out */
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
    struct gy_ranges *ranges; /* NULL: no profiler */
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

/* The two events of an op: it began (end 0) and it ended (end 1); there are none unless times are recorded. */
static inline CUevent *gy_cuda_clock(const gy_cuda *h, uint32_t turn, uint32_t op, uint32_t end)
{
    return &h->clock[2 * (turn * h->job->schedule->ops.count + op) + end];
}

/* No call of the driver can succeed any more, and nothing runs. */
static inline bool gy_cuda_lost(const gy_cuda *h)
{
    return h->broken.status && !h->aborted;
}

#endif
