/* SPDX-License-Identifier: Apache-2.0 */
/* Taking nodes away: later ones get lower numbers, so whatever names nodes by number follows. */
#include "graph/fuse/fuse.h"

#include "graph/build/build_state.h"
#include <string.h>

typedef struct compactor {
    gy_fuser *f;
    gantry_graph *g;
    uint32_t *number; /* by old number, and one more: the new one */
} compactor;

static void renumber_list(const compactor *c, uint32_t *at, size_t count)
{
    for (size_t i = 0; i < count; i++)
        at[i] = c->number[at[i]];
}

static void renumber(const compactor *c)
{
    gantry_graph *g = c->g;
    renumber_list(c, g->after.at, g->after.count);
    for (size_t i = 0; i < g->extra.count; i++) {
        renumber_list(c, g->extra.at[i].with.at, g->extra.at[i].with.count);
        renumber_list(c, g->extra.at[i].apart.at, g->extra.at[i].apart.count);
    }
    for (size_t i = 0; i < g->loops.count + g->inner.count; i++) {
        gy_loop *l = i < g->loops.count ? &g->loops.at[i] : &g->inner.at[i - g->loops.count];
        l->first_node = c->number[l->first_node];
        l->last_node = c->number[l->last_node];
    }
}

/* Accesses and scalars of nodes that are there, node by node. */
static bool move_operands(gantry_graph *g)
{
    GY_VEC(gy_access) access = { 0 };
    GY_VEC(gy_scalar) scalar = { 0 };
    bool ok = true;
    for (size_t i = 0; i < g->nodes.count; i++) {
        gy_node *n = &g->nodes.at[i];
        uint32_t from = n->access, first = n->scalar;
        n->access = (uint32_t)access.count;
        n->scalar = (uint32_t)scalar.count;
        for (uint32_t k = 0; k < n->accesses; k++)
            ok = gy_vec_push(&access, g->access.at[from + k]) && ok;
        for (uint32_t k = 0; k < n->scalars; k++)
            ok = gy_vec_push(&scalar, g->scalar.at[first + k]) && ok;
    }
    gy_vec_free(&g->access);
    gy_vec_free(&g->scalar);
    g->access.at = access.at;
    g->access.count = access.count;
    g->access.capacity = access.capacity;
    g->scalar.at = scalar.at;
    g->scalar.count = scalar.count;
    g->scalar.capacity = scalar.capacity;
    return ok;
}

/* Ids were held by the table of names. */
static bool rename_nodes(gantry_graph *g)
{
    gy_names names = { 0 };
    bool ok = true;
    for (size_t i = 0; i < g->nodes.count && ok; i++) {
        uint32_t name = gy_names_add(&names, g->nodes.at[i].id, NULL);
        ok = name != GY_NO_NAME;
        if (ok)
            g->nodes.at[i].id = gy_names_at(&names, name);
    }
    if (!ok) {
        gy_names_free(&names);
        return false;
    }
    gy_names_free(&g->node_names);
    g->node_names = names;
    return true;
}

bool gy_fuse_compact(gy_fuser *f)
{
    gantry_graph *g = f->graph;
    compactor c = { .f = f, .g = g, .number = gy_calloc(g->nodes.count + 1, sizeof *c.number) };
    uint32_t left = 0;
    if (!c.number)
        return false;
    for (size_t i = 0; i < g->nodes.count; i++) {
        c.number[i] = left;
        left += !f->gone[i];
    }
    c.number[g->nodes.count] = left;
    renumber(&c);
    for (size_t i = 0; i < g->nodes.count; i++)
        if (!f->gone[i])
            g->nodes.at[c.number[i]] = g->nodes.at[i];
    g->nodes.count = left;
    gy_free(c.number);
    return move_operands(g) && rename_nodes(g);
}
