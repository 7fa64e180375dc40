/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of gantry_graph_check. Each reports the first mistake in the order of the graph. */
#ifndef GY_GRAPH_CHECK_CHECK_H
#define GY_GRAPH_CHECK_CHECK_H

#include "graph/graph.h"

gantry_status gy_check_buffers(const gantry_graph *graph, gantry_error *err);
gantry_status gy_check_loops(const gantry_graph *graph, gantry_error *err);
/* Arguments, dtypes, overlaps, the manifests' own checks; sets the costs of nodes that were not given any. */
gantry_status gy_check_nodes(gantry_graph *graph, gantry_error *err);
gantry_status gy_check_collective(const gantry_graph *graph, const gy_node *node, gantry_error *err);
/* True if two accesses to one buffer or value have rows in common and do not both read. */
static inline bool gy_rows_conflict(const gy_access *a, const gy_access *b)
{
    bool share = a->first < b->last && b->first < a->last && a->first != a->last && b->first != b->last;
    return share && (a->mode != GANTRY_READ || b->mode != GANTRY_READ);
}
/* Accesses of one node that share rows of a buffer, not all reading. */
gantry_status gy_check_overlap(const gantry_graph *graph, const gy_node *node, gantry_error *err);
/* `with` and `apart` that contradict each other. */
gantry_status gy_check_groups(const gantry_graph *graph, gantry_error *err);
/* Fills graph->warnings. */
gantry_status gy_check_warn(gantry_graph *graph, gantry_error *err);

/* xxh64 of everything that a schedule depends on: sizes, accesses, order, place, cost; no names of files, no scalars.
 */
uint64_t gy_graph_hash(const gantry_graph *graph, bool *ok);

#endif
