/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Which tasks are ready: all their predecessors have a place. Every policy that does not simply follow the order of the
 * flow walks the tasks by this.
 */
#ifndef GY_SCHEDULER_POLICIES_LIST_READY_H
#define GY_SCHEDULER_POLICIES_LIST_READY_H

#include "scheduler/policies/list/ranks.h"

typedef struct gy_ready {
    const gy_flow *flow;
    gy_followers followers;
    uint32_t *waits; /* per list of predecessors: those that have no place yet */
    uint32_t *now;   /* what the last gy_ready_placed found: now[0 .. count), rising */
    size_t count;
} gy_ready;

bool gy_ready_init(gy_ready *r, const gy_plan *p); /* false: out of memory; to be freed all the same */
void gy_ready_free(gy_ready *r);
static inline bool gy_ready_is(const gy_ready *r, uint32_t task)
{
    return !r->waits[r->flow->list[task]];
}
/* The task has its place: finds the tasks that are ready now and were not. */
void gy_ready_placed(gy_ready *r, uint32_t task);

/* The priority that the user gave the node; larger goes earlier, before anything that a policy thinks. */
int gy_priority(const gy_plan *p, uint32_t task);

/* Places one task whose predecessors have their places. */
typedef gantry_status (*gy_place_one)(gy_plan *p, uint32_t task, void *context, gantry_error *err);

/* Of the tasks that are ready always the one of largest rank, the lower number of equals: `place` gets all of them.
 * rank[t] is asked only when t becomes ready. O(n log n) and what `place` takes. */
gantry_status gy_place_by_rank(gy_plan *p, const gy_rank *rank, gy_place_one place, void *context, gantry_error *err);

#endif
