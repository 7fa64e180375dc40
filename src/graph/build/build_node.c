/* SPDX-License-Identifier: Apache-2.0 */
/* Building: adding nodes. */
#include "graph/build/build_state.h"

#include <stdio.h>
#include <string.h>

/* ---- ids ---- */

/* A copy of "id#k" with the first k that is free, counting on from the last time. */
static uint32_t add_numbered(gantry_graph *g, const char *id, uint32_t taken)
{
    uint64_t k = 1;
    gy_map_get(&g->build_->suffix, taken, &k);
    gy_text text = { 0 };
    uint32_t index = GY_NO_NAME;
    for (bool is_new = false; !is_new; k++) {
        text.length = 0;
        gy_text_printf(&text, "%s#%llu", id, (unsigned long long)k);
        index = text.failed ? GY_NO_NAME : gy_names_add(&g->node_names, text.at, &is_new);
        if (index == GY_NO_NAME)
            break;
    }
    gy_text_free(&text);
    return index != GY_NO_NAME && gy_map_put(&g->build_->suffix, taken, k) ? index : GY_NO_NAME;
}

/* Where the holder of a name was added, for the message: " at /nodes/3". */
static void say_taken(gantry_graph *g, const char *id, uint32_t taken)
{
    const gy_origin *o = &g->origins.at[g->nodes.at[taken].origin];
    if (o->pointer) {
        gy_graph_mistake(
            g, GANTRY_E_GRAPH,
            "node id \"%s\" is taken by the node at %s%s%s; ids are unique: put the indices of the loop into it", id,
            o->pointer, o->use ? " of " : "", o->use ? o->use->name : "");
    } else {
        gy_graph_mistake(g, GANTRY_E_GRAPH, "node id \"%s\" is taken by an earlier node; ids are unique", id);
    }
}

static uint32_t add_id(gantry_graph *g, const char *id)
{
    if (*id == '\0') {
        gy_graph_mistake(g, GANTRY_E_GRAPH, "an empty node id; leave it out or name the node");
        return GY_NO_NAME;
    }
    if (!gy_build_is_plain(g, "node id", id))
        return GY_NO_NAME;
    bool is_new;
    uint32_t index = gy_names_add(&g->node_names, id, &is_new);
    if (index != GY_NO_NAME && !is_new) {
        if (g->build_->unique_ids) {
            say_taken(g, id, index);
            return GY_NO_NAME;
        }
        index = add_numbered(g, id, index);
    }
    if (index == GY_NO_NAME)
        gy_build_nomem(g);
    return index;
}

/* ---- nodes ---- */

gy_node *gy_build_add_node(gantry_graph *graph, const char *id, const char *fallback, gy_node_kind kind)
{
    uint32_t origin = gy_build_origin(graph);
    uint32_t index = origin == GY_NONE ? GY_NO_NAME : add_id(graph, id ? id : fallback);
    if (index == GY_NO_NAME)
        return NULL;
    gy_node node = {
        .id = gy_names_at(&graph->node_names, index),
        .kind = (uint8_t)kind,
        .kernel = GY_NONE,
        .function = GY_NONE,
        .loop = graph->build_->open_loop,
        .inner = graph->build_->open_inner,
        .access = (uint32_t)graph->access.count,
        .scalar = (uint32_t)graph->scalar.count,
        .after = (uint32_t)graph->after.count,
        .extra = GY_NONE,
        .origin = origin,
    };
    if (!gy_vec_push(&graph->nodes, node)) {
        gy_build_nomem(graph);
        return NULL;
    }
    return gy_vec_last(&graph->nodes);
}

gy_node *gy_build_node(gantry_graph *graph, gantry_node node)
{
    if (!gy_graph_gave(graph, node.graph)) {
        gy_graph_mistake(graph, GANTRY_E_INVALID, GY_OTHER_GRAPH, "node", node.id, node.graph, graph->name,
                         graph->number);
        return NULL;
    }
    if (node.id >= graph->nodes.count) {
        gy_graph_mistake(graph, GANTRY_E_INVALID, "there is no node %u; the graph has %zu nodes", node.id,
                         graph->nodes.count);
        return NULL;
    }
    return &graph->nodes.at[node.id];
}

gy_node_extra *gy_build_extra(gantry_graph *graph, gy_node *node)
{
    if (node->extra == GY_NONE) {
        gy_node_extra extra = { .share = 1 };
        if (!gy_vec_push(&graph->extra, extra)) {
            gy_build_nomem(graph);
            return NULL;
        }
        node->extra = (uint32_t)graph->extra.count - 1;
    }
    return &graph->extra.at[node->extra];
}

gantry_node gantry_graph_kernel(gantry_graph *graph, const char *id, const char *kernel)
{
    gantry_node none = { GANTRY_NONE, 0 };
    if (!gy_building(graph))
        return none;
    uint32_t index = gy_build_kernel(graph, kernel);
    gy_node *node = index == GY_NONE ? NULL : gy_build_add_node(graph, id, kernel, GY_NODE_KERNEL);
    if (node)
        node->kernel = index;
    return gy_node_handle(graph, node);
}

gantry_node gy_graph_host_kernel(gantry_graph *graph, const char *id, const char *kernel)
{
    gantry_node none = { GANTRY_NONE, 0 };
    if (!gy_building(graph))
        return none;
    uint32_t index = gy_build_kernel(graph, kernel);
    if (index != GY_NONE && (graph->kernels.at[index].manifest->flags & GANTRY_KERNEL_NO_CPU)) {
        gy_graph_mistake(graph, GANTRY_E_GRAPH,
                         "kernel \"%s\" has no host version; name it by \"kernel\", not \"host\"", kernel);
        return none;
    }
    gy_node *node = index == GY_NONE ? NULL : gy_build_add_node(graph, id, kernel, GY_NODE_HOST);
    if (node)
        node->kernel = index;
    return gy_node_handle(graph, node);
}

static gantry_node add_function(gantry_graph *g, const char *id, gy_node_kind kind, gantry_kernel_fn function,
                                void *user)
{
    gantry_node none = { GANTRY_NONE, 0 };
    if (!gy_building(g))
        return none;
    const char *what = kind == GY_NODE_HOST ? "host" : "launch";
    if (!function) {
        gy_graph_mistake(g, GANTRY_E_INVALID, "%s node \"%s\" has no function; pass the function to call", what,
                         id ? id : what);
        return none;
    }
    gy_function f = { function, user };
    gy_function *last = g->functions.count ? gy_vec_last(&g->functions) : NULL;
    bool again = last && last->function == function && last->user == user;
    if (!again && !gy_vec_push(&g->functions, f)) {
        gy_build_nomem(g);
        return none;
    }
    gy_node *node = gy_build_add_node(g, id, what, kind);
    if (node)
        node->function = (uint32_t)g->functions.count - 1;
    return gy_node_handle(g, node);
}

gantry_node gantry_graph_launch(gantry_graph *graph, const char *id, gantry_kernel_fn function, void *user)
{
    return add_function(graph, id, GY_NODE_LAUNCH, function, user);
}

gantry_node gantry_graph_host(gantry_graph *graph, const char *id, gantry_kernel_fn function, void *user)
{
    return add_function(graph, id, GY_NODE_HOST, function, user);
}

gantry_node gantry_graph_work(gantry_graph *graph, const char *id)
{
    return gy_node_handle(graph, gy_building(graph) ? gy_build_add_node(graph, id, "work", GY_NODE_WORK) : NULL);
}

gantry_node gantry_graph_copy(gantry_graph *graph, const char *id, gantry_region from, gantry_region to)
{
    gy_node *node = gy_building(graph) ? gy_build_add_node(graph, id, "copy", GY_NODE_COPY) : NULL;
    if (node) {
        gy_build_access(graph, node, from, GANTRY_READ, 0, false);
        gy_build_access(graph, node, to, GANTRY_WRITE, 1, false);
    }
    return gy_node_handle(graph, node);
}

/* ---- fills ---- */

gantry_node gy_graph_fill_with(gantry_graph *graph, const char *id, gantry_region to, const gy_init *what)
{
    gy_node *node = gy_building(graph) ? gy_build_add_node(graph, id, "fill", GY_NODE_FILL) : NULL;
    gy_node_extra *extra = node ? gy_build_extra(graph, node) : NULL;
    if (!extra)
        return gy_node_handle(graph, NULL);
    extra->fill = *what;
    extra->fill.path = NULL;
    gy_build_access(graph, node, to, GANTRY_WRITE, 0, false);
    if (!graph->error.status)
        gy_init_is_valid(graph, what, graph->buffers.at[to.buffer.id].dtype, "the fill");
    return gy_node_handle(graph, node);
}

gantry_node gantry_graph_fill(gantry_graph *graph, const char *id, gantry_region to, double value)
{
    gy_init what = { .kind = GY_INIT_VALUE, .a = { .real = value } };
    return gy_graph_fill_with(graph, id, to, &what);
}

gantry_node gantry_graph_fill_uniform(gantry_graph *graph, const char *id, gantry_region to, uint64_t seed, double low,
                                      double high)
{
    gy_init what = { .kind = GY_INIT_UNIFORM, .seed = seed, .a = { .real = low }, .b = { .real = high } };
    return gy_graph_fill_with(graph, id, to, &what);
}

gantry_node gantry_graph_fill_iota(gantry_graph *graph, const char *id, gantry_region to)
{
    gy_init what = { .kind = GY_INIT_IOTA, .b = { .real = 1 } };
    return gy_graph_fill_with(graph, id, to, &what);
}

/* ---- collectives ---- */

gantry_node gantry_graph_collective(gantry_graph *graph, const char *id, gantry_collective kind, gantry_access op,
                                    size_t ins, const gantry_region *in, size_t outs, const gantry_region *out,
                                    int root)
{
    gantry_node none = { GANTRY_NONE, 0 };
    if (!gy_building(graph))
        return none;
    const char *name = gantry_collective_name(kind);
    if (!name || ins > UINT32_MAX / 2 || outs > UINT32_MAX / 2 || (ins && !in) || (outs && !out)) {
        gy_graph_mistake(
            graph, GANTRY_E_INVALID,
            "collective \"%s\" of kind %d with %zu regions in and %zu out; pass a gantry_collective and as "
            "many regions as you say",
            id ? id : "", (int)kind, ins, outs);
        return none;
    }
    gy_node *node = gy_build_add_node(graph, id, name, GY_NODE_COLLECTIVE);
    gy_node_extra *extra = node ? gy_build_extra(graph, node) : NULL;
    if (!extra)
        return none;
    extra->collective = kind;
    extra->op = op;
    extra->ins = (uint32_t)ins;
    extra->outs = (uint32_t)outs;
    extra->root = root;
    for (size_t i = 0; i < ins; i++)
        gy_build_access(graph, node, in[i], GANTRY_READ, (uint32_t)i, false);
    for (size_t i = 0; i < outs; i++)
        gy_build_access(graph, node, out[i], GANTRY_WRITE, (uint32_t)(ins + i), false);
    return gy_node_handle(graph, node);
}
