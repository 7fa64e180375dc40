/* SPDX-License-Identifier: Apache-2.0 */
/**
 * NCCL, for collectives whose algorithm is "nccl".
 *
 *   nvidia/nccl_api.c     the library, opened at run time
 *   nvidia/nccl_clique.c  the communicators of some GPUs
 *   nccl_plan.c    an op as calls of NCCL, or why it cannot be
 *   nccl_comm.c    those of a run: made in the background, watched, aborted, closed
 *   nccl.c         opening, submitting, what reports say
 *   nccl_ranks.c   between processes: which ops, and what a lost one means
 *   nccl_meet.c    between processes: whether all can, and their communicators
 *
 * Copies do the ops that NCCL cannot do, as if another algorithm had been named, and the report says why. One thread
 * submits all ranks of an op in one group call, in the order of positions, so every rank sees the same order. An op
 * begins when it is at the head of all its lanes and has ended when all ranks have.
 *
 * Between processes it does what it can of all ops that cross, whatever their algorithm is, as long as the bits are
 * those of one process. They are in the stream of the network, in the order of positions like all messages
 * (submit/cross.c), so each process has the same calls on its communicators in the same order, and what is said there
 * of deadlocks holds.
 *
 * NCCL adds in an order of its own, and rounds f16 and bf16 after each addition: sums of floating-point numbers are not
 * those of other algorithms, bit by bit. Reports say so.
 *
 * Memory of communicators is NCCL's: hundreds of megabytes a GPU and more, beside the slabs. It is meant by `reserved`
 * of a machine's memories; nothing else counts it.
 */
#ifndef GY_CUDA_COLLECTIVE_NCCL_H
#define GY_CUDA_COLLECTIVE_NCCL_H

#include "backends/cuda/collective/collective.h"
#include "backends/cuda/nvidia/nccl_clique.h"
#include "schedule/exchange/exchange.h"

/* ---- nccl_plan.c ---- */

typedef enum gy_nccl_kind {
    GY_NCCL_ALL_REDUCE,
    GY_NCCL_REDUCE,
    GY_NCCL_REDUCE_SCATTER,
    GY_NCCL_BROADCAST,
    GY_NCCL_ALL_GATHER,
    GY_NCCL_PAIR /* one rank sends, one receives */
} gy_nccl_kind;

/* `end`: of each rank what it sends, then of each rank where it receives. PAIR: [0] sends, [1] receives. A root that
 * has no place of its own to receive at receives where it sends. */
typedef struct gy_nccl_call {
    gy_nccl_kind kind;
    uint32_t root, to; /* ranks. PAIR: who sends, who receives */
    uint64_t count;    /* as NCCL wants it: elements; of what is only moved, bytes */
    gy_exchange_end *end;
} gy_nccl_call;

typedef struct gy_nccl_plan {
    uint32_t set; /* communicator: index of gy_nccl.set */
    int type, op; /* ncclDataType_t, ncclRedOp_t */
    bool rounds;  /* its results depend on the order of additions */
    GY_VEC(gy_nccl_call) call;
} gy_nccl_plan;

/* Calls for the op, without a communicator. *why: NULL, or why NCCL cannot do it; then *plan is empty. */
gantry_status gy_nccl_plan_make(gy_nccl_plan *plan, gy_cuda *h, uint32_t op, const gy_exchange *exchange,
                                const char **why, gantry_error *err);
void gy_nccl_plan_free(gy_nccl_plan *plan);
/* As far as one process knows: of several processes, which devices are one GPU is found out when they meet. */
bool gy_nccl_same_gpu(const gy_cuda *h, uint32_t a, uint32_t b);

/* ---- nccl_comm.c ---- */

/* GPUs in the order of ranks. */
typedef struct gy_nccl_set {
    uint32_t *device; /* of the machine */
    gy_nccl_comm *comm;
    uint32_t ranks;
} gy_nccl_set;

typedef struct gy_nccl {
    gy_cuda *h;
    gy_nccl_api api;
    GY_VEC(gy_nccl_set) set;
    gy_nccl_plan *plan;  /* per op; no calls where NCCL does not do it */
    uint32_t asked, can; /* ops that name NCCL, those it can do */
    uint32_t made;       /* communicators of so many sets are ready */
    int64_t begun_ns;    /* of the set that is being made; 0: none is */
    bool rounds, off;    /* off: copies do everything */
    bool any_order;      /* between processes: it may add in its own order, whatever the algorithm is */
    bool met;            /* processes have found out together whether they use it */
    bool bad;            /* a call failed: communicators cannot be used any more */
    char why[512];       /* of what is done by copies */
    char text[1024];     /* what reports say */
} gy_nccl;

/* Making a communicator takes seconds; one that takes longer than this does not come. */
#define GY_NCCL_MAKE_NS INT64_C(120000000000)

/* The maker of the communicators of a set: `user` of gy_nccl_use_rank. */
typedef struct gy_nccl_maker {
    gy_nccl *n;
    const gy_nccl_set *set;
} gy_nccl_maker;

/* Index of the communicator for the ranks of an op, or for these devices; GY_NONE: out of memory. */
uint32_t gy_nccl_set_of(gy_nccl *n, uint32_t op);
uint32_t gy_nccl_set_with(gy_nccl *n, const uint32_t *device, uint32_t ranks);
gy_nccl_clique gy_nccl_clique_of(const gy_nccl *n, const gy_nccl_set *set);
gantry_status gy_nccl_use_rank(void *user, uint32_t rank);
/* Why the communicators of the set are not there, as this result of NCCL says. */
void gy_nccl_unmade(const gy_nccl *n, const gy_nccl_set *set, int result, gantry_error *why);
/* Begins to make the first communicator; the others follow while it is waited for. */
void gy_nccl_begin(gy_nccl *n);
/* All are there. If that fails, `off` is set and `why` says it; E_TIMEOUT: the deadline passed, they may come yet. */
gantry_status gy_nccl_ready(gy_nccl *n, gantry_error *err);
/* The first result of a communicator that is neither success nor, if that is waited for, "in progress". */
int gy_nccl_settle(gy_nccl *n, uint32_t set);
int gy_nccl_state(const gy_nccl *n, uint32_t set); /* the worst of its ranks */
/* Communicators are of no use any more; graphs that have their work go first, or NCCL would wait for these forever. */
void gy_nccl_abort(gy_nccl *n);
/* Text of a failed call: "ncclAllReduce: unhandled cuda error (1): last error". E_DEVICE, native code. */
gantry_status gy_nccl_fail(const gy_nccl *n, int result, const char *what, gantry_error *err);
void gy_nccl_close(gy_nccl *n);

/* ---- nccl.c ---- */

/* Sets the ops that NCCL carries out (gy_cuda_op.nccl): those with a plan, none once it is `off`. */
void gy_nccl_assign(gy_nccl *n);
/* Ops that are carried out with this one, by one group call: those of its batch. */
uint32_t gy_nccl_members(const gy_cuda *h, uint32_t op);
/* Submits x->op, which NCCL carries out. */
gantry_status gy_nccl_submit(gy_submit *x);
gantry_status gy_nccl_new(gy_cuda *h, gantry_error *err); /* h->nccl, without any op */
/* Notes `why` for the first op that is refused: "op 3, "sum": ...". */
void gy_nccl_refuse(gy_nccl *n, uint32_t op, const char *why);

/* ---- nccl_ranks.c ---- */

/* Like gy_nccl_settle, for as long as all processes are there and this one is not cancelled. */
int gy_nccl_settle_ranks(gy_nccl *n, uint32_t set);
/* E_DEVICE: a rank is lost; E_CANCELED: this one is cancelled. The run is over then. */
gantry_status gy_nccl_watch_ranks(gy_cuda *h, uint32_t op, gantry_error *err);
/* NCCL says that it is the fault of a peer: waits for heartbeats to tell which one is lost. False: they do not. */
bool gy_nccl_is_lost(gy_cuda *h, int result);

/* ---- nccl_meet.c ---- */

/* All processes call it at their first start. They use NCCL if all can, and have communicators then; else `off` is set
 * and `why` says it. E_DEVICE: a rank is lost. */
gantry_status gy_nccl_meet(gy_nccl *n, gantry_error *err);

#endif
