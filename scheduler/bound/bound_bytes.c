/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes that must go up and down: one walk over the tasks, with a map of rows per input and per output. */
#include "scheduler/bound/bound.h"

#include "base/error.h"
#include "base/imap.h"

/* Payloads of an input's map. Those of an output's: the task that wrote the rows last; their number for none. */
enum { UNREAD, READ, WRITTEN }; /* UNREAD is 0, for gy_imap_fill */

typedef struct walk {
    const gy_plan *p;
    gy_bound_bytes *b;
    gy_imap **input, **output; /* per value; NULL: it is none. `input`: of what a start begins with */
    gy_row_pieces pieces;
    bool all; /* bytes that take no rate count, too; nodes that copy do not */
} walk;

bool gy_bound_is_away(const gy_plan *p, uint32_t node)
{
    if (p->graph->nodes.at[node].kind == GY_NODE_COLLECTIVE)
        return false;
    for (uint32_t d = 0; d < p->devices; d++)
        if (p->machine->device[d].memory == 0 && gy_plan_time(p, node, d) < GY_TICKS_MAX)
            return false;
    return true;
}

static bool counts(const walk *w, uint32_t node)
{
    return gy_bound_is_away(w->p, node) && !(w->all && w->p->graph->nodes.at[node].kind == GY_NODE_COPY);
}

static bool add_map(gy_imap **maps, const gy_plan *p, uint32_t value, uint64_t payload)
{
    gy_imap *map = gy_calloc(1, sizeof *map);
    if (map && !gy_imap_init(map, 0, gy_value_buffer(p->graph, p->flow, value)->rows, payload)) {
        gy_free(map);
        map = NULL;
    }
    maps[value] = map;
    return map != NULL;
}

static bool make_maps(walk *w)
{
    const gy_plan *p = w->p;
    for (uint32_t b = 0; b < p->graph->buffers.count; b++) {
        const gy_buffer *buffer = &p->graph->buffers.at[b];
        uint32_t exit = p->flow->exit[b];
        bool begins = buffer->cls == GANTRY_INPUT || buffer->cls == GANTRY_CONST || buffer->cls == GANTRY_STATE;
        if (begins && buffer->rows && !buffer->external && !add_map(w->input, p, b, UNREAD))
            return false;
        if (buffer->output && buffer->rows && !buffer->external && !w->output[exit] &&
            !add_map(w->output, p, exit, p->flow->tasks))
            return false;
    }
    return true;
}

static void free_maps(gy_imap **maps, uint32_t values)
{
    for (uint32_t v = 0; maps && v < values; v++)
        if (maps[v]) {
            gy_imap_free(maps[v]);
            gy_free(maps[v]);
        }
    gy_free(maps);
}

/* Rows that a read finds as they are at the start, and those of them that no task that counts has read. */
typedef struct found {
    bool fresh, unread;
    int64_t fresh_bytes, unread_bytes;
} found;

static found look(const walk *w, uint32_t value, const gy_access *a)
{
    const gy_imap *map = w->input[value];
    found x = { 0 };
    for (uint32_t i = gy_imap_find(map, a->first); i != GY_IMAP_NONE && map->at[i].first < a->last;
         i = gy_imap_next(map, i)) {
        const gy_interval *v = &map->at[i];
        int64_t low = v->first > a->first ? v->first : a->first, high = v->last < a->last ? v->last : a->last;
        if (v->payload >= WRITTEN || low >= high)
            continue;
        int64_t bytes = gy_row_pieces_heavy(&w->pieces, value, low, high);
        x.fresh = true;
        x.fresh_bytes += bytes;
        x.unread = x.unread || v->payload == UNREAD;
        x.unread_bytes += v->payload == UNREAD ? bytes : 0;
    }
    return x;
}

/* The task reads rows that are as they were at the start. */
static bool walk_read(walk *w, uint32_t task, uint32_t value, const gy_access *a)
{
    found x = look(w, value, a);
    if (gy_value_buffer(w->p->graph, w->p->flow, value)->cls == GANTRY_INPUT) {
        w->b->waits[task] |= x.fresh ? GY_WAITS_UP : 0;
        w->b->up[task] += x.fresh_bytes;
        w->b->ups += x.unread_bytes;
    } else {
        w->b->kept += x.unread_bytes;
    }
    return !x.unread || gy_imap_fill(w->input[value], a->first, a->last, READ);
}

static bool walk_access(walk *w, uint32_t task, size_t k, bool away)
{
    const gy_plan *p = w->p;
    uint32_t value = p->flow->access[k].value;
    const gy_access *a = gy_flow_access_of(p->graph, p->flow, k);
    gy_imap *in = w->input[value], *out = w->output[value];
    if (a->first >= a->last)
        return true;
    if (in && away && (a->mode == GANTRY_READ || a->mode == GANTRY_READWRITE) && !walk_read(w, task, value, a))
        return false;
    if (a->mode == GANTRY_READ)
        return true;
    return (!in || gy_imap_set(in, a->first, a->last, WRITTEN)) &&
           (!out || gy_imap_set(out, a->first, a->last, away ? task : p->flow->tasks));
}

static bool walk_tasks(walk *w)
{
    const gy_flow *f = w->p->flow;
    for (uint32_t t = 0; t < f->tasks; t++) {
        uint32_t count = gy_plan_node(w->p, t)->accesses;
        bool away = false, known = false;
        for (uint32_t k = 0; k < count; k++) {
            uint32_t value = f->access[f->task[t].access + k].value;
            if (!w->input[value] && !w->output[value])
                continue;
            away = known ? away : counts(w, f->task[t].node);
            known = true;
            if (!walk_access(w, t, f->task[t].access + k, away))
                return false;
        }
    }
    return true;
}

static void sum_outputs(walk *w)
{
    const gy_plan *p = w->p;
    for (uint32_t v = 0; v < p->flow->values; v++) {
        const gy_imap *map = w->output[v];
        for (uint32_t i = map ? gy_imap_find(map, 0) : GY_IMAP_NONE; i != GY_IMAP_NONE; i = gy_imap_next(map, i)) {
            if (map->at[i].payload >= p->flow->tasks)
                continue;
            int64_t bytes = gy_row_pieces_heavy(&w->pieces, v, map->at[i].first, map->at[i].last);
            w->b->waits[map->at[i].payload] |= GY_WAITS_DOWN;
            w->b->down[map->at[i].payload] += bytes;
            w->b->downs += bytes;
        }
    }
}

static bool make_pieces(walk *w)
{
    w->pieces.p = w->p;
    if (w->all)
        return true;
    uint8_t *wanted = gy_calloc((size_t)w->p->flow->values + 1, 1);
    for (uint32_t v = 0; wanted && v < w->p->flow->values; v++)
        wanted[v] = w->input[v] || w->output[v];
    bool done = wanted && gy_row_pieces_make(&w->pieces, w->p, wanted);
    gy_free(wanted);
    return done;
}

gantry_status gy_bound_bytes_find(gy_bound_bytes *b, const gy_plan *p, bool all, gantry_error *err)
{
    size_t tasks = (size_t)p->flow->tasks + 1, values = (size_t)p->flow->values + 1;
    walk w = { .p = p, .b = b, .all = all };
    w.input = gy_calloc(values, sizeof *w.input);
    w.output = gy_calloc(values, sizeof *w.output);
    *b = (gy_bound_bytes){ .up = gy_calloc(tasks, sizeof *b->up),
                           .down = gy_calloc(tasks, sizeof *b->down),
                           .waits = gy_calloc(tasks, 1) };
    bool done =
        w.input && w.output && b->up && b->down && b->waits && make_maps(&w) && make_pieces(&w) && walk_tasks(&w);
    if (done)
        sum_outputs(&w);
    gy_row_pieces_free(&w.pieces);
    free_maps(w.input, p->flow->values);
    free_maps(w.output, p->flow->values);
    if (done)
        return GANTRY_OK;
    gy_bound_bytes_free(b);
    return gy_fail_nomem(err);
}

void gy_bound_bytes_free(gy_bound_bytes *b)
{
    gy_free(b->up);
    gy_free(b->down);
    gy_free(b->waits);
    *b = (gy_bound_bytes){ 0 };
}
