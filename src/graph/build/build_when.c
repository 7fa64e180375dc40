/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A `when` within another. Its nodes run by an element of its own, "FLAG.both", which is filled with 0, and to which
 * the inner flag is then copied, by a node that runs by the outer one. So it is 0 where either is, of whatever dtype
 * they are, the inner flag may be one that only nodes under the outer one write, and nothing behind that knows of it
 * but the check (check_when.c), which finds that it is 0 where the outer one is.
 */
#include "graph/build/build.h"
#include "graph/build/build_state.h"

gantry_region gy_build_within(gantry_graph *graph, gantry_region outer, gantry_region inner)
{
    gy_access access;
    if (!gy_building(graph) || !gy_region_resolve(graph, &inner, &access))
        return inner;
    const gy_buffer *flag = &graph->buffers.at[access.buffer];
    bool unique = graph->build_->unique_ids;
    gantry_buffer both = gy_build_beside(graph, access.buffer, "both", flag->dtype, 1, &(int64_t){ 1 });
    const char *name = graph->error.status ? "" : graph->buffers.at[both.id].name;
    const char *clear = gy_arena_printf(&graph->arena, "clear.%s", name),
               *set = gy_arena_printf(&graph->arena, "set.%s", name);
    if (!clear || !set) {
        gy_build_nomem(graph);
        return inner;
    }
    graph->build_->unique_ids = false; /* the ids give way, too */
    gantry_graph_fill(graph, clear, gantry_all(both), 0);
    gantry_node_when(graph, gantry_graph_copy(graph, set, inner, gantry_all(both)), outer);
    graph->build_->unique_ids = unique;
    return gantry_all(both);
}
