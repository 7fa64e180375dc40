/* SPDX-License-Identifier: Apache-2.0 */
/* The pipeline split, as a function of loads; split.c. */
#ifndef GY_SCHEDULER_POLICIES_SPLIT_SPLIT_H
#define GY_SCHEDULER_POLICIES_SPLIT_SPLIT_H

#include "scheduler/load/load.h"
#include "scheduler/policies/split/ideals.h"

typedef struct gy_split_limits {
    uint32_t ideals; /* more than these, or... */
    uint64_t steps;  /* ...more than these steps from ideal to ideal: only cuts of one line are tried */
    uint32_t line;   /* ideals of that line */
} gy_split_limits;
/* For the objective "max_load": seconds at most. For a policy among many: a tenth of one. */
#define GY_SPLIT_LIMITS ((gy_split_limits){ 1000000, 16000000, 2048 })
#define GY_SPLIT_QUICK  ((gy_split_limits){ 10000, 400000, 512 })

/* Where a unit lies in the pipeline. */
typedef struct gy_split_position {
    double at, tie;
    bool loose; /* one task, made of nothing but sources */
} gy_split_position;

static inline bool gy_split_is_before(gy_split_position a, gy_split_position b)
{
    return a.at < b.at || (a.at <= b.at && a.tie < b.tie);
}

/* at: per unit (split_position.c). */
gantry_status gy_split_positions(gy_split_position *at, const gy_load *l, gantry_error *err);

/* Orders of units, without the circles that units make (split_order.c). */
typedef struct gy_split_orders {
    gy_precedence all;  /* what has to be before what */
    gy_precedence tied; /* the same, and sources are just before their first readers: fewer ideals */
    gy_precedence line; /* only `order`: by position */
    bool circles;
    gy_precedence numbered; /* with circles: those dependencies that go up in the numbers of units, and what of the
                             * others closes no circle */
} gy_split_orders;
/* gy_split_orders_free in any case. */
gantry_status gy_split_orders_make(gy_split_orders *o, const gy_load *l, gantry_error *err);
void gy_split_orders_free(gy_split_orders *o);

/*
 * The split of least load whose parts are consecutive, one on each device, by the loads of a part alone (exact where
 * all transfers go through host memory). *device: per unit, yours (gy_free). *load: by that count. *all: every ideal
 * was looked at. *device stays NULL when no such split fits the memories.
 */
gantry_status gy_split_best(const gy_load *l, const gy_split_limits *limits, uint32_t **device, gy_ticks *load,
                            bool *all, gantry_error *err);

/* That split; where none fits, all on the first device that can; then what is kept apart is moved apart. *device: per
 * unit, yours. */
gantry_status gy_split_assign(const gy_load *l, const gy_split_limits *limits, uint32_t **device, gantry_error *err);

/* Places the plan's tasks by upward rank on the devices of their units. */
gantry_status gy_split_place(gy_plan *p, const gy_load *l, const uint32_t *device, gantry_error *err);

#endif
