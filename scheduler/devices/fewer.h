/* SPDX-License-Identifier: Apache-2.0 */
/**
 * How many devices take part. Policies and the search spread work over all devices there are, and with more of them
 * their guesses get worse; so the graph is also planned for the first one, two, three, ... devices of the machine
 * alone, and the schedule that ends first stays, however many devices it leaves idle.
 *
 * Counts for which even the bound is no better than what is at hand are left out; large graphs try few of the others.
 */
#ifndef GY_SCHEDULER_DEVICES_FEWER_H
#define GY_SCHEDULER_DEVICES_FEWER_H

#include "scheduler/plan/options.h"

/* The schedule of a sealed graph, whose buffers have a home on the machine; verified. */
gantry_status gy_fewer_run(gantry_schedule **schedule, gantry_graph *graph, const gantry_machine *machine,
                           const gy_options *options, gantry_error *err);

#endif
