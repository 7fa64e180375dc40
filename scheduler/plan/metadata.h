/* SPDX-License-Identifier: Apache-2.0 */
/* What a schedule says of its graph. */
#ifndef GY_SCHEDULER_PLAN_METADATA_H
#define GY_SCHEDULER_PLAN_METADATA_H

#include "scheduler/plan/plan.h"

/* Names, sizes and options of the schedule. */
gantry_status gy_plan_metadata(gy_plan *p, gantry_error *err);
/* The bounds of a split buffer, copied into the schedule; nothing where it has no split. false: out of memory. */
bool gy_plan_add_bounds(gantry_schedule *s, const gy_buffer *b);

#endif
