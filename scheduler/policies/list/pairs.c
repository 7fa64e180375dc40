/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/policies/list/pairs.h"

#include "base/error.h"
#include "scheduler/cost/apart.h"
#include "scheduler/place/heap.h"
#include "scheduler/place/inputs.h"
#include "scheduler/place/place.h"
#include "scheduler/policies/list/ready.h"

struct pairs;

/* The ready tasks of one device. */
typedef struct queue {
    struct pairs *of;
    uint32_t device;
    const gy_ticks *ready; /* when the data of a task are there: ready[task * stride] */
    size_t stride;
    gy_heap now, soon, coming; /* by value; by worth; by ready */
} queue;

typedef struct pairs {
    gy_plan *p;
    const gy_pairing *how;
    gy_ready ready;
    uint32_t to_place;     /* tasks */
    queue *queue;          /* per device; with favourites, as many again: by when data could be everywhere */
    gy_ticks *at;          /* task * devices + device: when the data are there */
    gy_ticks *all;         /* per task: when they could be on every device; only with favourites */
    gy_ticks *free_at;     /* per device */
    uint32_t *last;        /* per device: the task that came last; only with favourites */
    uint8_t *open;         /* per task: ready, and without a place */
    gy_held_memory *room;  /* NULL when it is no matter, or no matter any more */
    GY_VEC(uint32_t) todo; /* tasks that have just become ready */
} pairs;

/* ---- worth ---- */

typedef struct pair {
    uint32_t task, device;
    gy_ticks start;
} pair;

static gy_rank value_of(const pairs *x, uint32_t task, uint32_t device)
{
    gy_rank value = x->how->level[task];
    return x->how->unit ? value - x->how->unit * gy_plan_time(x->p, x->p->flow->task[task].node, device) : value;
}

static bool is_better(const pairs *x, const pair *a, const pair *b)
{
    int s = gy_priority(x->p, a->task), t = gy_priority(x->p, b->task);
    if (s != t)
        return s > t;
    if (!x->how->unit && a->start != b->start)
        return a->start < b->start;
    gy_rank v = value_of(x, a->task, a->device) - x->how->unit * a->start;
    gy_rank w = value_of(x, b->task, b->device) - x->how->unit * b->start;
    if (v != w)
        return v > w;
    return a->task != b->task ? a->task < b->task : a->device < b->device;
}

static gy_ticks ready_of(const queue *q, uint32_t task)
{
    return q->ready[task * q->stride];
}

static bool by_value(const void *context, uint32_t a, uint32_t b)
{
    const queue *q = context;
    pair s = { a, q->device, 0 }, t = { b, q->device, 0 };
    return is_better(q->of, &s, &t);
}

static bool by_worth(const void *context, uint32_t a, uint32_t b)
{
    const queue *q = context;
    pair s = { a, q->device, ready_of(q, a) }, t = { b, q->device, ready_of(q, b) };
    return is_better(q->of, &s, &t);
}

static bool by_ready(const void *context, uint32_t a, uint32_t b)
{
    const queue *q = context;
    return ready_of(q, a) != ready_of(q, b) ? ready_of(q, a) < ready_of(q, b) : a < b;
}

/* ---- one device's tasks ---- */

static bool add_to(queue *q, uint32_t task)
{
    if (ready_of(q, task) <= q->of->free_at[q->device])
        return gy_heap_push(&q->now, task);
    return gy_heap_push(&q->soon, task) && gy_heap_push(&q->coming, task);
}

static bool can_go(const pairs *x, uint32_t task, uint32_t device)
{
    return gy_place_allowed(x->p, task, device) &&
           (!x->room || gy_held_memory_has(x->room, task, x->p->machine->device[device].memory));
}

/* Takes off what stands at the top in vain: placed, moved on to `now`, or not to go here any more. */
static void clean(queue *q, gy_heap *heap)
{
    const pairs *x = q->of;
    while (heap->at.count) {
        uint32_t task = heap->at.at[0];
        bool moved = heap == &q->soon && ready_of(q, task) <= x->free_at[q->device];
        if (x->open[task] && !moved && can_go(x, task, q->device))
            return;
        gy_heap_pop(heap);
    }
}

/* The best pair of the queue; false: it has none. *nomem is set when memory ran out. */
static bool best_of(queue *q, pair *best, bool *nomem)
{
    gy_ticks free_at = q->of->free_at[q->device];
    while (q->coming.at.count && ready_of(q, q->coming.at.at[0]) <= free_at)
        if (!gy_heap_push(&q->now, gy_heap_pop(&q->coming)))
            *nomem = true;
    clean(q, &q->now);
    clean(q, &q->soon);
    bool found = q->now.at.count;
    if (found)
        *best = (pair){ q->now.at.at[0], q->device, free_at };
    if (q->soon.at.count) {
        pair s = { q->soon.at.at[0], q->device, ready_of(q, q->soon.at.at[0]) };
        if (!found || is_better(q->of, &s, best))
            *best = s;
        found = true;
    }
    return found;
}

/* ---- favourites ---- */

static gy_ticks start_on(const pairs *x, uint32_t task, uint32_t device)
{
    gy_ticks ready = x->at[(size_t)task * x->p->devices + device];
    return ready > x->free_at[device] ? ready : x->free_at[device];
}

/* The favourite child that the device keeps itself for, or GY_NONE. */
static uint32_t kept_for(const pairs *x, uint32_t device)
{
    uint32_t child = x->how->favourite && x->last[device] != GY_NONE ? x->how->favourite[x->last[device]] : GY_NONE;
    if (child == GY_NONE || !x->open[child] || !can_go(x, child, device))
        return GY_NONE;
    for (uint32_t d = 0; d < x->p->devices; d++)
        if (can_go(x, child, d) && start_on(x, child, d) < start_on(x, child, device))
            return GY_NONE;
    return child;
}

static bool best_on(pairs *x, uint32_t device, pair *best, bool *nomem)
{
    uint32_t child = kept_for(x, device);
    if (child == GY_NONE)
        return best_of(&x->queue[device], best, nomem);
    pair own = { child, device, start_on(x, child, device) };
    if (!best_of(&x->queue[x->p->devices + device], best, nomem) || is_better(x, &own, best))
        *best = own;
    return true;
}

/* ---- the walk ---- */

/* The task has its place: notes who becomes ready by it. */
static gantry_status placed(pairs *x, uint32_t task, gantry_error *err)
{
    const gy_plan *p = x->p;
    x->open[task] = 0;
    x->to_place--;
    if (x->room && !gy_plan_team(p, task) &&
        !gy_held_memory_take(x->room, task, p->machine->device[p->placed.device[task]].memory))
        return gy_fail_nomem(err);
    gy_ready_placed(&x->ready, task);
    for (size_t i = 0; i < x->ready.count; i++)
        if (!gy_vec_push(&x->todo, x->ready.now[i]))
            return gy_fail_nomem(err);
    return GANTRY_OK;
}

static bool add_pairs(pairs *x, uint32_t task)
{
    const gy_plan *p = x->p;
    for (uint32_t d = 0; d < p->devices; d++) {
        if (!gy_place_allowed(p, task, d))
            continue;
        if (!add_to(&x->queue[d], task) || (x->how->favourite && !add_to(&x->queue[p->devices + d], task)))
            return false;
    }
    return true;
}

/* A collective takes no time from a device: it is placed at once. */
static gantry_status add_ready(pairs *x, uint32_t task, gantry_error *err)
{
    gy_plan *p = x->p;
    x->open[task] = 1;
    if (gy_plan_team(p, task)) {
        gantry_status status = gy_place_earliest(p, task, err);
        return status ? status : placed(x, task, err);
    }
    for (uint32_t d = 0; d < p->devices; d++) {
        if (!gy_place_allowed(p, task, d))
            continue;
        gy_ticks ready = gy_place_try(p, task, d).ready;
        x->at[(size_t)task * p->devices + d] = ready;
        x->all[task] = ready > x->all[task] ? ready : x->all[task];
    }
    return add_pairs(x, task) ? GANTRY_OK : gy_fail_nomem(err);
}

static gantry_status add_todo(pairs *x, gantry_error *err)
{
    gantry_status status = GANTRY_OK;
    while (x->todo.count && !status)
        status = add_ready(x, x->todo.at[--x->todo.count], err);
    return status;
}

static gantry_status place_pair(pairs *x, const pair *best, gantry_error *err)
{
    gy_plan *p = x->p;
    gy_try t = { .device = best->device, .start = start_on(x, best->task, best->device) };
    t.ready = x->at[(size_t)best->task * p->devices + best->device];
    t.upload = gy_upload_time(p, best->task, p->machine->device[best->device].memory);
    t.finish = t.start + gy_plan_time(p, p->flow->task[best->task].node, best->device);
    GY_TRY(gy_place_at(p, best->task, &t, err));
    x->free_at[t.device] = t.start + gy_plan_hold(p, p->flow->task[best->task].node, t.device);
    x->last[t.device] = best->task;
    return placed(x, best->task, err);
}

static bool has_device(const gy_plan *p, uint32_t task)
{
    uint32_t d = 0;
    while (d < p->devices && !gy_place_allowed(p, task, d))
        d++;
    return d < p->devices;
}

/* The queues are empty. For lack of room: from here on that is no matter, and the packer has the last word. Else
 * devices were closed to tasks by `apart` and are open again now, or none is left for one. */
static gantry_status go_on(pairs *x, gantry_error *err)
{
    gantry_status status = GANTRY_OK;
    x->room = NULL;
    for (uint32_t t = 0; t < x->p->flow->tasks && !status; t++) {
        if (!x->open[t])
            continue;
        if (!has_device(x->p, t))
            status = gy_apart_refuse(x->p, x->p->flow->task[t].node, err);
        else if (!add_pairs(x, t))
            status = gy_fail_nomem(err);
    }
    return status;
}

static gantry_status place_best(pairs *x, gantry_error *err)
{
    pair best = { .task = GY_NONE }, other;
    bool nomem = false;
    for (uint32_t d = 0; d < x->p->devices; d++)
        if (best_on(x, d, &other, &nomem) && (best.task == GY_NONE || is_better(x, &other, &best)))
            best = other;
    if (nomem)
        return gy_fail_nomem(err);
    return best.task == GY_NONE ? go_on(x, err) : place_pair(x, &best, err);
}

static gantry_status walk(pairs *x, gantry_error *err)
{
    gantry_status status = add_todo(x, err);
    while (x->to_place && !status) {
        status = place_best(x, err);
        if (!status)
            status = add_todo(x, err);
    }
    return status;
}

static bool set_up(pairs *x)
{
    size_t tasks = x->p->flow->tasks, devices = x->p->devices, sides = x->how->favourite ? 2 : 1;
    x->queue = gy_calloc(sides * devices, sizeof *x->queue);
    x->at = gy_calloc(tasks + 1, devices * sizeof *x->at);
    x->all = gy_calloc(tasks + 1, sizeof *x->all);
    x->free_at = gy_calloc(devices, sizeof *x->free_at);
    x->last = gy_calloc(devices, sizeof *x->last);
    x->open = gy_calloc(tasks + 1, 1);
    if (!gy_ready_init(&x->ready, x->p) || !x->queue || !x->at || !x->all || !x->free_at || !x->last || !x->open)
        return false;
    for (size_t i = 0; i < sides * devices; i++) {
        queue *q = &x->queue[i];
        *q = (queue){ .of = x, .device = (uint32_t)(i % devices) };
        q->ready = i < devices ? x->at + i : x->all;
        q->stride = i < devices ? devices : 1;
        q->now = (gy_heap){ .before = by_value, .context = q };
        q->soon = (gy_heap){ .before = by_worth, .context = q };
        q->coming = (gy_heap){ .before = by_ready, .context = q };
    }
    for (uint32_t d = 0; d < devices; d++)
        x->last[d] = GY_NONE;
    return true;
}

static void tear_down(pairs *x)
{
    size_t sides = x->how->favourite ? 2 : 1;
    for (size_t i = 0; x->queue && i < sides * x->p->devices; i++) {
        gy_heap_free(&x->queue[i].now);
        gy_heap_free(&x->queue[i].soon);
        gy_heap_free(&x->queue[i].coming);
    }
    gy_ready_free(&x->ready);
    gy_free(x->queue);
    gy_free(x->at);
    gy_free(x->all);
    gy_free(x->free_at);
    gy_free(x->last);
    gy_free(x->open);
    gy_vec_free(&x->todo);
}

gantry_status gy_place_pairs(gy_plan *p, const gy_pairing *how, gantry_error *err)
{
    pairs x = { .p = p, .how = how, .room = how->room, .to_place = p->flow->tasks };
    gantry_status status = set_up(&x) ? GANTRY_OK : gy_fail_nomem(err);
    for (uint32_t t = p->flow->tasks; t-- > 0 && !status;)
        if (gy_ready_is(&x.ready, t) && !gy_vec_push(&x.todo, t))
            status = gy_fail_nomem(err);
    if (!status)
        status = walk(&x, err);
    tear_down(&x);
    return status;
}
