/* SPDX-License-Identifier: Apache-2.0 */
/* Replicas of a model have equal parts of the batch, and the scheduler may cut these elsewhere for devices that are not
 * alike: parts are automatic splits once all nodes are there. Losses and gradients are sums over the examples of a
 * batch, so they do not depend on where it is cut. */
#include "graph/adjoint/adjoint.h"
#include "graph/build/build_state.h"

/* Rows that stay where they are would not follow the parts. */
static bool follows_parts(const gantry_graph *g, const gy_access *x)
{
    bool is_whole = x->first == 0 && x->last == g->buffers.at[x->buffer].rows;
    return !x->before && !x->after && !x->is_list && (x->part >= 0 || is_whole);
}

gantry_status gy_move_parts(gantry_graph *g, gantry_error *err)
{
    if (!g->moves_parts)
        return GANTRY_OK;
    uint8_t *stays = gy_calloc(g->buffers.count + 1, 1);
    if (!stays || !gy_build_merge(g)) {
        gy_free(stays);
        return gy_fail_nomem(err);
    }
    for (uint32_t i = 0; i < g->nodes.count; i++) {
        const gy_node *n = &g->nodes.at[i];
        for (uint32_t k = n->access; k < n->access + n->accesses; k++)
            if (!follows_parts(g, &g->access.at[k]))
                stays[g->access.at[k].buffer] = 1;
    }
    for (uint32_t i = 0; i < g->buffers.count; i++) {
        gy_buffer *b = &g->buffers.at[i];
        if (b->in_pieces && !stays[i] && b->parts && b->rows >= b->parts && !b->external)
            b->split_auto = true;
    }
    gy_free(stays);
    return GANTRY_OK;
}
