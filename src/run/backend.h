/* SPDX-License-Identifier: Apache-2.0 */
/**
 * A back end is a table of functions that carries a schedule out. The front (this folder) owns bindings, initial
 * contents, tickets and errors; a back end owns memories, threads or streams. A back end is one file with one table,
 * and one line in backends.c; or a module (base/module.h) that exports a gy_backend_module.
 *
 * Life: open; then any number of starts; close. `put` and `rebind` are called only while every start has ended.
 */
#ifndef GY_RUN_BACKEND_H
#define GY_RUN_BACKEND_H

#include "base/module.h"
#include "machine/gpus.h"
#include "machine/measured.h"
#include "run/network/network.h"
#include "run/usercode/said.h"
#include "schedule/schedule.h"
#include <stdatomic.h>

/* The function that a node calls. */
typedef struct gy_callee {
    gantry_kernel_fn call; /* NULL for nodes without a function */
    void *user;
} gy_callee;

/*
 * Everything that a back end is given. The front owns it; it is valid from open to close. Scalars change only before a
 * call of `rebind`. Starts take turns: start n (from 1) has turn (n - 1) % turns, and with it a window of each slab
 * (gy_instance_address) and a row of `input` and `output`, whose pointers change only while no start of that turn is in
 * flight; with one turn, `rebind` is called for that too.
 */
typedef struct gy_job {
    const gantry_schedule *schedule;
    const gantry_graph *graph;
    const gy_callee *function; /* per node of the graph */
    const gy_constant *scalar; /* per entry of graph->scalar: the number to use where it is dynamic */
    uint32_t turns;     /* starts in flight at most: the schedule's in_flight if the back end `overlaps`, else 1 */
    const void **input; /* per turn and buffer: host memory of space INPUT, packed, from row 0; NULL while unbound */
    const uint64_t *version; /* grows whenever the caller binds something */
    const uint32_t *bound;   /* per buffer: how often it was bound: another memory may have the same address */
    void **output;           /* per turn and buffer: that of space OUTPUT; NULL where there is none */
    bool record;             /* keep the times of ops */
    bool apart;              /* a device computes one op after the other, each by a call of its own */
    uint64_t seed;           /* checking mode: of the order */
    int64_t deadline_ns;     /* of one start; 0: none */
    int64_t timeout_ns;      /* of what does not move, also if it is a function on the host; 0: see gy_job_patience */
    const atomic_bool *canceled; /* nothing is begun any more; see gy_job_canceled */
    void (*look)(void *of);      /* called every 100 ms or oftener by who waits in `finish`; NULL: nobody looks */
    void *look_of;
    /* Called before and after the function of an op, by the thread that carries it out (at_work.h); NULL: nobody asks.
     * By their addresses, since a module has no other way to what is the front's. */
    void (*begin_work)(const struct gy_job *job, uint32_t op);
    void (*end_work)(void);
    gy_said said;       /* who hears what compilers of users' code say */
    gantry_run *keeper; /* whose checkpoints are written amid starts in phases; NULL: nobody's */
    void **team;        /* per device: what `cut` of a launch on it is given; NULL: it has one thread. NULL: all have */
    gantry_status (*cut)(const gantry_launch *launch, int64_t items, int64_t grain, gantry_piece_fn piece, void *data);
    gantry_network *network;     /* carry out the part of its rank (schedule/part.h); NULL: everything */
    const uint8_t *own;          /* of gy_part: arrays of inputs and outputs that each rank has itself */
    bool alike;                  /* `put` is given the same by all ranks; else what rank 0 gives counts */
    const gy_counters *counters; /* of a schedule that has none, for `turn_to`; NULL: the schedule's, gy_job_counters */

    /* For schedules with phases (phases.h): `inner` is the back end that carries each phase out. In the jobs that it is
     * given, `room` has the bytes of each memory's slab, then of staging, where more than the schedule's own are
     * needed; `beside` is the state of another open phase. The starts of the two are never in flight together, so this
     * one uses the memory of that one, and does not free it. NULL otherwise. */
    const struct gy_backend *inner;
    const uint64_t *room;
    void *beside;
    const struct gy_job *whole; /* in the job of a phase: that of which it is one, whose schedule has them all */
} gy_job;

/* Nanoseconds after which a start that does not move is given up. Unless the caller has said how long that is, no
 * function on the host is at work then: how long these take nobody knows. */
static inline int64_t gy_job_patience(const gy_job *job)
{
    const double least = 10e9, predicted = gy_ticks_to_us(job->schedule->makespan) * 1e3 * 20;
    if (job->timeout_ns)
        return job->timeout_ns;
    return predicted > least ? (predicted < 1e18 ? (int64_t)predicted : INT64_MAX / 2) : (int64_t)least;
}
/* The end of the text of who gives up. */
#define GY_MORE_TIME "allow more with timeout_us of the options of the run (gantry run --timeout SECONDS)"

/* The run was cancelled: what was not begun yet is left out, and starts that have left something out fail with
 * E_CANCELED. The front takes the flag back while no start is in flight. */
static inline bool gy_job_canceled(const gy_job *job)
{
    return job->canceled && atomic_load_explicit(job->canceled, memory_order_relaxed);
}

static inline gantry_status gy_job_call(const gy_job *job, uint32_t op, gantry_kernel_fn function,
                                        const gantry_launch *launch)
{
    if (job->begin_work)
        job->begin_work(job, op);
    gantry_status status = function(launch);
    if (job->end_work)
        job->end_work();
    return status;
}

/* Gives a launch on that CPU the threads of the device. */
static inline void gy_job_lend_threads(const gy_job *job, gantry_launch *launch, uint32_t device)
{
    launch->team = job->team ? job->team[device] : NULL;
    launch->cut = launch->team ? job->cut : NULL;
}

static inline const gy_counters *gy_job_counters(const gy_job *job)
{
    return job->counters ? job->counters : &job->schedule->counters;
}

static inline uint32_t gy_job_turn(const gy_job *job, uint64_t start)
{
    return (uint32_t)((start - 1) % job->turns);
}
/* Index into `input` and `output`. */
static inline size_t gy_job_index(const gy_job *job, uint32_t turn, uint32_t buffer)
{
    return turn * job->graph->buffers.count + buffer;
}

/* Measured times of an op in the last start that ended, in ns from its beginning. */
typedef struct gy_op_time {
    int64_t start, end;
} gy_op_time;

/* Starts that follow each other while nothing else changes. Some of them, counted from 1, are looked at: number `look`
 * (0: none), then each that comes `every` later. If `until`, an output of one element, is not 0 then, no other follows.
 */
typedef struct gy_series {
    uint64_t starts; /* at most */
    uint64_t look, every;
    uint32_t until; /* GY_NONE: none */
} gy_series;

/* Starts of a series that take no more than about a second: nobody can be told how far it is, or stop it, before it
 * ends. */
static inline uint64_t gy_series_most(const gantry_schedule *s)
{
    const double second = 1e6, us = gy_ticks_to_us(s->makespan);
    return us * 1e6 < second ? 1000000 : us > second ? 1 : (uint64_t)(second / us);
}

/* The leader of a start: the host, which gives ops or graphs of them to the devices, or the devices themselves, which
 * wait for each other by counters. */
typedef enum gy_lead { GY_LEAD_HOST, GY_LEAD_DEVICE, GY_LEADS } gy_lead;
enum { GY_SETTLED = 8 }; /* after so many starts alike, a back end goes on as it has found best by itself */

typedef struct gy_backend {
    const char *name, *summary;
    const char *replay;                    /* how starts are replayed, for reports; NULL: as the schedule says */
    const char *(*replay_of)(void *state); /* NULL: `replay`; else of this run, known after open */
    bool executes;                         /* false: gives times only, needs no functions, bindings and memories */
    bool overlaps;                         /* several starts can be in flight at a time; else they follow each other */
    bool ranks;                            /* carries out the part of a rank, with others */
    bool steady;                           /* an address of an input that changes costs a start much */
    bool gpu_kernels;                      /* has versions of kernels of its own for GPU devices */
    /* NULL: it can carry out anything here. Else E_DEVICE or E_UNSUPPORTED with the reason why it cannot: a library or
     * device that is not there, a kernel without a version. */
    gantry_status (*usable)(const gantry_schedule *schedule, gantry_error *err);

    gantry_status (*open)(void **state, const gy_job *job, gantry_error *err);
    /* Frees everything. False: something is still running and could not be stopped; nothing that it may touch was or
     * may be freed. */
    bool (*close)(void *state);

    /* Contents of a PERSIST instance: its rows, packed. */
    gantry_status (*put)(void *state, uint32_t instance, const void *rows, gantry_error *err);
    /* The same contents, as the init of the buffer says, made where they lie, with the bits of gy_fill_rows. *made
     * false: it cannot, and they are put. NULL: it never can. */
    gantry_status (*make)(void *state, uint32_t instance, bool *made, gantry_error *err);
    /* Begins to bring such contents beside the start in flight, of one turn: the start that is begun next has them.
     * `rows` are in memory of `pinned`, and stay as they are until that start has ended, or contents were put. NULL: it
     * cannot. */
    gantry_status (*land)(void *state, uint32_t instance, const void *rows, gantry_error *err);
    /* With `land`: memory that it reads while starts go on, and giving it back. */
    gantry_status (*pinned)(void *state, void **to, uint64_t bytes, gantry_error *err);
    void (*unpin)(void *state, void *at);
    /* The opposite: the rows of a PERSIST instance, packed. With `advance`, NULL: cannot carry out phases. */
    gantry_status (*get)(void *state, uint32_t instance, void *rows, gantry_error *err);
    /* Iteration 0 of a task means this one from now on: also in scalars that depend on it. While no start is in flight.
     */
    gantry_status (*advance)(void *state, int64_t first, gantry_error *err);
    /* Checks that so many bytes of the caller are in that memory, which is not host memory; NULL: nothing is checked,
     * since memory of the caller is as good as any other. */
    gantry_status (*locate)(void *state, uint32_t memory, const void *at, uint64_t bytes, gantry_error *err);
    /* Of `ranks`: all processes get so many bytes that rank 0 has, while no start is in flight. */
    gantry_status (*share)(void *state, void *bytes, uint64_t count, gantry_error *err);
    /* Pointers or scalars of the job have changed. */
    gantry_status (*rebind)(void *state, gantry_error *err);

    /* Starts are numbered 1, 2, ...; never more than the job's turns are begun and not finished. Returns at
     * once. The first start after a failed one is begun when all have ended, and forgets the failure. */
    gantry_status (*begin)(void *state, uint64_t start, gantry_error *err);
    /* The same, behind what is on that stream of the caller now, and what the caller puts there next behind it; NULL:
     * there are no streams. */
    gantry_status (*begin_on)(void *state, uint64_t start, void *stream, gantry_error *err);
    /* Waits until that start has ended; the first failure of it or of one before it that was in flight together with
     * it. E_TIMEOUT when the start made no progress or passed its deadline; it may still be running then, see `idle`.
     * E_CANCELED: ops were left out; the text is what comes behind "start 3 ended ". *elapsed_ns on success: from its
     * beginning to its end. */
    gantry_status (*finish)(void *state, uint64_t start, int64_t *elapsed_ns, gantry_error *err);
    /* Of a start that was cancelled, while none is in flight: had it carried out every op that writes this output, or
     * the output of its turn? NULL: never. */
    bool (*wrote)(void *state, uint64_t start, uint32_t buffer);
    /* One or more of the first starts of a series, *done of them, by one start of the devices; `start` is its number.
     * None is in flight, and all turns are as the next start finds its own. Returns as `finish` does, when it has
     * ended. *done 0: one was begun, as by `begin`, and is to be finished, since several by one cannot be, and others
     * can be in flight with it. NULL: it cannot carry out several by one. */
    gantry_status (*series)(void *state, uint64_t start, const gy_series *series, uint64_t *done, int64_t *elapsed_ns,
                            gantry_error *err);
    /* Of schedules of replay "auto", which begin with the host's way; while no start is in flight, and after one: who
     * leads those that follow. `for_good`: it stays so, and what only the other way needs is freed. An error: the
     * devices cannot, and why; it is as before, and can go on. What comes out has the same bits either way. NULL: there
     * is one way. With it, `series`. */
    gantry_status (*turn_to)(void *state, gy_lead way, bool for_good, gantry_error *err);
    /* Nanoseconds that it takes to turn to the devices' way for the first time, about. With `turn_to`. */
    int64_t (*turn_ns)(void *state);
    /* True when every start has ended. Waits a short while for it. */
    bool (*idle)(void *state);
    /* Times per op of the last start; NULL unless recorded. */
    const gy_op_time *(*times)(void *state);
} gy_backend;

/* How the back end replays starts of a schedule, as far as it is known before a run is open. */
const char *gy_backend_replay(const gy_backend *backend, const gantry_schedule *schedule);

extern const gy_backend gy_backend_host;    /* src/backends/host/host.c */
extern const gy_backend gy_backend_checked; /* src/backends/host/checked.c: checking mode, not in the list of names */
extern const gy_backend gy_backend_sim;     /* src/backends/sim/sim.c */

/* How to measure (gantry_calibrate_options). 0: as the back end likes. */
typedef struct gy_measure_options {
    double seconds, patience;
    gantry_progress_fn progress; /* may be NULL */
    void *user;
} gy_measure_options;

/* The table that a module exports (gantry_cuda_module). */
typedef struct gy_backend_module {
    const gy_backend *backend;
    /* The devices of this computer (gy_gpus_free). Without any, or without a driver: none, and no error. */
    gantry_status (*discover)(gy_gpus *found, gantry_error *err);
    /* Appends a line, with a newline, on each thing it looked for: what it found or why not. */
    void (*describe)(gy_text *to);
    /* Measures the GPUs of a machine that is this computer's. Names in *to are borrowed from the machine and the
     * module: close that after their last use. gy_measured_free. E_TIMEOUT: a device hangs. NULL: it measures nothing.
     */
    gantry_status (*measure)(const gantry_machine *machine, const gy_measure_options *options, gy_measured *to,
                             gantry_error *err);
} gy_backend_module;

/* By name; NULL and "auto" give the first that can carry the schedule out. `check`: the checking twin. `module` is open
 * on success where the back end came from one: close it after the back end's last call. */
gantry_status gy_backend_find(const gy_backend **backend, gy_module *module, const char *name, bool check,
                              const gantry_schedule *schedule, gantry_error *err);
/* The first module that can measure this machine does; it stays open for what *to borrows. E_DEVICE: none can. */
gantry_status gy_backend_measure(const gantry_machine *machine, const gy_measure_options *options, gy_measured *to,
                                 gy_module *module, gantry_error *err);
/* The GPUs that modules find; none is fine. */
gantry_status gy_backend_discover(gy_gpus *found, gantry_error *err);

#endif
