/* SPDX-License-Identifier: Apache-2.0 */
/* Building: what a node has besides its work: order, place, cost. */
#include "graph/build/build_state.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static gy_node *open_node(gantry_graph *g, gantry_node node)
{
    return gy_building(g) ? gy_build_node(g, node) : NULL;
}

static gy_node_extra *open_extra(gantry_graph *g, gantry_node node)
{
    gy_node *n = open_node(g, node);
    return n ? gy_build_extra(g, n) : NULL;
}

/* The other of two different nodes exists. */
static gy_node *node_of_pair(gantry_graph *g, gantry_node node, gantry_node other, const char *what)
{
    gy_node *n = open_node(g, node);
    if (!n || !gy_build_node(g, other))
        return NULL;
    if (node.id == other.id) {
        gy_graph_mistake(g, GANTRY_E_GRAPH, "node \"%s\" cannot be %s itself; name another node", n->id, what);
        return NULL;
    }
    return n;
}

bool gy_build_copy_extra(gantry_graph *g, gy_node *n, uint32_t count)
{
    if (n->extra == GY_NONE)
        return true;
    gy_node_extra x = g->extra.at[n->extra];
    memset(&x.time, 0, sizeof x.time);
    memset(&x.rank_on, 0, sizeof x.rank_on);
    memset(&x.with, 0, sizeof x.with);
    memset(&x.apart, 0, sizeof x.apart);
    for (size_t i = 0; i < g->extra.at[n->extra].time.count; i++) {
        gy_node_time t = g->extra.at[n->extra].time.at[i];
        t.us /= count;
        if (!gy_vec_push(&x.time, t)) {
            gy_vec_free(&x.time);
            return false;
        }
    }
    n->extra = (uint32_t)g->extra.count;
    if (gy_vec_push(&g->extra, x))
        return true;
    gy_vec_free(&x.time);
    return false;
}

/* ---- order ---- */

void gantry_node_after(gantry_graph *graph, gantry_node node, gantry_node other)
{
    gy_node *n = node_of_pair(graph, node, other, "after");
    if (!n)
        return;
    bool ok;
    if (n->afters == 0 || n->after + n->afters == graph->after.count) {
        if (n->afters == 0)
            n->after = (uint32_t)graph->after.count;
        ok = graph->after.count < UINT32_MAX - 1 && gy_vec_push(&graph->after, other.id);
        n->afters += ok;
    } else {
        gy_late_after late = { node.id, other.id };
        ok = gy_vec_push(&graph->build_->late_after, late);
    }
    if (!ok)
        gy_build_nomem(graph);
}

void gantry_node_priority(gantry_graph *graph, gantry_node node, int priority)
{
    gy_node_extra *extra = open_extra(graph, node);
    if (extra)
        extra->priority = priority;
}

/* ---- place ---- */

static bool only_devices(void *context, const char *name)
{
    (void)context;
    return strcmp(name, "devices") == 0;
}

void gantry_node_on(gantry_graph *graph, gantry_node node, const char *where)
{
    gy_node *n = open_node(graph, node);
    if (!n)
        return;
    if (!where || !*where) {
        gy_graph_mistake(graph, GANTRY_E_GRAPH, "node \"%s\" is on \"\"; name a device, a kind, or an index", n->id);
        return;
    }
    if (!gy_build_is_plain(graph, "the place of a node,", where))
        return;
    /* "3" and "devices - 1" are expressions; "gpu0" and "nvidia-h200" use other names, so they are ids or kinds. */
    const gy_expr *expr;
    gantry_status status = gy_expr_parse(&expr, &graph->arena, where, strlen(where), GANTRY_E_GRAPH, NULL, NULL);
    if (status == GANTRY_OK && gy_expr_names(expr, only_devices, NULL)) {
        gy_node_on_expr(graph, node, expr);
        return;
    }
    gy_node_extra *extra = gy_build_extra(graph, n);
    if (extra) {
        extra->on = gy_build_string(graph, where);
        extra->on_expr = NULL;
    }
}

void gy_node_on_expr(gantry_graph *graph, gantry_node node, const gy_expr *expr)
{
    gy_node_extra *extra = open_extra(graph, node);
    if (!extra)
        return;
    if (!gy_expr_names(expr, only_devices, NULL)) {
        gy_graph_mistake(graph, GANTRY_E_GRAPH, "`on` of node \"%s\" uses a name that is not known; `devices` is",
                         graph->nodes.at[node.id].id);
        return;
    }
    extra->on = NULL;
    extra->on_expr = expr;
}

void gy_node_on_rank(gantry_graph *graph, gantry_node node)
{
    gy_node_extra *extra = open_extra(graph, node);
    if (!extra)
        return;
    if (graph->nodes.at[node.id].kind != GY_NODE_COLLECTIVE) {
        gy_graph_mistake(graph, GANTRY_E_GRAPH,
                         "`on` of node \"%s\" is a list; only a collective has a place for each rank, others have one",
                         graph->nodes.at[node.id].id);
        return;
    }
    if (!gy_vec_push(&extra->rank_on, ((gy_rank_place){ extra->on, extra->on_expr })))
        gy_build_nomem(graph);
    extra->on = NULL;
    extra->on_expr = NULL;
}

void gantry_node_on_ranks(gantry_graph *graph, gantry_node node, size_t ranks, const char *const *where)
{
    gy_node *n = open_node(graph, node);
    if (!n)
        return;
    if (n->extra != GY_NONE)
        graph->extra.at[n->extra].rank_on.count = 0;
    if (!ranks || !where)
        gy_graph_mistake(graph, GANTRY_E_GRAPH, "collective \"%s\" is on no devices; give one for each rank", n->id);
    for (size_t i = 0; i < ranks && where && !graph->error.status; i++) {
        gantry_node_on(graph, node, where[i]);
        gy_node_on_rank(graph, node);
    }
}

void gantry_node_with(gantry_graph *graph, gantry_node node, gantry_node other)
{
    gy_node *n = node_of_pair(graph, node, other, "with");
    gy_node_extra *extra = n ? gy_build_extra(graph, n) : NULL;
    if (extra && !gy_vec_push(&extra->with, other.id))
        gy_build_nomem(graph);
}

void gantry_node_apart(gantry_graph *graph, gantry_node node, gantry_node other)
{
    gy_node *n = node_of_pair(graph, node, other, "apart from");
    gy_node_extra *extra = n ? gy_build_extra(graph, n) : NULL;
    if (extra && !gy_vec_push(&extra->apart, other.id))
        gy_build_nomem(graph);
}

void gantry_node_algorithm(gantry_graph *graph, gantry_node node, const char *algorithm)
{
    gy_node *n = open_node(graph, node);
    if (!n)
        return;
    if (!algorithm || !*algorithm) {
        gy_graph_mistake(graph, GANTRY_E_INVALID,
                         "collective \"%s\" has an algorithm without a name; give \"auto\" or one "
                         "such as \"ring\"",
                         n->id);
        return;
    }
    if (n->kind != GY_NODE_COLLECTIVE) {
        gy_graph_mistake(graph, GANTRY_E_GRAPH, "node \"%s\" is no collective, so it has no algorithm", n->id);
        return;
    }
    gy_node_extra *extra = gy_build_extra(graph, n);
    if (extra)
        extra->algorithm = strcmp(algorithm, "auto") == 0 ? NULL : gy_build_string(graph, algorithm);
}

/* ---- a condition ---- */

bool gy_build_is_flag(gantry_graph *graph, const char *node, const gantry_region *flag, gy_access *found)
{
    if (!gy_building(graph) || !gy_region_resolve(graph, flag, found))
        return false;
    const gy_buffer *b = &graph->buffers.at[found->buffer];
    int64_t elements = gy_access_bytes(graph, found) / (int64_t)gantry_dtype_size(b->dtype);
    char seen[48];
    if (!b->tiles[0] && !b->split_auto && elements == 1)
        return true;
    snprintf(seen, sizeof seen, "%lld elements of it", (long long)elements);
    gy_graph_mistake(graph, GANTRY_E_GRAPH,
                     "%s%s%s has a when on \"%s\", %s; a flag is one element of a buffer without tiles and automatic "
                     "parts",
                     node ? "node \"" : "each node here", node ? node : "", node ? "\"" : "", b->name,
                     b->tiles[0]     ? "which is in tiles"
                     : b->split_auto ? "which is in automatic parts"
                                     : seen);
    return false;
}

static bool has_flag(const gantry_graph *g, const gy_node *n)
{
    return n->has_when || (n->extra != GY_NONE && g->extra.at[n->extra].meets);
}

void gy_build_flag(gantry_graph *graph, uint32_t node, gy_access flag)
{
    gy_node *n = node < GY_BEGINS ? &graph->nodes.at[node] : NULL;
    flag.mode = GANTRY_READ;
    flag.arg = GY_ARG_WHEN;
    if (!n || has_flag(graph, n)) {
        gy_more_flag more = { node, flag };
        if (!gy_vec_push(&graph->build_->more_flag, more))
            gy_build_nomem(graph);
    } else if (n->kind == GY_NODE_COLLECTIVE) {
        gy_node_extra *extra = gy_build_extra(graph, n);
        if (!extra)
            return;
        extra->meets = true;
        extra->flag = flag;
    } else {
        gy_build_push_access(graph, n, flag);
        n->has_when = true;
    }
}

/* The end of a repeat has given the nodes of it their flag, which a `when` cannot go before any more. */
static void say_second_flag(gantry_graph *g, const gy_node *n)
{
    if (!gy_build_merge(g)) {
        gy_build_nomem(g);
        return;
    }
    const gy_access *last = n->accesses ? &g->access.at[n->access + n->accesses - 1] : NULL;
    const gy_access *first = n->has_when ? last : &g->extra.at[n->extra].flag;
    if (gy_build_is_going(g, first->buffer))
        gy_graph_mistake(g, GANTRY_E_GRAPH,
                         "node \"%s\" is given a when behind the end of its repeat, whose until guards its nodes from "
                         "there on; call gantry_node_when before gantry_graph_repeat_end",
                         n->id);
    else
        gy_graph_mistake(g, GANTRY_E_GRAPH,
                         "node \"%s\" has two whens; one is allowed: compute one flag of both, such as the map "
                         "\"both = a * b\"",
                         n->id);
}

void gantry_node_when(gantry_graph *graph, gantry_node node, gantry_region flag)
{
    gy_node *n = open_node(graph, node);
    gy_access access;
    if (n && has_flag(graph, n))
        say_second_flag(graph, n);
    else if (n && gy_build_is_flag(graph, n->id, &flag, &access))
        gy_build_flag(graph, node.id, access);
}

/* ---- cost ---- */

void gantry_node_cost(gantry_graph *graph, gantry_node node, double flops, double bytes)
{
    gy_node *n = open_node(graph, node);
    if (!n)
        return;
    if (!(flops >= 0) || !(bytes >= 0) || isinf(flops) || isinf(bytes)) {
        gy_graph_mistake(graph, GANTRY_E_GRAPH,
                         "node \"%s\" costs %g flops and %g bytes; both must be finite and at least 0", n->id, flops,
                         bytes);
        return;
    }
    n->flops = flops;
    n->bytes = bytes;
    n->cost_given = true;
}

static bool same_device(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

void gantry_node_time(gantry_graph *graph, gantry_node node, const char *device, double time_us)
{
    gy_node_extra *extra = open_extra(graph, node);
    if (!extra)
        return;
    if (!(time_us >= 0) || isinf(time_us)) {
        gy_graph_mistake(graph, GANTRY_E_GRAPH, "node \"%s\" takes %g us; a time must be finite and at least 0",
                         graph->nodes.at[node.id].id, time_us);
        return;
    }
    if (device && !gy_build_is_plain(graph, "the device of a time,", device))
        return;
    for (size_t i = 0; i < extra->time.count; i++) {
        if (same_device(extra->time.at[i].device, device)) {
            extra->time.at[i].us = time_us;
            return;
        }
    }
    struct gy_node_time time = { device ? gy_build_string(graph, device) : NULL, time_us };
    if (!gy_vec_push(&extra->time, time))
        gy_build_nomem(graph);
}

void gantry_node_share(gantry_graph *graph, gantry_node node, double share)
{
    gy_node_extra *extra = open_extra(graph, node);
    if (!extra)
        return;
    if (!(share >= 0 && share <= 1)) {
        gy_graph_mistake(graph, GANTRY_E_GRAPH, "node \"%s\" fills %g of a device; 0 to 1 are allowed",
                         graph->nodes.at[node.id].id, share);
        return;
    }
    extra->share = share;
}

void gantry_node_scratch(gantry_graph *graph, gantry_node node, int64_t bytes)
{
    gy_node *n = open_node(graph, node);
    if (!n)
        return;
    if (bytes < 0) {
        gy_graph_mistake(graph, GANTRY_E_GRAPH, "node \"%s\" needs %lld bytes of scratch; it must be at least 0", n->id,
                         (long long)bytes);
        return;
    }
    n->scratch = bytes;
    n->scratch_given = true;
}
