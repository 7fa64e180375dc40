/* SPDX-License-Identifier: Apache-2.0 */
/* A run object: what the files of this folder share. */
#ifndef GY_RUN_RUN_H
#define GY_RUN_RUN_H

#include "run/backend.h"
#include "run/usercode.h"
#include <gantry/run.h>

/* What a buffer is bound to. `own` and `packed` are the run's. */
typedef struct gy_binding {
    const void *array; /* C order, whole: the user's, or `own`; NULL: not bound */
    void *own;         /* read from a file */
    void *packed;      /* made from `init`, or from `array` of a tiled buffer */
    void *result;      /* where the user wants an output, C order; NULL: in memory of the run */
    void *fetched;     /* an output in packed form, of the run; made when needed */
    void *unpacked;    /* the same in C order, of a tiled buffer without `result` */
    bool used;         /* an instance of the schedule begins with its contents */
    bool placed;       /* its PERSIST instances hold them */
    bool fetches;      /* an instance of space OUTPUT receives it */
} gy_binding;

/* Starts first .. last failed with `error`; `told` once a caller has seen it. */
typedef struct gy_failure {
    uint64_t first, last;
    bool told;
    gantry_error error;
} gy_failure;

struct gantry_run {
    gantry_schedule *schedule;
    gantry_graph *graph; /* the schedule's */
    const gy_backend *backend;
    void *state; /* the back end's */
    gy_job job;
    gy_callee *function;
    double *scalar;
    const void **input;
    void **output;
    gy_binding *binding; /* per buffer */
    gy_user_code code;
    bool rebound;               /* bindings or contents have to be looked at before the next start */
    bool changed;               /* pointers or scalars changed: the back end must be told */
    bool repack;                /* tiled inputs are packed anew at every start: no two starts may overlap then */
    bool edge;                  /* outputs need work after a start: the same */
    uint64_t started, finished; /* numbers of starts */
    gy_failure failure;
    double last_us;
};

/* functions.c: fills run->function; refuses nodes without one. */
gantry_status gy_run_find_functions(gantry_run *run, bool allow_code, gantry_error *err);

/* inputs.c: pointers of inputs, and contents of persistent instances, before a start. */
gantry_status gy_run_refresh_inputs(gantry_run *run, gantry_error *err);
/* Marks the buffers whose contents a start needs, and those that it fetches. */
void gy_run_mark_used(gantry_run *run);

/* outputs.c: memory for every buffer that is fetched: the user's where that has the right form, else the run's. */
gantry_status gy_run_refresh_outputs(gantry_run *run, gantry_error *err);
/* After a start: from packed to C order. */
void gy_run_edge_outputs(gantry_run *run);
/* Where a caller sees an output, in C order; NULL if the schedule does not fetch it. */
const void *gy_run_result(const gantry_run *run, uint32_t buffer);

/* start.c: waits for everything that was started. */
gantry_status gy_run_drain(gantry_run *run, gantry_error *err);
/* E_INVALID while a start is in flight: `what` is the call, "gantry_run_bind". */
gantry_status gy_run_need_idle(gantry_run *run, const char *what, gantry_error *err);

/* The buffer of an id; E_INVALID if there is none. */
gantry_status gy_run_buffer(const gantry_run *run, gantry_buffer id, const gy_buffer **buffer, gantry_error *err);

#endif
