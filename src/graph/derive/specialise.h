/* SPDX-License-Identifier: Apache-2.0 */
/* The same graph with its automatic splits cut elsewhere. */
#ifndef GY_GRAPH_DERIVE_SPECIALISE_H
#define GY_GRAPH_DERIVE_SPECIALISE_H

#include "graph/graph.h"

/* Where an automatic split is cut: the first rows of its parts, and the end. */
typedef struct gy_cut {
    uint32_t buffer;
    const int64_t *first; /* parts + 1 */
} gy_cut;
/**
 * The sealed graph with its automatic splits cut so (those not named: into equal parts): regions, halos, costs and the
 * flow follow; ids, names, order and the hash stay. Costs and scratch that were given with a node are taken to be meant
 * for equal parts: they grow with the rows of the parts that the node names (scratch never shrinks). What does not
 * depend on bounds is the given graph's, which the new one holds. Nothing to change: another owner of the same graph.
 * E_INVALID: bounds that are none. E_GRAPH: a node that cannot do with them (its kernel wants equal shapes, say).
 */
gantry_status gy_graph_specialise(gantry_graph **out, const gantry_graph *graph, const gy_cut *cut, size_t cuts,
                                  gantry_error *err);

#endif
