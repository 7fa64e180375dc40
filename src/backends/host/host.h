/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The host back end: virtual devices, each with an arena and a thread. A thread runs the ops of its device's lanes in
 * the order of their positions. Nothing but the sync table, lane order and the limit of starts in flight orders the
 * threads: what is missing there shows as wrong data, and under ThreadSanitizer as a race.
 */
#ifndef GY_HOST_HOST_H
#define GY_HOST_HOST_H

#include "backends/host/ops.h"
#include "backends/host/slot.h"
#include "schedule/ranks/ranks.h"
#include <pthread.h>

/* One thread's part in one op. */
typedef struct gy_step {
    uint32_t op;
    uint32_t wait, waits; /* range of gy_sync_plan.await */
    uint32_t set, sets;   /* range of gy_sync_plan.signal */
    uint32_t meeting;     /* index, or GY_NONE: an op of several devices, which their threads begin together */
    bool leads;           /* executes it; the others of a meeting wait for that */
} gy_step;

typedef GY_VEC(gy_step) gy_steps;

typedef struct gy_await {
    uint32_t slot, distance;
} gy_await;

/* The sync table, regrouped by the ops that wait and signal; and every device's list of steps. */
typedef struct gy_sync_plan {
    gy_steps *steps; /* per device */
    gy_await *await;
    uint32_t *signal;
    uint32_t *party; /* per meeting: how many threads */
    uint32_t slots, meetings, devices;
} gy_sync_plan;

gantry_status gy_sync_plan_make(gy_sync_plan *plan, const gantry_schedule *s, gantry_error *err);
/* The same of the part of a rank: behind the devices come queues of the network. A slot is set by the op of its number.
 */
gantry_status gy_sync_plan_make_part(gy_sync_plan *plan, const gantry_schedule *s, const gy_part *part,
                                     gantry_error *err);
void gy_sync_plan_free(gy_sync_plan *plan);

typedef struct gy_meeting {
    _Atomic uint64_t arrived; /* over all starts */
    gy_slot full, done;
} gy_meeting;

typedef struct gy_worker {
    struct gy_host_run *host;
    const gy_steps *steps;
    uint32_t device;  /* or, behind them, the queue of the network */
    pthread_t thread; /* of a device, or of the network, which the first of its queues has */
    /* start << 32 | step << 1 | executing: written at every step, read by the watchdog only */
    _Atomic uint64_t progress;
    uint64_t left_start; /* the first step that it left out, since a start failed; UINT64_MAX: none */
    size_t left_step;
    char apart_[64]; /* no two workers write to one cache line */
} gy_worker;

/* A queue of the network, and how far it is. */
typedef struct gy_host_queue {
    gy_worker *worker;
    uint64_t pack_bytes; /* of what is one message, at most */
    char *pack;          /* so many, for those that are under way */
    size_t at;           /* its step at hand */
    bool begun, runs;    /* of that: it does not wait any more; it is not passed over */
    bool reduced;        /* what the op computes has been computed, if anything */
    bool under_way;
    uint32_t message, end; /* those that are the next one, or under way */
    gy_transfer transfer;
} gy_host_queue;

typedef struct gy_host_failure {
    uint64_t start;
    uint32_t op;
    gy_op_failure why;
    bool timeout, canceled;
    gantry_error error; /* of a timeout; else made from `op` and `why` when asked for */
} gy_host_failure;

typedef struct gy_host_run {
    const gy_job *job;
    gy_host_memory memory;
    gy_host_ops ops;
    gy_sync_plan plan;
    gy_slot *slot;
    gy_meeting *meeting;
    gy_worker *worker; /* those of devices first, then queues of the network */
    uint32_t workers, threads;
    gy_op_time *time; /* NULL unless recorded */

    /* With a network, else zero. cross.c */
    gy_part part;
    uint32_t *crossing; /* per op: 1 + its step, if it crosses; NULL: there is no network */
    char *boxes;        /* room for the uses of one op that are on other ranks */
    char *boxes_block_;
    atomic_bool in_message; /* waits for another rank, which has a watchdog of its own */
    gy_host_queue *queue;   /* of the network, those that have steps */
    uint32_t queues;
    gy_slot bell; /* counts steps of devices, for the thread of the network */

    pthread_mutex_t lock; /* for what follows */
    pthread_cond_t began, ended_some;
    _Atomic uint64_t begun, ended; /* starts; also read without the lock */
    atomic_bool quit;
    uint32_t *ended_by;         /* per start in flight: how many workers have ended it */
    int64_t *begin_ns, *end_ns; /* per start in flight */
    uint32_t ring;              /* starts in flight at most */
    gy_failed_from failed;      /* from that start on ops are passed over, and waits return at once */
    gy_host_failure failure;
} gy_host_run;

/* cross.c */
gantry_status gy_host_cross_make(gy_host_run *h, gantry_error *err); /* gy_host_cross_free, also after an error */
void gy_host_cross_free(gy_host_run *h);
/* Says where uses are that are on other ranks; after gy_host_ops_rebind. */
void gy_host_cross_point(gy_host_run *h);
/* A queue of the network, whose steps the worker has. False: no memory. */
bool gy_host_cross_add(gy_host_run *h, gy_worker *worker);
void gy_host_cross_begin(gy_host_queue *c, const gy_op *op);
/* Goes on with this rank's side of an op that crosses, and waits for nothing. True: it has ended. */
bool gy_host_cross_pass(gy_host_run *h, gy_host_queue *c);
/* network.c */
void *gy_host_network_main(void *run);
/* worker.c */
void *gy_worker_main(void *worker);
void gy_worker_report(gy_worker *w, uint64_t start, size_t step, bool executing);
/* False: the op is left out, as something failed or the run was cancelled. */
bool gy_worker_may_run(gy_worker *w, uint64_t start, size_t step);
bool gy_host_await_begin(gy_host_run *h, uint64_t start); /* false: the run is over */
void gy_host_end_start(gy_host_run *h, uint64_t start);   /* of one worker */
void gy_host_note_failure(gy_host_run *h, gy_host_failure failure);
/* watch.c: waits until `start` has ended, all of them if something failed; then the failure, if it concerns `start`. */
gantry_status gy_host_finish(gy_host_run *h, uint64_t start, int64_t *elapsed_ns, gantry_error *err);
bool gy_host_idle(gy_host_run *h);
/* Describes the op that the run is at, by any thread (gy_tell). */
void gy_host_tell(void *run, char *text, size_t size);
/* Of a start that was cancelled: all ops that write the output were carried out. */
bool gy_host_wrote(const gy_host_run *h, uint64_t start, uint32_t buffer);

#endif
