/* SPDX-License-Identifier: Apache-2.0 */
/* Where the optimiser steps a part of a weight: on the device that reads it, where all that read it say one; of
 * several, if weights are in shards or sums have one order, on one each in turn. Else the scheduler decides. */
#include "graph/adjoint/adjoint.h"
#include "graph/build/build_state.h"

#include <string.h>

static bool enough_devices(void *context, const char *name, int64_t *integer, double *real, bool *is_real)
{
    (void)context;
    *integer = INT32_MAX;
    *real = INT32_MAX;
    *is_real = false;
    return strcmp(name, "devices") == 0;
}

bool gy_adjoint_index(const gy_node_extra *x, int64_t *index)
{
    gantry_error none;
    return x->on_expr && !gy_expr_integer(x->on_expr, enough_devices, NULL, index, GANTRY_E_GRAPH, NULL, &none);
}

bool gy_adjoint_is_same_place(const gy_node_extra *a, const gy_node_extra *b)
{
    if (a->on && b->on)
        return strcmp(a->on, b->on) == 0;
    int64_t one, other;
    return gy_adjoint_index(a, &one) && gy_adjoint_index(b, &other) && one == other;
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
    if (count == 1 || a->graph->shards || a->graph->orders_sums)
        gy_adjoint_place(a, node, a->owner.at[turn % count]);
}
