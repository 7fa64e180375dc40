/* SPDX-License-Identifier: Apache-2.0 */
/* The devices that a graph names, or counts: is it the same on a machine that has fewer? */
#ifndef GY_SCHEDULER_DEVICES_WISHES_H
#define GY_SCHEDULER_DEVICES_WISHES_H

#include "graph/graph.h"
#include "machine/machine.h"

/* True if each `on` of the graph means the same device, or kind, on both machines, and `part` has the memories of all
 * external buffers. `part` has some of the devices of `whole`. */
bool gy_wishes_hold(const gantry_graph *graph, const gantry_machine *whole, const gantry_machine *part);

#endif
