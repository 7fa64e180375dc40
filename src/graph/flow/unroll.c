/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/flow/unroll.h"

static bool shows_fewer(const gantry_graph *graph)
{
    for (size_t i = 0; i < graph->loops.count; i++)
        if (graph->loops.at[i].unrolled != graph->loops.at[i].count)
            return true;
    return false;
}

static bool may_end_early(const gantry_graph *graph)
{
    for (size_t i = 0; i < graph->loops.count; i++)
        if (graph->loops.at[i].until != GY_NONE && gy_loop_has_tasks(&graph->loops.at[i]))
            return true;
    return false;
}

bool gy_graph_needs_phases(const gantry_graph *graph)
{
    return shows_fewer(graph) || may_end_early(graph);
}

void gy_graph_fold(gantry_graph *graph)
{
    double tasks = 0;
    for (size_t i = 0; i < graph->loops.count; i++)
        tasks += gy_loop_tasks(&graph->loops.at[i]);
    bool folds = may_end_early(graph) || tasks + (double)graph->nodes.count > GY_UNROLL_MOST;
    for (size_t i = 0; i < graph->loops.count; i++) {
        gy_loop *l = &graph->loops.at[i];
        l->unrolled = folds && l->count > GY_ITERATIONS_SHOWN ? GY_ITERATIONS_SHOWN : l->count;
    }
}
