/* SPDX-License-Identifier: Apache-2.0 */
/* Which nodes can be carried out again, to the same effect. */
#ifndef GY_GRAPH_REPEAT_H
#define GY_GRAPH_REPEAT_H

#include "graph/graph.h"

/* True if what the node writes follows from what it reads, to the bit, and it does nothing else: a fill, work (which is
 * nothing but its accesses), a collective that moves rows and reduces none, a kernel of the library whose results do
 * not vary, another kernel whose manifest says so (GANTRY_KERNEL_PURE); and if it contributes to no reduction. One that
 * changes what it reads can be carried out again where those rows are as they were before. */
bool gy_node_repeats(const gantry_graph *graph, uint32_t node);
/* The same of nodes that change nothing they read, so that it does not matter whether the node was there before: what
 * they wrote can be made again after they have written it. */
bool gy_node_remakes(const gantry_graph *graph, uint32_t node);

#endif
