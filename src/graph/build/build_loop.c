/* SPDX-License-Identifier: Apache-2.0 */
/* Building: loops. */
#include "graph/build/build_state.h"
#include <string.h>

void gantry_graph_repeat(gantry_graph *graph, int64_t count)
{
    if (!gy_building(graph))
        return;
    if (graph->build_->open_loop != GY_NONE) {
        gy_graph_mistake(graph, GANTRY_E_GRAPH,
                         "a repeat inside a repeat; loops do not nest: end the first one before");
        return;
    }
    if (count < 0) {
        gy_graph_mistake(graph, GANTRY_E_GRAPH, "repeat %lld; the count must be at least 0", (long long)count);
        return;
    }
    gy_loop loop = { .count = count,
                     .first_node = (uint32_t)graph->nodes.count,
                     .last_node = UINT32_MAX,
                     .until = GY_NONE,
                     .origin = gy_build_origin(graph) };
    if (loop.origin == GY_NONE || !gy_vec_push(&graph->loops, loop)) {
        gy_build_nomem(graph);
        return;
    }
    graph->build_->open_loop = (uint32_t)graph->loops.count - 1;
}

/* The loop that is open, or NULL with the mistake noted. */
static gy_loop *open_loop(gantry_graph *g, const char *what)
{
    uint32_t open = g->build_->open_loop;
    if (open == GY_NONE) {
        gy_graph_mistake(g, GANTRY_E_GRAPH, "%s outside a repeat; begin one with gantry_graph_repeat", what);
        return NULL;
    }
    return &g->loops.at[open];
}

static bool is_carried(const gy_loop *loop, uint32_t buffer)
{
    for (size_t i = 0; i < loop->carry.count; i++)
        if (loop->carry.at[i].prev == buffer || loop->carry.at[i].next == buffer)
            return true;
    return false;
}

void gantry_graph_carry(gantry_graph *graph, gantry_buffer prev, gantry_buffer next)
{
    gy_loop *loop = gy_building(graph) ? open_loop(graph, "carry") : NULL;
    const gy_buffer *p = loop ? gy_build_buffer(graph, prev) : NULL;
    const gy_buffer *n = p ? gy_build_buffer(graph, next) : NULL;
    if (!n)
        return;
    if (prev.id == next.id) {
        gy_graph_mistake(graph, GANTRY_E_GRAPH, "buffer \"%s\" is carried into itself; name two buffers", p->name);
        return;
    }
    if (is_carried(loop, prev.id) || is_carried(loop, next.id)) {
        gy_graph_mistake(graph, GANTRY_E_GRAPH, "buffer \"%s\" is in two carried pairs of one repeat; one is allowed",
                         is_carried(loop, prev.id) ? p->name : n->name);
        return;
    }
    struct gy_carry pair = { prev.id, next.id };
    if (!gy_vec_push(&loop->carry, pair))
        gy_build_nomem(graph);
}

void gantry_graph_until(gantry_graph *graph, gantry_buffer flag, int64_t every)
{
    gy_loop *loop = gy_building(graph) ? open_loop(graph, "until") : NULL;
    if (!loop || !gy_build_buffer(graph, flag))
        return;
    if (every < 1) {
        gy_graph_mistake(graph, GANTRY_E_GRAPH, "until every %lld iterations; it must be at least 1", (long long)every);
        return;
    }
    if (loop->until != GY_NONE) {
        gy_graph_mistake(graph, GANTRY_E_GRAPH, "a repeat with two untils; one is allowed");
        return;
    }
    loop->until = flag.id;
    loop->every = every;
}

void gantry_graph_repeat_end(gantry_graph *graph)
{
    gy_loop *loop = gy_building(graph) ? open_loop(graph, "the end of a repeat") : NULL;
    if (loop) {
        loop->last_node = (uint32_t)graph->nodes.count;
        graph->build_->open_loop = GY_NONE;
    }
}
