/* SPDX-License-Identifier: Apache-2.0 */
/* A sum that nodes of several places give to becomes one sum for each place, in a buffer of its own, and a map that
 * adds these up. The order of additions follows from the graph then, and not from which places are one device; and a
 * place waits for no other before it adds. */
#include "base/error.h"
#include "graph/adjoint/adjoint.h"
#include "graph/build/build_state.h"

#include <stdio.h>
#include <stdlib.h>

enum { PLACES = GY_MATHS_ARGS - 1 }; /* the map has the total, too */

/* Rows of a buffer that a node uses. */
typedef struct row_use {
    uint32_t buffer, node, access;
    int64_t first, last;
    bool adds;
} row_use;

/* The sum of all that nodes of the place of `node` give to the buffer. */
typedef struct place_sum {
    uint32_t buffer, node;
    gantry_buffer made;
} place_sum;

typedef struct partial_sums {
    gantry_graph *g;
    gy_arena scratch;
    GY_VEC(row_use) use; /* of buffers that are added to: by buffer, then rows, then node */
    GY_VEC(place_sum) sum;
    GY_VEC(uint64_t) total; /* maps: the node each comes behind << 32 | its own number */
} partial_sums;

/* Uses [first, last) add to the same rows; [begin, end) are all of their buffer. */
typedef struct sum_range {
    size_t first, last, begin, end;
    uint32_t node; /* the last that adds */
    uint32_t places, place[PLACES];
} sum_range;

/* ---- which sums ---- */

static int compare_uses(const void *one, const void *other)
{
    const row_use *a = one, *b = other;
    if (a->buffer != b->buffer)
        return a->buffer < b->buffer ? -1 : 1;
    if (a->adds != b->adds)
        return a->adds ? -1 : 1;
    if (a->first != b->first)
        return a->first < b->first ? -1 : 1;
    if (a->last != b->last)
        return a->last < b->last ? -1 : 1;
    return (a->access > b->access) - (a->access < b->access);
}

/* Contents that a start begins with are not a node's, and automatic parts have no rows yet. */
static bool can_part(const gy_buffer *b)
{
    return b->cls == GANTRY_TEMP && !b->split_auto && !b->halo;
}

/* Several tiles are one argument, and stay in one buffer. */
static bool adds(const gantry_graph *g, const gy_node *n, uint32_t access)
{
    const gy_access *x = &g->access.at[access];
    bool is_one = !g->buffers.at[x->buffer].tiles[0] || x->last == x->first + 1;
    for (uint32_t k = n->access; k < n->access + n->accesses; k++)
        is_one = is_one && (k == access || g->access.at[k].arg != x->arg);
    return x->mode == GANTRY_SUM && is_one && n->loop == GY_NONE && !n->has_when;
}

static bool find_uses(partial_sums *s)
{
    const gantry_graph *g = s->g;
    bool *is_sum = gy_calloc(g->buffers.count + 1, sizeof *is_sum), ok = is_sum != NULL;
    for (size_t i = 0; i < g->access.count && ok; i++)
        if (g->access.at[i].mode == GANTRY_SUM && can_part(&g->buffers.at[g->access.at[i].buffer]))
            is_sum[g->access.at[i].buffer] = true;
    for (uint32_t i = 0; i < g->nodes.count && ok; i++) {
        const gy_node *n = &g->nodes.at[i];
        for (uint32_t k = n->access; k < n->access + n->accesses && ok; k++) {
            const gy_access *x = &g->access.at[k];
            row_use made = { x->buffer, i, k, x->first, x->last, adds(g, n, k) };
            ok = !is_sum[x->buffer] || x->first == x->last || gy_vec_push(&s->use, made);
        }
    }
    gy_free(is_sum);
    if (ok && s->use.count)
        qsort(s->use.at, s->use.count, sizeof *s->use.at, compare_uses);
    return ok;
}

static bool overlaps(const row_use *a, const row_use *b)
{
    return a->first < b->last && b->first < a->last;
}

static uint32_t place_of(const partial_sums *s, const sum_range *r, uint32_t node)
{
    uint32_t i = 0;
    while (i < r->places &&
           !gy_adjoint_is_same_place(gy_node_extra_of(s->g, r->place[i]), gy_node_extra_of(s->g, node)))
        i++;
    return i;
}

/* Notes the places, by the first node of each. False: there is one, too many, or a node that is nowhere. */
static bool find_places(const partial_sums *s, sum_range *r)
{
    r->places = r->node = 0;
    for (size_t i = r->first; i < r->last; i++) {
        uint32_t node = s->use.at[i].node, at = place_of(s, r, node);
        const gy_node_extra *x = gy_node_extra_of(s->g, node);
        if ((!x->on && !x->on_expr) || at == PLACES)
            return false;
        if (at == r->places)
            r->place[r->places++] = node;
        if (node > r->node)
            r->node = node;
    }
    return r->places > 1;
}

/* Nobody else uses the rows before all have added to them. */
static bool is_alone(const partial_sums *s, const sum_range *r)
{
    for (size_t i = r->begin; i < r->end; i++) {
        const row_use *other = &s->use.at[i];
        if ((i < r->first || i >= r->last) && overlaps(other, &s->use.at[r->first]) && other->node <= r->node)
            return false;
    }
    return true;
}

/* ---- a sum for each place ---- */

static gantry_buffer sum_of(partial_sums *s, uint32_t buffer, uint32_t node)
{
    gantry_graph *g = s->g;
    size_t i = s->sum.count;
    for (; i > 0 && s->sum.at[i - 1].buffer == buffer; i--)
        if (gy_adjoint_is_same_place(gy_node_extra_of(g, s->sum.at[i - 1].node), gy_node_extra_of(g, node)))
            return s->sum.at[i - 1].made;
    const gy_buffer like = g->buffers.at[buffer];
    char suffix[24];
    snprintf(suffix, sizeof suffix, "sum%zu", s->sum.count - i);
    place_sum made = { buffer, node, gy_build_beside(g, buffer, suffix, like.dtype, like.rank, like.shape) };
    if (like.tiles[0]) {
        gantry_buffer_tiles_by_axis(g, made.made, like.rank, like.tiles);
    } else if (made.made.id < g->buffers.count) {
        g->buffers.at[made.made.id].parts = like.parts;
        g->buffers.at[made.made.id].part_first = like.part_first;
    }
    if (!gy_vec_push(&s->sum, made))
        gy_build_nomem(g);
    return made.made;
}

/* ---- their total ---- */

/* "total = a0 + a1 + a2" */
static const char *formula_of(partial_sums *s, uint32_t places)
{
    const char *text = "total = a0";
    for (uint32_t i = 1; i < places && text; i++)
        text = gy_arena_printf(&s->scratch, "%s + a%u", text, i);
    return text;
}

/* The device of those that read the rows, if it is one. GY_NONE: the scheduler decides. */
static uint32_t reader_of(const partial_sums *s, const sum_range *r, const row_use *rows)
{
    uint32_t reader = GY_NONE;
    for (size_t i = r->begin; i < r->end; i++) {
        const row_use *other = &s->use.at[i];
        const gy_node_extra *x = gy_node_extra_of(s->g, other->node);
        if (other->adds || !overlaps(other, rows) || (!x->on && !x->on_expr))
            continue;
        if (reader != GY_NONE && !gy_adjoint_is_same_place(gy_node_extra_of(s->g, reader), x))
            return GY_NONE;
        reader = other->node;
    }
    return reader;
}

static void place_like(gantry_graph *g, gantry_node node, uint32_t reader, int32_t priority)
{
    const gy_node_extra *x = reader == GY_NONE ? NULL : gy_node_extra_of(g, reader);
    const char *on = x ? x->on : NULL;
    const gy_expr *expr = x ? x->on_expr : NULL; /* adding attributes moves *x */
    if (on)
        gantry_node_on(g, node, on);
    else if (expr)
        gy_node_on_expr(g, node, expr);
    if (priority)
        gantry_node_priority(g, node, priority);
}

/* Adds up rows of the sum. */
static void add_total(partial_sums *s, const sum_range *r, const gy_access *at)
{
    gantry_graph *g = s->g;
    const gy_buffer *b = &g->buffers.at[at->buffer];
    row_use rows = { .buffer = at->buffer, .first = at->first, .last = at->last };
    const char *formula = formula_of(s, r->places);
    const char *id = at->part < 0 && !b->tiles[0] ? gy_arena_printf(&s->scratch, "%s.total", b->name)
                                                  : gy_arena_printf(&s->scratch, "%s.total[%lld]", b->name,
                                                                    (long long)(b->tiles[0] ? at->first : at->part));
    if (!formula || !id) {
        gy_build_nomem(g);
        return;
    }
    gy_adjoint a = { .graph = g };
    gantry_node node = gantry_graph_map(g, id, formula);
    gantry_node_arg(g, node, "total", gy_adjoint_rows(&a, at, (gantry_buffer){ at->buffer, g->number }));
    for (uint32_t i = 0; i < r->places; i++) {
        const char *name = gy_arena_printf(&s->scratch, "a%u", i);
        gantry_buffer made = sum_of(s, at->buffer, r->place[i]);
        gantry_node_arg(g, node, name ? name : "", gy_adjoint_rows(&a, at, made));
    }
    place_like(g, node, reader_of(s, r, &rows), gy_node_extra_of(g, r->node)->priority);
    if (!gy_vec_push(&s->total, (uint64_t)r->node << 32 | node.id))
        gy_build_nomem(g);
}

/* There are readers of some of the rows alone. */
static bool is_read_by_parts(const partial_sums *s, const sum_range *r)
{
    const row_use *rows = &s->use.at[r->first];
    for (size_t i = r->begin; i < r->end; i++) {
        const row_use *other = &s->use.at[i];
        if (!other->adds && overlaps(other, rows) && (other->first > rows->first || other->last < rows->last))
            return true;
    }
    return false;
}

/* Parts of the buffer, [*first, *last), that the rows consist of; false: they are of one, or no parts. */
static bool parts_of(const gy_buffer *b, const gy_access *rows, int64_t *first, int64_t *last)
{
    *first = rows->part;
    *last = rows->part_last;
    if (rows->part < 0 && b->parts && rows->first == 0 && rows->last == b->rows) {
        *first = 0;
        *last = b->parts;
    }
    return *first >= 0 && *last - *first > 1;
}

static void part(partial_sums *s, const sum_range *r)
{
    gantry_graph *g = s->g;
    gy_access like = g->access.at[s->use.at[r->first].access];
    int64_t first, last;
    gy_adjoint_come_from(g, r->node);
    for (size_t i = r->first; i < r->last; i++) {
        gantry_buffer made = sum_of(s, like.buffer, s->use.at[i].node);
        g->access.at[s->use.at[i].access].buffer = made.id;
    }
    if (!is_read_by_parts(s, r) || !parts_of(&g->buffers.at[like.buffer], &like, &first, &last)) {
        add_total(s, r, &like);
        return;
    }
    for (int64_t i = first; i < last; i++) {
        like.part = (int32_t)i;
        like.part_last = (int32_t)i + 1;
        like.first = g->buffers.at[like.buffer].part_first[i];
        like.last = g->buffers.at[like.buffer].part_first[i + 1];
        if (like.first < like.last)
            add_total(s, r, &like);
    }
}

/* ---- all of them ---- */

static void part_all(partial_sums *s)
{
    sum_range r = { .begin = 0 };
    for (; r.begin < s->use.count && !s->g->error.status; r.begin = r.end) {
        const row_use *begin = &s->use.at[r.begin];
        for (r.end = r.begin; r.end < s->use.count && s->use.at[r.end].buffer == begin->buffer;)
            r.end++;
        for (r.first = r.begin; r.first < r.end && s->use.at[r.first].adds; r.first = r.last) {
            const row_use *rows = &s->use.at[r.first];
            for (r.last = r.first; r.last < r.end && s->use.at[r.last].adds && s->use.at[r.last].first == rows->first &&
                                   s->use.at[r.last].last == rows->last;)
                r.last++;
            if (find_places(s, &r) && is_alone(s, &r))
                part(s, &r);
        }
    }
}

static int compare_totals(const void *one, const void *other)
{
    uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;
    return (a > b) - (a < b);
}

/* Totals come behind the last node that adds. */
static bool reorder(partial_sums *s, uint32_t count)
{
    gantry_graph *g = s->g;
    gy_nodes nodes = { 0 };
    size_t next = 0;
    uint32_t *number = gy_calloc(g->nodes.count + 1, sizeof *number);
    bool ok = number != NULL;
    qsort(s->total.at, s->total.count, sizeof *s->total.at, compare_totals);
    for (uint32_t i = 0; i < count && ok; i++) {
        number[i] = (uint32_t)nodes.count;
        ok = gy_vec_push(&nodes, g->nodes.at[i]);
        for (; ok && next < s->total.count && s->total.at[next] >> 32 == i; next++)
            ok = gy_vec_push(&nodes, g->nodes.at[(uint32_t)s->total.at[next]]);
    }
    if (ok) {
        number[count] = (uint32_t)nodes.count;
        ok = gy_build_replace_nodes(g, &nodes, number);
    }
    gy_vec_free(&nodes);
    gy_free(number);
    return ok;
}

gantry_status gy_part_sums(gantry_graph *graph, gantry_error *err)
{
    partial_sums s = { .g = graph };
    uint32_t count = (uint32_t)graph->nodes.count;
    bool unique = graph->build_->unique_ids;
    bool ok = gy_build_merge(graph) && find_uses(&s);
    graph->build_->unique_ids = false; /* ids that come give way to those that are there */
    if (ok)
        part_all(&s);
    graph->build_->unique_ids = unique;
    if (ok && s.total.count && !graph->error.status)
        ok = gy_build_merge(graph) && reorder(&s, count);
    gy_arena_free(&s.scratch);
    gy_vec_free(&s.use);
    gy_vec_free(&s.sum);
    gy_vec_free(&s.total);
    if (!ok)
        return gy_fail_nomem(err);
    return graph->error.status ? (*err = graph->error, err->status) : GANTRY_OK;
}
