/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/repeat.h"

/* The library's own kernels are pure, unless they say that their sums vary. */
static bool is_pure(const gantry_kernel *manifest)
{
    bool own = gantry_kernel_find(manifest->name) == manifest;
    return !(manifest->flags & GANTRY_KERNEL_ORDER_VARIES) && (own || manifest->flags & GANTRY_KERNEL_PURE);
}

bool gy_node_repeats(const gantry_graph *graph, uint32_t node)
{
    const gy_node *n = &graph->nodes.at[node];
    bool kernel = n->kind == GY_NODE_KERNEL && is_pure(graph->kernels.at[n->kernel].manifest);
    bool moves = n->kind == GY_NODE_COLLECTIVE && !graph->extra.at[n->extra].op; /* and sums nothing up */
    if (n->has_when || (!kernel && !moves && n->kind != GY_NODE_FILL && n->kind != GY_NODE_WORK))
        return false;
    for (uint32_t i = 0; i < n->accesses; i++) {
        uint8_t mode = graph->access.at[n->access + i].mode;
        if (mode != GANTRY_READ && mode != GANTRY_WRITE && mode != GANTRY_READWRITE)
            return false;
    }
    return true;
}

bool gy_node_remakes(const gantry_graph *graph, uint32_t node)
{
    const gy_node *n = &graph->nodes.at[node];
    for (uint32_t i = 0; i < n->accesses; i++)
        if (graph->access.at[n->access + i].mode == GANTRY_READWRITE)
            return false;
    return gy_node_repeats(graph, node);
}
