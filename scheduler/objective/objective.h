/* SPDX-License-Identifier: Apache-2.0 */
/* One schedule of a graph for what the options want least: the makespan, the period, or the load of a device. */
#ifndef GY_SCHEDULER_OBJECTIVE_OBJECTIVE_H
#define GY_SCHEDULER_OBJECTIVE_OBJECTIVE_H

#include "scheduler/plan/options.h"

/* The graph is sealed and has no phases. The schedule is verified. */
gantry_status gy_objective_run(gantry_schedule **schedule, gantry_graph *graph, const gantry_machine *machine,
                               const gy_options *options, gantry_error *err);

#endif
