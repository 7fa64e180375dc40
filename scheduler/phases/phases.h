/* SPDX-License-Identifier: Apache-2.0 */
/* Scheduling a graph in phases where it is not unrolled wholly. */
#ifndef GY_SCHEDULER_PHASES_H
#define GY_SCHEDULER_PHASES_H

#include "schedule/schedule.h"
#include "scheduler/plan/options.h"

/**
 * gy_objective_run for each phase of the graph, whose automatic splits have been cut (balance.h); for the graph as it
 * is where it has no phases. The schedule has been checked. Options are those of gy_options_read. E_UNSUPPORTED: what
 * phases cannot do, with the node.
 */
gantry_status gy_phases_run(gantry_schedule **schedule, gantry_graph *graph, const gantry_machine *machine,
                            const gy_options *options, gantry_error *err);

#endif
