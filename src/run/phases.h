/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Carrying out a schedule that is made of phases (schedule.h, gy_schedule_phase). To the front it is a back end like
 * another: it opens the real back end once a phase, on the same memories, and a thread of its own starts phase after
 * phase. What goes from phase to phase goes through host memory: it is read from outputs, or from what persists, and
 * given to the next as input, or put where it persists. `until` is looked at between starts, as an output of one
 * element.
 *
 * To this back end, `instance` in a call of `put` is a buffer of the graph.
 */
#ifndef GY_RUN_PHASES_H
#define GY_RUN_PHASES_H

#include "run/run.h"

/* The table, with the names of `inner`, which must have `advance` and `get` or execute nothing. The job names it. */
gy_backend gy_phases_backend(const gy_backend *inner);

/* Marks the buffers of the graph whose contents a start begins with. */
gantry_status gy_phases_mark_used(gantry_run *run, gantry_error *err);
/* Iterations of loops that the last start carried out in phases. */
uint64_t gy_phases_iterations(void *state);
/* Results of trials in the phase that was started most often. */
void gy_phases_trial(void *state, gantry_run_info *to);
/* Of loops, and what `until` is; by any thread. */
void gy_phases_progress(void *state, gantry_run_progress *to);

/* With a keeper: enough iterations have passed since the last checkpoint; one was written now. */
bool gy_phases_is_due(void *state);
void gy_phases_kept(void *state);
/* The first start goes on from there; takes what the checkpoint has. */
void gy_phases_resume(void *state, gy_checkpoint *from);

/* Times of the last start of phase i, counted from `*offset_ns` of the whole start; NULL: not recorded, or the phase
 * did not run. */
const gy_op_time *gy_phases_times(void *state, size_t i, int64_t *offset_ns);

/* ---- phases_memory.c: what names mean between phases ---- */

/* A piece of host memory that a phase leaves a buffer in. */
typedef struct gy_left {
    uint32_t buffer;
    void *at;
    bool whole; /* all rows arrive; else the others are as they were */
} gy_left;

typedef struct gy_hand_over {
    const gy_schedule_phase *phase;
    const gantry_graph *graph; /* of the phase */
    gy_left *left;             /* one for each buffer that the phase leaves */
    uint32_t lefts;
    uint32_t *persist; /* instances that persist */
    uint32_t persists;
} gy_hand_over;

typedef struct gy_hand_overs {
    const gy_job *job;
    gy_hand_over *at; /* one a phase */
    size_t count;
    const void **where, **before; /* per buffer of the graph: what its name means now; room for what it meant */
    void **own;                   /* per buffer: contents of states and constants */
    void **spare;                 /* per buffer: room for a state that ends as what another began as */
    GY_VEC(void *) block;
} gy_hand_overs;

gantry_status gy_hand_overs_make(gy_hand_overs *h, const gy_job *job, gantry_error *err);
void gy_hand_overs_free(gy_hand_overs *h);
/* At the beginning of a start, after phase i, and at the end. */
void gy_hand_overs_begin(gy_hand_overs *h);
void gy_hand_overs_move(gy_hand_overs *h, size_t i);
void gy_hand_overs_end(gy_hand_overs *h);

/* phases_keep.c: a checkpoint amid a start; `state` is that of the back end of the phase. */
gantry_status gy_hand_overs_keep(const gy_hand_overs *h, void *state, const gy_moment *moment, gantry_error *err);
/* Behind gy_hand_overs_begin: names mean what they meant then. The checkpoint must live as long as the start. */
void gy_hand_overs_restore(gy_hand_overs *h, const gy_checkpoint *c);
/* Instances of phase i that persist hold what its next start was to find. */
gantry_status gy_hand_overs_put_next(const gy_hand_overs *h, size_t i, void *state, const gy_checkpoint *c,
                                     gantry_error *err);

#endif
