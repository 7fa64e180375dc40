/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The passes of the scheduler, in order, over one plan (plan.h). Who wants a schedule of a graph for one policy makes a
 * plan, runs it, and takes the schedule out of it.
 */
#ifndef GY_SCHEDULER_PIPELINE_PIPELINE_H
#define GY_SCHEDULER_PIPELINE_PIPELINE_H

#include "scheduler/plan/options.h"
#include "scheduler/plan/plan.h"

/* Empty plan for a sealed graph; everything of it goes with gy_plan_free. `attempt` is borrowed; NULL: a plain one. */
gantry_status gy_plan_init(gy_plan *p, gantry_graph *graph, const gantry_machine *machine, const gy_policy *policy,
                           const gy_attempt *attempt, gantry_error *err);
void gy_plan_free(gy_plan *p);

/* The passes before the placement, and all up to and including it. */
gantry_status gy_plan_prepare(gy_plan *p, gantry_error *err);
gantry_status gy_plan_to_place(gy_plan *p, gantry_error *err);
/* The passes of gy_plan_run up to and including the placement: for who looks at it before it is lowered. Where it
 * fails, the plan can only be freed. */
gantry_status gy_plan_begin(gy_plan *p, const gy_options *options, gantry_error *err);
/* All passes for the plan's policy that are left, up to the simulation: the schedule has a makespan. */
gantry_status gy_plan_run(gy_plan *p, const gy_options *options, gantry_error *err);
/* Finishes the schedule that is returned: index and checker. */
gantry_status gy_plan_verify(gantry_schedule *s, const gantry_graph *graph, gantry_error *err);

/* The bound of a graph on a machine, as a plan finds it; `max_memory` as in gantry_schedule_options. */
gantry_status gy_pipeline_bound(gy_bound *bound, gantry_graph *graph, const gantry_machine *machine,
                                const char *max_memory, gantry_error *err);

#endif
