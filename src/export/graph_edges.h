/* SPDX-License-Identifier: Apache-2.0 */
/* The edges of a picture of a graph: dependencies between nodes, where data come from and where results go. */
#ifndef GY_EXPORT_GRAPH_EDGES_H
#define GY_EXPORT_GRAPH_EDGES_H

#include "export/fold.h"

typedef struct gy_arrow {
    uint32_t from, to;  /* boxes; of inputs and outputs one is a buffer */
    uint32_t tasks[2];  /* of the flow, that it was found between; inputs and outputs: the node's, twice */
    uint32_t access;    /* inputs and outputs: index into graph->access */
    bool data, carried; /* carried: to the next iteration */
} gy_arrow;

typedef struct gy_arrows {
    const gantry_graph *graph;
    const gy_fold *fold;
    GY_VEC(gy_arrow) between, inputs, outputs;
} gy_arrows;

/* One arrow per pair of boxes within an iteration, one to the next iteration. Where every box is a node, order that
 * follows from data, through however many nodes, is left out. false: out of memory. */
bool gy_arrows_make(gy_arrows *arrows, const gy_fold *fold);
/* The regions that flow along an arrow between nodes: "x[3]", "A[1][2], A[2][2]". Not escaped. Appends. */
void gy_arrow_text(gy_text *to, const gy_arrows *arrows, const gy_arrow *arrow);
void gy_arrows_free(gy_arrows *arrows);

#endif
