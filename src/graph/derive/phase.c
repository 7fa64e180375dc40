/* SPDX-License-Identifier: Apache-2.0 */
/* Derives the graphs of phases. A walk forwards notes the values that each phase finds and leaves; then a pass
 * backwards notes the values that later phases need. */
#include "base/error.h"
#include "graph/derive/phase_walk.h"
#include "graph/flow/flow.h"
#include <stdio.h>
#include <string.h>

/* The walk's notes on one phase. Arrays are per buffer. */
typedef struct record {
    gy_phase phase;
    uint32_t *before, *after; /* the value that the name means */
    uint8_t *wanted;          /* a later phase, or the caller, wants the value that the name means after this phase */
    gy_touched *touch;
    uint32_t touches;
    uint32_t born; /* values from here on began in it */
} record;

typedef struct deriver {
    const gantry_graph *graph;
    gy_walk walk;
    gy_arena arena;
    record *record;
    size_t count;
    uint32_t *touch_of; /* per value: 1 + its entry in the record at hand */
    uint32_t *name_of;  /* per value: a name for it */
    gantry_error *err;
} deriver;

/* ---- does the list carry out the graph? ---- */

static gantry_status breach(const deriver *d, size_t i, const char *what)
{
    char where[64];
    snprintf(where, sizeof where, "/phases/%zu", i);
    return gy_fail(d->err, GANTRY_E_SCHEDULE, where, "rule phases: phase %zu %s", i, what);
}

/* How far a list has come. */
typedef struct cursor {
    uint32_t node, loop;
    int64_t done; /* iterations of `loop` */
} cursor;

static const char *place_loop(const gantry_graph *g, cursor *at, gy_phase *p)
{
    if (p->loop < at->loop || p->loop >= g->loops.count)
        return "repeats a loop that is not the next";
    const gy_loop *l = &g->loops.at[p->loop];
    if (p->loop != at->loop || p->first_node != l->first_node || p->last_node != l->last_node ||
        at->node != l->first_node || p->first != at->done)
        return "does not begin where the one before it ends";
    if (l->tasks == 0)
        return "repeats a loop without nodes";
    if (p->iterations < 1 || p->starts < 1 || p->iterations > (l->count - at->done) / p->starts)
        return "has no iterations, or more than its loop";
    if (p->every != (l->until == GY_NONE ? 0 : l->every))
        return "does not look at `until` as often as its loop";
    bool between = p->every % p->iterations == 0 && p->first % p->iterations == 0;
    if (gy_phase_looks(p) && (p->starts > 1 ? !between : p->iterations > p->every - p->first % p->every))
        return "has starts in which the loop could end";
    p->first_loop = p->loop;
    p->last_loop = p->loop + 1;
    at->done += gy_phase_turns(p);
    if (at->done == l->count)
        *at = (cursor){ .node = l->last_node, .loop = p->loop + 1 };
    return NULL;
}

/* `next`: the loop of the phase behind it, or how many there are. */
static const char *place_nodes(const gantry_graph *g, cursor *at, gy_phase *p, uint32_t next)
{
    if (at->done != 0 || p->first_node != at->node || p->last_node < p->first_node || p->last_node > g->nodes.count ||
        next < at->loop)
        return "does not begin where the one before it ends";
    if (p->first != 0 || p->iterations != 1 || p->starts != 1 || p->every != 0)
        return "is started more than once without being of a loop";
    for (uint32_t i = at->loop; i < next; i++) {
        const gy_loop *l = &g->loops.at[i];
        if (l->last_node > p->last_node || (l->until != GY_NONE && gy_loop_has_tasks(l)))
            return "has a loop inside that ends by `until`, or behind it";
    }
    p->first_loop = at->loop;
    p->last_loop = next;
    *at = (cursor){ .node = p->last_node, .loop = next };
    return NULL;
}

static gantry_status place_list(deriver *d)
{
    cursor at = { 0 };
    for (size_t i = 0; i < d->count; i++) {
        gy_phase *p = &d->record[i].phase;
        bool last = i + 1 == d->count;
        uint32_t next = last ? (uint32_t)d->graph->loops.count : d->record[i + 1].phase.loop;
        if (p->loop == GY_NONE && next == GY_NONE)
            return breach(d, i, "is nodes once, and so is the next: they are one");
        if (next > d->graph->loops.count)
            next = (uint32_t)d->graph->loops.count;
        const char *wrong = p->loop == GY_NONE ? place_nodes(d->graph, &at, p, next) : place_loop(d->graph, &at, p);
        if (wrong)
            return breach(d, i, wrong);
    }
    if (at.node != d->graph->nodes.count || at.loop != d->graph->loops.count || at.done)
        return gy_fail(d->err, GANTRY_E_SCHEDULE, "/phases", "rule phases: the phases end before the graph does");
    return GANTRY_OK;
}

/* ---- what joins phases beside data ---- */

static size_t phase_of(const deriver *d, uint32_t node)
{
    size_t i = 0;
    while (i + 1 < d->count && d->record[i].phase.last_node <= node)
        i++;
    return i;
}

static gantry_status refuse_join(const deriver *d, uint32_t node, uint32_t other, const char *how, const char *remedy)
{
    const gy_node *n = &d->graph->nodes.at[node];
    return gy_graph_fail(d->graph, n->origin, d->err, GANTRY_E_UNSUPPORTED,
                         "node \"%s\" is `%s` \"%s\", and a repeat that is not unrolled is between them or has one of "
                         "them; %s",
                         n->id, how, d->graph->nodes.at[other].id, remedy);
}

static gantry_status check_places(const deriver *d, uint32_t node, size_t phase)
{
    const gy_node_extra *x = gy_node_extra_of(d->graph, node);
    for (size_t i = 0; i < x->with.count; i++)
        if (phase_of(d, x->with.at[i]) != phase)
            return refuse_join(d, node, x->with.at[i], "with", "name one device for both by `on`");
    for (size_t i = 0; i < x->apart.count; i++)
        if (phase_of(d, x->apart.at[i]) != phase)
            return refuse_join(d, node, x->apart.at[i], "apart", "name the devices by `on`");
    return GANTRY_OK;
}

/* `after` an earlier phase holds by itself, after a later one never can. */
static gantry_status check_joins(const deriver *d)
{
    const gantry_graph *g = d->graph;
    gantry_status status = GANTRY_OK;
    for (uint32_t n = 0; n < g->nodes.count && !status; n++) {
        size_t phase = phase_of(d, n);
        for (uint32_t i = 0; i < g->nodes.at[n].afters && !status; i++) {
            uint32_t other = g->after.at[g->nodes.at[n].after + i];
            if (phase_of(d, other) > phase)
                status = refuse_join(d, n, other, "after", "add it to the graph behind that");
        }
        status = status ? status : check_places(d, n, phase);
    }
    return status;
}

/* ---- forwards ---- */

static void *keep(deriver *d, const void *from, size_t count, size_t item)
{
    void *to = gy_arena_alloc(&d->arena, count * item + 1);
    if (to && count)
        memcpy(to, from, count * item);
    return to;
}

static gantry_status walk_phase(deriver *d, size_t i)
{
    record *r = &d->record[i];
    size_t buffers = d->graph->buffers.count;
    if (r->phase.loop != GY_NONE && r->phase.first == 0 && !gy_walk_inner_settles(&d->walk, r->phase.loop) &&
        !d->walk.failed)
        return breach(d, i, "is of a loop whose iterations are not alike after two, since loops inside carry on");
    if (r->phase.loop != GY_NONE && r->phase.first == 0 && !gy_walk_ends_alike(&d->walk, r->phase.loop) &&
        !d->walk.failed)
        return breach(d, i,
                      "may end its loop after the first iteration, which leaves other rows or names than later ones");
    if (r->phase.starts > 1 && !gy_walk_settle(&d->walk, &r->phase) && !d->walk.failed)
        return breach(d, i, "is started more than once, and its first start differs from the others");
    r->before = keep(d, d->walk.current, buffers, sizeof *r->before);
    r->born = (uint32_t)d->walk.values.count;
    gy_walk_phase(&d->walk, &r->phase);
    r->after = keep(d, d->walk.current, buffers, sizeof *r->after);
    r->touch = keep(d, d->walk.touch.at, d->walk.touch.count, sizeof *r->touch);
    r->touches = (uint32_t)d->walk.touch.count;
    r->wanted = gy_arena_calloc(&d->arena, buffers + 1, 1);
    bool done = r->before && r->after && r->touch && r->wanted && !d->walk.failed;
    return done ? GANTRY_OK : gy_fail_nomem(d->err);
}

/* ---- backwards ---- */

static void index_touched(deriver *d, const record *r)
{
    memset(d->touch_of, 0, d->walk.values.count * sizeof *d->touch_of);
    for (uint32_t i = 0; i < r->touches; i++)
        d->touch_of[r->touch[i].value] = i + 1;
}

static const gy_touched *touched(const deriver *d, const record *r, uint32_t value)
{
    uint32_t i = d->touch_of[value];
    return i ? &r->touch[i - 1] : NULL;
}

/* Finds the names whose values are needed after phase i, from what phase i + 1 uses and what is needed after that. */
static void look_back(deriver *d, size_t i, const uint8_t *last_wanted)
{
    record *r = &d->record[i];
    uint32_t buffers = (uint32_t)d->graph->buffers.count;
    if (i + 1 == d->count) {
        memcpy(r->wanted, last_wanted, buffers);
        return;
    }
    const record *next = &d->record[i + 1];
    uint8_t *value = (uint8_t *)d->name_of; /* per value: the next phase uses it, or it passes through the next phase */
    index_touched(d, next);
    memset(value, 0, d->walk.values.count);
    for (uint32_t k = 0; k < next->touches; k++)
        value[next->touch[k].value] = next->touch[k].used;
    for (uint32_t b = 0; b < buffers; b++) {
        const gy_touched *t = touched(d, next, next->after[b]);
        if (next->wanted[b] && next->after[b] < next->born && !(t && t->covered))
            value[next->after[b]] = 1;
    }
    /* Where names were forgotten (see gy_walk_settle), what the pair means now begins as what `prev` meant. */
    size_t end = i; /* the last phase of the loop: if the loop ends in phase i, names mean the same after both */
    while (gy_phase_looks(&r->phase) && end + 1 < d->count && d->record[end + 1].phase.loop == r->phase.loop)
        end++;
    for (uint32_t b = 0; b < buffers; b++)
        r->wanted[b] = value[next->before[b]] || (end > i && d->record[end].wanted[b]);
}

/* ---- one graph ---- */

typedef struct maker {
    deriver *d;
    const record *r;
    gantry_graph *g;
    gy_phase_context *x;
    uint8_t *part; /* per buffer: the phase touches or leaves what the name means */
} maker;

static bool arrays(maker *m)
{
    gantry_graph *g = m->g;
    size_t buffers = g->buffers.count + 1;
    gy_phase_context *x = m->x = gy_arena_calloc(&g->arena, 1, sizeof *x);
    m->part = gy_arena_calloc(&g->arena, buffers, 1);
    if (!x || !m->part)
        return false;
    *x = (gy_phase_context){ .phase = m->r->phase, .until = GY_NONE };
    x->entry = gy_arena_calloc(&g->arena, buffers, sizeof *x->entry);
    x->source = gy_arena_calloc(&g->arena, buffers, sizeof *x->source);
    x->defined = gy_arena_calloc(&g->arena, buffers, sizeof *x->defined);
    x->defineds = gy_arena_calloc(&g->arena, buffers, sizeof *x->defineds);
    x->kept = gy_arena_calloc(&g->arena, buffers, 1);
    x->move = gy_arena_calloc(&g->arena, buffers, sizeof *x->move);
    return x->entry && x->source && x->defined && x->defineds && x->kept && x->move;
}

static void *own(gantry_graph *g, const void *from, size_t count, size_t item)
{
    void *to = gy_arena_alloc(&g->arena, count * item + 1);
    if (to && count)
        memcpy(to, from, count * item);
    return to;
}

/* Everything but buffers and loops is the whole graph's. */
static gantry_graph *copy_graph(const gantry_graph *whole, const gy_phase *p)
{
    gantry_graph *g = gy_alloc(sizeof *g);
    if (!g)
        return NULL;
    *g = *whole;
    g->refs = 1;
    g->base = NULL;
    g->whole = gy_graph_ref(whole);
    g->arena = (gy_arena){ 0 };
    g->flow = NULL;
    g->buffers.at = own(g, whole->buffers.at, whole->buffers.count, sizeof *g->buffers.at);
    g->loops.at = own(g, whole->loops.at, whole->loops.count, sizeof *g->loops.at);
    if (!g->buffers.at || !g->loops.at) {
        gantry_graph_free(g);
        return NULL;
    }
    for (size_t i = 0; i < g->loops.count; i++) {
        g->loops.at[i].unrolled = i == p->loop ? p->iterations : g->loops.at[i].count;
        g->loops.at[i].until = GY_NONE; /* starts are ended, not tasks */
    }
    return g;
}

/* The first name that takes part, per value, of those before (or after) the phase. */
static void name_values(const maker *m, const uint32_t *value)
{
    uint32_t *name = m->d->name_of;
    for (uint32_t b = (uint32_t)m->g->buffers.count; b-- > 0;)
        if (m->part[b])
            name[value[b]] = b;
}

static void find_parts(maker *m)
{
    const record *r = m->r;
    for (uint32_t b = 0; b < m->g->buffers.count; b++)
        m->part[b] = touched(m->d, r, r->before[b]) || r->wanted[b];
    if (gy_phase_looks(&r->phase)) {
        m->x->until = m->d->graph->loops.at[r->phase.loop].until;
        m->part[m->x->until] = 1;
    }
}

static bool is_made(const maker *m, uint32_t value)
{
    const gy_touched *t = touched(m->d, m->r, value);
    return value >= m->r->born || (t && t->changed);
}

static bool wants_value(const maker *m, uint32_t value)
{
    bool wanted = false;
    for (uint32_t b = 0; b < m->g->buffers.count && !wanted; b++)
        wanted = m->r->wanted[b] && m->r->after[b] == value;
    return wanted;
}

/* Started once: contents come and go with the start. */
static gantry_buffer_class class_once(const maker *m, uint32_t b, const gy_touched *t)
{
    bool survives = t && !t->covered && wants_value(m, m->r->before[b]);
    if (!t || t->defineds == 0 || !(t->used || survives))
        return GANTRY_TEMP;
    bool constant = m->d->graph->buffers.at[b].cls == GANTRY_CONST && !t->changed;
    return constant ? GANTRY_CONST : GANTRY_INPUT;
}

/* The class of a buffer in a phase with several starts: the next start begins with the value that the name means at
 * the end of this one. */
static gantry_buffer_class class_often(const maker *m, uint32_t b, const gy_touched *t)
{
    uint32_t end = m->r->after[b];
    bool changes = end != m->r->before[b] || (t && t->changed), wanted = wants_value(m, end);
    m->x->kept[b] = changes && wanted;
    if (!changes)
        return t && t->used ? GANTRY_CONST : GANTRY_TEMP;
    return (t && t->used) || wanted ? GANTRY_STATE : GANTRY_TEMP;
}

static void set_defined(maker *m, uint32_t b, const gy_touched *t)
{
    gy_phase_context *x = m->x;
    bool all = t && t->defineds == 1 && t->defined[0].first == 0 && t->defined[0].last == m->g->buffers.at[b].rows;
    if (all || m->g->buffers.at[b].rows == 0)
        return;
    x->defineds[b] = t ? t->defineds : 0;
    x->defined[b] = own(m->g, t ? t->defined : NULL, x->defineds[b], sizeof(gy_rows));
    m->d->walk.failed |= !x->defined[b];
}

/* The name of a pair whose contents come into the phase, where both names mean one value. */
static uint32_t source_of(const maker *m, uint32_t b)
{
    const gy_phase *p = &m->r->phase;
    const gy_loop *l = p->loop == GY_NONE ? NULL : &m->d->graph->loops.at[p->loop];
    for (size_t i = 0; l && i < l->carry.count; i++) {
        gy_carry c = l->carry.at[i];
        if (c.next == b && m->r->before[c.prev] == m->r->before[b])
            return c.prev;
    }
    return b;
}

static void set_classes(maker *m)
{
    name_values(m, m->r->before);
    for (uint32_t b = 0; b < m->g->buffers.count; b++) {
        gy_buffer *buffer = &m->g->buffers.at[b];
        m->x->entry[b] = m->part[b] ? m->d->name_of[m->r->before[b]] : b;
        m->x->source[b] = source_of(m, b);
        buffer->output = false;
        buffer->cls = GANTRY_TEMP;
        if (!m->part[b] || m->x->entry[b] != b)
            continue;
        const gy_touched *t = touched(m->d, m->r, m->r->before[b]);
        buffer->cls = m->r->phase.starts > 1 ? class_often(m, b, t) : class_once(m, b, t);
        if (buffer->cls != GANTRY_TEMP)
            set_defined(m, b, t);
    }
}

static void add_move(maker *m, uint32_t name, uint32_t from, bool made)
{
    if (made || name != from)
        m->x->move[m->x->moves++] = (gy_move){ name, from, made };
}

/* Any name that meant the value before, or, where a pair was made to mean one, the name that it comes in by. */
static uint32_t old_name(const maker *m, uint32_t b)
{
    uint32_t value = m->r->after[b];
    for (uint32_t c = 0; c < m->g->buffers.count && m->r->before[b] != value; c++)
        if (m->r->before[c] == value)
            return m->x->source[c];
    return m->x->source[b];
}

static gantry_status set_outputs(maker *m)
{
    const record *r = m->r;
    name_values(m, r->after);
    for (uint32_t b = 0; b < m->g->buffers.count; b++) {
        if (!r->wanted[b])
            continue;
        uint32_t from = m->d->name_of[r->after[b]];
        if (!is_made(m, r->after[b])) {
            add_move(m, b, old_name(m, b), false);
            continue;
        }
        add_move(m, b, from, true);
        if (r->phase.starts == 1)
            m->g->buffers.at[from].output = true;
        else if (m->g->buffers.at[from].cls != GANTRY_STATE)
            return breach(m->d, (size_t)(r - m->d->record), "leaves names that its first start did not find so");
    }
    if (m->x->until != GY_NONE)
        m->g->buffers.at[m->x->until].output = true;
    return GANTRY_OK;
}

static gantry_status make_graph(deriver *d, size_t i, gantry_graph **out)
{
    maker m = { .d = d, .r = &d->record[i], .g = copy_graph(d->graph, &d->record[i].phase) };
    if (!m.g || !arrays(&m)) {
        gantry_graph_free(m.g);
        return gy_fail_nomem(d->err);
    }
    m.g->phase = m.x;
    index_touched(d, m.r);
    find_parts(&m);
    set_classes(&m);
    gantry_status status = set_outputs(&m);
    if (!status)
        status = d->walk.failed ? gy_fail_nomem(d->err) : gy_flow_make(&m.g->flow, m.g, d->err);
    if (status) {
        gantry_graph_free(m.g);
        return status;
    }
    *out = m.g;
    return GANTRY_OK;
}

/* ---- all of them ---- */

static gantry_status derive(deriver *d, gantry_graph **graphs)
{
    size_t buffers = d->graph->buffers.count;
    gantry_status status = place_list(d);
    status = status ? status : check_joins(d);
    for (size_t i = 0; i < d->count && !status; i++)
        status = walk_phase(d, i);
    if (status)
        return status;
    uint8_t *wanted = gy_arena_calloc(&d->arena, buffers + 1, 1);
    d->touch_of = gy_arena_calloc(&d->arena, d->walk.values.count + 1, sizeof *d->touch_of);
    d->name_of = gy_arena_calloc(&d->arena, d->walk.values.count + 1, sizeof *d->name_of);
    if (!wanted || !d->touch_of || !d->name_of)
        return gy_fail_nomem(d->err);
    for (size_t b = 0; b < buffers; b++)
        wanted[b] = d->graph->buffers.at[b].output || d->graph->buffers.at[b].cls == GANTRY_STATE;
    for (size_t i = d->count; i-- > 0;)
        look_back(d, i, wanted);
    size_t made = 0;
    for (; made < d->count && !status; made += !status)
        status = make_graph(d, made, &graphs[made]);
    while (status && made-- > 0)
        gantry_graph_free(graphs[made]);
    return status;
}

gantry_status gy_phases_derive(gantry_graph **graphs, const gantry_graph *graph, const gy_phase *list, size_t count,
                               gantry_error *err)
{
    deriver d = { .graph = graph, .count = count, .err = err };
    d.record = gy_calloc(count + 1, sizeof *d.record);
    gantry_status status = d.record && gy_walk_init(&d.walk, graph, &d.arena) ? GANTRY_OK : gy_fail_nomem(err);
    for (size_t i = 0; d.record && i < count; i++)
        d.record[i].phase = list[i];
    status = status ? status : derive(&d, graphs);
    gy_walk_free(&d.walk);
    gy_free(d.record);
    gy_arena_free(&d.arena);
    return status;
}
