/* SPDX-License-Identifier: Apache-2.0 */
/* Which pieces of the batch each node computes: from the rows of the batch on, node by node. A node that takes rows of
 * one piece computes that piece, whatever it does; one that takes rows of several has to have a rule. */
#include "base/error.h"
#include "graph/adjoint/adjoint.h"
#include "graph/build/build.h"
#include "graph/strategy/strategy.h"

#include <string.h>

/* ---- rows of pieces ---- */

/* The first entry that ends behind `row`. */
static size_t find_row(const gy_rows_of_pieces *rows, int64_t row)
{
    size_t low = 0, high = rows->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (rows->at[middle].last <= row)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Rows that are noted already were written before: what they hold now counts. */
static bool note_rows(gy_rows_of_pieces *rows, int64_t first, int64_t last, gy_piece_range pieces)
{
    gy_piece_rows made = { first, last, pieces };
    if (first >= last)
        return true;
    size_t at = find_row(rows, first);
    if (at < rows->count && rows->at[at].first < last) {
        bool is_same = rows->at[at].first == first && rows->at[at].last == last;
        rows->at[at].pieces = is_same ? pieces : rows->at[at].pieces;
        return true;
    }
    if (!gy_vec_push(rows, made))
        return false;
    memmove(&rows->at[at + 1], &rows->at[at], (rows->count - 1 - at) * sizeof *rows->at);
    rows->at[at] = made;
    return true;
}

/* The pieces that rows [first, last) of one entry belong to: whole ones, or the one that they are a part of. False:
 * they begin or end within one of several. */
static bool pieces_in(const gy_piece_rows *e, int64_t first, int64_t last, gy_piece_range *out)
{
    int64_t count = e->pieces.to - e->pieces.from, rows = e->last - e->first;
    int64_t from = count == 1 ? 0 : (first - e->first) * count / rows;
    int64_t to = count == 1 ? 1 : ((last - e->first) * count + rows - 1) / rows;
    *out = (gy_piece_range){ e->pieces.from + (uint32_t)from, e->pieces.from + (uint32_t)to };
    return to - from == 1 || ((first - e->first) * count % rows == 0 && (last - e->first) * count % rows == 0);
}

static void join(gy_piece_range *all, gy_piece_range one)
{
    if (all->from == all->to)
        *all = one;
    if (one.from != one.to) {
        all->from = one.from < all->from ? one.from : all->from;
        all->to = one.to > all->to ? one.to : all->to;
    }
}

/* Those of an access; *is_even: each has as many of its rows, and they follow each other. */
static gy_piece_range pieces_of(const gy_spreading *s, const gy_access *x, bool *is_even)
{
    const gy_rows_of_pieces *rows = &s->rows[x->buffer];
    gy_piece_range all = { 0, 0 };
    int64_t end = x->first;
    for (size_t i = find_row(rows, x->first); i < rows->count && rows->at[i].first < x->last; i++) {
        const gy_piece_rows *e = &rows->at[i];
        gy_piece_range one;
        int64_t first = e->first > x->first ? e->first : x->first, last = e->last < x->last ? e->last : x->last;
        bool is_whole = pieces_in(e, first, last, &one);
        int64_t per_piece = (last - first) / (one.to - one.from), before = all.to - all.from;
        *is_even = *is_even && is_whole && first == end &&
                   (!before || (one.from == all.to && per_piece * before == first - x->first));
        join(&all, one);
        end = last;
    }
    *is_even = *is_even && (end == x->last || all.from == all.to);
    return all;
}

/* ---- the batch ---- */

static gantry_status fail_parts(gy_spreading *s, uint32_t buffer)
{
    const gy_buffer *b = &s->graph->buffers.at[buffer];
    return gy_graph_fail(
        s->graph, b->origin, s->err, GANTRY_E_GRAPH,
        "buffer \"%.80s\" of the batch is split into %lld parts, and dp=%d, micro=%d, tp=%d are %u pieces: one "
        "has to be a multiple of the other, and of dp x micro; give a split of %u, by --param where the file has one",
        b->name, (long long)b->parts, (int)s->strategy.dp, (int)s->strategy.micro, (int)s->strategy.tp, s->pieces,
        s->pieces);
}

static gantry_status note_batch(gy_spreading *s, uint32_t buffer)
{
    const gy_buffer *b = &s->graph->buffers.at[buffer];
    int64_t parts = b->parts ? b->parts : 1, pieces = s->pieces, micro = pieces / s->strategy.tp;
    bool ok = true;
    if (b->split_auto || b->tiles[0])
        return gy_graph_fail(
            s->graph, b->origin, s->err, GANTRY_E_GRAPH,
            "buffer \"%.80s\" of the batch has %s; a strategy cuts it itself: give it a fixed split, or "
            "none",
            b->name, b->tiles[0] ? "tiles" : "automatic parts");
    if ((parts % pieces && pieces % parts) || (parts % micro && micro % parts))
        return fail_parts(s, buffer);
    for (int64_t i = 0; i < parts && ok; i++) {
        int64_t first = b->parts ? b->part_first[i] : 0, last = b->parts ? b->part_first[i + 1] : b->rows;
        gy_piece_range p = { (uint32_t)(i * pieces / parts), 0 };
        p.to = p.from + (uint32_t)(pieces > parts ? pieces / parts : 1);
        ok = note_rows(&s->rows[buffer], first, last, p);
    }
    return ok ? GANTRY_OK : gy_fail_nomem(s->err);
}

static gantry_status note_named(gy_spreading *s, size_t *count)
{
    for (size_t i = 0; i < s->options->batch_count; i++, (*count)++)
        GY_TRY(note_batch(s, gy_names_find(&s->graph->buffer_names, s->options->batch[i])));
    return GANTRY_OK;
}

/* Buffers that come from outside and are split already, where none is named. */
static gantry_status find_batch(gy_spreading *s)
{
    const gantry_graph *g = s->graph;
    size_t count = 0;
    GY_TRY(note_named(s, &count));
    for (uint32_t i = 0; i < g->buffers.count && !s->options->batch_count; i++) {
        if (s->writer[i] || s->is_weight[i] || !g->buffers.at[i].parts)
            continue;
        GY_TRY(note_batch(s, i));
        count++;
    }
    if (count)
        return GANTRY_OK;
    return gy_graph_fail(
        g, g->train_origin, s->err, GANTRY_E_GRAPH,
        "nothing says which buffers are the batch: no buffer that is only read is split, weights apart; "
        "name those whose rows are examples, \"batch\": [\"x\", \"labels\"]");
}

/* ---- nodes ---- */

static gantry_status fail_pieces(gy_spreading *s, uint32_t node, uint32_t pieces)
{
    gy_text known = { 0 };
    gy_kernels_text(&known, gy_spread_can_cut);
    gantry_status status =
        known.failed ? gy_fail_nomem(s->err)
                     : gy_node_fail(s->graph, s->err, node,
                                    "takes rows of %u pieces of the batch and cannot be cut into these; write it for "
                                    "each part of the batch, with \"for\", or use maps, reductions, copies and %s",
                                    pieces, known.at);
    gy_text_free(&known);
    return status;
}

/* Arguments that are cut are cut alike, and evenly. */
static gantry_status check_cut(gy_spreading *s, uint32_t node, const gy_cut_rule *rule)
{
    const gantry_graph *g = s->graph;
    const gy_node *n = &g->nodes.at[node];
    uint32_t count = gy_spread_count(s, node);
    for (uint32_t i = 0; i < gy_node_regions(n); i++) {
        const gy_access *x = &g->access.at[n->access + i];
        if (rule->role[i] == GY_CUT_ROWS && (x->last - x->first) % count)
            return gy_node_fail(
                s->graph, s->err, node,
                "takes %lld rows of \"%.60s\" for %u pieces of the batch (dp=%d, micro=%d, tp=%d); give a batch "
                "that %u divides, or other numbers",
                (long long)(x->last - x->first), g->buffers.at[x->buffer].name, count, (int)s->strategy.dp,
                (int)s->strategy.micro, (int)s->strategy.tp, s->pieces);
    }
    const gy_access *first = &g->access.at[n->access];
    int64_t rows = first->last - first->first;
    if (rule->whole && rows / count % rule->whole)
        return gy_node_fail(s->graph, s->err, node,
                            "takes %lld rows of \"%.60s\" for %u pieces of the batch (dp=%d, micro=%d, tp=%d), which "
                            "would begin within a sequence (\"length\"); give a batch of whole sequences that %u "
                            "divides, or other numbers",
                            (long long)rows, g->buffers.at[first->buffer].name, count, (int)s->strategy.dp,
                            (int)s->strategy.micro, (int)s->strategy.tp, s->pieces);
    return GANTRY_OK;
}

/* The pieces of what a node reads; *fits: it can be cut into them by its rule. What each piece reads whole may have
 * rows of all of them, as where each example is compared with all others. */
static gy_piece_range pieces_read(const gy_spreading *s, uint32_t node, const gy_cut_rule *rule, bool *fits)
{
    const gy_node *n = &s->graph->nodes.at[node];
    gy_piece_range all = { 0, 0 }, cut = { 0, 0 };
    bool has_rows = false, has_whole = false;
    *fits = rule->can_cut && !s->is_named[node];
    for (uint32_t i = 0; i < gy_node_regions(n); i++) {
        const gy_access *x = &s->graph->access.at[n->access + i];
        bool is_even = true;
        if (x->mode != GANTRY_READ && x->mode != GANTRY_READWRITE)
            continue;
        gy_piece_range one = pieces_of(s, x, &is_even);
        join(&all, one);
        if (one.from == one.to)
            continue;
        bool is_same = cut.from == cut.to || (one.from == cut.from && one.to == cut.to);
        has_rows = has_rows || rule->role[i] == GY_CUT_ROWS || rule->role[i] == GY_CUT_ALL;
        has_whole = has_whole || rule->role[i] == GY_CUT_WHOLE;
        *fits = *fits && is_same && (is_even || rule->role[i] != GY_CUT_ROWS);
        cut = one;
    }
    *fits = *fits && (has_rows || !has_whole);
    return all;
}

/* Rows that go with the batch are not in slices; pieces of a node in slices are those of whole micro-batches. */
static bool can_be_both(const gy_spreading *s, uint32_t node, const gy_cut_rule *rule)
{
    const gy_node *n = &s->graph->nodes.at[node];
    uint32_t slices = (uint32_t)s->strategy.tp;
    for (uint32_t i = 0; i < gy_node_regions(n); i++)
        if (rule->role[i] == GY_CUT_ROWS && s->slice[s->graph->access.at[n->access + i].buffer] == 0)
            return false;
    return !s->is_sliced[node] || (s->of[node].from % slices == 0 && s->of[node].to % slices == 0);
}

/* Do rows that the node writes belong to the pieces that it computes? Not what is reduced along the batch, where these
 * are several: also in a node that is in slices, which has those of a micro-batch all at once. */
static bool is_own(const gy_cut_rule *rule, const gy_access *x, uint32_t i, uint32_t pieces, bool is_cut)
{
    bool by_rule = is_cut || (pieces > 1 && rule->can_cut);
    return pieces && !gy_access_reduces(x) && (!by_rule || rule->role[i] == GY_CUT_ROWS);
}

static gantry_status look(gy_spreading *s, uint32_t node, gy_cut_role *role)
{
    const gantry_graph *g = s->graph;
    const gy_node *n = &g->nodes.at[node];
    gy_cut_rule rule;
    bool fits, ok = true;
    GY_TRY(gy_spread_rule(s, node, role, &rule));
    gy_piece_range pieces = pieces_read(s, node, &rule, &fits);
    s->of[node] = pieces;
    bool is_cut = gy_spread_count(s, node) > 1;
    if (is_cut && !(fits && can_be_both(s, node, &rule)))
        return fail_pieces(s, node, pieces.to - pieces.from);
    if (is_cut)
        GY_TRY(check_cut(s, node, &rule));
    for (uint32_t i = 0; i < gy_node_regions(n) && ok; i++) {
        const gy_access *x = &g->access.at[n->access + i];
        if (x->mode == GANTRY_READ)
            continue;
        ok = !is_own(&rule, x, i, pieces.to - pieces.from, is_cut) ||
             note_rows(&s->rows[x->buffer], x->first, x->last, pieces);
    }
    return ok ? GANTRY_OK : gy_fail_nomem(s->err);
}

gantry_status gy_spread_pieces(gy_spreading *s)
{
    uint32_t most = 0;
    for (size_t i = 0; i < s->graph->nodes.count; i++)
        most = s->graph->nodes.at[i].accesses > most ? s->graph->nodes.at[i].accesses : most;
    gy_cut_role *role = gy_calloc(most + 1, sizeof *role);
    gantry_status status = role ? find_batch(s) : gy_fail_nomem(s->err);
    for (uint32_t i = 0; i < s->graph->nodes.count && !status; i++)
        status = look(s, i, role);
    gy_free(role);
    return status;
}
