/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/place/links.h"

#include "scheduler/cost/cost.h"
#include "scheduler/place/gaps.h"
#include <stdlib.h>

/* Rows that a task needs from one memory. */
typedef struct piece {
    uint32_t value, from, made_by; /* made_by: the task, GY_NONE for inputs and for the sum of contributions */
    int64_t first, last, bytes;
    gy_ticks ready;
} piece;

/* One reservation, to take it back. */
typedef struct busy {
    gy_gaps *on;
    gy_ticks begin, length;
} busy;

struct gy_links {
    gy_gaps *resource;      /* per resource of the machine */
    gy_gaps *engine;        /* of all devices, one after the other */
    uint32_t *engine_first; /* devices + 1 */
    uint32_t resources, devices;
    gy_map arrived; /* rows in a memory (name_of) -> when they are there */
    GY_VEC(piece) piece;
    GY_VEC(busy) busy; /* of the task at hand */
    bool failed;       /* out of memory in a try, which has no way to say so */
};

/* ---- life ---- */

static bool open_all(gy_gaps *gaps, uint32_t count)
{
    for (uint32_t i = 0; gaps && i < count; i++)
        if (!gy_gaps_init(&gaps[i]))
            return false;
    return gaps;
}

static void free_all(gy_gaps *gaps, uint32_t count)
{
    for (uint32_t i = 0; gaps && i < count; i++)
        gy_gaps_free(&gaps[i]);
    gy_free(gaps);
}

void gy_links_free(gy_links *l)
{
    if (!l)
        return;
    free_all(l->resource, l->resources);
    free_all(l->engine, l->engine_first ? l->engine_first[l->devices] : 0);
    gy_free(l->engine_first);
    gy_map_free(&l->arrived);
    gy_vec_free(&l->piece);
    gy_vec_free(&l->busy);
    gy_free(l);
}

bool gy_links_open(gy_plan *p)
{
    const gantry_machine *m = p->machine;
    if (!m->contention)
        return true;
    gy_links *l = gy_calloc(1, sizeof *l);
    if (!l)
        return false;
    p->placed.links = l;
    l->resources = m->resources;
    l->devices = m->devices;
    l->engine_first = gy_calloc((size_t)m->devices + 1, sizeof *l->engine_first);
    if (!l->engine_first)
        return false;
    for (uint32_t d = 0; d < m->devices; d++)
        l->engine_first[d + 1] = l->engine_first[d] + m->device[d].copy_engines;
    l->resource = gy_calloc((size_t)m->resources + 1, sizeof *l->resource);
    l->engine = gy_calloc((size_t)l->engine_first[m->devices] + 1, sizeof *l->engine);
    return open_all(l->resource, l->resources) && open_all(l->engine, l->engine_first[m->devices]);
}

/* ---- one copy ---- */

static void take(gy_links *l, gy_gaps *on, gy_ticks begin, gy_ticks length)
{
    busy b = { on, begin, length };
    if (!gy_vec_reserve(&l->busy, l->busy.count + 1) || !gy_gaps_take(on, begin, length))
        l->failed = true;
    else
        l->busy.at[l->busy.count++] = b;
}

/* The engine of the device that is free first. */
static gy_gaps *find_engine(gy_links *l, uint32_t device, gy_ticks ready, gy_ticks length, gy_ticks *begin)
{
    gy_gaps *best = NULL;
    for (uint32_t i = l->engine_first[device]; i < l->engine_first[device + 1]; i++) {
        gy_ticks t = gy_gaps_find(&l->engine[i], ready, length);
        if (!best || t < *begin) {
            best = &l->engine[i];
            *begin = t;
        }
    }
    return best;
}

static gy_ticks later(gy_ticks a, gy_ticks b)
{
    return a > b ? a : b;
}

/* When a copy over a direct route is over. Not booked: nothing comes after it that could see it. */
static gy_ticks copy(gy_links *l, const gy_plan *p, const gy_route *r, int64_t bytes, gy_ticks ready, bool reserve)
{
    gy_ticks alone = gy_route_time(p->machine, r, bytes), begin = ready, left = 0;
    uint32_t device = gy_plan_copier(p, r->from, r->to);
    if (alone >= GY_TICKS_MAX || ready >= GY_TICKS_MAX || l->failed)
        return GY_TICKS_MAX;
    gy_gaps *engine = device == GY_NONE ? NULL : find_engine(l, device, ready, alone, &begin);
    if (engine && reserve)
        take(l, engine, begin, alone);
    gy_ticks on = begin + gy_route_latency(r);
    for (uint32_t i = 0; i < r->resources; i++) {
        gy_gaps *link = &l->resource[r->resource[i]];
        gy_ticks length = gy_ticks_of((uint64_t)bytes, p->machine->resource[r->resource[i]].rate);
        on = gy_gaps_find(link, later(on, left - length), length);
        left = on + length;
        if (left >= GY_TICKS_MAX)
            return GY_TICKS_MAX;
        if (reserve)
            take(l, link, on, length);
    }
    return later(begin + alone, left);
}

/* With what it takes until the copy sees the producer, and the consumer the copy. */
static gy_ticks signalled(gy_links *l, const gy_plan *p, const gy_route *r, const piece *c, bool reserve)
{
    return gy_ticks_both(copy(l, p, r, c->bytes, c->ready, reserve), gy_machine_signals(p->machine, r->from, r->to));
}

static gy_ticks transfer(gy_links *l, const gy_plan *p, const piece *c, uint32_t memory, bool reserve)
{
    const gy_route *r = gy_machine_route(p->machine, c->from, memory);
    if (r->kind == GY_ROUTE_DIRECT)
        return signalled(l, p, r, c, reserve);
    if (r->kind == GY_ROUTE_NONE)
        return GY_TICKS_MAX;
    return copy(l, p, r->hop[1], c->bytes, copy(l, p, r->hop[0], c->bytes, c->ready, true), reserve);
}

/* ---- what a task needs ---- */

static bool reads(const gy_access *a)
{
    return a->mode == GANTRY_READ || a->mode == GANTRY_READWRITE;
}

static bool reduces(const gy_access *a)
{
    return a->mode != GANTRY_READ && a->mode != GANTRY_WRITE && a->mode != GANTRY_READWRITE;
}

static void need(gy_links *l, const gy_plan *p, uint32_t value, int64_t first, int64_t last, uint32_t from,
                 uint32_t made_by, gy_ticks ready)
{
    piece c = { value, from, made_by, first, last, 0, ready };
    c.bytes = gy_buffer_span(gy_value_buffer(p->graph, p->flow, value), first, last);
    if (c.bytes && !gy_vec_push(&l->piece, c))
        l->failed = true;
}

/* Adds the rows that the task reads of those that one predecessor wrote. */
static void need_from(gy_links *l, const gy_plan *p, uint32_t task, uint32_t maker, uint32_t memory, int64_t bytes)
{
    const gy_flow *f = p->flow;
    uint32_t from = gy_plan_nearest(p, maker, memory, bytes);
    for (uint32_t k = 0; k < gy_plan_node(p, task)->accesses; k++) {
        size_t x = f->task[task].access + k;
        const gy_access *r = gy_flow_access_of(p->graph, f, x);
        for (uint32_t j = 0; reads(r) && j < gy_plan_node(p, maker)->accesses; j++) {
            size_t y = f->task[maker].access + j;
            const gy_access *w = gy_flow_access_of(p->graph, f, y);
            int64_t first = r->first > w->first ? r->first : w->first, last = r->last < w->last ? r->last : w->last;
            if (w->mode != GANTRY_READ && f->access[x].value == f->access[y].value && first < last)
                need(l, p, f->access[x].value, first, last, from, reduces(w) ? GY_NONE : maker,
                     p->placed.finish[maker]);
        }
    }
}

static bool is_made(const gy_links *l, uint32_t value, const gy_access *r)
{
    for (size_t i = 0; i < l->piece.count; i++) {
        const piece *c = &l->piece.at[i];
        if (c->value == value && c->first <= r->first && r->last <= c->last)
            return true;
    }
    return false;
}

static void need_inputs(gy_links *l, const gy_plan *p, uint32_t task, uint32_t memory)
{
    for (uint32_t k = 0; k < gy_plan_node(p, task)->accesses; k++) {
        size_t x = p->flow->task[task].access + k;
        uint32_t value = p->flow->access[x].value;
        const gy_access *r = gy_flow_access_of(p->graph, p->flow, x);
        const gy_buffer *b = gy_value_buffer(p->graph, p->flow, value);
        uint32_t from = b->external ? gy_buffer_home(p->machine, b) : p->machine->memory[memory].arrays;
        if (b->cls == GANTRY_INPUT && p->flow->value[value].generation == 0 && reads(r) && !is_made(l, value, r))
            need(l, p, value, r->first, r->last, from, GY_NONE, 0);
    }
}

static int compare(const void *a, const void *b)
{
    const piece *x = a, *y = b;
    if (x->value != y->value)
        return x->value < y->value ? -1 : 1;
    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    if (x->last != y->last)
        return x->last < y->last ? -1 : 1;
    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    return x->made_by < y->made_by ? -1 : x->made_by > y->made_by;
}

static int by_ready(const void *a, const void *b)
{
    const piece *x = a, *y = b;
    if (x->ready != y->ready)
        return x->ready < y->ready ? -1 : 1;
    return compare(a, b);
}

/* Contributions that wait in one memory become one piece, which is ready with the last of them. */
static void join(gy_links *l)
{
    size_t count = 0;
    if (l->piece.count > 1)
        qsort(l->piece.at, l->piece.count, sizeof *l->piece.at, compare);
    for (size_t i = 0; i < l->piece.count; i++) {
        piece *last = count ? &l->piece.at[count - 1] : NULL;
        if (last && compare(last, &l->piece.at[i]) == 0)
            last->ready = later(last->ready, l->piece.at[i].ready);
        else
            l->piece.at[count++] = l->piece.at[i];
    }
    l->piece.count = count;
    if (count > 1)
        qsort(l->piece.at, count, sizeof *l->piece.at, by_ready);
}

static uint64_t name_of(const piece *c, uint32_t memory)
{
    uint64_t key[6] = { c->value, c->from, c->made_by, (uint64_t)c->first, (uint64_t)c->last, memory };
    return gy_hash_bytes(key, sizeof key, (uint64_t)c->ready);
}

/* ---- the task ---- */

static gy_ticks bring(gy_links *l, const gy_plan *p, uint32_t task, uint32_t memory, bool keep)
{
    const gy_flow *f = p->flow;
    gy_ticks ready = 0;
    l->piece.count = 0;
    l->busy.count = 0;
    for (const gy_dep *d = gy_deps_begin(f, task); d < gy_deps_end(f, task); d++) {
        if (p->placed.device[d->from] == GY_NONE)
            continue;
        if (p->attempt->wait_everywhere || !gy_plan_holds_within(p, d, task) ||
            p->machine->device[p->placed.device[d->from]].memory == memory)
            ready = later(ready, p->placed.finish[d->from]);
        if (d->kinds & GY_DEP_DATA)
            need_from(l, p, task, d->from, memory, d->bytes);
    }
    if (p->inputs.upload[task] || p->inputs.outside.count)
        need_inputs(l, p, task, memory);
    join(l);
    for (size_t i = 0; i < l->piece.count; i++) {
        const piece *c = &l->piece.at[i];
        uint64_t known, name = name_of(c, memory);
        gy_ticks there = c->ready;
        if (c->from != memory && gy_map_get(&l->arrived, name, &known)) {
            there = (gy_ticks)known;
        } else if (c->from != memory) {
            there = transfer(l, p, c, memory, keep || i + 1 < l->piece.count);
            l->failed = l->failed || (keep && !gy_map_put(&l->arrived, name, (uint64_t)there));
        }
        ready = later(ready, there);
    }
    return ready < GY_TICKS_MAX ? ready : GY_TICKS_MAX;
}

gy_ticks gy_links_try(gy_links *l, const gy_plan *p, uint32_t task, uint32_t memory)
{
    gy_ticks ready = bring(l, p, task, memory, false);
    while (l->busy.count) {
        const busy *b = &l->busy.at[--l->busy.count];
        gy_gaps_give(b->on, b->begin, b->length);
    }
    return ready;
}

bool gy_links_book(gy_links *l, const gy_plan *p, uint32_t task, uint32_t memory)
{
    (void)bring(l, p, task, memory, true);
    return !l->failed;
}
