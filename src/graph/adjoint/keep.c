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

/* The shape of y of a node: elements of a head and queries of a sequence where heads lie side by side in rows, else 0.
 */
typedef struct result {
    gy_access rows;
    int64_t dim, queries;
} result;

/* The buffer of the logarithms of those rows of y, cut like that; `kept`: those that are there, by y. */
static gantry_buffer logarithms_of(gy_adjoint *a, const result *r, gantry_buffer *kept)
{
    uint32_t y = r->rows.buffer;
    const gy_buffer *b = &a->graph->buffers.at[y];
    gantry_dtype dtype = b->dtype == GANTRY_F64 ? GANTRY_F64 : GANTRY_F32;
    if (!kept[y].graph && r->dim) {
        const int64_t shape[] = { b->shape[0] / r->queries, b->shape[1] / r->dim, r->queries };
        kept[y] = gy_adjoint_named(a, y, "lse", 3, shape, dtype);
    } else if (!kept[y].graph) {
        kept[y] = gy_adjoint_named(a, y, "lse", b->rank - 1, b->shape, dtype);
    }
    return kept[y];
}

/* Each query has one logarithm: not so where tiles cut the elements of heads, whose pieces are heads of their own. */
static bool has_whole_heads(const gy_buffer *y)
{
    return y->rank >= 3 && (!y->tiles[0] || (y->rank <= GANTRY_TILE_AXES && y->tiles[y->rank - 1] == 1));
}

/* Where heads lie side by side logarithms have a row for each sequence: the node has whole ones, and so has each part;
 * and where other nodes have theirs they are as long, and have as many heads. */
static bool has_whole_sequences(const gantry_graph *g, const result *r, const gantry_buffer *kept)
{
    const gy_buffer *y = &g->buffers.at[r->rows.buffer];
    const int64_t *shape = kept->graph ? g->buffers.at[kept->id].shape : NULL;
    int64_t n = r->queries;
    bool is_cut_within = y->parts && y->shape[0] / (n ? n : 1) % y->parts;
    return n > 0 && !y->tiles[0] && !is_cut_within && y->shape[0] % n == 0 && r->rows.first % n == 0 &&
           r->rows.last % n == 0 && (!shape || (shape[2] == n && shape[1] == y->shape[1] / r->dim));
}

static int64_t number_of(const gy_adjoint *a, const gy_primal *p, const char *name)
{
    const gy_scalar *s = gy_primal_scalar(a, p, name);
    return s ? (int64_t)s->number.real : 0;
}

static void keep_logarithms(gy_adjoint *a, uint32_t node, gantry_buffer *kept)
{
    gantry_graph *g = a->graph;
    gy_primal p = { .node = node, .id = g->nodes.at[node].id, .manifest = gantry_kernel_find("attention") };
    const gy_access *y = gy_primal_access(a, &p, "y");
    if (!y || gy_primal_access(a, &p, "lse"))
        return;
    result r = { .rows = *y, .dim = number_of(a, &p, "dim") }; /* adding a buffer may move y */
    int64_t length = number_of(a, &p, "length");
    if (r.dim)
        r.queries = length ? length : y->last - y->first;
    if (r.dim ? !has_whole_sequences(g, &r, &kept[y->buffer]) : !has_whole_heads(&g->buffers.at[y->buffer]))
        return;
    gy_adjoint_come_from(g, node);
    gantry_buffer to = logarithms_of(a, &r, kept);
    r.rows.first /= r.dim ? r.queries : 1;
    r.rows.last /= r.dim ? r.queries : 1;
    gantry_node_arg(g, (gantry_node){ node, g->number }, "lse", gy_adjoint_rows(a, &r.rows, to));
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
