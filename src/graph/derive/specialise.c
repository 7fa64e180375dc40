/* SPDX-License-Identifier: Apache-2.0 */
/* The same graph with its automatic splits cut elsewhere. */
#include "graph/derive/specialise.h"
#include "base/divisor.h"
#include "base/error.h"
#include "graph/check/check.h"
#include "graph/flow/flow.h"
#include <math.h>
#include <string.h>

static size_t bounds_bytes(const gy_buffer *b)
{
    return ((size_t)b->parts + 1) * sizeof *b->part_first;
}

static gantry_status check_cut(const gantry_graph *g, const gy_cut *cut, gantry_error *err)
{
    const gy_buffer *b = cut->buffer < g->buffers.count ? &g->buffers.at[cut->buffer] : NULL;
    if (!b || !b->split_auto) {
        return gy_fail(err, GANTRY_E_INVALID, NULL, "buffer \"%s\" has no automatic split, so its parts stay",
                       b ? b->name : "?");
    }
    bool rises = cut->first[0] == 0 && cut->first[b->parts] == b->rows;
    for (int64_t i = 0; i < b->parts && rises; i++)
        rises = cut->first[i] <= cut->first[i + 1];
    if (!rises) {
        return gy_fail(err, GANTRY_E_INVALID, NULL,
                       "the parts of \"%s\" must begin at row 0, not fall, and end at its %lld rows", b->name,
                       (long long)b->rows);
    }
    /* A halo is not kept of what was empty. */
    if (b->parts > b->rows && memcmp(cut->first, b->part_first, bounds_bytes(b)) != 0) {
        return gy_fail(err, GANTRY_E_GRAPH, NULL, "buffer \"%s\" has %lld rows for %lld parts; these stay as they are",
                       b->name, (long long)b->rows, (long long)b->parts);
    }
    return GANTRY_OK;
}

/* The bounds that are asked for, by buffer. */
static void find_bounds(const int64_t **first, const gantry_graph *base, const gy_cut *cut, size_t cuts)
{
    for (size_t b = 0; b < base->buffers.count; b++)
        first[b] = base->buffers.at[b].part_first;
    for (size_t i = 0; i < cuts; i++)
        first[cut[i].buffer] = cut[i].first;
}

static bool has_bounds(const gantry_graph *g, const int64_t *const *first)
{
    for (size_t i = 0; i < g->buffers.count; i++) {
        const gy_buffer *b = &g->buffers.at[i];
        if (b->split_auto && memcmp(b->part_first, first[i], bounds_bytes(b)) != 0)
            return false;
    }
    return true;
}

/* ---- the copy ---- */

static void *copy_of(gantry_graph *g, const void *from, size_t count, size_t item)
{
    void *to = gy_arena_alloc(&g->arena, count * item + 1);
    if (to && count)
        memcpy(to, from, count * item);
    return to;
}

#define OWN(g, list) (((list).at = copy_of((g), (list).at, (list).count, sizeof *(list).at)) != NULL)

static gantry_graph *copy_graph(const gantry_graph *base, const int64_t *const *first)
{
    gantry_graph *g = gy_alloc(sizeof *g);
    if (!g)
        return NULL;
    *g = *base;
    g->refs = 1;
    g->base = gy_graph_ref(base);
    g->arena = (gy_arena){ 0 };
    g->flow = NULL;
    bool ok = OWN(g, g->buffers) && OWN(g, g->nodes) && OWN(g, g->access) && OWN(g, g->scalar) && OWN(g, g->extra);
    for (size_t i = 0; ok && i < g->buffers.count; i++) {
        gy_buffer *b = &g->buffers.at[i];
        if (b->split_auto && memcmp(b->part_first, first[i], bounds_bytes(b)) != 0) {
            b->part_first = copy_of(g, first[i], (size_t)b->parts + 1, sizeof *b->part_first);
            ok = b->part_first != NULL;
        }
    }
    if (!ok) {
        gantry_graph_free(g);
        return NULL;
    }
    return g;
}

/* ---- buffers whose rows follow parts of others ---- */

/* So many rows of it, in the graph that it is of, lie before row `row` of the buffer that it goes along with. */
static int64_t rows_along(const gantry_graph *base, const gy_buffer *b, int64_t row)
{
    const int64_t *first = base->buffers.at[b->along - 1].part_first + (b->piece - 1);
    int64_t span = first[b->parts ? b->parts : 1] - first[0], common = gy_common_divisor(b->rows, span);
    return row % (span / common) ? -1 : row / (span / common) * (b->rows / common);
}

/* Its bounds in the graph with other cuts, from 0 on. False: they would be within a row. */
static bool find_bounds_along(const gantry_graph *g, const gy_buffer *b, int64_t *bound)
{
    const int64_t *first = g->buffers.at[b->along - 1].part_first + (b->piece - 1);
    for (int64_t i = 0; i <= (b->parts ? b->parts : 1); i++)
        if ((bound[i] = rows_along(g->base, b, first[i] - first[0])) < 0)
            return false;
    return true;
}

static gantry_status resize(gantry_graph *g, gy_buffer *b, gantry_error *err)
{
    int64_t parts = b->parts ? b->parts : 1;
    int64_t *bound = gy_arena_calloc(&g->arena, (size_t)parts + 1, sizeof *bound);
    int64_t *shape = copy_of(g, b->shape, (size_t)b->rank, sizeof *shape);
    if (!bound || !shape)
        return gy_fail_nomem(err);
    if (!find_bounds_along(g, b, bound))
        return gy_fail(err, GANTRY_E_GRAPH, NULL, "buffer \"%s\" has %lld rows and cannot follow parts of \"%s\"",
                       b->name, (long long)b->rows, g->buffers.at[b->along - 1].name);
    b->rows = shape[0] = bound[parts];
    b->shape = shape;
    b->bytes = (uint64_t)b->rows * (uint64_t)b->row_bytes;
    b->part_first = b->parts ? bound : NULL;
    return GANTRY_OK;
}

static gantry_status resize_all(gantry_graph *g, gantry_error *err)
{
    for (size_t i = 0; i < g->buffers.count; i++)
        if (g->buffers.at[i].along)
            GY_TRY(resize(g, &g->buffers.at[i], err));
    return GANTRY_OK;
}

/* ---- what follows from bounds ---- */

static bool follows_cut(const gantry_graph *g, const gy_access *a)
{
    const gy_buffer *b = &g->buffers.at[a->buffer], *then = &g->base->buffers.at[a->buffer];
    return a->part >= 0 ? b->part_first != then->part_first : b->along && b->rows != then->rows;
}

static gantry_status move_access(gantry_graph *g, const gy_node *n, gy_access *a, gantry_error *err)
{
    const gy_buffer *b = &g->buffers.at[a->buffer];
    if (a->part < 0) { /* it goes along, and the access is all of it */
        a->last = b->rows;
        return GANTRY_OK;
    }
    if (a->cut_before == GY_CUT_MOST || a->cut_after == GY_CUT_MOST) {
        return gy_graph_fail(
            g, n->origin, err, GANTRY_E_GRAPH,
            "node \"%s\": the halo of \"%s\" reaches %d rows or more beyond its ends, so its parts stay; "
            "name the whole",
            n->id, b->name, GY_CUT_MOST);
    }
    int64_t before = (int64_t)a->before + a->cut_before, after = (int64_t)a->after + a->cut_after;
    int64_t first = b->part_first[a->part], last = b->part_first[a->part_last];
    bool empty = first == last;
    a->before = empty ? 0 : (int32_t)(before < first ? before : first);
    a->after = empty ? 0 : (int32_t)(after < b->rows - last ? after : b->rows - last);
    a->first = first - a->before;
    a->last = last + a->after;
    return GANTRY_OK;
}

static int64_t own_rows(const gy_access *a)
{
    return a->last - a->after - (a->first + a->before);
}

/* How much more rows the node's parts have than they had; 1 where it names none. */
static double growth(const gantry_graph *g, const gy_node *n)
{
    double now = 0, then = 0;
    for (uint32_t i = n->access; i < n->access + n->accesses; i++) {
        if (follows_cut(g, &g->access.at[i])) {
            now += (double)own_rows(&g->access.at[i]);
            then += (double)own_rows(&g->base->access.at[i]);
        }
    }
    return then > 0 ? now / then : 1;
}

static bool scale_times(gantry_graph *g, gy_node_extra *x, double by)
{
    x->time.at = copy_of(g, x->time.at, x->time.count, sizeof *x->time.at);
    for (size_t i = 0; x->time.at && i < x->time.count; i++)
        x->time.at[i].us *= by;
    return x->time.at != NULL;
}

/* Only costs that were given are scaled: gy_check_nodes computes those of the manifest again. */
static bool scale_given(gantry_graph *g, gy_node *n)
{
    double by = growth(g, n);
    if (n->cost_given) {
        n->flops *= by;
        n->bytes *= by;
    }
    if (n->scratch_given && by > 1)
        n->scratch = (int64_t)ceil((double)n->scratch * by);
    return n->extra == GY_NONE || g->extra.at[n->extra].time.count == 0 || by == 1 ||
           scale_times(g, &g->extra.at[n->extra], by);
}

/* So many rows later than before an access begins, of those that the batch has. */
static int64_t moved_on(const gantry_graph *g, const gy_access *a, const gy_access *then)
{
    const gy_buffer *b = &g->base->buffers.at[a->buffer];
    int64_t on = a->first - then->first;
    if (!b->along)
        return on;
    const gy_buffer *lead = &g->buffers.at[b->along - 1], *base = &g->base->buffers.at[b->along - 1];
    int64_t more = lead->part_first[b->piece - 1] - base->part_first[b->piece - 1];
    return on + (more < 0 ? -rows_along(g->base, b, -more) : rows_along(g->base, b, more));
}

/* Numbers that say where the rows of its first argument begin. */
static void move_numbers(gantry_graph *g, const gy_node *n)
{
    for (uint32_t i = n->scalar; i < n->scalar + n->scalars; i++) {
        gy_scalar *x = &g->scalar.at[i];
        if (!x->per_row)
            continue;
        int64_t on = moved_on(g, &g->access.at[n->access], &g->base->access.at[n->access]);
        int64_t number = (int64_t)g->base->scalar.at[i].number.real + x->per_row * on;
        x->number = gy_constant_whole(x->period ? (number % x->period + x->period) % x->period : number);
    }
}

static gantry_status move_node(gantry_graph *g, gy_node *n, gantry_error *err)
{
    for (uint32_t i = n->access; i < n->access + n->accesses; i++)
        if (follows_cut(g, &g->access.at[i]))
            GY_TRY(move_access(g, n, &g->access.at[i], err));
    move_numbers(g, n);
    if (!scale_given(g, n))
        GY_TRY(gy_fail_nomem(err));
    return GANTRY_OK;
}

static gantry_status follow(gantry_graph *g, gantry_error *err)
{
    GY_TRY(resize_all(g, err));
    for (size_t n = 0; n < g->nodes.count; n++)
        GY_TRY(move_node(g, &g->nodes.at[n], err));
    GY_TRY(gy_check_nodes(g, err));
    return gy_flow_make(&g->flow, g, err);
}

static gantry_status make(gantry_graph **out, const gantry_graph *base, const int64_t *const *first, gantry_error *err)
{
    gantry_graph *g = copy_graph(base, first);
    if (!g)
        return gy_fail_nomem(err);
    gantry_status status = follow(g, err);
    if (status) {
        gantry_graph_free(g);
        return status;
    }
    *out = g;
    return GANTRY_OK;
}

gantry_status gy_graph_specialise(gantry_graph **out, const gantry_graph *graph, const gy_cut *cut, size_t cuts,
                                  gantry_error *err)
{
    const gantry_graph *base = graph->base ? graph->base : graph;
    gantry_status status = GANTRY_OK;
    for (size_t i = 0; i < cuts && !status; i++)
        status = check_cut(base, &cut[i], err);
    if (status)
        return status;
    const int64_t **first = gy_calloc(base->buffers.count + 1, sizeof *first);
    if (!first)
        return gy_fail_nomem(err);
    find_bounds(first, base, cut, cuts);
    if (has_bounds(graph, first))
        *out = gy_graph_ref(graph);
    else if (has_bounds(base, first))
        *out = gy_graph_ref(base);
    else
        status = make(out, base, first, err);
    gy_free(first);
    return status;
}
