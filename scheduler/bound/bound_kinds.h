/* SPDX-License-Identifier: Apache-2.0 */
/* The bound of machines whose devices are of several kinds (bound_kinds.c), and what it is worked out from. */
#ifndef GY_SCHEDULER_BOUND_BOUND_KINDS_H
#define GY_SCHEDULER_BOUND_BOUND_KINDS_H

#include "scheduler/plan/plan.h"

/* A task on a device of a kind: how long it takes, and for how long it keeps others from computing there. HUGE_VAL: it
 * cannot run there. */
typedef struct gy_kind_time {
    double time, hold;
} gy_kind_time;

/* Tasks with the dependencies between them that hold whatever memories are used. */
typedef struct gy_kind_work {
    uint32_t tasks, kinds; /* kinds: 0: there are too many */
    uint32_t *kind;        /* per device */
    uint32_t *count;       /* per kind: devices; 0: what it does costs nothing but time */
    gy_kind_time *time;    /* tasks x kinds */
    uint32_t *first, *before;
} gy_kind_work;

/* gy_kind_work_free in any case. */
gantry_status gy_kind_work_make(gy_kind_work *w, const gy_plan *p, uint32_t most, gantry_error *err);
void gy_kind_work_free(gy_kind_work *w);

/* The bound of this work; `chains` as below. */
gantry_status gy_kind_work_bound(const gy_kind_work *w, bool chains, double *most, gantry_error *err);
/* Prices of a device of each kind, at which the bound by shares of work is largest; those of all devices
 * that compute add up to 1. Work of time t on a device of price p costs p t of the makespan. */
gantry_status gy_kind_work_prices(const gy_kind_work *w, double *price, gantry_error *err);
/* Raises the bound *most to a makespan that is refuted (refute.c), of one start alone. */
gantry_status gy_kind_work_refute(const gy_kind_work *w, double *most, gantry_error *err);

/* Raises *most to the bound, where there are several kinds. `chains`: of one start alone, so that chains and sets of
 * tasks count, too. */
gantry_status gy_bound_kinds(const gy_plan *p, bool chains, gy_ticks *most, gantry_error *err);

#endif
