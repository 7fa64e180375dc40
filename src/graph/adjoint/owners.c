/* SPDX-License-Identifier: Apache-2.0 */
/* Where the optimiser steps a part of a weight: on the device that reads it, where all that read it say one; of
 * several, if weights are in shards, on one each in turn. Else the scheduler decides. */
#include "graph/adjoint/adjoint.h"
#include "graph/build/build_state.h"

#include <string.h>

bool gy_adjoint_is_same_place(const gy_node_extra *a, const gy_node_extra *b)
{
    if (a->on && b->on)
        return strcmp(a->on, b->on) == 0;
    int64_t one, other;
    return a->on_expr && b->on_expr && gy_expr_is_integer(a->on_expr, &one) && gy_expr_is_integer(b->on_expr, &other) &&
           one == other;
}

/* Notes a node that is somewhere where none of those before is. False: nobody says where. */
static bool note_place(gy_adjoint *a, uint32_t node)
{
    const gy_node_extra *x = gy_node_extra_of(a->graph, node);
    if (!x->on && !x->on_expr)
        return false;
    for (size_t i = 0; i < a->owner.count; i++)
        if (gy_adjoint_is_same_place(gy_node_extra_of(a->graph, a->owner.at[i]), x))
            return true;
    if (!gy_vec_push(&a->owner, node))
        gy_build_nomem(a->graph);
    return true;
}

/* The nodes of the model that read rows of the weight, one for each place. False: some are nowhere. */
static bool find_places(gy_adjoint *a, uint32_t weight, int64_t first, int64_t last)
{
    const gantry_graph *g = a->graph;
    a->owner.count = 0;
    for (uint32_t i = 0; i < a->nodes; i++) {
        const gy_node *n = &g->nodes.at[i];
        for (uint32_t k = n->access; k < n->access + n->accesses; k++) {
            const gy_access *x = &g->access.at[k];
            if (x->buffer == weight && x->first < last && first < x->last && !note_place(a, i))
                return false;
        }
    }
    return a->owner.count > 0;
}

void gy_adjoint_own(gy_adjoint *a, gantry_node node, uint32_t weight, int64_t part)
{
    const gy_buffer *b = &a->graph->buffers.at[weight];
    int64_t first = b->parts ? b->part_first[part] : 0, last = b->parts ? b->part_first[part + 1] : b->rows;
    if (b->tiles[0])
        last = (first = part) + 1;
    if (!find_places(a, weight, first, last))
        return;
    size_t count = a->owner.count, turn = gy_adjoint_is_cut(b) ? (size_t)part : a->turn;
    if (count == 1 || a->graph->shards)
        gy_adjoint_place(a, node, a->owner.at[turn % count]);
}
