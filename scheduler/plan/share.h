/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Plans of one graph on one machine have much in common, which need not be worked out again: all of them have the same
 * costs and inputs, and those that differ only in how a placement is carried through have that.
 */
#ifndef GY_SCHEDULER_PLAN_SHARE_H
#define GY_SCHEDULER_PLAN_SHARE_H

#include "base/error.h"
#include "scheduler/plan/plan.h"

/* May other plans use the costs and inputs of this one, which is prepared? Not where nodes are kept apart: there the
 * costs have a plan for their devices, which changes while tasks are placed. */
bool gy_plan_may_be_like(const gy_plan *p);
/* Takes the costs and inputs of `p->like`, which stay there. */
gantry_status gy_plan_be_like(gy_plan *p, gantry_error *err);

/* A placement as a policy left it. */
typedef struct gy_placing {
    uint64_t way; /* hash of what an attempt asks of placing */
    bool overtakes;
    uint32_t *device, *order, *group_device;
    gy_ticks *start, *finish;
    uint32_t *team_device; /* of all teams, one after the other */
    uint8_t *team_way;     /* of each team: algorithm, provenance */
} gy_placing;

enum { GY_PLACINGS = 4 }; /* with and without the hope of replicas, and waits for readers elsewhere */

/* Of one policy, or of one candidate. */
typedef struct gy_placings {
    gy_placing at[GY_PLACINGS];
    uint32_t count;
} gy_placings; /* zero-initialised is ready */

/* Keeps the placement of a plan that has just been placed, while there is room. false: out of memory. */
bool gy_placings_keep(gy_placings *all, const gy_plan *p);
/* Gives the plan, which has been prepared and has room for a placement, the one that its policy would find. false: none
 * is kept for what its attempt asks. */
bool gy_placings_recall(const gy_placings *all, gy_plan *p);
void gy_placings_free(gy_placings *all);

#endif
