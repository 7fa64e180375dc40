/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/policies/list/batch.h"

#include "base/error.h"
#include "scheduler/place/inputs.h"
#include "scheduler/place/place.h"
#include "scheduler/policies/list/ready.h"

/* The slot of a ready task on one device. */
typedef struct slot {
    gy_ticks ready, start, finish; /* finish GY_TICKS_MAX: not allowed */
    bool stale;                    /* something was put there since: it ends no sooner than `finish` says */
} slot;
typedef GY_VEC(slot) slots;

typedef struct item {
    uint32_t task, best, second; /* devices; second: GY_NONE if there is none or nobody asks */
    int priority;
    gy_choice choice;
} item;

typedef struct batch {
    gy_plan *p;
    const gy_batch_rule *rule;
    gy_ready ready;
    GY_VEC(item) items;
    slots *slots;          /* per device: one for each item. Looking through one device's is what takes the time */
    GY_VEC(uint32_t) todo; /* tasks that have just become ready */
} batch;

/* ---- one task ---- */

static slot *slot_of(const batch *b, size_t i, uint32_t device)
{
    return &b->slots[device].at[i];
}

static gy_try try_of(const slot *s, uint32_t device)
{
    return (gy_try){ .device = device, .ready = s->ready, .start = s->start, .finish = s->finish };
}

static void look_again(const batch *b, size_t i, uint32_t device)
{
    slot *s = slot_of(b, i, device);
    gy_try t = try_of(s, device);
    gy_place_again(b->p, b->items.at[i].task, &t);
    *s = (slot){ t.ready, t.start, t.finish, false };
}

/* The device of the earliest end, but for `not`; GY_NONE if none is allowed. Its slot is a real one, not a stale one.
 */
static uint32_t find_best(const batch *b, size_t i, uint32_t not )
{
    for (;;) {
        uint32_t best = GY_NONE;
        gy_ticks least = GY_TICKS_MAX;
        for (uint32_t d = 0; d < b->p->devices; d++)
            if (d != not &&slot_of(b, i, d)->finish < least) {
                best = d;
                least = slot_of(b, i, d)->finish;
            }
        if (best == GY_NONE || !slot_of(b, i, best)->stale)
            return best;
        look_again(b, i, best);
    }
}

static void settle(const batch *b, size_t i)
{
    item *x = &b->items.at[i];
    x->best = find_best(b, i, GY_NONE);
    x->second = b->rule->second && x->best != GY_NONE ? find_best(b, i, x->best) : GY_NONE;
    x->choice.best = x->best == GY_NONE ? GY_TICKS_MAX : slot_of(b, i, x->best)->finish;
    x->choice.second = x->second == GY_NONE ? GY_TICKS_MAX : slot_of(b, i, x->second)->finish;
}

static void try_all(const batch *b, size_t i)
{
    uint32_t task = b->items.at[i].task;
    for (uint32_t d = 0; d < b->p->devices; d++) {
        slot *s = slot_of(b, i, d);
        *s = (slot){ .finish = GY_TICKS_MAX };
        if (!gy_place_allowed(b->p, task, d))
            continue;
        gy_try t = gy_place_try(b->p, task, d);
        *s = (slot){ t.ready, t.start, t.finish, false };
    }
    settle(b, i);
}

/* ---- all of them ---- */

static gantry_status add(batch *b, uint32_t task, gantry_error *err)
{
    item x = { .task = task, .priority = gy_priority(b->p, task) };
    bool room = gy_vec_push(&b->items, x);
    for (uint32_t d = 0; d < b->p->devices && room; d++)
        room = gy_vec_reserve(&b->slots[d], b->items.count);
    if (!room)
        return gy_fail_nomem(err);
    try_all(b, b->items.count - 1);
    return GANTRY_OK;
}

static void drop(batch *b, size_t i)
{
    size_t last = --b->items.count;
    b->items.at[i] = b->items.at[last];
    for (uint32_t d = 0; d < b->p->devices; d++)
        *slot_of(b, i, d) = *slot_of(b, last, d);
}

static bool goes_before(const batch *b, const item *x, const item *y)
{
    if (x->priority != y->priority)
        return x->priority > y->priority;
    int order = b->rule->compare(&x->choice, &y->choice);
    return order ? order < 0 : x->task < y->task;
}

static bool is_pinned(const batch *b, uint32_t task)
{
    return b->p->cost.pinned[b->p->flow->task[task].node];
}

/* A task was placed. With `with` and `apart` it may have closed other devices to tasks that wait. */
static void note_group(const batch *b, uint32_t task)
{
    for (size_t i = 0; i < b->items.count && is_pinned(b, task); i++)
        if (is_pinned(b, b->items.at[i].task))
            try_all(b, i);
}

/* A task was put into `t`. */
static void note(const batch *b, const gy_try *t)
{
    for (size_t i = 0; i < b->items.count; i++) {
        const item *x = &b->items.at[i];
        slot *s = slot_of(b, i, t->device);
        if (s->start < t->finish && t->start < s->finish && s->finish < GY_TICKS_MAX) {
            s->stale = true;
            if (x->best == t->device || x->second == t->device)
                settle(b, i);
        }
    }
}

static gantry_status placed(batch *b, uint32_t task, gantry_error *err)
{
    gy_ready_placed(&b->ready, task);
    for (size_t i = 0; i < b->ready.count; i++)
        if (!gy_vec_push(&b->todo, b->ready.now[i]))
            return gy_fail_nomem(err);
    return GANTRY_OK;
}

/* A collective takes no time from a device: it is placed at once. */
static gantry_status add_todo(batch *b, gantry_error *err)
{
    gantry_status status = GANTRY_OK;
    while (b->todo.count && !status) {
        uint32_t task = b->todo.at[--b->todo.count];
        if (!gy_plan_team(b->p, task)) {
            status = add(b, task, err);
            continue;
        }
        status = gy_place_earliest(b->p, task, err);
        if (!status) {
            note_group(b, task);
            status = placed(b, task, err);
        }
    }
    return status;
}

static gantry_status place_best(batch *b, gantry_error *err)
{
    size_t first = 0;
    for (size_t i = 1; i < b->items.count; i++)
        if (goes_before(b, &b->items.at[i], &b->items.at[first]))
            first = i;
    item x = b->items.at[first];
    if (x.best == GY_NONE)
        return gy_place_earliest(b->p, x.task, err); /* which says why it cannot */
    gy_try t = try_of(slot_of(b, first, x.best), x.best);
    t.upload = gy_upload_time(b->p, x.task, b->p->machine->device[x.best].memory);
    GY_TRY(gy_place_at(b->p, x.task, &t, err));
    drop(b, first);
    note(b, &t);
    note_group(b, x.task);
    return placed(b, x.task, err);
}

static gantry_status walk(batch *b, gantry_error *err)
{
    b->slots = gy_calloc(b->p->devices, sizeof *b->slots);
    gantry_status status = gy_ready_init(&b->ready, b->p) && b->slots ? GANTRY_OK : gy_fail_nomem(err);
    for (uint32_t t = 0; t < b->p->flow->tasks && !status; t++)
        if (gy_ready_is(&b->ready, t) && !gy_vec_push(&b->todo, t))
            status = gy_fail_nomem(err);
    if (!status)
        status = add_todo(b, err);
    while (b->items.count && !status) {
        status = place_best(b, err);
        if (!status)
            status = add_todo(b, err);
    }
    return status;
}

gantry_status gy_place_batch(gy_plan *p, const gy_batch_rule *rule, gantry_error *err)
{
    batch b = { .p = p, .rule = rule };
    gantry_status status = walk(&b, err);
    gy_ready_free(&b.ready);
    gy_vec_free(&b.items);
    for (uint32_t d = 0; b.slots && d < p->devices; d++)
        gy_vec_free(&b.slots[d]);
    gy_free(b.slots);
    gy_vec_free(&b.todo);
    return status;
}
