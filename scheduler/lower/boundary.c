/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The rows that outlive a start. Rows of a `state` buffer live in the memory that writes them last, else in the one
 * that reads them first; the area there persists, and holds the final value of all of its rows at the end. A `const`
 * buffer persists wherever it is read. Outputs are fetched as soon as their rows are final, reductions at the end.
 */
#include "scheduler/lower/lowering.h"

#include "base/error.h"
#include <stdlib.h>

static gy_imap *new_map(gy_lower *l, uint32_t value)
{
    gy_imap *map = gy_arena_calloc(&l->arena, 1, sizeof *map);
    return map && gy_imap_init(map, 0, gy_lower_buffer(l, value)->rows, 0) ? map : NULL;
}

gantry_status gy_boundary_begin(gy_lower *l, gantry_error *err)
{
    const gy_plan *p = l->p;
    for (uint32_t b = 0; b < p->graph->buffers.count; b++) {
        const gy_buffer *buffer = &p->graph->buffers.at[b];
        uint32_t exit = p->flow->exit[b];
        bool fixed = buffer->cls == GANTRY_CONST, gathers = p->attempt->spill.gather_again && !p->graph->phase;
        bool keeps = buffer->cls == GANTRY_STATE || (fixed && (buffer->output || gathers));
        if (keeps && !(l->home[b] = new_map(l, b)))
            return gy_fail_nomem(err);
        if (buffer->output && !l->final[exit] && !(l->final[exit] = new_map(l, exit)))
            return gy_fail_nomem(err);
    }
    return GANTRY_OK;
}

gantry_status gy_boundary_walk(gy_lower *l, uint32_t task, uint32_t k, gantry_error *err)
{
    const gy_plan *p = l->p;
    size_t i = p->flow->task[task].access + k;
    uint32_t value = p->flow->access[i].value;
    const gy_access *a = gy_flow_access_of(p->graph, p->flow, i);
    uint64_t home = a->mode >= GANTRY_SUM             ? GY_HOME(GY_HOME_REDUCED, l->epoch_of[i])
                    : a->mode == GANTRY_READ          ? GY_HOME(GY_HOME_READ_FIRST, gy_lower_memory(l, task, k))
                    : gy_plan_executions(p, task) > 1 ? GY_HOME(GY_HOME_REPLICATED, task)
                                                      : GY_HOME(GY_HOME_WRITTEN, gy_lower_memory(l, task, k));
    bool done = true;
    if (l->home[value]) /* a read says where rows live only if nothing else does */
        done = (a->mode == GANTRY_READ ? gy_imap_fill : gy_imap_set)(l->home[value], a->first, a->last, home);
    if (done && l->final[value] && a->mode != GANTRY_READ)
        done = gy_imap_set(l->final[value], a->first, a->last, (uint64_t)task + 1);
    return done ? GANTRY_OK : gy_fail_nomem(err);
}

/* Where rows live that no task touches. */
static uint32_t idle_memory(const gy_plan *p)
{
    return gy_plan_device_of(p, 0) != GY_NONE ? 0 : p->machine->device[0].memory;
}

/* Rows that are fetched, but that no task touches, need a place too. */
static gantry_status touch_idle(gy_lower *l, uint32_t value, gantry_error *err)
{
    gy_imap *map = l->home[value];
    gantry_status status = GANTRY_OK;
    size_t index;
    uint32_t i = map->count ? gy_imap_find(map, 0) : GY_IMAP_NONE;
    for (; i != GY_IMAP_NONE && !status; i = gy_imap_next(map, i)) {
        if (map->at[i].payload)
            continue;
        map->at[i].payload = GY_HOME(GY_HOME_READ_FIRST, idle_memory(l->p));
        status = gy_lower_touch(l, value, idle_memory(l->p), map->at[i].first, map->at[i].last, &index, err);
    }
    return status;
}

/* A state whose name means in the end what another buffer's meant at the start. */
static bool ends_elsewhere(const gy_plan *p, uint32_t buffer)
{
    uint32_t exit = p->flow->exit[buffer];
    return p->graph->buffers.at[buffer].cls == GANTRY_STATE && exit != buffer && exit < p->graph->buffers.count;
}

gantry_status gy_boundary_touch(gy_lower *l, gantry_error *err)
{
    const gy_plan *p = l->p;
    gantry_status status = GANTRY_OK;
    for (uint32_t b = 0; b < p->graph->buffers.count && !status; b++) {
        bool wanted = p->graph->buffers.at[b].output || ends_elsewhere(p, b);
        if (wanted && l->home[p->flow->exit[b]])
            status = touch_idle(l, p->flow->exit[b], err);
        if (!status && p->graph->phase && p->graph->phase->kept[b] && l->home[b])
            status = touch_idle(l, b, err); /* a phase leaves all of it */
    }
    return status;
}

/* Rows that a task and its replicas have written live wherever one of them did. */
static uint32_t homes(const gy_lower *l, uint64_t payload)
{
    return GY_HOME_WHAT(payload) == GY_HOME_REPLICATED ? gy_plan_executions(l->p, GY_HOME_WHERE(payload)) : 1;
}

static uint32_t home_memory(gy_lower *l, uint64_t payload, uint32_t i)
{
    if (GY_HOME_WHAT(payload) == GY_HOME_REPLICATED)
        return gy_lower_memory_of(l, GY_HOME_WHERE(payload), i, 0);
    if (GY_HOME_WHAT(payload) != GY_HOME_REDUCED)
        return GY_HOME_WHERE(payload);
    const gy_epoch *e = gy_epoch_root(l, GY_HOME_WHERE(payload));
    return e->split ? e->reader.at[0].memory : e->member.at[0].memory;
}

/* The areas of the rows in one of their homes persist. */
static void settle_in(gy_lower *l, uint32_t buffer, const gy_interval *rows, uint32_t home)
{
    uint32_t memory = home_memory(l, rows->payload, home);
    for (int64_t row = rows->first; row < rows->last;) {
        uint32_t area = gy_lower_find_area(l, buffer, memory, row);
        if (area == GY_NONE)
            return;
        gy_area *a = &l->area.at[area];
        a->role = GY_ROLE_PERSIST;
        l->p->persists_beyond = l->p->persists_beyond || a->first < rows->first || rows->last < a->last;
        row = a->last;
    }
}

gantry_status gy_boundary_homes(gy_lower *l, gantry_error *err)
{
    (void)err;
    const gy_plan *p = l->p;
    for (size_t i = 0; i < l->area.count; i++) {
        uint32_t value = l->area.at[i].value;
        if (p->flow->value[value].generation == 0 && gy_lower_buffer(l, value)->cls == GANTRY_CONST && !l->home[value])
            l->area.at[i].role = GY_ROLE_PERSIST;
    }
    for (uint32_t b = 0; b < p->graph->buffers.count; b++) {
        const gy_imap *map = l->home[b];
        uint32_t i = map && map->count ? gy_imap_find(map, 0) : GY_IMAP_NONE;
        for (; i != GY_IMAP_NONE; i = gy_imap_next(map, i)) {
            const gy_interval rows = map->at[i];
            for (uint32_t k = 0; rows.payload && k < homes(l, rows.payload); k++)
                settle_in(l, b, &rows, k);
        }
    }
    return GANTRY_OK;
}

/* ---- outputs ---- */

static int by_task(const void *a, const void *b)
{
    const gy_final *x = a, *y = b;
    if (x->task != y->task)
        return x->task < y->task ? -1 : 1;
    if (x->buffer != y->buffer)
        return x->buffer < y->buffer ? -1 : 1;
    return x->first < y->first ? -1 : x->first > y->first;
}

gantry_status gy_boundary_finals(gy_lower *l, gantry_error *err)
{
    const gy_plan *p = l->p;
    for (uint32_t b = 0; b < p->graph->buffers.count; b++) {
        uint32_t exit = p->flow->exit[b];
        const gy_imap *map = p->graph->buffers.at[b].output ? l->final[exit] : NULL;
        uint32_t i = map && map->count ? gy_imap_find(map, 0) : GY_IMAP_NONE;
        for (; i != GY_IMAP_NONE; i = gy_imap_next(map, i)) {
            bool last = !map->at[i].payload || (l->reduced && l->reduced[exit]);
            gy_final f = { last ? GY_NONE : (uint32_t)(map->at[i].payload - 1), b, map->at[i].first, map->at[i].last };
            if (!gy_vec_push(&l->finals, f))
                return gy_fail_nomem(err);
        }
    }
    if (l->finals.count)
        qsort(l->finals.at, l->finals.count, sizeof *l->finals.at, by_task);
    return GANTRY_OK;
}

static gantry_status fetch(gy_lower *l, const gy_final *f, gantry_error *err)
{
    uint32_t exit = l->p->flow->exit[f->buffer], *output = &l->output[f->buffer];
    gy_instance in = { .value = f->buffer, .space = GY_SPACE_OUTPUT, .role = GY_ROLE_EXTERNAL };
    in.last = gy_lower_buffer(l, f->buffer)->rows;
    in.memory = gy_buffer_home(l->p->machine, gy_lower_buffer(l, f->buffer));
    gantry_status status = *output == GY_NONE ? gy_lower_instance(l, &in, output, err) : GANTRY_OK;
    if (!status)
        status = gy_lower_settle(l, exit, f->first, f->last, err);
    return status ? status : gy_lower_deliver(l, exit, f->first, f->last, *output, err);
}

gantry_status gy_boundary_after(gy_lower *l, uint32_t task, gantry_error *err)
{
    size_t low = 0, high = l->finals.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (l->finals.at[middle].task < task)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < l->finals.count && l->finals.at[low].task == task; low++)
        GY_TRY(fetch(l, &l->finals.at[low], err));
    return GANTRY_OK;
}

/* ---- what persists ---- */

static gantry_status bring_home(gy_lower *l, uint32_t area, gantry_error *err)
{
    uint32_t b = l->area.at[area].value, exit = l->p->flow->exit[b], instance;
    int64_t first = l->area.at[area].first, last = l->area.at[area].last;
    GY_TRY(gy_lower_know(l, b, err));
    GY_TRY(gy_lower_area(l, area, &instance, err));
    GY_TRY(gy_lower_settle(l, exit, first, last, err));
    return exit == b ? gy_lower_bring(l, b, first, last, instance, err)
                     : gy_lower_deliver(l, exit, first, last, instance, err);
}

/* Copies rows beside their home, and forgets that they are there too: what comes home is about to overwrite them. */
static gantry_status set_aside(gy_lower *l, uint32_t area, gantry_error *err)
{
    const gy_area *a = &l->area.at[area];
    gy_instance in = { .value = a->value, .memory = a->memory, .first = a->first, .last = a->last };
    uint32_t aside = GY_NONE;
    gantry_status status = gy_lower_know(l, a->value, err);
    if (!status)
        status = gy_lower_instance(l, &in, &aside, err);
    if (!status)
        status = gy_lower_bring(l, a->value, a->first, a->last, aside, err);
    int64_t end = a->last;
    for (int64_t row = a->first; row < a->last && !status; row = end) {
        const gy_holders *h = gy_lower_holders(l, a->value, row, &end);
        end = end < a->last ? end : a->last;
        for (uint32_t i = 0; h && i < h->count; i++)
            if (h->at[i].instance == aside) {
                gy_holder only = h->at[i];
                status = gy_lower_hold(l, a->value, row, end, &only, 1, err);
                break;
            }
    }
    return status;
}

static gantry_status bring_all_home(gy_lower *l, uint32_t buffer, bool aside, gantry_error *err)
{
    gantry_status status = GANTRY_OK;
    for (size_t i = gy_lower_first_area(l, buffer); i < l->area.count && l->area.at[i].value == buffer && !status;
         i++) {
        if (l->area.at[i].role != GY_ROLE_PERSIST)
            continue;
        if (aside)
            status = set_aside(l, (uint32_t)i, err);
        if (!status)
            status = bring_home(l, (uint32_t)i, err);
    }
    return status;
}

gantry_status gy_boundary_end(gy_lower *l, gantry_error *err)
{
    const gy_plan *p = l->p;
    uint32_t buffers = (uint32_t)p->graph->buffers.count;
    uint32_t *wanted = gy_arena_calloc(&l->arena, (size_t)buffers + 1, sizeof *wanted); /* by states not yet home */
    if (!wanted)
        return gy_fail_nomem(err);
    for (uint32_t b = 0; b < buffers; b++)
        if (ends_elsewhere(p, b))
            wanted[p->flow->exit[b]]++;
    gantry_status status = gy_boundary_after(l, GY_NONE, err);
    for (uint32_t b = 0; b < buffers && !status; b++) {
        if (p->graph->buffers.at[b].cls != GANTRY_STATE)
            continue;
        status = bring_all_home(l, b, p->flow->exit[b] != b && wanted[b], err);
        if (ends_elsewhere(p, b))
            wanted[p->flow->exit[b]]--;
    }
    return status;
}
