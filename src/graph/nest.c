/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/nest.h"
#include <string.h>

/* The innermost of the inner loops that both nodes are in; GY_NONE: they share the outermost one only. */
static uint32_t common_loop(const gantry_graph *g, const gy_node *a, const gy_node *b)
{
    for (uint32_t i = a->inner; i != GY_NONE; i = g->inner.at[i].parent)
        for (uint32_t k = b->inner; k != GY_NONE && k >= i; k = g->inner.at[k].parent)
            if (i == k)
                return i;
    return GY_NONE;
}

void gy_node_partners(const gantry_graph *graph, const gy_node *node, const gy_node *other, int64_t iteration,
                      int64_t *first, int64_t *last)
{
    *first = 0;
    *last = gy_node_tasks(graph, other);
    if (other->loop == GY_NONE || other->loop != node->loop)
        return;
    uint32_t common = common_loop(graph, node, other);
    int64_t shared = common == GY_NONE ? 1 : graph->inner.at[common].turns;
    int64_t mine = gy_node_turns(graph, node), theirs = gy_node_turns(graph, other);
    if (shared == 0 || mine == 0)
        return; /* nothing of it runs */
    theirs /= shared;
    *first = iteration / (mine / shared) * theirs;
    *last = *first + theirs;
}

bool gy_node_index(const gantry_graph *graph, const gy_node *node, int64_t iteration, const char *name, int64_t *value)
{
    if (node->loop == GY_NONE)
        return false;
    for (uint32_t i = node->inner; i != GY_NONE; i = graph->inner.at[i].parent) {
        const gy_loop *l = &graph->inner.at[i];
        if (strcmp(l->index, name) == 0) {
            if (value)
                *value = l->count > 0 ? iteration % l->count : 0;
            return true;
        }
        iteration = l->count > 0 ? iteration / l->count : 0;
    }
    if (value)
        *value = iteration;
    return strcmp(graph->loops.at[node->loop].index, name) == 0;
}

/* Inner loops come before those around them when they are taken backwards. */
void gy_graph_count_tasks(gantry_graph *graph)
{
    for (size_t i = 0; i < gy_loop_count(graph); i++) {
        gy_loop *l = i < graph->loops.count ? &graph->loops.at[i] : &graph->inner.at[i - graph->loops.count];
        l->tasks = l->last_node - l->first_node;
    }
    for (size_t i = graph->inner.count; i-- > 0;) {
        const gy_loop *l = &graph->inner.at[i];
        gy_loop *around = l->parent == GY_NONE ? &graph->loops.at[l->top] : &graph->inner.at[l->parent];
        int64_t tasks = gy_turns_times(l->count, l->tasks), nodes = l->last_node - l->first_node;
        tasks = around->tasks - nodes + (tasks < GY_TURNS_MOST ? tasks : GY_TURNS_MOST);
        around->tasks = tasks < GY_TURNS_MOST ? tasks : GY_TURNS_MOST;
    }
}
