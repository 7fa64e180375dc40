/* SPDX-License-Identifier: Apache-2.0 */
/* Results that nodes of the model write for their adjoints alone: the logarithms of attention, without which its
 * gradient would compute it again. They are buffers of the model, so that segments that are computed again have them,
 * too. */
#include "base/error.h"
#include "graph/adjoint/adjoint.h"
#include "graph/build/build_state.h"

#include <string.h>

static bool is_attention(const gantry_graph *g, uint32_t node)
{
    const gy_node *n = &g->nodes.at[node];
    const gy_kernel *k = n->kernel == GY_NONE ? NULL : &g->kernels.at[n->kernel];
    return k && !k->code && k->manifest == gantry_kernel_find("attention");
}

size_t gy_adjoint_count_kept(const gantry_graph *graph)
{
    size_t count = 0;
    for (uint32_t i = 0; i < graph->nodes.count; i++)
        count += is_attention(graph, i);
    return count;
}

/* The buffer of the logarithms of those rows of y, cut like that; `kept`: those that are there, by y. */
static gantry_buffer logarithms_of(gy_adjoint *a, uint32_t y, gantry_buffer *kept)
{
    const gy_buffer *b = &a->graph->buffers.at[y];
    if (!kept[y].graph)
        kept[y] =
            gy_adjoint_named(a, y, "lse", b->rank - 1, b->shape, b->dtype == GANTRY_F64 ? GANTRY_F64 : GANTRY_F32);
    return kept[y];
}

/* Each query has one logarithm: not so where tiles cut the elements of heads, whose pieces are heads of their own. */
static bool has_whole_heads(const gy_buffer *y)
{
    return y->rank >= 3 && (!y->tiles[0] || (y->rank <= GANTRY_TILE_AXES && y->tiles[y->rank - 1] == 1));
}

static void keep_logarithms(gy_adjoint *a, uint32_t node, gantry_buffer *kept)
{
    gantry_graph *g = a->graph;
    gy_primal p = { .node = node, .id = g->nodes.at[node].id, .manifest = gantry_kernel_find("attention") };
    const gy_access *y = gy_primal_access(a, &p, "y");
    if (!y || gy_primal_access(a, &p, "lse") || !has_whole_heads(&g->buffers.at[y->buffer]))
        return;
    gy_access rows = *y; /* adding a buffer may move it */
    gy_adjoint_come_from(g, node);
    gantry_buffer to = logarithms_of(a, rows.buffer, kept);
    gantry_node_arg(g, (gantry_node){ node, g->number }, "lse", gy_adjoint_rows(a, &rows, to));
}

gantry_status gy_adjoint_keep(gy_adjoint *a)
{
    gantry_graph *g = a->graph;
    gantry_buffer *kept = gy_calloc(a->buffers + 1, sizeof *kept);
    for (uint32_t i = 0; kept && i < a->nodes; i++)
        if (is_attention(g, i) && gy_adjoint_is_on_path(a, i))
            keep_logarithms(a, i, kept);
    bool ok = kept && gy_build_merge(g);
    gy_free(kept);
    GY_TRY(gy_adjoint_built(a));
    a->given_buffers = a->buffers;
    a->buffers = (uint32_t)g->buffers.count;
    return ok ? GANTRY_OK : gy_fail_nomem(a->err);
}

const gy_access *gy_adjoint_kept(const gy_adjoint *a, const gy_primal *p, const char *arg)
{
    const gantry_graph *g = a->graph;
    const gy_access *one = gy_primal_access(a, p, arg);
    if (one && one->buffer >= a->given_buffers)
        return one;
    for (uint32_t i = 0; i < a->nodes && one; i++) {
        const gy_node *n = &g->nodes.at[i];
        for (uint32_t k = n->access; k < n->access + n->accesses && one; k++) {
            const gy_access *x = &g->access.at[k];
            if (x != one && x->buffer == one->buffer && x->mode != GANTRY_READ && x->first < one->last &&
                one->first < x->last)
                one = NULL;
        }
    }
    return one;
}
