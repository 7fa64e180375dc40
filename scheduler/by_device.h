/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Replay "auto" where what workers of resident kernels take was measured: the plan for launches is held against what
 * the GPUs would take if they carried starts out by themselves.
 */
#ifndef GY_SCHEDULER_BY_DEVICE_H
#define GY_SCHEDULER_BY_DEVICE_H

#include "scheduler/plan/options.h"

/* The schedule of a sealed graph, planned as workers would carry it out where they have code for all of it, else as if
 * it were launched. */
gantry_status gy_by_device_plan(gantry_schedule **schedule, gantry_graph *graph, const gantry_machine *machine,
                                const gy_options *options, gantry_error *err);
/* *is_faster: the schedule, made for launches, becomes one for the devices, since a start is predicted to take much
 * less time so. Notes both times in it. */
gantry_status gy_by_device_try(gantry_schedule **schedule, gantry_graph *graph, const gantry_machine *machine,
                               const gy_options *options, bool *is_faster, gantry_error *err);

#endif
