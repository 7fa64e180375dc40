/* SPDX-License-Identifier: Apache-2.0 */
/* Where the data of tasks come from before anything is placed. */
#ifndef GY_SCHEDULER_PLACE_INPUTS_H
#define GY_SCHEDULER_PLACE_INPUTS_H

#include "scheduler/plan/plan.h"

/* The pass: bytes that each task reads from bound inputs, and the devices that each collective should use. */
gantry_status gy_plan_inputs(gy_plan *p, gantry_error *err);
/* The first entry of `outside` of this task, or of one behind it. */
size_t gy_outside_first(const gy_plan *p, uint32_t task);
/* Until what the task reads from bound inputs is in `memory`. */
gy_ticks gy_upload_time(const gy_plan *p, uint32_t task, uint32_t memory);

#endif
