/* SPDX-License-Identifier: Apache-2.0 */
/* Arranging a placed graph so that it fits the memories: from the fastest way to the one that takes least. */
#ifndef GY_SCHEDULER_PIPELINE_FIT_H
#define GY_SCHEDULER_PIPELINE_FIT_H

#include "scheduler/plan/plan.h"

/* Order, stream and pack for a lowered graph; E_CAPACITY. */
gantry_status gy_plan_fit(gy_plan *p, gantry_error *err);
/* When that did not fit: lowers again for least memory, then spills (spill.h). E_CAPACITY. */
gantry_status gy_plan_fit_by_spilling(gy_plan *p, gantry_error *err);
/* E_CAPACITY if the draft in its own order has more in a memory at one op than fits, whatever its address (fit_live.c).
 * Says little: another way says more. */
gantry_status gy_plan_check_live_bytes(const gy_plan *p, gantry_error *err);

#endif
