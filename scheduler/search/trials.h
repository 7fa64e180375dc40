/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Trying placements of one graph on one machine, whatever the objective: each is lowered and simulated, the best
 * schedule stays, and the report learns what was tried. The portfolio (makespan) and the objective "period" differ in
 * which placements they try, and in which of two schedules is better.
 */
#ifndef GY_SCHEDULER_SEARCH_TRIALS_H
#define GY_SCHEDULER_SEARCH_TRIALS_H

#include "base/error.h"
#include "scheduler/pipeline/pipeline.h"
#include "scheduler/plan/options.h"
#include "scheduler/plan/packings.h"
#include "scheduler/search/candidate.h"

typedef bool gy_is_better(const gantry_schedule *a, const gantry_schedule *b);

typedef struct gy_trials {
    gantry_graph *graph; /* borrowed, all three */
    const gantry_machine *machine;
    const gy_options *options;
    gy_is_better *is_better;     /* NULL: better.h */
    gantry_schedule *best;       /* NULL while nothing fits */
    gy_attempt way, last;        /* how it was made, and the last that was lowered */
    gy_ticks least;              /* the least makespan of those that were offered */
    GY_VEC(gy_tried) tried;      /* becomes that of the schedule */
    GY_VEC(gy_candidate) placed; /* placements that are remembered, each owned */
    gantry_error first;          /* why the first that did not fit did not */
    gy_bound bound;              /* of the graph, once a plan has found it */
    const gy_plan *like;         /* a prepared plan of them; borrowed; NULL: each plan is prepared by itself */
    gy_packings packings;        /* that were searched */
} gy_trials;

/* Is the reason in the placement, so that another one may do better? */
bool gy_is_about_placement(gantry_status status);
/* Runs all passes for the plan (gy_plan_run), and again in other ways, unless the attempt is settled; the plan that
 * ends first stays, and *way is how it was made. */
gantry_status gy_trials_plan(gy_plan *p, const gy_options *options, gy_attempt *way, gantry_error *err);
/* gy_trials_plan for a plan that is initialised. *made is NULL where its placement does not fit: *why then says why;
 * and where it was recalled, and is known not to be better than the best: p->end is how it would have ended. The caller
 * owns *made. */
gantry_status gy_trials_lower(gy_trials *t, gy_plan *p, gantry_schedule **made, gantry_error *why, gantry_error *err);
/* Takes the schedule. true: it is the best so far; of equals the one that was there first stays. */
bool gy_trials_offer(gy_trials *t, gantry_schedule *s);
/* An entry of the report. */
gantry_status gy_trials_note(gy_trials *t, const gy_tried *tried, gantry_error *err);
/* Hands over the best schedule, verified, with the report; the error is that of the first that did not fit if none
 * did. */
gantry_status gy_trials_finish(gy_trials *t, gantry_schedule **schedule, gantry_error *err);
void gy_trials_free(gy_trials *t);

#endif
