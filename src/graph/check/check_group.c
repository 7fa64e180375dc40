/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes that must be on one device (`with`) and nodes that must not (`apart`). Collectives of several ranks are left
 * out: they have no one device. */
#include "base/error.h"
#include "graph/check/check.h"

static uint32_t find(uint32_t *up, uint32_t i)
{
    while (up[i] != i) {
        up[i] = up[up[i]]; /* halving the path keeps it short */
        i = up[i];
    }
    return i;
}

static void join_all(const gantry_graph *g, uint32_t *up)
{
    for (uint32_t i = 0; i < g->nodes.count; i++) {
        const gy_node_extra *e = gy_node_extra_of(g, i);
        for (size_t k = 0; k < e->with.count; k++)
            if (gy_nodes_have_one_device(g, i, e->with.at[k]))
                up[find(up, i)] = find(up, e->with.at[k]);
    }
}

static gantry_status check_apart(const gantry_graph *g, uint32_t *up, uint32_t node, gantry_error *err)
{
    const gy_node_extra *e = gy_node_extra_of(g, node);
    for (size_t k = 0; k < e->apart.count; k++) {
        if (gy_nodes_have_one_device(g, node, e->apart.at[k]) && find(up, node) == find(up, e->apart.at[k])) {
            return gy_graph_fail(
                g, g->nodes.at[node].origin, err, GANTRY_E_GRAPH,
                "node \"%s\" is apart from \"%s\" and, by `with`, on the same device; drop one of both",
                g->nodes.at[node].id, g->nodes.at[e->apart.at[k]].id);
        }
    }
    return GANTRY_OK;
}

gantry_status gy_check_groups(const gantry_graph *graph, gantry_error *err)
{
    bool any = false;
    for (size_t i = 0; i < graph->extra.count; i++)
        any |= graph->extra.at[i].apart.count > 0;
    if (!any)
        return GANTRY_OK;
    uint32_t *up = gy_calloc(graph->nodes.count, sizeof *up);
    if (!up)
        return gy_fail_nomem(err);
    for (uint32_t i = 0; i < graph->nodes.count; i++)
        up[i] = i;
    join_all(graph, up);
    gantry_status status = GANTRY_OK;
    for (uint32_t i = 0; i < graph->nodes.count && !status; i++)
        status = check_apart(graph, up, i, err);
    gy_free(up);
    return status;
}
