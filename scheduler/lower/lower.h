/* SPDX-License-Identifier: Apache-2.0 */
/* Lowering: from placed tasks to a draft of instances and ops (lowering.h), and collectives found among its copies. */
#ifndef GY_SCHEDULER_LOWER_LOWER_H
#define GY_SCHEDULER_LOWER_LOWER_H

#include "scheduler/plan/plan.h"

/* The pass: instances, ops with their uses, and dependencies between ops. */
gantry_status gy_plan_lower(gy_plan *p, gantry_error *err);
/* The pass: puts one collective in place of a group of copies where that is no slower (find_collectives.h). */
gantry_status gy_plan_find_collectives(gy_plan *p, gantry_error *err);

#endif
