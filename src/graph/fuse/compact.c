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
    return gy_build_regroup(g);
}
