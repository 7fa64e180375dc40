/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The promises of the plan to the pass that comes next (plan.h), as predicates for GY_ASSERT. Each looks at the part of
 * the plan that one pass has just filled, in a few times the steps that the pass itself took at least.
 */
#ifndef GY_SCHEDULER_PLAN_PROMISES_H
#define GY_SCHEDULER_PLAN_PROMISES_H

#include "scheduler/plan/plan.h"

bool gy_promises_cost(const gy_plan *p);      /* groups lead to their first node; times are not negative */
bool gy_promises_inputs(const gy_plan *p);    /* `outside` is sorted by task; teams are those of collectives */
bool gy_promises_placement(const gy_plan *p); /* every task has a device that can run it, and times */
bool gy_promises_draft(const gy_plan *p);     /* indices are in range; edges go forward and are grouped by `to` */
bool gy_promises_order(const gy_plan *p);     /* ops of the schedule use its instances; needs go forward */
bool gy_promises_lanes(const gy_plan *p);     /* every op has lanes, and a lane belongs to a device */
bool gy_promises_addresses(const gy_plan *p); /* instances are aligned and inside their slabs */
bool gy_promises_sync(const gy_plan *p);      /* rows of distance 0 go forward */

#endif
