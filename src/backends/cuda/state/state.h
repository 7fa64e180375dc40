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
#include "run/reduce.h"
#include "schedule/part.h"
#include <pthread.h>
#include <stdatomic.h>

enum { GY_CUDA_SCRATCH_EVENTS = 8 };
#define GY_CUDA_CHUNK (UINT64_C(4) << 20) /* bytes that are staged at once */
#define GY_CUDA_REGISTER                                                                                               \
    (UINT64_C(64) << 10) /* arrays of the caller from this size on are page-locked, smaller ones are mirrored */

/* A stream and the GPU that it belongs to (index of the machine's device). */
typedef struct gy_queue {
    CUstream stream;
    uint32_t device;
} gy_queue;

/* A device of the machine. All members but `gpu` are set for GPUs that are `used`: by an op, or for their memory. */
typedef struct gy_cuda_device {
    bool gpu, used;
    int ordinal;
    CUdevice id;
    CUcontext context;
    gy_queue auxiliary; /* carries out what a lane of another device needs done on this GPU */
    CUevent scratch_event[GY_CUDA_SCRATCH_EVENTS]; /* each is recorded and waited for at once; the next one is used
                                                      after it */
    uint32_t next_scratch_event, launches;         /* launches: ops that have a status word */
    uint32_t fetched;                              /* so many of these words, the first, are fetched (submit/ops.c) */
    CUdeviceptr status;                            /* per turn: the words that are fetched, in memory of the GPU */
    int32_t *host_status;                          /* part of gy_cuda.host_status: per turn, all words */
    CUdeviceptr addresses;       /* per turn: those that the batches of the device are called with (batch.c) */
    const void **host_addresses; /* page-locked: the same on the host */
    size_t address_count;        /* of a turn */
    CUevent base;                /* recorded while nothing runs: times of the GPU's events count from it */
    int64_t base_ns;
    gy_queue landing; /* uploads beside starts (stream/land.c); no stream until there is one */
    CUevent landed;   /* recorded there ahead of a start, behind the copies that it waits for */
    bool lands;       /* there are such copies */
} gy_cuda_device;

/* Memory that contents of an instance are uploaded to beside a start, and copied from ahead of the next one. */
typedef struct gy_cuda_landing {
    uint32_t instance, device; /* device: GY_NONE: the instance is in host memory and takes `rows` themselves */
    CUdeviceptr at;
    uint64_t bytes;
    const void *rows; /* of the caller */
    bool waits;       /* the next start has them */
} gy_cuda_landing;

typedef struct gy_cuda_memory {
    uint32_t device;  /* the GPU whose memory it is; GY_NONE: host memory */
    CUdeviceptr base; /* of a GPU */
    char *host;       /* of the host: pinned */
} gy_cuda_memory;

/* A stream of the schedule. `stage` is page-locked memory that the stream uses in its order: for chunks of copies, and
 * for what a collective combines. */
typedef struct gy_cuda_lane {
    gy_queue queue;
    CUdeviceptr scratch;
    uint64_t scratch_bytes, stage_bytes;
    char *stage;
    bool used, borrowed; /* borrowed: the queue is that of a lane before */
    bool ours; /* of a capture: the last node of the stream is a kernel of the library, which may have one behind it
                   that comes early */
} gy_cuda_lane;

/* The call of a launch or host op. Each turn has its own, since addresses differ. */
typedef struct gy_cuda_call {
    const struct gy_cuda_kernel *kernel; /* of the library; NULL: code of the user, or a function of the CPU */
    gantry_kernel_fn function;
    gantry_launch launch;
    gantry_arg **arg; /* per use of the op */
    int32_t word;     /* its status word, on the CPU */
} gy_cuda_call;

/* A scalar of a launch that may change between starts. */
typedef struct gy_cuda_dynamic {
    gantry_arg *arg;
    uint32_t scalar;
} gy_cuda_dynamic;

/* Launches that one call carries out. */
typedef struct gy_cuda_calls {
    const gantry_launch **launch; /* per turn: `count` */
    size_t first;                 /* of its addresses among those of the device, in the order of gy_cuda_batch */
    uint32_t count, args;
} gy_cuda_calls;

/* Everything that is prepared for an op when the run is opened. */
typedef struct gy_cuda_op {
    gy_cuda_call *call;           /* per turn; NULL: the op is no launch */
    gy_cuda_calls *calls;         /* of the first of a batch that one call carries out; else NULL */
    bool called;                  /* the call, or the exchange, of another op of its batch carries it out */
    struct gy_exchange *exchange; /* pieces of a collective */
    struct gy_exchange *joint;    /* pieces of the whole batch that it begins; NULL: it is carried out alone */
    struct gy_share *share;       /* shares of the collective: which GPU carries out which bytes */
    uint32_t shares;              /* number of shares */
    char **image; /* per use of a fill that neither a memset nor a kernel makes: the bytes to upload; else NULL */
    uint32_t wait, waits;    /* range of gy_cuda.wait */
    uint32_t event;          /* index of gy_cuda.event, which is recorded after the op; GY_NONE: no op waits for it */
    uint32_t word;           /* its status word on its device */
    bool nccl;               /* NCCL carries it out */
    bool counted;            /* of a collective: it is combined by kernels that meet by counters (counted.c) */
    bool pushed;             /* counted, and GPUs send what they give: they meet once (push.c) */
    bool met;                /* of a collective, if NCCL carries it out: kernels that meet by counters are around it */
    bool tied[2];            /* to the op before it, to the one behind it: gy_order_tied */
    bool by_kernel, carried; /* of a copy: a kernel makes it, or the kernel of an op before it does (carry.c) */
    CUgraphExec *when; /* of a node with `when` on a GPU, per turn: a graph of the op alone, see when.c; else NULL */
    uint32_t carries;  /* the next op whose copy the same kernel makes; GY_NONE: no more */
} gy_cuda_op;

/* No event orders the lanes of the op: each begins and ends by itself. */
static inline bool gy_cuda_op_meets(const gy_cuda_op *op)
{
    return op->counted || (op->nccl && op->met);
}
/* Its lanes have met when it ends: whichever has ended, all of the op is done. */
static inline bool gy_cuda_op_has_met(const gy_cuda_op *op)
{
    return gy_cuda_op_meets(op) && !op->tied[1];
}

/* Lane `lane` of an op waits for the op `from`, beside the rows of the sync table. */
typedef struct gy_ahead_row {
    uint32_t from, lane;
} gy_ahead_row;

/* The op `to` waits for a lane of the collective `from` on its own GPU, beside these. */
typedef struct gy_behind_row {
    uint32_t from, to;
} gy_behind_row;

/* Rows of op i are first[i] to first[i + 1]: see collective/ahead.h. */
typedef struct gy_cuda_ahead {
    uint32_t *first;
    gy_ahead_row *row;
    gy_behind_row *behind;
    uint32_t behinds;
} gy_cuda_ahead;

typedef struct gy_cuda_wait {
    uint32_t from, distance;
} gy_cuda_wait;

/* Memory of the caller that the run has page-locked, and the number of bindings that use it. */
typedef struct gy_cuda_lock {
    const void *at;
    uint64_t bytes;
    uint32_t uses;
} gy_cuda_lock;

/* The array that a buffer is bound to in a turn, and how copies reach it. */
typedef struct gy_cuda_array {
    const void *at;
    uint32_t bound;      /* gy_job.bound of the buffer when the array was looked at */
    bool pinned, locked; /* pinned: page-locked; locked: by this run */
    char *mirror;        /* a page-locked copy of it; NULL: there is none */
} gy_cuda_array;

/* True if devices use the mirror in place of the array. */
static inline bool gy_array_mirrored(const gy_cuda_array *a)
{
    return a->mirror && !a->pinned;
}

/* A turn: one of the starts that can be in flight at a time. It holds the start that has the turn, or had it last. */
typedef struct gy_cuda_turn {
    uint64_t start;               /* 0: none yet */
    CUevent end;                  /* of the next two, the one that the start has recorded */
    CUevent timed_end, plain_end; /* to record a time takes 1.5 us, behind the start */
    bool apart; /* `end` is the end of one resident kernel: the start has ended when those of other GPUs have, too */
    int64_t begin_ns;  /* what times of ops count from */
    int64_t called_ns; /* when nothing else was in flight and it was given to the driver, by the host's clock; else 0 */
    gy_callbacks callbacks;
    uint64_t version;              /* version of the bindings that `input` and `output` are for; 0: none */
    gy_cuda_array *input, *output; /* per buffer */
    CUgraphExec exec;              /* NULL: no graph was captured since addresses changed */
    CUgraphExec *beside; /* per device: where there is one graph a GPU, those of others than the end stream's */
    gy_callbacks exec_callbacks;
    char *mirrors;  /* page-locked memory of all its mirrors */
    bool by_stream; /* host functions copy to and from the mirrors, in the order of the caller's stream */
} gy_cuda_turn;

typedef struct gy_cuda_failure {
    atomic_uint op; /* the first op whose host function failed; GY_NONE */
    gantry_status status;
    int32_t word;
} gy_cuda_failure;

/* State of replay "auto" (replay.c). The times are the least of starts that had `version` of the bindings or an older
 * one. */
typedef struct gy_cuda_auto {
    bool on;
    uint64_t version;
    uint32_t unchanged,
        as_graph; /* unchanged: starts as streams since an address or scalar changed; as_graph: starts as a graph */
    int64_t stream_ns, graph_ns;
} gy_cuda_auto;

typedef struct gy_cuda {
    const gy_job *job;
    gy_driver d;
    gy_arena arena;
    CUcontext before; /* the caller's context, while a call of the back end runs */
    uint32_t current; /* device whose context is current; GY_NONE: not known */
    bool concurrent;  /* several threads submit at the moment, and each makes its context current by itself */
    gy_cuda_device *device;
    gy_cuda_memory *memory;
    gy_cuda_lane *lane;
    gy_cuda_op *op;
    gy_cuda_wait *wait;
    CUevent *event;
    uint32_t events, ring; /* ring: copies of each event, more than the largest distance */
    uint32_t devices, memories, lanes, turns, first_gpu; /* lanes: those of the schedule and that of the network */
    gy_queue end_stream;  /* the stream in which a start ends, and where captures begin */
    char *staging;        /* of the schedule */
    int32_t *host_status; /* page-locked: status words of all devices, as they were fetched last or told by kernels */
    char *chunk;          /* page-locked memory that states and constants pass through; NULL: none did */
    uint64_t chunk_bytes;
    bool borrowed; /* slabs and staging belong to another run, which comes before or after this one */
    void **handle; /* kernels x devices */
    const struct gy_cuda_kernel **library; /* per kernel: the CUDA version that comes with us; NULL: none */
    uint8_t *peer;                         /* devices x devices: access is enabled both ways */
    void **when;                           /* per device: handle of the kernel that asks flags; NULL: there is none */
    gy_queue *when_queue;                  /* per device, two: where graphs of ops with a flag are captured */
    void **fill;                           /* per device: handle of the kernel of fills; NULL: there is none */
    void **combine; /* per device: handle of the kernel that combines for collectives there; NULL: there is none */
    void **push;    /* the same of the kernel of those that send what they give */
    GY_VEC(gy_cuda_lock) locks;
    GY_VEC(gy_cuda_landing) landings;
    GY_VEC(gy_cuda_dynamic) dynamic;

    gy_part part;   /* with a network: what this rank does, with a queue for each lane */
    uint32_t *step; /* per op: 1 + its step of the part; 0: the op is none of this rank's. NULL: there is no network */
    gy_host_collective **collective; /* with a network, per op: a collective of several ranks that is combined here */

    bool graphs;               /* starts are replayed as graphs */
    bool came_early, no_early; /* launches of the last capture come early; the driver refused such a graph */
    uint8_t *forked; /* per device: a stream there works for the op that is submitted, beside the op's first lane */
    uint8_t *auxiliary_last; /* per device: its auxiliary stream has work that no lane waits for */
    const char *replay;      /* for reports */
    gy_cuda_auto automatic;
    struct gy_gates *gates;   /* NULL: graphs are for all GPUs (stream/gates.h) */
    struct gy_ranges *ranges; /* NULL: no profiler */
    gy_cuda_turn *turn;
    uint64_t begun, ended; /* starts */
    gy_cuda_failure failed;
    atomic_uint at;              /* of the start that is waited for: the first op not known to have ended; GY_NONE */
    atomic_uint at_work;         /* functions on the host that streams have called and that have not returned */
    bool dirty_words;            /* status words must be cleared before the next start */
    bool ends_unseen;            /* a start had ended when it was waited for: events time the next one */
    bool stuck;                  /* work runs whose end could not be waited for */
    gantry_error broken;         /* if its status is not OK, the run is over for this reason */
    pthread_mutex_t broken_lock; /* held while `broken` is set */
    bool aborted; /* the run is over since NCCL, or a start of resident kernels, was ended; the driver goes on with
                     queued work */
    struct gy_nccl *nccl;             /* NULL: no op asks for NCCL */
    struct gy_counted *counted;       /* NULL: no collectives meet by counters */
    gy_cuda_ahead *ahead;             /* NULL: none may, as what is ahead of their lanes is not known (ahead.h) */
    struct gy_peer_order *order;      /* NULL: no work waits for its peers */
    struct gy_resident *resident;     /* NULL: the schedule is not for replay "device" */
    struct gy_submitters *submitters; /* NULL: the thread that makes a start submits all of it */

    struct gy_cupti *cupti; /* NULL: no times are recorded */
    CUevent *clock;         /* two per turn and op; NULL: no times are recorded */
    gy_op_time *time;       /* times of the last start that ended; NULL: no times are recorded */
} gy_cuda;

/* ---- ranks ---- */

/* Does this process have the memories and devices of that rank? */
static inline bool gy_cuda_mine(const gy_cuda *h, uint32_t rank)
{
    return !h->job->network || h->job->network->rank == rank;
}
/* Has this rank a part in the op? */
static inline bool gy_cuda_has(const gy_cuda *h, uint32_t op)
{
    return !h->step || h->step[op];
}
/* Does this rank do all of the op? Else it is done by messages, or by others. */
static inline bool gy_cuda_here(const gy_cuda *h, uint32_t op)
{
    return !h->step || (h->step[op] && !gy_part_crosses(&h->part, &h->part.step.at[h->step[op] - 1]));
}

/* Lane number i of an op: 0 is the one that it has, or that it begins in. What this rank does not do alone is in that
 * of the network, the last one. */
static inline gy_cuda_lane *gy_cuda_lane_of(const gy_cuda *h, uint32_t op, uint32_t i)
{
    const gantry_schedule *s = h->job->schedule;
    if (!gy_cuda_here(h, op))
        return &h->lane[h->lanes - 1];
    return &h->lane[s->op_lane.at[s->ops.at[op].lane + i]];
}

/* The flag of an op with a `when`: the last of its uses. */
static inline const gy_use *gy_cuda_flag(const gy_cuda *h, uint32_t op)
{
    const gantry_schedule *s = h->job->schedule;
    return &s->use.at[s->ops.at[op].use + s->ops.at[op].uses - 1];
}

/* The two events of an op: it began (end 0) and it ended (end 1); there are none unless times are recorded. */
static inline CUevent *gy_cuda_clock(const gy_cuda *h, uint32_t turn, uint32_t op, uint32_t end)
{
    return &h->clock[2 * (turn * h->job->schedule->ops.count + op) + end];
}

/* True if the driver has said so of the context: as a rule no call of it can succeed any more, and nothing runs. */
static inline bool gy_cuda_lost(const gy_cuda *h)
{
    return h->broken.status && !h->aborted;
}

#endif
