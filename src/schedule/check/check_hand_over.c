/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rule phases, row by row: what one phase leaves and a later one finds. The accesses of all phases are executed in
 * order on maps that know of each row only whether something was left there. The maps between phases belong to names,
 * as the memory does in which a run hands contents over; within a phase they belong to values.
 */
#include "base/error.h"
#include "graph/nest.h"
#include "schedule/check/check.h"
#include <stdio.h>

/* The state of a row. Between phases it is NOTHING, STALE or LEFT. */
enum {
    NOTHING,
    STALE,   /* LEFT, unless the name means something else since: a loop has carried it without using it */
    CLAIMED, /* nothing was left, but the phase takes the row for one that holds something */
    HIDDEN,  /* something was left, but the phase takes the row for one that holds nothing */
    LEFT,    /* before the phase, which knows */
    MADE     /* by the phase */
};

typedef struct walk {
    const gantry_schedule *s;
    const gantry_graph *whole;
    gy_imap *held; /* per buffer of the graph: what its name holds between phases */
    gy_imap *end;  /* the same at the end of a loop that may have ended in an earlier phase: what all ends leave */
    bool may_have_ended;
    gy_imap *next; /* room for `held` after the phase at hand */
    size_t phase;  /* the one at hand, and its graph */
    const gantry_graph *graph;
    gy_imap *value; /* per value of that graph; `at` NULL: nothing has touched it yet */
    gantry_error *err;
} walk;

/* ---- maps ---- */

static uint32_t first_of(const gy_imap *map)
{
    return map->at ? gy_imap_find(map, 0) : GY_IMAP_NONE;
}

/* Rows that are `least` or more in `from` become `payload`. */
static bool paint(gy_imap *to, const gy_imap *from, uint64_t least, uint64_t payload)
{
    bool fits = true;
    for (uint32_t i = first_of(from); i != GY_IMAP_NONE && fits; i = gy_imap_next(from, i))
        if (from->at[i].payload >= least)
            fits = gy_imap_set(to, from->at[i].first, from->at[i].last, payload);
    return fits;
}

static bool renew(gy_imap *to, int64_t rows)
{
    gy_imap_free(to);
    *to = (gy_imap){ 0 };
    return gy_imap_init(to, 0, rows, NOTHING);
}

/* A map between phases that is as another such map. */
static bool copy_map(gy_imap *to, const gy_imap *from, int64_t rows)
{
    return renew(to, rows) && paint(to, from, STALE, STALE) && paint(to, from, LEFT, LEFT);
}

/* Rows that are more than `most` become `most`. */
static bool lower(gy_imap *map, int64_t first, int64_t last, uint64_t most)
{
    uint32_t i = first < last ? gy_imap_cut(map, first, last) : GY_IMAP_NONE;
    bool fits = first >= last || i != GY_IMAP_NONE;
    for (; i != GY_IMAP_NONE && map->at[i].first < last; i = gy_imap_next(map, i))
        map->at[i].payload = map->at[i].payload < most ? map->at[i].payload : most;
    return fits;
}

/* The less of both. */
static bool intersect(gy_imap *to, const gy_imap *from)
{
    bool fits = true;
    for (uint32_t i = first_of(from); i != GY_IMAP_NONE && fits; i = gy_imap_next(from, i))
        fits = lower(to, from->at[i].first, from->at[i].last, from->at[i].payload);
    return fits;
}

/* The first run of rows in [*first, *last) whose payload is between `least` and `most`; false: there are none. */
static bool find_rows(const gy_imap *map, uint64_t least, uint64_t most, int64_t *first, int64_t *last)
{
    if (*first >= *last)
        return false;
    for (uint32_t i = gy_imap_find(map, *first); i != GY_IMAP_NONE && map->at[i].first < *last;
         i = gy_imap_next(map, i)) {
        if (map->at[i].payload >= least && map->at[i].payload <= most) {
            *first = map->at[i].first > *first ? map->at[i].first : *first;
            *last = map->at[i].last < *last ? map->at[i].last : *last;
            return true;
        }
    }
    return false;
}

static gy_imap *new_maps(size_t count)
{
    return gy_calloc(count + 1, sizeof(gy_imap));
}

static void free_maps(gy_imap *maps, size_t count)
{
    for (size_t i = 0; maps && i < count; i++)
        gy_imap_free(&maps[i]);
    gy_free(maps);
}

/* ---- messages ---- */

static gy_label label_rows(const walk *w, uint32_t buffer, int64_t first, int64_t last)
{
    gy_text text = { 0 };
    gy_label l = { "?" };
    gy_rows_text(&text, w->whole, buffer, first, last);
    if (text.at && !text.failed)
        snprintf(l.at, sizeof l.at, "%s", text.at);
    gy_text_free(&text);
    return l;
}

#define BREACH(...) gy_breach(w->err, "phases", "phases", w->phase, __VA_ARGS__)

/* ---- the beginning of a start ---- */

/* Rows of a buffer that the phase takes for rows that hold something. */
static bool claim_rows(const walk *w, uint32_t b, gy_imap *map)
{
    gy_rows rows;
    bool fits = true;
    for (uint32_t run = 0; fits && gy_graph_entry_rows(w->graph, b, run, &rows); run++) {
        fits = gy_imap_fill(map, rows.first, rows.last, CLAIMED);
        uint32_t i = fits && rows.first < rows.last ? gy_imap_cut(map, rows.first, rows.last) : GY_IMAP_NONE;
        fits = fits && (rows.first >= rows.last || i != GY_IMAP_NONE);
        for (; i != GY_IMAP_NONE && map->at[i].first < rows.last; i = gy_imap_next(map, i))
            map->at[i].payload = map->at[i].payload == CLAIMED ? CLAIMED : LEFT;
    }
    return fits;
}

/* Other values of a buffer begin with nothing in every start. `again`: it is not the first start, so each name goes on
 * with what it held itself. */
static gantry_status begin_value(walk *w, uint32_t value, bool again)
{
    uint32_t b = w->graph->flow->value[value].buffer;
    gy_imap *map = &w->value[value];
    if (!gy_imap_init(map, 0, w->graph->buffers.at[b].rows, NOTHING))
        return gy_fail_nomem(w->err);
    if (w->graph->flow->entry[b] != value)
        return GANTRY_OK;
    uint32_t from = again ? b : w->graph->phase->source[b];
    bool fits =
        paint(map, &w->held[from], STALE, STALE) && paint(map, &w->held[from], LEFT, HIDDEN) && claim_rows(w, b, map);
    return fits ? GANTRY_OK : gy_fail_nomem(w->err);
}

static gantry_status begin(walk *w, bool again)
{
    free_maps(w->value, w->graph->flow->values);
    w->value = new_maps(w->graph->flow->values);
    if (!w->value)
        return gy_fail_nomem(w->err);
    for (uint32_t b = 0; b < w->graph->buffers.count; b++)
        if (w->graph->buffers.at[b].cls != GANTRY_TEMP)
            GY_TRY(begin_value(w, w->graph->flow->entry[b], again));
    return GANTRY_OK;
}

/* ---- accesses ---- */

static gantry_status read_rows(const walk *w, uint32_t node, const gy_access *a, const gy_imap *map)
{
    int64_t first = a->first, last = a->last;
    if (a->mode == GANTRY_WRITE || gy_access_reduces(a) || !find_rows(map, NOTHING, LEFT - 1, &first, &last))
        return GANTRY_OK;
    return BREACH(
        "node \"%s\" of phase %zu reads %s, where neither it nor a phase before has left anything, nor an init "
        "or a binding",
        w->whole->nodes.at[node].id, w->phase, label_rows(w, a->buffer, first, last).at);
}

/* Contributions to rows that hold nothing begin with the identity, so the phase must know which these are. */
static gantry_status write_rows(const walk *w, uint32_t node, const gy_access *a, gy_imap *map)
{
    int64_t first = a->first, last = a->last;
    if (gy_access_reduces(a) && find_rows(map, CLAIMED, HIDDEN, &first, &last)) {
        bool claimed = map->at[gy_imap_find(map, first)].payload == CLAIMED;
        return BREACH(
            "node \"%s\" of phase %zu adds to %s, which the phase takes for rows that hold %s; no phase before "
            "it has left them so",
            w->whole->nodes.at[node].id, w->phase, label_rows(w, a->buffer, first, last).at,
            claimed ? "something" : "nothing");
    }
    bool fits = a->mode == GANTRY_READ || gy_imap_set(map, a->first, a->last, MADE);
    return fits ? GANTRY_OK : gy_fail_nomem(w->err);
}

/* All reads of a task see what was there before it. */
static gantry_status run_task(walk *w, const gy_task *t, bool again, bool writes)
{
    gantry_status status = GANTRY_OK;
    const gy_flow *f = w->graph->flow;
    for (uint32_t i = 0; i < w->graph->nodes.at[t->node].accesses && !status; i++) {
        size_t access = (size_t)t->access + i;
        const gy_access *a = gy_flow_access_of(w->graph, f, access);
        gy_imap *map = &w->value[f->access[access].value];
        status = map->at ? GANTRY_OK : begin_value(w, f->access[access].value, again);
        if (!status)
            status = writes ? write_rows(w, t->node, a, map) : read_rows(w, t->node, a, map);
    }
    return status;
}

/* The flow's order keeps what reads find, also where `after` has changed it. */
static gantry_status run_start(walk *w, bool again)
{
    gantry_status status = begin(w, again);
    for (uint32_t t = 0; t < w->graph->flow->tasks && !status; t++) {
        status = run_task(w, &w->graph->flow->task[t], again, false);
        status = status ? status : run_task(w, &w->graph->flow->task[t], again, true);
    }
    return status;
}

/* ---- the end of a start ---- */

static const gy_imap *final_map(const walk *w, uint32_t buffer)
{
    return &w->value[w->graph->flow->exit[buffer]];
}

/* Afterwards `name` holds what `from` held before the phase. */
static bool copy_held(const walk *w, uint32_t name, uint32_t from)
{
    return copy_map(&w->next[name], &w->held[from], w->whole->buffers.at[name].rows);
}

/* Afterwards `name` holds what `from` means at the end of the phase. */
static bool take_final(const walk *w, uint32_t name, uint32_t from)
{
    gy_imap *to = &w->next[name];
    return renew(to, w->whole->buffers.at[name].rows) && paint(to, final_map(w, from), LEFT, LEFT);
}

static bool is_changed(const walk *w, uint32_t b)
{
    const gy_flow *f = w->graph->flow;
    int64_t first = 0, last = w->whole->buffers.at[b].rows;
    return f->exit[b] != f->entry[b] || (final_map(w, b)->at && find_rows(final_map(w, b), MADE, MADE, &first, &last));
}

/* The derived graph does not say what names mean that its loops carry and nothing uses. */
static bool make_stale(const walk *w)
{
    const gy_phase *p = &w->graph->phase->phase;
    bool fits = true;
    for (size_t i = 0; i < gy_loop_count(w->graph); i++) {
        const gy_loop *l = gy_loop_at(w->graph, i);
        uint32_t top = i < w->graph->loops.count ? (uint32_t)i : l->top;
        if (top < p->first_loop || top >= p->last_loop)
            continue;
        for (size_t k = 0; k < l->carry.count && fits; k++) {
            gy_carry c = l->carry.at[k];
            fits = lower(&w->next[c.prev], 0, w->whole->buffers.at[c.prev].rows, STALE) &&
                   lower(&w->next[c.next], 0, w->whole->buffers.at[c.next].rows, STALE);
        }
    }
    return fits;
}

static void begin_next(walk *w)
{
    gy_imap *held = w->held;
    w->held = w->next;
    w->next = held;
}

/* `next` of a pair begins unwritten in every start but the first. Where both names mean one value at first, that is in
 * the flow. */
static bool begin_pairs(const walk *w)
{
    const gy_loop *l = &w->graph->loops.at[w->graph->phase->phase.loop];
    bool fits = true;
    for (size_t k = 0; k < l->carry.count && fits; k++) {
        gy_carry c = l->carry.at[k];
        fits = w->graph->flow->entry[c.prev] == w->graph->flow->entry[c.next] ||
               renew(&w->next[c.next], w->whole->buffers.at[c.next].rows);
    }
    return fits;
}

/* The second start of a phase begins with what the first one left; all later ones find the same as the second. */
static gantry_status start_again(walk *w)
{
    bool fits = true;
    for (uint32_t b = 0; b < w->whole->buffers.count && fits; b++)
        fits = copy_held(w, b, w->graph->phase->source[b]);
    fits = fits && make_stale(w);
    for (uint32_t b = 0; b < w->whole->buffers.count && fits; b++)
        fits = !is_changed(w, b) || take_final(w, b, b);
    if (!fits || !begin_pairs(w))
        return gy_fail_nomem(w->err);
    gy_imap *before = w->held;
    w->held = w->next;
    gantry_status status = run_start(w, true);
    w->held = before;
    return status;
}

/* Rows that a phase with several starts has changed are read from where they persist; other rows stay as they were. */
static gantry_status check_persists(const walk *w, uint32_t b)
{
    const gantry_schedule *one = w->s->phases.at[w->phase].schedule;
    int64_t first = 0, last = w->whole->buffers.at[b].rows;
    gy_imap lost = { 0 };
    bool fits = gy_imap_init(&lost, 0, last, NOTHING) && paint(&lost, final_map(w, b), MADE, MADE);
    for (size_t i = 0; i < one->instances.count && fits; i++) {
        const gy_instance *in = &one->instances.at[i];
        if (in->role == GY_ROLE_PERSIST && in->value == b)
            fits = gy_imap_set(&lost, in->first, in->last, NOTHING);
    }
    gantry_status status = fits ? GANTRY_OK : gy_fail_nomem(w->err);
    if (fits && find_rows(&lost, MADE, MADE, &first, &last)) {
        status = BREACH("phase %zu changes %s, which is wanted after it, and no instance keeps these rows", w->phase,
                        label_rows(w, b, first, last).at);
    }
    gy_imap_free(&lost);
    return status;
}

/* Names take over what they mean after the phase. What others mean is gone, if the phase has changed it. */
static gantry_status hand_on(walk *w)
{
    const gy_phase_context *x = w->graph->phase;
    bool fits = true;
    for (uint32_t b = 0; b < w->whole->buffers.count && fits; b++)
        fits = is_changed(w, b) ? renew(&w->next[b], w->whole->buffers.at[b].rows) : copy_held(w, b, b);
    gantry_status status = fits && make_stale(w) ? GANTRY_OK : gy_fail_nomem(w->err);
    for (uint32_t i = 0; i < x->moves && !status; i++) {
        const gy_move *m = &x->move[i];
        if (m->made && x->phase.starts > 1)
            status = check_persists(w, m->from);
        if (!status && !(m->made ? take_final(w, m->name, m->from) : copy_held(w, m->name, m->from)))
            status = gy_fail_nomem(w->err);
    }
    begin_next(w);
    return status;
}

/* ---- loops that may end in one of several phases ---- */

static bool keep_end(walk *w)
{
    bool fits = true;
    for (uint32_t b = 0; b < w->whole->buffers.count && fits; b++) {
        fits = w->may_have_ended ? intersect(&w->end[b], &w->held[b])
                                 : copy_map(&w->end[b], &w->held[b], w->whole->buffers.at[b].rows);
    }
    w->may_have_ended = true;
    return fits;
}

static bool leave_loop(walk *w)
{
    bool fits = true;
    for (uint32_t b = 0; b < w->whole->buffers.count && w->may_have_ended && fits; b++)
        fits = intersect(&w->held[b], &w->end[b]);
    w->may_have_ended = false;
    return fits;
}

/* ---- all of it ---- */

static gantry_status run_phase(walk *w)
{
    const gy_phase *p = &w->graph->phase->phase;
    gantry_status status = run_start(w, false);
    if (!status && p->starts > 1)
        status = start_again(w);
    status = status ? status : hand_on(w);
    free_maps(w->value, w->graph->flow->values);
    w->value = NULL;
    if (!status && gy_phase_looks(p) && !keep_end(w))
        status = gy_fail_nomem(w->err);
    bool last = w->phase + 1 == w->s->phases.count || w->s->phases.at[w->phase + 1].phase.loop != p->loop;
    return status || !last || leave_loop(w) ? status : gy_fail_nomem(w->err);
}

/* The caller wants outputs, and the next start states. */
static gantry_status check_end(const walk *w)
{
    for (uint32_t b = 0; b < w->whole->buffers.count; b++) {
        const gy_buffer *buffer = &w->whole->buffers.at[b];
        int64_t first = 0, last = buffer->rows;
        bool wanted = buffer->output || buffer->cls == GANTRY_STATE;
        if (wanted && find_rows(&w->held[b], NOTHING, NOTHING, &first, &last)) {
            return gy_fail(w->err, GANTRY_E_SCHEDULE, "/phases",
                           "rule phases: %s is wanted at the end of a start, and no phase has left anything there",
                           label_rows(w, b, first, last).at);
        }
    }
    return GANTRY_OK;
}

static gantry_status make_maps(walk *w)
{
    size_t buffers = w->whole->buffers.count;
    w->held = new_maps(buffers);
    w->end = new_maps(buffers);
    w->next = new_maps(buffers);
    bool made = w->held && w->end && w->next;
    for (size_t b = 0; b < buffers && made; b++) {
        const gy_buffer *buffer = &w->whole->buffers.at[b];
        made = gy_imap_init(&w->held[b], 0, buffer->rows, buffer->cls == GANTRY_TEMP ? NOTHING : LEFT);
    }
    return made ? GANTRY_OK : gy_fail_nomem(w->err);
}

gantry_status gy_check_hand_over(const gantry_schedule *s, const gantry_graph *graph, gantry_graph *const *graphs,
                                 gantry_error *err)
{
    walk w = { .s = s, .whole = graph, .err = err };
    gantry_status status = make_maps(&w);
    for (size_t i = 0; i < s->phases.count && !status; i++) {
        w.phase = i;
        w.graph = graphs[i];
        status = run_phase(&w);
    }
    status = status ? status : check_end(&w);
    free_maps(w.held, graph->buffers.count);
    free_maps(w.end, graph->buffers.count);
    free_maps(w.next, graph->buffers.count);
    return status;
}
