/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of gantry_graph_check. Each reports the first mistake in the order of the graph. */
#ifndef GY_GRAPH_CHECK_CHECK_H
#define GY_GRAPH_CHECK_CHECK_H

#include "graph/graph.h"

/* Nodes with `when` read what they may leave alone, too. */
gantry_status gy_check_keep(gantry_graph *graph, gantry_error *err);
gantry_status gy_check_buffers(const gantry_graph *graph, gantry_error *err);
gantry_status gy_check_loops(const gantry_graph *graph, gantry_error *err);
/* Arguments, dtypes, overlaps, the manifests' own checks; sets the costs of nodes that were not given any. */
gantry_status gy_check_nodes(gantry_graph *graph, gantry_error *err);
/* Collectives with a `when` as they were written: before gy_build_flags gives what they give to buffers of its own. */
gantry_status gy_check_meeting(const gantry_graph *graph, gantry_error *err);
gantry_status gy_check_collective(const gantry_graph *graph, const gy_node *node, gantry_error *err);
/* Accesses of one node that share rows of a buffer, not all reading. */
gantry_status gy_check_overlap(const gantry_graph *graph, const gy_node *node, gantry_error *err);
/* `with` and `apart` that contradict each other. */
gantry_status gy_check_groups(const gantry_graph *graph, gantry_error *err);
/* These add to graph->warnings. */
gantry_status gy_check_warn(gantry_graph *graph, gantry_error *err);
gantry_status gy_check_unwritten(gantry_graph *graph, gantry_error *err);
gantry_status gy_check_overwritten(gantry_graph *graph, gantry_error *err);
gantry_status gy_check_idle(gantry_graph *graph, gantry_error *err);

#endif
