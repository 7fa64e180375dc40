/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Batches. Ops are gone through in their order. One that is in a *class*, ops of alike nodes on one device that take as
 * long, takes those of its class along that wait for nothing any more: all that they need comes before it in the order,
 * so none of them needs another. One by one, in the order in which they came to wait for nothing: each that is expected
 * to end sooner in the batch than behind it. A batch begins when the last of it is ready, so it is not for waiting
 * long.
 *
 * A batch of k takes as long as one op, and k - 1 times what one more adds on this machine. An op that adds as much as
 * it takes of its device alone is in no class; without a class nothing changes.
 */
#include "base/error.h"
#include "base/map.h"
#include "base/sort.h"
#include "graph/alike.h"
#include "scheduler/cost/cost.h"
#include "scheduler/order/busy.h"
#include "scheduler/order/order.h"

enum {
    MOST = 4096,  /* ops of a batch */
    REFUSALS = 64 /* that end the search for one more */
};

typedef struct class
{
    uint32_t draft;   /* the first op of it */
    gy_ticks added;   /* what one more adds to a batch */
    gy_ticks hold;    /* how long one keeps others off its device */
    uint32_t waiting; /* the first that waits for nothing and has no place yet, or GY_NONE; then along `next` */
    uint32_t last;
} class;

typedef struct batcher {
    gy_plan *p;
    gy_busy busy;
    uint32_t count;     /* ops of the draft; what follows is by op, where nothing else is said */
    uint32_t *class_of; /* GY_NONE: it is in none */
    uint32_t *waits;    /* how many of those it waits for have no place yet */
    uint32_t *next, *previous;
    gy_ticks *ready, *start; /* expected */
    size_t *out_first;       /* count + 1: those that wait for op i are out[out_first[i] ...) */
    uint32_t *out;
    bool *done;      /* it has its place */
    uint32_t *order; /* the new order; `placed` of it are there */
    uint32_t placed;
    bool any;
    GY_VEC(class) classes;
    GY_VEC(uint32_t) members; /* of the batch that is made */
    gy_map found;
} batcher;

/* ---- classes ---- */

static bool is_same(const batcher *b, const class *c, const gy_draft_op *d)
{
    const gy_draft_op *first = &b->p->draft.op.at[c->draft];
    return first->device == d->device && first->op.duration == d->op.duration && first->op.spare == d->op.spare &&
           gy_nodes_are_alike(b->p->graph, first->op.node, d->op.node);
}

static bool find_class(batcher *b, uint32_t draft, const class *new, uint32_t *found)
{
    const gy_draft_op *d = &b->p->draft.op.at[draft];
    uint64_t key = gy_node_likeness(b->p->graph, d->op.node) ^ gy_hash64((uint64_t)d->op.duration) ^ d->device, at;
    while (gy_map_get(&b->found, key, &at)) {
        *found = (uint32_t)at;
        if (is_same(b, &b->classes.at[at], d))
            return true;
        key++;
    }
    *found = (uint32_t)b->classes.count;
    return gy_map_put(&b->found, key, b->classes.count) && gy_vec_push(&b->classes, *new);
}

/* How long the op keeps others from computing on its device. */
static gy_ticks hold_of(const gy_plan *p, const gy_draft_op *d)
{
    const gy_device *device = &p->machine->device[d->device];
    gy_ticks hold = gy_device_hold(device, d->op.duration, d->op.spare);
    gy_ticks rest = d->op.duration - gy_device_overlap(device, d->op.duration);
    return rest < hold ? rest : hold;
}

static bool classify(batcher *b, uint32_t draft)
{
    const gy_plan *p = b->p;
    const gy_draft_op *d = &p->draft.op.at[draft];
    class new = { .draft = draft, .waiting = GY_NONE, .last = GY_NONE };
    b->class_of[draft] = GY_NONE;
    if (d->op.kind != GY_OP_LAUNCH || d->op.repeat || d->op.provenance != GY_COST_MEASURED ||
        !gy_nodes_are_alike(p->graph, d->op.node, d->op.node))
        return true;
    new.added = gy_plan_batched(p, d->op.node, d->device);
    new.hold = hold_of(p, d);
    return new.added >= new.hold || find_class(b, draft, &new, &b->class_of[draft]);
}

/* ---- who waits for whom ---- */

static void link_edges(batcher *b)
{
    const gy_plan *p = b->p;
    for (size_t e = 0; e < p->draft.edges.count; e++) {
        b->out_first[p->draft.edges.at[e].from + 1]++;
        b->waits[p->draft.edges.at[e].to]++;
    }
    for (uint32_t i = 0; i < b->count; i++)
        b->out_first[i + 1] += b->out_first[i];
    for (size_t e = 0; e < p->draft.edges.count; e++)
        b->out[b->out_first[p->draft.edges.at[e].from]++] = p->draft.edges.at[e].to;
    for (uint32_t i = b->count; i > 0; i--)
        b->out_first[i] = b->out_first[i - 1];
    b->out_first[0] = 0;
}

static void append_waiting(batcher *b, uint32_t draft)
{
    class *c = &b->classes.at[b->class_of[draft]];
    b->previous[draft] = c->last;
    b->next[draft] = GY_NONE;
    *(c->last == GY_NONE ? &c->waiting : &b->next[c->last]) = draft;
    c->last = draft;
}

static void remove_waiting(batcher *b, uint32_t draft)
{
    class *c = &b->classes.at[b->class_of[draft]];
    uint32_t before = b->previous[draft], behind = b->next[draft];
    *(before == GY_NONE ? &c->waiting : &b->next[before]) = behind;
    *(behind == GY_NONE ? &c->last : &b->previous[behind]) = before;
}

/* ---- places ---- */

static void give_place(batcher *b, uint32_t draft, gy_ticks start, gy_ticks end)
{
    b->order[b->placed++] = draft;
    b->done[draft] = true;
    b->start[draft] = start < GY_TICKS_MAX ? start : GY_TICKS_MAX;
    for (size_t i = b->out_first[draft]; i < b->out_first[draft + 1]; i++) {
        uint32_t to = b->out[i];
        b->ready[to] = end > b->ready[to] ? end : b->ready[to];
        if (--b->waits[to] == 0 && b->class_of[to] != GY_NONE)
            append_waiting(b, to);
    }
}

static void place_one(batcher *b, uint32_t draft)
{
    gy_ticks start = gy_busy_begin(&b->busy, b->p, &b->p->draft.op.at[draft], b->ready[draft]);
    give_place(b, draft, start, start + b->p->draft.op.at[draft].op.duration);
}

/* Takes out of those that wait all that go along with `draft`. false: out of memory. */
static bool gather(batcher *b, uint32_t draft)
{
    const gy_draft_op *d = &b->p->draft.op.at[draft];
    const class *c = &b->classes.at[b->class_of[draft]];
    gy_ticks free_at = b->busy.device[d->device], took = d->op.duration;
    gy_ticks begin = free_at > b->ready[draft] ? free_at : b->ready[draft];
    uint32_t refused = 0, next;
    remove_waiting(b, draft);
    b->members.count = 0;
    if (!gy_vec_push(&b->members, draft))
        return false;
    for (uint32_t i = c->waiting; i != GY_NONE && refused < REFUSALS && b->members.count < MOST; i = next) {
        gy_ticks ready = b->ready[i], joint = begin > ready ? begin : ready, behind = begin + took;
        next = b->next[i];
        if (joint + took + c->added >= (behind > ready ? behind : ready) + c->hold) {
            refused++;
            continue;
        }
        remove_waiting(b, i);
        if (!gy_vec_push(&b->members, i))
            return false;
        begin = joint;
        took += c->added;
    }
    return true;
}

/* Expected times stay below GY_TICKS_MAX: they were sums of longer ones before. */
static void place_batch(batcher *b)
{
    gy_plan *p = b->p;
    uint32_t first = b->members.at[0];
    gy_draft_op *d = &p->draft.op.at[first];
    gy_ticks ready = 0;
    for (size_t i = 0; i < b->members.count; i++) {
        gy_draft_op *m = &p->draft.op.at[b->members.at[i]];
        ready = b->ready[b->members.at[i]] > ready ? b->ready[b->members.at[i]] : ready;
        m->op.spare = 0;
        m->op.joined = i > 0;
        m->op.duration = i > 0 ? 0 : m->op.duration;
    }
    d->op.batch = (uint32_t)b->members.count;
    d->op.duration += (gy_ticks)(b->members.count - 1) * b->classes.at[b->class_of[first]].added;
    gy_ticks start = gy_busy_begin(&b->busy, p, d, ready);
    for (size_t i = 0; i < b->members.count; i++)
        give_place(b, b->members.at[i], start, start + d->op.duration);
    b->any = true;
}

static gantry_status place_all(batcher *b, gantry_error *err)
{
    const uint32_t *old = b->p->sequence.draft_of;
    for (uint32_t i = 0; i < b->count; i++)
        if (b->waits[old[i]] == 0 && b->class_of[old[i]] != GY_NONE)
            append_waiting(b, old[i]);
    for (uint32_t i = 0; i < b->count; i++) {
        uint32_t draft = old[i];
        if (b->done[draft])
            continue;
        if (b->class_of[draft] != GY_NONE && !gather(b, draft))
            return gy_fail_nomem(err);
        if (b->class_of[draft] != GY_NONE && b->members.count > 1)
            place_batch(b);
        else
            place_one(b, draft);
    }
    return GANTRY_OK;
}

/* ---- all ---- */

static bool make(batcher *b)
{
    size_t n = (size_t)b->count + 1;
    b->class_of = gy_calloc(n, sizeof *b->class_of);
    b->waits = gy_calloc(n, sizeof *b->waits);
    b->next = gy_calloc(n, sizeof *b->next);
    b->previous = gy_calloc(n, sizeof *b->previous);
    b->ready = gy_calloc(n, sizeof *b->ready);
    b->start = gy_calloc(n, sizeof *b->start);
    b->out_first = gy_calloc(n, sizeof *b->out_first);
    b->out = gy_calloc(b->p->draft.edges.count + 1, sizeof *b->out);
    b->done = gy_calloc(n, sizeof *b->done);
    b->order = gy_calloc(n, sizeof *b->order);
    bool made = b->class_of && b->waits && b->next && b->previous && b->ready && b->start && b->out_first && b->out &&
                b->done && b->order;
    for (uint32_t i = 0; i < b->count && made; i++)
        made = classify(b, i);
    return made;
}

static void free_batcher(batcher *b)
{
    void *plain[] = { b->class_of, b->waits,     b->next, b->previous, b->ready,
                      b->start,    b->out_first, b->out,  b->done,     b->order };
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        gy_free(plain[i]);
    gy_busy_free(&b->busy);
    gy_vec_free(&b->classes);
    gy_vec_free(&b->members);
    gy_map_free(&b->found);
}

/* By the new beginnings: ops of a batch have one, and stay together as they follow each other. */
static gantry_status take_over(const batcher *b, gy_ticks *start, gantry_error *err)
{
    for (uint32_t i = 0; i < b->count; i++) {
        b->p->sequence.draft_of[i] = b->order[i];
        start[i] = b->start[i];
    }
    return gy_sort_by_key(b->p->sequence.draft_of, start, b->count) ? GANTRY_OK : gy_fail_nomem(err);
}

gantry_status gy_plan_batch(gy_plan *p, gy_ticks *start, gantry_error *err)
{
    batcher b = { .p = p, .count = (uint32_t)p->draft.op.count };
    p->batched = false;
    if (p->attempt->in_flight > 1 || p->attempt->keep_single || !gy_plan_may_batch(p))
        return GANTRY_OK;
    gantry_status status = make(&b) ? GANTRY_OK : gy_fail_nomem(err);
    if (!status && b.classes.count) {
        link_edges(&b);
        status = gy_busy_make(&b.busy, p->machine, err);
        status = status ? status : place_all(&b, err);
    }
    p->batched = b.any;
    if (!status && b.any)
        status = take_over(&b, start, err);
    free_batcher(&b);
    return status;
}
