/* SPDX-License-Identifier: Apache-2.0 */
/**
 * What a back end is: a table of functions that carries a schedule out. The front (this folder) owns bindings, initial
 * contents, tickets and errors; a back end owns memories, threads or streams. A back end is one file with one table,
 * and one line in backends.c.
 *
 * Life: open; then any number of starts; close. `put` and `rebind` are called only while every start has ended.
 */
#ifndef GY_RUN_BACKEND_H
#define GY_RUN_BACKEND_H

#include "schedule/schedule.h"

/* What a node calls. */
typedef struct gy_callee {
    gantry_kernel_fn call; /* NULL for nodes without a function */
    void *user;
} gy_callee;

/* Everything a back end is given. Owned by the front, valid from open to close; contents of the arrays change only
 * before a call of `rebind`. */
typedef struct gy_job {
    const gantry_schedule *schedule;
    const gantry_graph *graph;
    const gy_callee *function; /* per node of the graph */
    const double *scalar;      /* per entry of graph->scalar: the number to use where it is dynamic */
    const void **input;        /* per buffer: host memory of space INPUT, packed, from row 0; NULL while unbound */
    void **output;       /* per buffer: host memory of space OUTPUT, packed, from row 0; NULL where there is none */
    bool record;         /* keep the times of ops */
    uint64_t seed;       /* checking mode: of the order */
    int64_t deadline_ns; /* of one start; 0: none */
} gy_job;

/* Measured times of an op in the last start that ended, in ns from its beginning. */
typedef struct gy_op_time {
    int64_t start, end;
} gy_op_time;

typedef struct gy_backend {
    const char *name, *summary;
    const char *replay;            /* how starts are replayed, for reports; NULL: as the schedule says */
    bool executes;                 /* false: gives times only, needs no functions, bindings and memories */
    const char *(*obstacle)(void); /* NULL: can be used here; else one line on why not */

    gantry_status (*open)(void **state, const gy_job *job, gantry_error *err);
    /* Frees everything. False: something is still running and could not be stopped; nothing that it may touch was or
     * may be freed. */
    bool (*close)(void *state);

    /* Contents of a PERSIST instance: its rows, packed. */
    gantry_status (*put)(void *state, uint32_t instance, const void *rows, gantry_error *err);
    /* Pointers or scalars of the job have changed. */
    gantry_status (*rebind)(void *state, gantry_error *err);

    /* Starts are numbered 1, 2, ...; never more than the schedule's in_flight are begun and not finished. Returns at
     * once. The first start after a failed one is begun when all have ended, and forgets the failure. */
    gantry_status (*begin)(void *state, uint64_t start, gantry_error *err);
    /* Waits until that start has ended; the first failure of it or of one before it that was in flight together with
     * it. E_TIMEOUT when the start made no progress or passed its deadline; it may still be running then, see `idle`.
     * *elapsed_ns on success: from its beginning to its end. */
    gantry_status (*finish)(void *state, uint64_t start, int64_t *elapsed_ns, gantry_error *err);
    /* True when every start has ended. Waits a short while for it. */
    bool (*idle)(void *state);
    /* Times per op of the last start; NULL unless recorded. */
    const gy_op_time *(*times)(void *state);
} gy_backend;

extern const gy_backend gy_backend_host;    /* src/backends/host/host.c */
extern const gy_backend gy_backend_checked; /* src/backends/host/checked.c: checking mode, not in the list of names */
extern const gy_backend gy_backend_sim;     /* src/backends/sim/sim.c */

/* By name; NULL and "auto" give the first that can be used. `check`: the checking twin. */
gantry_status gy_backend_find(const gy_backend **backend, const char *name, bool check, gantry_error *err);

#endif
