/* SPDX-License-Identifier: Apache-2.0 */
/* The metadata of a schedule. */
#ifndef GY_SCHEDULER_PLAN_METADATA_H
#define GY_SCHEDULER_PLAN_METADATA_H

#include "scheduler/plan/options.h"
#include "scheduler/plan/plan.h"

/* Sets what every schedule says of its graph, machine and options, whether it has ops or phases. */
gantry_status gy_schedule_describe(gantry_schedule *s, const gantry_graph *graph, const gantry_machine *machine,
                                   const gy_options *options, gantry_error *err);
/* The same for the schedule of a plan, with its values and bounds. */
gantry_status gy_plan_metadata(gy_plan *p, const gy_options *options, gantry_error *err);
/* The bounds of a split buffer, copied into the schedule; nothing where it has no split. false: out of memory. */
bool gy_plan_add_bounds(gantry_schedule *s, const gy_buffer *b);

#endif
