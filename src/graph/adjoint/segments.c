/* SPDX-License-Identifier: Apache-2.0 */
/* Which nodes of the model are computed again together: those of a layer, of one piece of the batch and one stage. */
#include "base/error.h"
#include "graph/adjoint/recompute.h"
#include "graph/build/build_state.h"
#include "graph/repeat.h"

#include <stdlib.h>
#include <string.h>

/* ---- rows that are used together ---- */

static bool is_temporary(const gy_recompute *c, uint32_t buffer)
{
    const gy_buffer *b = &c->a->graph->buffers.at[buffer];
    return buffer < c->a->buffers && b->cls == GANTRY_TEMP && !b->output;
}

static int compare_rows(const void *one, const void *other)
{
    const gy_rows_used *a = one, *b = other;
    if (a->buffer != b->buffer)
        return a->buffer < b->buffer ? -1 : 1;
    if (a->first != b->first)
        return a->first < b->first ? -1 : 1;
    return (a->last > b->last) - (a->last < b->last);
}

/* Entries that have rows in common become one. */
static void join_rows(gy_recompute *c)
{
    size_t kept = 0;
    for (size_t i = 0; i < c->rows.count; i++) {
        gy_rows_used *last = kept ? &c->rows.at[kept - 1] : NULL, *one = &c->rows.at[i];
        if (!last || last->buffer != one->buffer || last->last <= one->first)
            c->rows.at[kept++] = *one;
        else if (one->last > last->last)
            last->last = one->last;
    }
    c->rows.count = kept;
    for (size_t i = kept; i-- > 0;)
        c->rows_of[c->rows.at[i].buffer] = (uint32_t)i;
    c->rows_of[c->a->buffers] = (uint32_t)kept;
    for (uint32_t b = c->a->buffers; b-- > 0;)
        if (c->rows_of[b] == GY_NONE)
            c->rows_of[b] = c->rows_of[b + 1];
}

static gantry_status find_rows(gy_recompute *c)
{
    const gantry_graph *g = c->a->graph;
    memset(c->rows_of, 0xff, (c->a->buffers + 1) * sizeof *c->rows_of);
    for (uint32_t i = 0; i < c->a->nodes; i++) {
        const gy_node *n = &g->nodes.at[i];
        for (uint32_t k = n->access; k < n->access + n->accesses; k++) {
            const gy_access *x = &g->access.at[k];
            gy_rows_used made = { x->buffer, x->first, x->last, GY_NONE, true, false, GY_NONE };
            if (x->first < x->last && is_temporary(c, x->buffer) && !gy_vec_push(&c->rows, made))
                return gy_fail_nomem(c->a->err);
        }
    }
    if (c->rows.count)
        qsort(c->rows.at, c->rows.count, sizeof *c->rows.at, compare_rows);
    join_rows(c);
    return GANTRY_OK;
}

gy_rows_used *gy_recompute_rows(const gy_recompute *c, const gy_access *x)
{
    if (x->buffer >= c->a->buffers)
        return NULL;
    uint32_t low = c->rows_of[x->buffer], end = c->rows_of[x->buffer + 1], high = end;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (c->rows.at[middle].last <= x->first)
            low = middle + 1;
        else
            high = middle;
    }
    return low < end && x->first < x->last ? &c->rows.at[low] : NULL;
}

/* ---- pieces of the batch ---- */

static uint32_t root_of(uint32_t *parent, uint32_t node)
{
    while (parent[node] != node)
        node = parent[node] = parent[parent[node]];
    return node;
}

static void unite(uint32_t *parent, uint32_t one, uint32_t other)
{
    one = root_of(parent, one);
    other = root_of(parent, other);
    parent[one > other ? one : other] = one < other ? one : other;
}

/* Is all that the node reads weights, or made of them alone? Then it is the same for all pieces. */
static bool is_of_weights(const gy_recompute *c, const uint8_t *fixed, uint32_t node)
{
    const gy_node *n = &c->a->graph->nodes.at[node];
    for (uint32_t k = n->access; k < n->access + n->accesses; k++) {
        const gy_access *x = &c->a->graph->access.at[k];
        if (x->mode == GANTRY_READ && !fixed[x->buffer])
            return false;
    }
    return true;
}

/* Rows that a reduction writes, or a node that is of no piece, say nothing about who belongs together. */
static void find_joins(gy_recompute *c, uint8_t *fixed)
{
    const gantry_graph *g = c->a->graph;
    for (size_t i = 0; i < c->a->weight.count; i++)
        fixed[c->a->weight.at[i]] = 1;
    for (uint32_t i = 0; i < c->a->nodes; i++) {
        const gy_node *n = &g->nodes.at[i];
        bool is_inside = gy_adjoint_is_on_path(c->a, i) && !is_of_weights(c, fixed, i);
        c->label[i] = is_inside ? 0 : GY_NONE;
        for (uint32_t k = n->access; k < n->access + n->accesses; k++) {
            const gy_access *x = &g->access.at[k];
            gy_rows_used *r = x->mode == GANTRY_READ ? NULL : gy_recompute_rows(c, x);
            if (r)
                r->joins = r->joins && is_inside && !gy_access_reduces(x);
            if (r)
                fixed[x->buffer] = !is_inside;
        }
    }
}

static gantry_status find_pieces(gy_recompute *c)
{
    const gantry_graph *g = c->a->graph;
    uint8_t *fixed = gy_calloc(c->a->buffers + 1, 1);
    uint32_t *user = gy_calloc(c->rows.count + 1, sizeof *user); /* one more than a node that uses the rows */
    if (fixed && user)
        find_joins(c, fixed);
    for (uint32_t i = 0; i < c->a->nodes; i++)
        c->piece[i] = i;
    for (uint32_t i = 0; fixed && user && i < c->a->nodes; i++) {
        const gy_node *n = &g->nodes.at[i];
        for (uint32_t k = n->access; k < n->access + n->accesses && c->label[i] != GY_NONE; k++) {
            const gy_rows_used *r = gy_recompute_rows(c, &g->access.at[k]);
            uint32_t *first = r && r->joins ? &user[r - c->rows.at] : NULL;
            if (first && *first)
                unite(c->piece, *first - 1, i);
            else if (first)
                *first = i + 1;
        }
    }
    for (uint32_t i = 0; i < c->a->nodes; i++)
        c->piece[i] = root_of(c->piece, i);
    gantry_status status = fixed && user ? GANTRY_OK : gy_fail_nomem(c->a->err);
    gy_free(fixed);
    gy_free(user);
    return status;
}

/* Chunks of a device differ by their turns in the backward pass, which are more than stages apart. */
static void find_stages(gy_recompute *c)
{
    uint32_t devices = c->a->graph->stage_devices;
    for (uint32_t i = 0; i < c->a->nodes && devices; i++) {
        const gy_node_extra *x = gy_node_extra_of(c->a->graph, i);
        int64_t place = 0;
        if (gy_adjoint_index(x, &place))
            c->stage[i] = (uint32_t)place / devices + (uint32_t)x->back_delay;
    }
}

/* ---- layers ---- */

/* Labels nodes by the uses of one depth. True: some piece has several. */
static bool label_uses(gy_recompute *c, uint32_t depth, uint32_t *first)
{
    const gy_build *b = c->a->graph->build_;
    bool has_several = false;
    memset(first, 0xff, c->a->nodes * sizeof *first);
    for (uint32_t i = 0; i < c->a->nodes; i++)
        c->label[i] = GY_NONE;
    for (uint32_t u = 0; u < b->uses.count; u++) {
        for (uint32_t i = b->uses.at[u].first; i < b->uses.at[u].last && b->uses.at[u].depth == depth; i++) {
            uint32_t *label = &first[c->piece[i]];
            has_several = has_several || (*label != GY_NONE && *label != u);
            *label = u;
            c->label[i] = u;
        }
    }
    return has_several;
}

/* Layers are the outermost uses of which a piece has several. False: there are none. */
static bool find_layers(gy_recompute *c, uint32_t *scratch)
{
    const gy_build *b = c->a->graph->build_;
    uint32_t deepest = 0;
    for (size_t u = 0; u < b->uses.count; u++)
        deepest = b->uses.at[u].depth > deepest ? b->uses.at[u].depth : deepest;
    for (uint32_t depth = 0; b->uses.count && depth <= deepest; depth++)
        if (label_uses(c, depth, scratch))
            return true;
    return false;
}

/* ---- segments ---- */

/* A node, with what it is sorted by. */
typedef struct place_of_node {
    uint32_t piece, stage, label, node;
} place_of_node;

static int compare_places(const void *one, const void *other)
{
    const place_of_node *a = one, *b = other;
    if (a->piece != b->piece)
        return a->piece < b->piece ? -1 : 1;
    if (a->stage != b->stage)
        return a->stage < b->stage ? -1 : 1;
    if (a->label != b->label)
        return a->label < b->label ? -1 : 1;
    return (a->node > b->node) - (a->node < b->node);
}

/* Nodes that have a label, in order of pieces, stages and labels. */
static gantry_status sort_nodes(gy_recompute *c)
{
    GY_VEC(place_of_node) all = { 0 };
    bool ok = true;
    c->order.count = 0;
    for (uint32_t i = 0; i < c->a->nodes && ok; i++) {
        place_of_node made = { c->piece[i], c->stage[i], c->label[i], i };
        ok = c->label[i] == GY_NONE || gy_vec_push(&all, made);
    }
    if (all.count)
        qsort(all.at, all.count, sizeof *all.at, compare_places);
    for (size_t i = 0; i < all.count && ok; i++)
        ok = gy_vec_push(&c->order, all.at[i].node);
    gy_vec_free(&all);
    return ok ? GANTRY_OK : gy_fail_nomem(c->a->err);
}

static bool is_same_stage(const gy_recompute *c, uint32_t one, uint32_t other)
{
    return c->piece[one] == c->piece[other] && c->stage[one] == c->stage[other];
}

size_t gy_recompute_stage_end(const gy_recompute *c, size_t first)
{
    size_t end = first + 1;
    while (end < c->order.count && is_same_stage(c, c->order.at[first], c->order.at[end]))
        end++;
    return end;
}

static gantry_status label_all(gy_recompute *c)
{
    uint32_t *scratch = gy_calloc(c->a->nodes + 1, sizeof *scratch);
    uint32_t *inside = gy_calloc(c->a->nodes + 1, sizeof *inside);
    bool ok = scratch && inside, has_layers = false;
    if (ok) {
        memcpy(inside, c->label, c->a->nodes * sizeof *inside);
        has_layers = find_layers(c, scratch);
        for (uint32_t i = 0; i < c->a->nodes; i++)
            c->label[i] = inside[i] == GY_NONE || !has_layers ? inside[i] : c->label[i];
    }
    gantry_status status = ok ? sort_nodes(c) : gy_fail_nomem(c->a->err);
    if (!status && !has_layers)
        status = gy_recompute_between(c);
    gy_free(scratch);
    gy_free(inside);
    return status;
}

/* The first layers of each stage, as many as are wanted. */
static gantry_status make_segments(gy_recompute *c)
{
    uint32_t before = 0;
    for (uint32_t first = 0, end; first < c->order.count; first = end) {
        uint32_t node = c->order.at[first];
        bool begins = !first || !is_same_stage(c, c->order.at[first - 1], node);
        gy_segment made = { .piece = c->piece[node], .stage = c->stage[node], .before = GY_NONE, .behind = GY_NONE };
        before = begins ? 0 : before + 1;
        made.is_kept = before >= (uint32_t)c->a->graph->recompute;
        for (end = first; end < c->order.count; end++) {
            uint32_t other = c->order.at[end];
            if (!is_same_stage(c, node, other) || c->label[other] != c->label[node])
                break;
            c->segment_of[other] = (uint32_t)c->segment.count;
        }
        made.first = first;
        made.last = end;
        if (!gy_vec_push(&c->segment, made))
            return gy_fail_nomem(c->a->err);
    }
    return GANTRY_OK;
}

/* ---- rows that can be made again ---- */

static bool can_make_again(const gantry_graph *g, uint32_t node)
{
    const gy_node *n = &g->nodes.at[node];
    return n->kind == GY_NODE_COPY ? g->access.at[n->access + 1].mode == GANTRY_WRITE : gy_node_remakes(g, node);
}

/* Rows that only one segment uses, and that its nodes write, all of them. */
static gantry_status find_again(gy_recompute *c)
{
    const gantry_graph *g = c->a->graph;
    uint8_t *seen = gy_calloc(c->rows.count + 1, 1), *kept = gy_calloc(c->rows.count + 1, 1);
    int64_t *written = gy_calloc(c->rows.count + 1, sizeof *written);
    bool ok = seen && kept && written;
    for (uint32_t i = 0; ok && i < c->a->nodes; i++) {
        const gy_node *n = &g->nodes.at[i];
        bool makes = c->segment_of[i] != GY_NONE && can_make_again(g, i);
        for (uint32_t k = n->access; k < n->access + n->accesses; k++) {
            gy_rows_used *r = gy_recompute_rows(c, &g->access.at[k]);
            if (!r)
                continue;
            size_t at = (size_t)(r - c->rows.at);
            bool writes = g->access.at[k].mode != GANTRY_READ;
            kept[at] = kept[at] || (seen[at] && r->segment != c->segment_of[i]) || (writes && !makes);
            written[at] += writes ? g->access.at[k].last - g->access.at[k].first : 0;
            r->segment = c->segment_of[i];
            seen[at] = 1;
        }
    }
    for (size_t i = 0; ok && i < c->rows.count; i++)
        if (kept[i] || written[i] != c->rows.at[i].last - c->rows.at[i].first)
            c->rows.at[i].segment = GY_NONE;
    gy_free(seen);
    gy_free(kept);
    gy_free(written);
    return ok ? GANTRY_OK : gy_fail_nomem(c->a->err);
}

gantry_status gy_recompute_segments(gy_recompute *c)
{
    GY_TRY(find_rows(c));
    GY_TRY(find_pieces(c));
    find_stages(c);
    GY_TRY(label_all(c));
    GY_TRY(sort_nodes(c));
    GY_TRY(make_segments(c));
    return find_again(c);
}
