/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/alike.h"

#include "base/map.h"
#include <string.h>

static bool scalars_are_alike(const gy_scalar *a, const gy_scalar *b, uint32_t but)
{
    bool fixed = !a->dynamic && !b->dynamic && !a->expr && !b->expr;
    bool is_same = a->arg == but || (a->number.real == b->number.real && a->number.rest == b->number.rest);
    return fixed && a->arg == b->arg && is_same;
}

static bool tiles_are_alike(const gy_buffer *x, const gy_access *a, const gy_buffer *y, const gy_access *b)
{
    for (int64_t i = 0; i < a->last - a->first; i++)
        if (!gy_tiles_alike(x, a->first + i, y, b->first + i))
            return false;
    return true;
}

static bool accesses_are_alike(const gantry_graph *g, const gy_access *a, const gy_access *b)
{
    const gy_buffer *x = &g->buffers.at[a->buffer], *y = &g->buffers.at[b->buffer];
    if (a->arg != b->arg || a->mode != b->mode || a->is_list != b->is_list ||
        a->last - a->first != b->last - b->first || a->before != b->before || a->after != b->after)
        return false;
    if (x->dtype != y->dtype || x->rank != y->rank || !x->tile_offset != !y->tile_offset)
        return false;
    if (x->halo || y->halo)
        return false;
    return x->tile_offset ? tiles_are_alike(x, a, y, b)
                          : memcmp(x->shape, y->shape, (size_t)x->rank * sizeof *x->shape) == 0;
}

bool gy_nodes_are_alike(const gantry_graph *g, uint32_t first, uint32_t second)
{
    return gy_nodes_are_alike_but(g, first, second, GY_NONE);
}

bool gy_nodes_are_alike_but(const gantry_graph *g, uint32_t first, uint32_t second, uint32_t but)
{
    const gy_node *a = &g->nodes.at[first], *b = &g->nodes.at[second];
    if (g->orders_sums || a->kind != GY_NODE_KERNEL || b->kind != GY_NODE_KERNEL || a->kernel != b->kernel ||
        a->has_when || b->has_when || a->accesses != b->accesses || a->scalars != b->scalars ||
        a->scratch != b->scratch)
        return false;
    for (uint32_t i = 0; i < a->scalars; i++)
        if (!scalars_are_alike(&g->scalar.at[a->scalar + i], &g->scalar.at[b->scalar + i], but))
            return false;
    for (uint32_t i = 0; i < a->accesses; i++)
        if (!accesses_are_alike(g, &g->access.at[a->access + i], &g->access.at[b->access + i]))
            return false;
    return true;
}

uint64_t gy_node_likeness(const gantry_graph *g, uint32_t node)
{
    const gy_node *n = &g->nodes.at[node];
    uint64_t hash = gy_hash64(n->kernel) + n->accesses;
    for (uint32_t i = 0; i < n->accesses; i++) {
        const gy_access *a = &g->access.at[n->access + i];
        uint64_t rows = (uint64_t)(a->last - a->first), kind = (uint64_t)a->mode << 8 | g->buffers.at[a->buffer].dtype;
        hash = gy_hash64(gy_hash64(hash ^ rows) ^ kind);
    }
    return hash;
}
