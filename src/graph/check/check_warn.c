/* SPDX-License-Identifier: Apache-2.0 */
/* Warnings: the graph is allowed to be so, but perhaps it was not meant. */
#include "base/error.h"
#include "graph/check/check.h"

/* The accesses to a buffer in one loop. */
enum { REDUCED = 1, RESET = 2 };

static void note_loop(const gantry_graph *g, const gy_loop *loop, uint8_t *notes)
{
    for (uint32_t i = loop->first_node; i < loop->last_node; i++) {
        const gy_node *n = &g->nodes.at[i];
        for (uint32_t k = 0; k < n->accesses; k++) {
            const gy_access *a = &g->access.at[n->access + k];
            notes[a->buffer] |= (uint8_t)(gy_access_reduces(a)                 ? REDUCED
                                          : gy_access_given(a) == GANTRY_WRITE ? RESET
                                                                               : 0);
        }
    }
    for (size_t k = 0; k < loop->carry.count; k++)
        notes[loop->carry.at[k].next] |= RESET; /* begins unwritten in every iteration */
    for (uint32_t i = loop->inner; i < loop->inner_last; i++)
        for (size_t k = 0; k < g->inner.at[i].carry.count; k++)
            notes[g->inner.at[i].carry.at[k].next] |= RESET;
}

/* Warns at the first node that contributes. */
static bool warn_loop(gantry_graph *g, const gy_loop *loop, uint8_t *notes)
{
    bool ok = true;
    for (uint32_t i = loop->first_node; i < loop->last_node; i++) {
        const gy_node *n = &g->nodes.at[i];
        for (uint32_t k = 0; k < n->accesses; k++) {
            const gy_access *a = &g->access.at[n->access + k];
            if (notes[a->buffer] != REDUCED || !gy_access_reduces(a) || loop->count <= 1)
                continue;
            notes[a->buffer] |= RESET; /* one warning a buffer */
            const char *text =
                gy_arena_printf(&g->arena,
                                "the reduction into \"%s\" is never reset inside its repeat, so every "
                                "iteration adds to the last; add a fill to the loop if that is not meant",
                                g->buffers.at[a->buffer].name);
            gy_warning warning = { n->origin, text };
            ok = ok && text && gy_vec_push(&g->warnings, warning);
        }
    }
    return ok;
}

static void forget_loop(const gantry_graph *g, const gy_loop *loop, uint8_t *notes)
{
    for (uint32_t i = loop->first_node; i < loop->last_node; i++) {
        const gy_node *n = &g->nodes.at[i];
        for (uint32_t k = 0; k < n->accesses; k++)
            notes[g->access.at[n->access + k].buffer] = 0;
    }
    for (size_t k = 0; k < loop->carry.count; k++)
        notes[loop->carry.at[k].next] = 0;
    for (uint32_t i = loop->inner; i < loop->inner_last; i++)
        for (size_t k = 0; k < g->inner.at[i].carry.count; k++)
            notes[g->inner.at[i].carry.at[k].next] = 0;
}

/* A collective of several ranks that the node is, or names in the list; GY_NONE: there is none. */
static uint32_t find_ranks(const gantry_graph *g, uint32_t node, const uint32_t *named, size_t count)
{
    if (gy_node_ranks(g, node) > 1)
        return node;
    for (size_t i = 0; i < count; i++)
        if (gy_node_ranks(g, named[i]) > 1)
            return named[i];
    return GY_NONE;
}

/* `on`, `with` and `apart` are about the one device of a node. One warning a node and key. */
static bool warn_ranks(gantry_graph *g, uint32_t node, const char *key, const uint32_t *named, size_t count)
{
    uint32_t of = find_ranks(g, node, named, count);
    if (of == GY_NONE)
        return true;
    const char *text = gy_arena_printf(&g->arena,
                                       "\"%s\" of node \"%s\" says nothing: collective \"%s\" has %u ranks, each on a "
                                       "device of its own; give `on` a list, a place for each rank",
                                       key, g->nodes.at[node].id, g->nodes.at[of].id, gy_node_ranks(g, of));
    gy_warning warning = { g->nodes.at[node].origin, text };
    return text && gy_vec_push(&g->warnings, warning);
}

static bool warn_places(gantry_graph *g)
{
    bool ok = true;
    for (uint32_t i = 0; ok && i < g->nodes.count; i++) {
        const gy_node_extra *e = gy_node_extra_of(g, i);
        if (e->on || e->on_expr)
            ok = warn_ranks(g, i, "on", NULL, 0);
        if (ok && e->with.count)
            ok = warn_ranks(g, i, "with", e->with.at, e->with.count);
        if (ok && e->apart.count)
            ok = warn_ranks(g, i, "apart", e->apart.at, e->apart.count);
    }
    return ok;
}

gantry_status gy_check_warn(gantry_graph *graph, gantry_error *err)
{
    if (!warn_places(graph))
        return gy_fail_nomem(err);
    if (graph->loops.count == 0)
        return GANTRY_OK;
    uint8_t *notes = gy_calloc(graph->buffers.count, 1);
    bool ok = notes != NULL;
    for (size_t i = 0; ok && i < graph->loops.count; i++) {
        note_loop(graph, &graph->loops.at[i], notes);
        ok = warn_loop(graph, &graph->loops.at[i], notes);
        forget_loop(graph, &graph->loops.at[i], notes);
    }
    gy_free(notes);
    return ok ? GANTRY_OK : gy_fail_nomem(err);
}

int gantry_graph_warning(const gantry_graph *graph, size_t i, gantry_error *warning)
{
    if (!graph || !warning || i >= graph->warnings.count)
        return 0;
    const gy_warning *w = &graph->warnings.at[i];
    gy_graph_fail(graph, w->origin, warning, GANTRY_OK, "%s", w->text);
    return 1;
}
