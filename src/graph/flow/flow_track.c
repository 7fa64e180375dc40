/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tracks which tasks wrote, read and contributed to which rows: an interval map per value from rows to a state. States
 * and lists of tasks are immutable and shared, so that cutting an interval copies nothing. An access costs O(log n) and
 * one step for every interval and every dependency it finds.
 */
#include "base/error.h"
#include "graph/flow/flow_build.h"
#include <stdlib.h>

/* ---- dependencies of one task ---- */

void gy_dep_set_begin(gy_dep_set *set, uint32_t task)
{
    set->found.count = 0;
    set->task = task;
}

void gy_dep_set_add(gy_dep_set *set, uint32_t from, gy_dep_kind kind, int64_t bytes)
{
    if (from == set->task)
        return;
    uint32_t at = set->seen[from];
    if (at < set->found.count && set->found.at[at].from == from) {
        set->found.at[at].kinds |= kind;
        set->found.at[at].bytes += bytes;
        return;
    }
    gy_dep dep = { from, kind, bytes };
    set->seen[from] = (uint32_t)set->found.count;
    if (!gy_vec_push(&set->found, dep))
        set->failed = true;
}

static int compare_deps(const void *x, const void *y)
{
    const gy_dep *a = x, *b = y;
    return a->from < b->from ? -1 : a->from > b->from;
}

void gy_dep_set_sort(gy_dep_set *set)
{
    if (set->found.count > 1)
        qsort(set->found.at, set->found.count, sizeof *set->found.at, compare_deps);
}

/* ---- states ---- */

/* Index of a new state, or GY_NO_CELL: out of memory. */
static uint32_t add_state(gy_track *t, gy_track_state state)
{
    if (t->states.count >= GY_NO_CELL || !gy_vec_push(&t->states, state))
        return GY_NO_CELL;
    return (uint32_t)t->states.count - 1;
}

/* The list with the running task in front. */
static uint32_t add_cell(gy_track *t, uint32_t list, bool *ok)
{
    if (list != GY_NO_CELL && t->cells.at[list].task == t->deps.task)
        return list;
    gy_track_cell cell = { t->deps.task, list, GY_NO_CELL };
    if (t->cells.count >= GY_NO_CELL || !gy_vec_push(&t->cells, cell)) {
        *ok = false;
        return list;
    }
    return (uint32_t)t->cells.count - 1;
}

bool gy_track_add_value(gy_track *track, const gy_buffer *buffer, bool defined)
{
    gy_track_value value = { .constant = false };
    gy_track_state fresh = { defined ? GY_TRACK_DEFINED : GY_TRACK_UNWRITTEN, GY_NO_CELL, GY_NO_CELL, GY_NO_CELL, 0 };
    uint32_t state = add_state(track, fresh);
    if (state == GY_NO_CELL || !gy_vec_reserve(&track->values, track->values.count + 1) ||
        !gy_imap_init(&value.map, 0, buffer->rows, state))
        return false;
    track->values.at[track->values.count++] = value;
    return true;
}

bool gy_track_define(gy_track *track, uint32_t value, int64_t first, int64_t last)
{
    gy_track_state defined = { GY_TRACK_DEFINED, GY_NO_CELL, GY_NO_CELL, GY_NO_CELL, 0 };
    uint32_t state = add_state(track, defined);
    uint32_t i = state == GY_NO_CELL ? GY_IMAP_NONE : gy_imap_cut(&track->values.at[value].map, first, last);
    if (i != GY_IMAP_NONE)
        track->values.at[value].map.at[i].payload = state; /* it was one interval, so this one ends at `last` */
    return i != GY_IMAP_NONE;
}

void gy_track_set_constant(gy_track *track, uint32_t value)
{
    track->values.at[value].constant = true;
}

void gy_track_drop_value(gy_track *track, uint32_t value)
{
    gy_imap_free(&track->values.at[value].map);
}

/* ---- dependencies on a state ---- */

/* All tasks of a list must end before. A tail that this task has walked already is not walked again. */
static void depend_on_list(gy_track *t, uint32_t list)
{
    for (; list != GY_NO_CELL && t->cells.at[list].walked != t->deps.task; list = t->cells.at[list].next) {
        t->steps++;
        t->cells.at[list].walked = t->deps.task;
        gy_dep_set_add(&t->deps, t->cells.at[list].task, GY_DEP_ORDER, 0);
    }
}

static void depend_on_writer(gy_track *t, const gy_track_state *s, gy_dep_kind kind, int64_t bytes)
{
    if (s->writer < GY_TRACK_DEFINED)
        gy_dep_set_add(&t->deps, s->writer, kind, bytes);
}

static void depend_on_contents(gy_track *t, const gy_track_state *s, int64_t bytes)
{
    depend_on_writer(t, s, GY_DEP_DATA, bytes);
    for (uint32_t cell = s->parts; cell != GY_NO_CELL; cell = t->cells.at[cell].next, t->steps++)
        gy_dep_set_add(&t->deps, t->cells.at[cell].task, GY_DEP_DATA, bytes);
}

/* A writer waits for the last readers and contributors; earlier ones ended before these began. */
static void depend_on_last(gy_track *t, const gy_track_state *s)
{
    if (s->after != GY_NO_CELL)
        depend_on_list(t, s->after);
    else if (s->parts != GY_NO_CELL)
        depend_on_list(t, s->parts);
    else if (s->before != GY_NO_CELL)
        depend_on_list(t, s->before);
    else
        depend_on_writer(t, s, GY_DEP_ORDER, 0);
}

/* ---- what an access makes of a state ---- */

static gy_track_state after_read(gy_track *t, gy_track_state s, bool *ok)
{
    uint32_t *list = s.parts == GY_NO_CELL ? &s.before : &s.after;
    *list = add_cell(t, *list, ok);
    return s;
}

/* A contribution waits for what came before the first of its kind, not for the others. */
static gy_track_state after_contribution(gy_track *t, gy_track_state s, uint32_t op, bool *ok)
{
    if (s.after != GY_NO_CELL) {
        /* The sum so far was read: to what comes now it is a value like any other. */
        s = (gy_track_state){ GY_TRACK_DEFINED, s.after, GY_NO_CELL, GY_NO_CELL, 0 };
    }
    if (s.before != GY_NO_CELL)
        depend_on_list(t, s.before);
    else
        depend_on_writer(t, &s, GY_DEP_ORDER, 0);
    s.parts = add_cell(t, s.parts, ok);
    s.op = op;
    return s;
}

static bool is_unwritten(const gy_track_state *s)
{
    return s->writer == GY_TRACK_UNWRITTEN && s->parts == GY_NO_CELL;
}

/* ---- mistakes ---- */

static bool gives(const gantry_graph *g, const gy_node *n, uint32_t buffer)
{
    for (uint32_t k = n->access; k < n->access + n->accesses; k++)
        if (g->access.at[k].buffer == buffer && g->access.at[k].mode != GANTRY_READ)
            return true;
    return false;
}

/* The node that whoever made the graph knows: the copies of what a collective with a `when` gives (build_flags.c) are
 * part of it. */
static uint32_t known_node(const gantry_graph *g, uint32_t node)
{
    const gy_node *n = &g->nodes.at[node];
    if (n->kind != GY_NODE_COPY || !n->has_when)
        return node;
    for (uint32_t i = node; i > 0; i--) {
        const gy_node *of = &g->nodes.at[i - 1];
        bool meets = of->kind == GY_NODE_COLLECTIVE && gy_node_extra_of(g, i - 1)->meets && of->origin == n->origin;
        if (meets && gives(g, of, g->access.at[n->access].buffer))
            return i - 1;
    }
    return node;
}

/* "node "b"", "node "b" (iteration 3)". */
static void add_who(gy_text *to, const gantry_graph *g, uint32_t node, uint32_t iteration)
{
    node = known_node(g, node);
    gy_text_printf(to, "node \"%s\"", g->nodes.at[node].id);
    if (g->nodes.at[node].loop != GY_NONE)
        gy_text_printf(to, " (iteration %u)", iteration);
}

static gantry_status say_unwritten(const gy_track *t, uint32_t node, uint32_t iteration, uint32_t value,
                                   const gy_access *access, gantry_error *err)
{
    const gantry_graph *g = t->graph;
    gy_text text = { 0 };
    int64_t first = access->first, last = access->last;
    gy_track_unwritten(t, value, &first, &last);
    add_who(&text, g, node, iteration);
    gy_text_add(&text, access->is_kept              ? " runs under a \"when\" and else keeps what is in "
                       : access->arg == GY_ARG_WHEN ? " has a \"when\" on "
                                                    : " reads ");
    gy_rows_text(&text, g, access->buffer, first, last);
    gantry_status status =
        text.failed
            ? gy_fail_nomem(err)
            : gy_graph_fail(g, g->nodes.at[node].origin, err, GANTRY_E_GRAPH,
                            "%s, which nothing has written or initialised; write it before, or give \"%s\" an init, or "
                            "the class \"input\"",
                            text.at, g->buffers.at[access->buffer].name);
    gy_text_free(&text);
    return status;
}

static gantry_status say_mixed(const gy_track *t, uint32_t node, uint32_t iteration, const gy_track_state *s,
                               const gy_access *access, const gy_interval *rows, gantry_error *err)
{
    const gantry_graph *g = t->graph;
    gy_text text = { 0 };
    add_who(&text, g, node, iteration);
    gy_text_printf(&text, " contributes %s to ", gantry_access_name((gantry_access)access->mode));
    gy_rows_text(&text, g, access->buffer, rows->first, rows->last);
    gantry_status status =
        text.failed ? gy_fail_nomem(err)
                    : gy_graph_fail(g, g->nodes.at[node].origin, err, GANTRY_E_GRAPH,
                                    "%s, which is in the middle of %s contributions; read the result or fill it before "
                                    "contributing otherwise",
                                    text.at, gantry_access_name((gantry_access)s->op));
    gy_text_free(&text);
    return status;
}

/* ---- accesses ---- */

static bool reads(const gy_access *a)
{
    return a->mode == GANTRY_READ || a->mode == GANTRY_READWRITE;
}

static bool writes(const gy_access *a)
{
    return a->mode == GANTRY_WRITE || a->mode == GANTRY_READWRITE;
}

/* The running task depends on what is in one interval, and on what must be over there. */
static void depend(gy_track *t, const gy_track_state *s, const gy_access *access, const gy_interval *rows)
{
    if (reads(access))
        depend_on_contents(t, s, gy_buffer_span(&t->graph->buffers.at[access->buffer], rows->first, rows->last));
    if (writes(access))
        depend_on_last(t, s);
}

/* Reads and contributions: index of the new state of rows that were in `s`; GY_NO_CELL: out of memory. */
static uint32_t next_state(gy_track *t, const gy_track_state *s, const gy_access *access)
{
    bool ok = true;
    gy_track_state next =
        access->mode == GANTRY_READ ? after_read(t, *s, &ok) : after_contribution(t, *s, access->mode, &ok);
    return ok ? add_state(t, next) : GY_NO_CELL;
}

static gantry_status say_many(const gy_track *t, uint32_t node, uint32_t iteration, const gy_access *access,
                              gantry_error *err)
{
    const gantry_graph *g = t->graph;
    gy_text text = { 0 };
    add_who(&text, g, node, iteration);
    gantry_status status =
        text.failed ? gy_fail_nomem(err)
                    : gy_graph_fail(g, g->nodes.at[node].origin, err, GANTRY_E_GRAPH,
                                    "with %s and \"%s\", the nodes of the graph find the rows that they use in more "
                                    "than %lld pieces; let fewer nodes use rows that many have written, or raise the "
                                    "limit (--limits)",
                                    text.at, g->buffers.at[access->buffer].name, (long long)t->most_steps);
    gy_text_free(&text);
    return status;
}

static gantry_status walk(gy_track *t, uint32_t node, uint32_t iteration, uint32_t value, const gy_access *access,
                          uint32_t i, uint32_t written, gantry_error *err)
{
    gy_imap *map = &t->values.at[value].map;
    uint64_t old = UINT64_MAX;
    uint32_t state = written;
    for (; i != GY_IMAP_NONE && map->at[i].first < access->last; i = gy_imap_next(map, i)) {
        gy_interval rows = map->at[i];
        gy_track_state s = t->states.at[rows.payload];
        if (reads(access) && is_unwritten(&s))
            return say_unwritten(t, node, iteration, value, access, err);
        if (gy_access_reduces(access) && s.parts != GY_NO_CELL && s.after == GY_NO_CELL && s.op != access->mode)
            return say_mixed(t, node, iteration, &s, access, &rows, err);
        depend(t, &s, access, &rows);
        if (++t->steps > t->most_steps)
            return say_many(t, node, iteration, access, err);
        if (written == GY_NO_CELL && rows.payload != old) {
            old = rows.payload;
            state = next_state(t, &s, access);
        }
        if (state == GY_NO_CELL || t->deps.failed)
            return gy_fail_nomem(err);
        map->at[i].payload = state;
    }
    return GANTRY_OK;
}

gantry_status gy_track_access(gy_track *track, uint32_t node, uint32_t iteration, uint32_t value,
                              const gy_access *access, gantry_error *err)
{
    if (access->first == access->last || track->values.at[value].constant)
        return GANTRY_OK;
    gy_track_state mine = { track->deps.task, GY_NO_CELL, GY_NO_CELL, GY_NO_CELL, 0 };
    uint32_t written = writes(access) ? add_state(track, mine) : GY_NO_CELL;
    uint32_t i = gy_imap_cut(&track->values.at[value].map, access->first, access->last);
    if (i == GY_IMAP_NONE || (writes(access) && written == GY_NO_CELL))
        return gy_fail_nomem(err);
    gantry_status status = walk(track, node, iteration, value, access, i, written, err);
    if (!status && writes(access))
        gy_imap_join(&track->values.at[value].map, access->first, access->last);
    return status;
}

bool gy_track_unwritten(const gy_track *track, uint32_t value, int64_t *first, int64_t *last)
{
    const gy_imap *map = &track->values.at[value].map;
    uint32_t i = *first < *last ? gy_imap_find(map, *first) : GY_IMAP_NONE;
    int64_t begin = *last, end = *last;
    for (; i != GY_IMAP_NONE && map->at[i].first < *last; i = gy_imap_next(map, i)) {
        bool missing = is_unwritten(&track->states.at[map->at[i].payload]);
        if (missing && begin == *last)
            begin = map->at[i].first > *first ? map->at[i].first : *first;
        if (!missing && begin < *last) {
            end = map->at[i].first;
            break;
        }
    }
    *first = begin;
    *last = end;
    return begin < end;
}

void gy_track_free(gy_track *track)
{
    for (size_t i = 0; i < track->values.count; i++)
        gy_imap_free(&track->values.at[i].map);
    gy_vec_free(&track->values);
    gy_vec_free(&track->states);
    gy_vec_free(&track->cells);
    gy_vec_free(&track->deps.found);
    gy_free(track->deps.seen);
}
