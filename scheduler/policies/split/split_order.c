/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The precedence of units. Tasks that must share a device (forward and backward passes of one layer) make circles of
 * units: dependencies between units of one circle go by the units' positions, whichever way they point
 * (split_position.c), so a training graph is cut as its forward half is; or by the numbers of units, which is better
 * for some graphs that are no such pipeline. All others hold, so a graph in which every unit can run as one piece keeps
 * all its dependencies.
 */
#include "base/error.h"
#include "scheduler/policies/split/split.h"
#include <stdlib.h>

#define MOST_BACK 4096 /* units for which dependencies that go down are looked at: each costs a walk */

/* Dependencies between units, as lists of those behind each. */
typedef struct builder {
    const gy_load *l;
    gy_split_position *at;
    GY_VEC(uint64_t) arcs; /* from << 32 | to; sorted, each once */
    uint32_t *head;        /* per unit: its first arc; units + 1 */
    uint32_t *circle;      /* per unit: a number for all that can be reached from each other */
} builder;

static uint64_t arc_of(uint32_t from, uint32_t to)
{
    return (uint64_t)from << 32 | to;
}

static uint32_t from_of(uint64_t arc)
{
    return (uint32_t)(arc >> 32);
}

static uint32_t to_of(uint64_t arc)
{
    return (uint32_t)arc;
}

static int by_arc(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void sort_arcs(builder *b)
{
    size_t kept = 0;
    if (b->arcs.count)
        qsort(b->arcs.at, b->arcs.count, sizeof *b->arcs.at, by_arc);
    for (size_t i = 0; i < b->arcs.count; i++)
        if (!kept || b->arcs.at[kept - 1] != b->arcs.at[i])
            b->arcs.at[kept++] = b->arcs.at[i];
    b->arcs.count = kept;
    for (uint32_t u = 0, i = 0; u <= b->l->units; u++) {
        while (i < kept && from_of(b->arcs.at[i]) < u)
            i++;
        b->head[u] = i;
    }
}

static bool add_arcs(builder *b)
{
    const gy_flow *f = b->l->p->flow;
    bool done = true;
    for (uint32_t t = 0; t < f->tasks && done; t++)
        for (const gy_dep *d = gy_deps_begin(f, t); d < gy_deps_end(f, t) && done; d++) {
            uint32_t from = b->l->unit_of[d->from], to = b->l->unit_of[t];
            if (from != to && from != GY_NONE && to != GY_NONE)
                done = gy_vec_push(&b->arcs, arc_of(from, to));
        }
    if (done)
        sort_arcs(b);
    return done;
}

/* ---- circles (R. Tarjan, Depth-first search and linear graph algorithms, SIAM J. Computing 1(2), 1972) ---- */

typedef struct walk {
    uint32_t *number, *lowest, *next; /* per unit: when it was met, + 1; ...; its arc to look at */
    uint32_t *path, *open;            /* stacks: of the walk; of units whose circle is not closed */
    uint32_t met, depth, opened;
} walk;

static void enter(walk *w, const builder *b, uint32_t u)
{
    w->number[u] = w->lowest[u] = ++w->met;
    w->next[u] = b->head[u];
    w->path[w->depth++] = w->open[w->opened++] = u;
}

static void leave(walk *w, builder *b, uint32_t u)
{
    w->depth--;
    if (w->depth) {
        uint32_t *lowest = &w->lowest[w->path[w->depth - 1]];
        *lowest = w->lowest[u] < *lowest ? w->lowest[u] : *lowest;
    }
    if (w->lowest[u] != w->number[u])
        return;
    for (uint32_t v = GY_NONE; v != u;) {
        v = w->open[--w->opened];
        b->circle[v] = u;
    }
}

static void walk_from(walk *w, builder *b, uint32_t first)
{
    enter(w, b, first);
    while (w->depth) {
        uint32_t u = w->path[w->depth - 1];
        if (w->next[u] == b->head[u + 1]) {
            leave(w, b, u);
            continue;
        }
        uint32_t v = to_of(b->arcs.at[w->next[u]++]);
        if (!w->number[v])
            enter(w, b, v);
        else if (b->circle[v] == GY_NONE && w->number[v] < w->lowest[u])
            w->lowest[u] = w->number[v];
    }
}

static bool find_circles(builder *b)
{
    size_t units = b->l->units;
    uint32_t *room = gy_calloc(units * 5 + 1, sizeof *room);
    if (!room)
        return false;
    walk w = { room, room + units, room + 2 * units, room + 3 * units, room + 4 * units, 0, 0, 0 };
    for (uint32_t u = 0; u < units; u++)
        b->circle[u] = GY_NONE;
    for (uint32_t u = 0; u < units; u++)
        if (!w.number[u])
            walk_from(&w, b, u);
    gy_free(room);
    return true;
}

/* ---- the order ---- */

typedef struct placed {
    gy_split_position at;
    uint32_t unit;
} placed;

static int by_position(const void *a, const void *b)
{
    const placed *x = a, *y = b;
    if (gy_split_is_before(x->at, y->at) || gy_split_is_before(y->at, x->at))
        return gy_split_is_before(x->at, y->at) ? -1 : 1;
    return x->unit < y->unit ? -1 : x->unit > y->unit;
}

/* false: there are none. */
static bool turn_circles(builder *b)
{
    bool any = false;
    for (size_t i = 0; i < b->arcs.count; i++) {
        uint32_t from = from_of(b->arcs.at[i]), to = to_of(b->arcs.at[i]);
        placed x = { b->at[from], from }, y = { b->at[to], to };
        any = any || b->circle[from] == b->circle[to];
        if (b->circle[from] == b->circle[to] && by_position(&y, &x) < 0)
            b->arcs.at[i] = arc_of(to, from);
    }
    sort_arcs(b);
    return any;
}

/* Kahn's, the lowest number first among equals by depth first: what became ready last goes first, so that a line
 * follows one branch to its end before it begins the next. */
static bool sort_units(const builder *b, gy_precedence *o)
{
    uint32_t *waits = gy_calloc((size_t)o->units + 1, sizeof *waits), depth = 0, done = 0;
    uint32_t *stack = gy_calloc((size_t)o->units + 1, sizeof *stack);
    for (uint32_t u = 0; waits && u < o->units; u++)
        waits[u] = o->first[u + 1] - o->first[u];
    for (uint32_t u = o->units; waits && stack && u-- > 0;)
        if (!waits[u])
            stack[depth++] = u;
    while (depth) {
        uint32_t u = stack[--depth];
        o->order[done++] = u;
        for (uint32_t i = b->head[u + 1]; i-- > b->head[u];)
            if (--waits[to_of(b->arcs.at[i])] == 0)
                stack[depth++] = to_of(b->arcs.at[i]);
    }
    gy_free(waits);
    gy_free(stack);
    return done == o->units;
}

static bool list_before(const builder *b, gy_precedence *o)
{
    o->first = gy_calloc((size_t)o->units + 2, sizeof *o->first);
    o->before = gy_calloc(b->arcs.count + 1, sizeof *o->before);
    o->order = gy_calloc((size_t)o->units + 1, sizeof *o->order);
    if (!o->first || !o->before || !o->order)
        return false;
    for (size_t i = 0; i < b->arcs.count; i++)
        o->first[to_of(b->arcs.at[i]) + 2]++;
    for (uint32_t u = 2; u < o->units + 2; u++)
        o->first[u] += o->first[u - 1];
    for (size_t i = 0; i < b->arcs.count; i++)
        o->before[o->first[to_of(b->arcs.at[i]) + 1]++] = from_of(b->arcs.at[i]);
    return sort_units(b, o);
}

/* ---- by number ---- */

static bool reaches(const builder *b, walk *w, uint32_t from, uint32_t to)
{
    uint32_t depth = 0, mark = ++w->met;
    w->path[depth++] = from;
    w->number[from] = mark;
    while (depth) {
        uint32_t u = w->path[--depth];
        if (u == to)
            return true;
        for (uint32_t i = w->next[u]; i; i = w->open[i - 1]) {
            uint32_t v = to_of(b->arcs.at[i - 1]);
            if (w->number[v] == mark)
                continue;
            w->number[v] = mark;
            w->path[depth++] = v;
        }
    }
    return false;
}

static void keep(builder *b, walk *w, size_t *kept, uint64_t arc)
{
    b->arcs.at[*kept] = arc;
    w->open[*kept] = w->next[from_of(arc)];
    w->next[from_of(arc)] = (uint32_t)++ * kept;
}

/* Arcs to higher numbers, then, of the others, those that close no circle. */
static size_t drop_circles(builder *b, const uint64_t *arc, size_t count, walk *w)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (from_of(arc[i]) < to_of(arc[i]))
            keep(b, w, &kept, arc[i]);
    for (size_t i = 0; i < count && b->l->units <= MOST_BACK; i++)
        if (from_of(arc[i]) > to_of(arc[i]) && !reaches(b, w, to_of(arc[i]), from_of(arc[i])))
            keep(b, w, &kept, arc[i]);
    return kept;
}

/* From all arcs. What is left of these is what it keeps. */
static bool make_numbered(builder *b, gy_precedence *numbered)
{
    size_t units = b->l->units, count = b->arcs.count;
    uint32_t *room = gy_calloc(units * 3 + count + 1, sizeof *room);
    uint64_t *arc = gy_calloc(count + 1, sizeof *arc);
    walk w = { .number = room, .next = room + units, .path = room + 2 * units, .open = room + 3 * units };
    bool done = room && arc;
    for (size_t i = 0; done && i < count; i++)
        arc[i] = b->arcs.at[i];
    if (done) {
        b->arcs.count = drop_circles(b, arc, count, &w);
        sort_arcs(b);
        done = list_before(b, numbered);
    }
    gy_free(room);
    gy_free(arc);
    return done;
}

/* ---- sources with their first readers ---- */

/* Per loose unit: of the units behind it, loose ones passed over, the first; GY_NONE: not loose, or nobody reads it. */
static void find_homes(const builder *b, const gy_precedence *o, const uint32_t *place, uint32_t *home)
{
    for (uint32_t i = o->units; i-- > 0;) {
        uint32_t u = o->order[i];
        home[u] = GY_NONE;
        for (uint32_t k = b->head[u]; b->at[u].loose && k < b->head[u + 1]; k++) {
            uint32_t v = to_of(b->arcs.at[k]), there = home[v] == GY_NONE ? v : home[v];
            home[u] = home[u] == GY_NONE || place[there] < place[home[u]] ? there : home[u];
        }
    }
}

/* In a row before their reader, and behind all else that it waits for. */
static bool tie_sources(builder *b, const gy_precedence *o, const uint32_t *home, uint32_t *last)
{
    bool done = true;
    for (uint32_t i = 0; i < o->units && done; i++) {
        uint32_t u = o->order[i], reader = home[u];
        if (reader == GY_NONE)
            continue;
        if (last[reader])
            done = gy_vec_push(&b->arcs, arc_of(last[reader] - 1, u));
        for (uint32_t k = o->first[reader]; !last[reader] && k < o->first[reader + 1] && done; k++)
            if (home[o->before[k]] != reader)
                done = gy_vec_push(&b->arcs, arc_of(o->before[k], u));
        last[reader] = u + 1;
    }
    sort_arcs(b);
    return done;
}

static bool make_tied(builder *b, const gy_precedence *o, gy_precedence *tied)
{
    uint32_t *place = gy_calloc((size_t)o->units + 1, sizeof *place);
    uint32_t *home = gy_calloc((size_t)o->units + 1, sizeof *home);
    uint32_t *last = gy_calloc((size_t)o->units + 1, sizeof *last);
    bool done = place && home && last;
    for (uint32_t i = 0; done && i < o->units; i++)
        place[o->order[i]] = i;
    if (done)
        find_homes(b, o, place, home);
    done = done && tie_sources(b, o, home, last) && list_before(b, tied);
    gy_free(place);
    gy_free(home);
    gy_free(last);
    return done;
}

/* ---- all of it ---- */

static bool list_line(const builder *b, gy_precedence *line)
{
    placed *list = gy_calloc((size_t)line->units + 1, sizeof *list);
    line->order = gy_calloc((size_t)line->units + 1, sizeof *line->order);
    bool done = list && line->order;
    for (uint32_t u = 0; done && u < line->units; u++)
        list[u] = (placed){ b->at[u], u };
    if (done)
        qsort(list, line->units, sizeof *list, by_position);
    for (uint32_t i = 0; done && i < line->units; i++)
        line->order[i] = list[i].unit;
    gy_free(list);
    return done;
}

static bool make_by_position(builder *b, gy_split_orders *o)
{
    if (!find_circles(b))
        return false;
    o->circles = turn_circles(b);
    return list_line(b, &o->line) && list_before(b, &o->all) && make_tied(b, &o->all, &o->tied);
}

gantry_status gy_split_orders_make(gy_split_orders *o, const gy_load *l, gantry_error *err)
{
    builder b = { .l = l };
    *o = (gy_split_orders){ 0 };
    o->all.units = o->tied.units = o->line.units = o->numbered.units = l->units;
    b.at = gy_calloc((size_t)l->units + 1, sizeof *b.at);
    b.head = gy_calloc((size_t)l->units + 1, sizeof *b.head);
    b.circle = gy_calloc((size_t)l->units + 1, sizeof *b.circle);
    bool done = b.at && b.head && b.circle && !gy_split_positions(b.at, l, err) && add_arcs(&b);
    done = done && make_by_position(&b, o);
    b.arcs.count = 0;
    if (done && o->circles)
        done = add_arcs(&b) && make_numbered(&b, &o->numbered);
    gy_vec_free(&b.arcs);
    gy_free(b.at);
    gy_free(b.head);
    gy_free(b.circle);
    return done ? GANTRY_OK : gy_fail_nomem(err);
}

static void free_precedence(gy_precedence *o)
{
    gy_free(o->first);
    gy_free(o->before);
    gy_free(o->order);
    *o = (gy_precedence){ 0 };
}

void gy_split_orders_free(gy_split_orders *o)
{
    free_precedence(&o->all);
    free_precedence(&o->tied);
    free_precedence(&o->line);
    free_precedence(&o->numbered);
}
