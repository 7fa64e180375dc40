/* SPDX-License-Identifier: Apache-2.0 */
/* Which nodes one call of a back end can carry out together: see batches in schedule/schedule.h. */
#ifndef GY_GRAPH_ALIKE_H
#define GY_GRAPH_ALIKE_H

#include "graph/graph.h"

/* True if the nodes call one kernel in one way: its scalars are the same numbers, which do not change from start to
 * start or with the iteration; accesses agree one by one in argument, mode, element type, shape and halo; and both ask
 * for as much scratch. Nodes that are not of a kernel are alike to none, nor are nodes of a graph whose sums have one
 * order: a library may add up in another order for several, and which are together depends on the devices. */
bool gy_nodes_are_alike(const gantry_graph *graph, uint32_t a, uint32_t b);
/* Alike, whatever the number of argument `but` is. */
bool gy_nodes_are_alike_but(const gantry_graph *graph, uint32_t a, uint32_t b, uint32_t but);
/* The same number for nodes that are alike. */
uint64_t gy_node_likeness(const gantry_graph *graph, uint32_t node);

#endif
