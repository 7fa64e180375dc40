/* SPDX-License-Identifier: Apache-2.0 */
/* HEFT as other policies use it. */
#ifndef GY_SCHEDULER_POLICIES_HEFT_H
#define GY_SCHEDULER_POLICIES_HEFT_H

#include "scheduler/policies/list/ranks.h"

/* Tasks by falling upward rank, each to the device where it ends first. */
gantry_status gy_heft(gy_plan *p, gy_rank_by by, gantry_error *err);

#endif
