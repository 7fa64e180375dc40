/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The account of a call of gantry_schedule_new, for callers who want to know how far it is, and may have had enough:
 * all plans that it makes count their steps in it, also those that are made side by side. NULL wherever it is passed:
 * nobody asks.
 *
 * Once the caller has had enough, `gy_planning_step` is false for ever. Who is told so stops as soon as that is easy,
 * with whatever it has: the entry discards all of it (gy_planning_end).
 */
#ifndef GY_SCHEDULER_PLAN_PLANNING_H
#define GY_SCHEDULER_PLAN_PLANNING_H

#include "base/ticks.h"
#include <gantry/schedule.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

typedef struct gy_planning {
    gantry_plan_progress_fn call;
    void *user;
    pthread_t caller; /* the only thread that calls */
    atomic_bool stopped;
    _Atomic uint64_t steps, plans;
    _Atomic int64_t best, bound; /* ticks; 0: not known */

    pthread_mutex_t lock; /* for what follows: plans that are made side by side */
    pthread_cond_t moved;
    uint32_t apart; /* threads that have not ended */
} gy_planning;

void gy_planning_begin(gy_planning *w, const gantry_schedule_options *options);
/* E_CANCELED if the caller had enough, whatever `status` is; else that. */
gantry_status gy_planning_end(gy_planning *w, gantry_status status, gantry_error *err);

/* A step of the effort. false: the caller had enough. */
bool gy_planning_step(gy_planning *w);
/* The same as a status: E_CANCELED. */
gantry_status gy_planning_check(gy_planning *w, gantry_error *err);
/* A plan was carried through; `makespan` is that of the whole graph, or 0. */
void gy_planning_plan(gy_planning *w, gy_ticks makespan);
/* No schedule of the whole graph is faster. */
void gy_planning_bound(gy_planning *w, gy_ticks bound);

/* A thread beside the caller's begins, which the caller says before it is there, and ends. */
void gy_planning_fork(gy_planning *w);
void gy_planning_join(gy_planning *w);
/* The caller tells of their steps until they have all ended. */
void gy_planning_await(gy_planning *w);

#endif
