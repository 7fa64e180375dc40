/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/flow/unroll.h"

bool gy_graph_is_folded(const gantry_graph *graph)
{
    for (size_t i = 0; i < graph->loops.count; i++)
        if (graph->loops.at[i].unrolled != graph->loops.at[i].count)
            return true;
    return false;
}

void gy_graph_fold(gantry_graph *graph)
{
    double tasks = 0;
    bool folds = false;
    for (size_t i = 0; i < graph->loops.count; i++) {
        folds = folds || (graph->loops.at[i].until != GY_NONE && gy_loop_has_tasks(&graph->loops.at[i]));
        tasks += gy_loop_tasks(&graph->loops.at[i]);
    }
    folds = folds || tasks + (double)graph->nodes.count > GY_UNROLL_MOST;
    for (size_t i = 0; i < graph->loops.count; i++) {
        gy_loop *l = &graph->loops.at[i];
        l->unrolled = folds && l->count > GY_ITERATIONS_SHOWN ? GY_ITERATIONS_SHOWN : l->count;
    }
}
