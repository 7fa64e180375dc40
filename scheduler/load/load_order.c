/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order in which tasks are looked at, and so the numbers of units: that of the graph, but a task that waits for
 * nothing (weights, inputs), with what is made of it alone, comes just before the first task that wants it, by name
 * among others of that kind. So it makes no difference where a graph has its sources.
 */
#include "base/assert.h"
#include "base/error.h"
#include "scheduler/load/load.h"
#include <stdlib.h>
#include <string.h>

typedef struct named {
    const char *name;
    uint32_t iteration, task;
} named;

typedef struct orderer {
    const gy_plan *p;
    gy_load *l;
    uint8_t *wanted; /* per task: another waits for it */
    uint8_t *done;
    uint32_t *stack;
    uint32_t count;
    GY_VEC(named) pending;
} orderer;

static int by_name(const void *a, const void *b)
{
    const named *x = a, *y = b;
    int names = strcmp(x->name, y->name);
    if (names)
        return names;
    return x->iteration < y->iteration ? -1 : x->iteration > y->iteration;
}

static bool is_source(const gy_flow *f, uint32_t task)
{
    return gy_deps_begin(f, task) == gy_deps_end(f, task);
}

static void find_loose(orderer *o)
{
    const gy_flow *f = o->p->flow;
    for (uint32_t t = 0; t < f->tasks; t++) {
        const gy_dep *first = gy_deps_begin(f, t), *end = gy_deps_end(f, t);
        o->l->loose[t] = first == end || (end - first == 1 && o->l->loose[first->from]);
        for (const gy_dep *d = first; d < end; d++)
            o->wanted[d->from] = 1;
    }
}

static void take(orderer *o, uint32_t task)
{
    o->l->order[o->count++] = task;
    o->done[task] = 1;
}

/* A loose task waits for one other at most. It may be wanted twice, by itself and by what is made of it. */
static void take_chain(orderer *o, uint32_t task)
{
    const gy_flow *f = o->p->flow;
    uint32_t depth = 0;
    if (o->done[task])
        return;
    o->stack[depth++] = task;
    while (!is_source(f, task) && !o->done[gy_deps_begin(f, task)->from]) {
        task = gy_deps_begin(f, task)->from;
        o->stack[depth++] = task;
    }
    while (depth)
        take(o, o->stack[--depth]);
}

static bool note_pending(orderer *o, uint32_t task)
{
    const gy_task *t = &o->p->flow->task[task];
    named n = { o->p->graph->nodes.at[t->node].id, t->iteration, task };
    return gy_vec_push(&o->pending, n);
}

static void take_pending(orderer *o)
{
    if (o->pending.count)
        qsort(o->pending.at, o->pending.count, sizeof *o->pending.at, by_name);
    for (size_t i = 0; i < o->pending.count; i++)
        take_chain(o, o->pending.at[i].task);
    o->pending.count = 0;
}

static bool take_with_sources(orderer *o, uint32_t task)
{
    const gy_flow *f = o->p->flow;
    if (o->l->loose[task]) {
        take_chain(o, task);
        return true;
    }
    for (const gy_dep *d = gy_deps_begin(f, task); d < gy_deps_end(f, task); d++)
        if (!o->done[d->from] && !note_pending(o, d->from))
            return false;
    take_pending(o);
    take(o, task);
    return true;
}

/* Those that nothing waits for come last. */
static bool order_all(orderer *o)
{
    const gy_flow *f = o->p->flow;
    bool done = true;
    find_loose(o);
    for (uint32_t t = 0; t < f->tasks && done; t++)
        if (!o->l->loose[t] || !(o->wanted[t] || is_source(f, t)))
            done = take_with_sources(o, t);
    for (uint32_t t = 0; t < f->tasks && done; t++)
        done = o->done[t] || note_pending(o, t);
    if (done)
        take_pending(o);
    return done;
}

gantry_status gy_load_order(gy_load *l, const gy_plan *p, gantry_error *err)
{
    size_t room = (size_t)p->flow->tasks + 1;
    orderer o = { .p = p, .l = l };
    l->order = gy_calloc(room, sizeof *l->order);
    l->loose = gy_calloc(room, sizeof *l->loose);
    o.wanted = gy_calloc(room, sizeof *o.wanted);
    o.done = gy_calloc(room, sizeof *o.done);
    o.stack = gy_calloc(room, sizeof *o.stack);
    bool done = l->order && l->loose && o.wanted && o.done && o.stack && order_all(&o);
    GY_ASSERT(!done || o.count == p->flow->tasks);
    gy_vec_free(&o.pending);
    gy_free(o.wanted);
    gy_free(o.done);
    gy_free(o.stack);
    return done ? GANTRY_OK : gy_fail_nomem(err);
}
