/* SPDX-License-Identifier: Apache-2.0 */
/* Cutting a graph into phases, and deriving the graph of each: see graph/phase.h. */
#ifndef GY_GRAPH_DERIVE_PHASE_H
#define GY_GRAPH_DERIVE_PHASE_H

#include "graph/flow/unroll.h"
#include "graph/phase.h"

/* About how many tasks the iterations of one start make up: enough that starting costs little. */
#define GY_UNROLL_BODY 1024

/**
 * Cuts a sealed graph into phases. Loops with `until` are always cut out, others as long as the graph would unroll to
 * more than `most` tasks, largest first. None at all: the list stays empty, and the graph can be scheduled as it is.
 * E_UNSUPPORTED: what cannot be cut, with the node and the remedy.
 */
gantry_status gy_phases_plan(gy_phases *list, const gantry_graph *graph, int64_t most, gantry_error *err);
/**
 * The graphs of a list of phases, which may come from anywhere: E_SCHEDULE if it does not carry out the graph ("rule
 * phases: ..."). `graphs` has room for one a phase; each is the caller's and holds `graph`.
 */
gantry_status gy_phases_derive(gantry_graph **graphs, const gantry_graph *graph, const gy_phase *list, size_t count,
                               gantry_error *err);

#endif
