/* SPDX-License-Identifier: Apache-2.0 */
/* What a schedule says of its graph. */
#ifndef GY_SCHEDULER_PLAN_METADATA_H
#define GY_SCHEDULER_PLAN_METADATA_H

#include "scheduler/plan/plan.h"

/* Names, sizes and options of the schedule. */
gantry_status gy_plan_metadata(gy_plan *p, gantry_error *err);

#endif
