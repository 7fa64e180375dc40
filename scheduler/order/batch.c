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
 *
 * Copies that take hardly more than their latency are in a class with those of the same two memories.
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
    bool copies;      /* else launches */
    gy_ticks added;   /* what one more adds to a batch */
    gy_ticks hold;    /* how long one keeps others off its device */
    gy_ticks free_at; /* copies: when the last of it is expected to have ended */
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
    GY_VEC(uint32_t) held; /* copies that have been come to, and may wait for more of their class */
    size_t released;       /* so many of `held` have their place */
    GY_VEC(class) classes;
    GY_VEC(uint32_t) members; /* of the batch that is made */
    gy_map found;
} batcher;

/* ---- copies ---- */

static const gy_route *route_of(const gy_plan *p, const gy_draft_op *d)
{
    const gy_use *use = gy_vec_from(&p->draft.use, d->op.use);
    return gy_machine_route(p->machine, p->draft.instance.at[use[0].instance].memory,
                            p->draft.instance.at[use[1].instance].memory);
}

static int64_t bytes_of(const gy_plan *p, const gy_draft_op *d)
{
    const gy_use *use = gy_vec_from(&p->draft.use, d->op.use);
    const gy_buffer *buffer = &p->graph->buffers.at[p->flow->value[p->draft.instance.at[use->instance].value].buffer];
    return gy_buffer_span(buffer, use->first, use->last);
}

/* A copy that is little more than a latency, of those that a kernel, or a message, can carry out with others. */
static bool is_small(const gy_plan *p, const gy_draft_op *d)
{
    if (d->op.kind != GY_OP_COPY || d->op.node != GY_NONE || !p->machine->contention)
        return false;
    const gy_route *r = route_of(p, d);
    if (r->network && bytes_of(p, d) > GY_MESSAGE_SMALL)
        return false;
    return gy_copies_launch(p->machine, r, d->device, 1) < GY_TICKS_MAX &&
           d->op.duration <= gy_ticks_both(gy_route_latency(r), gy_route_latency(r));
}

/* How long the small copies take one after the other; 0: there are fewer than two. */
static gy_ticks time_of_small(const gy_plan *p)
{
    uint32_t small = 0;
    gy_ticks sum = 0;
    for (size_t i = 0; i < p->draft.op.count; i++)
        if (is_small(p, &p->draft.op.at[i])) {
            sum = gy_ticks_both(sum, p->draft.op.at[i].op.duration);
            small++;
        }
    return small > 1 ? sum : 0;
}

static gy_ticks time_of_members(const batcher *b)
{
    const gy_draft_op *first = &b->p->draft.op.at[b->members.at[0]];
    int64_t bytes = 0;
    for (size_t i = 0; i < b->members.count; i++)
        bytes += bytes_of(b->p, &b->p->draft.op.at[b->members.at[i]]);
    return gy_copies_time(b->p->machine, route_of(b->p, first), first->device, (uint32_t)b->members.count, bytes);
}

/* They take the copy engines of their device, all at once, in less time as a batch. */
static bool is_worth_it(const batcher *b)
{
    gy_ticks alone = 0;
    for (size_t i = 0; i < b->members.count; i++)
        alone = gy_ticks_both(alone, b->p->draft.op.at[b->members.at[i]].op.duration);
    const gy_draft_op *first = &b->p->draft.op.at[b->members.at[0]];
    return b->members.count > 1 && time_of_members(b) < alone / b->p->machine->device[first->device].copy_engines;
}

/* ---- classes ---- */

static bool is_same(const batcher *b, const class *c, const gy_draft_op *d)
{
    const gy_draft_op *first = &b->p->draft.op.at[c->draft];
    if (first->op.kind != d->op.kind)
        return false;
    if (c->copies)
        return first->device == d->device && route_of(b->p, first) == route_of(b->p, d);
    return first->device == d->device && first->op.duration == d->op.duration && first->op.spare == d->op.spare &&
           gy_nodes_are_alike(b->p->graph, first->op.node, d->op.node);
}

static bool find_class(batcher *b, uint32_t draft, const class *new, uint32_t *found)
{
    const gy_draft_op *d = &b->p->draft.op.at[draft];
    uint64_t like = new->copies ? gy_hash64((uint64_t)(route_of(b->p, d) - b->p->machine->route))
                                : gy_node_likeness(b->p->graph, d->op.node) ^ gy_hash64((uint64_t)d->op.duration);
    uint64_t key = like ^ d->device, at;
    while (gy_map_get(&b->found, key, &at)) {
        *found = (uint32_t)at;
        if (is_same(b, &b->classes.at[at], d))
            return true;
        key++;
    }
    *found = (uint32_t)b->classes.count;
    return gy_map_put(&b->found, key, b->classes.count) && gy_vec_push(&b->classes, *new);
}

/* How long the op keeps others from computing on its device; beside them it is a launch more. */
static gy_ticks hold_of(const gy_plan *p, const gy_draft_op *d)
{
    const gy_device *device = &p->machine->device[d->device];
    gy_ticks hold = gy_device_hold(device, d->op.duration, d->op.spare);
    gy_ticks rest = d->op.duration - gy_device_overlap(device, d->op.duration);
    hold = rest < hold ? rest : hold;
    return hold < d->op.duration ? gy_ticks_both(hold, gy_launch_beside()) : hold;
}

static bool classify(batcher *b, uint32_t draft)
{
    const gy_plan *p = b->p;
    const gy_draft_op *d = &p->draft.op.at[draft];
    class new = { .draft = draft, .waiting = GY_NONE, .last = GY_NONE };
    b->class_of[draft] = GY_NONE;
    if (p->attempt->pack_copies && is_small(p, d)) {
        new.copies = true;
        return find_class(b, draft, &new, &b->class_of[draft]);
    }
    if (p->attempt->keep_single)
        return true;
    if (d->op.kind != GY_OP_LAUNCH || d->op.repeat || d->replicated || d->op.provenance == GY_COST_GIVEN ||
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

/* Until then more copies of its class may become ready. */
static gy_ticks until(const batcher *b, uint32_t draft)
{
    const class *c = &b->classes.at[b->class_of[draft]];
    gy_ticks begin = c->free_at > b->ready[draft] ? c->free_at : b->ready[draft];
    return gy_ticks_both(begin, gy_route_latency(route_of(b->p, &b->p->draft.op.at[draft])));
}

/* The same for copies: those that are ready within a latency of when the first can begin, which is behind the batch
 * before. */
static bool gather_copies(batcher *b, uint32_t draft)
{
    const class *c = &b->classes.at[b->class_of[draft]];
    gy_ticks last = until(b, draft);
    uint32_t refused = 0, next;
    remove_waiting(b, draft);
    b->members.count = 0;
    if (!gy_vec_push(&b->members, draft))
        return false;
    for (uint32_t i = c->waiting; i != GY_NONE && refused < REFUSALS && b->members.count < GY_COPIES_AT_ONCE;
         i = next) {
        next = b->next[i];
        if (b->ready[i] > last) {
            refused++;
            continue;
        }
        remove_waiting(b, i);
        if (!gy_vec_push(&b->members, i))
            return false;
    }
    return true;
}

/* Expected times stay below GY_TICKS_MAX: they were sums of longer ones before. */
static void place_batch(batcher *b)
{
    gy_plan *p = b->p;
    uint32_t first = b->members.at[0];
    gy_draft_op *d = &p->draft.op.at[first];
    class *c = &b->classes.at[b->class_of[first]];
    gy_ticks ready = c->free_at, took = gy_ticks_repeated(c->added, (int64_t)b->members.count - 1);
    took = c->copies ? time_of_members(b) : d->op.duration + took;
    for (size_t i = 0; i < b->members.count; i++) {
        gy_draft_op *m = &p->draft.op.at[b->members.at[i]];
        ready = b->ready[b->members.at[i]] > ready ? b->ready[b->members.at[i]] : ready;
        m->op.spare = 0;
        m->op.joined = i > 0;
        m->op.duration = i > 0 ? 0 : m->op.duration;
    }
    d->op.batch = (uint32_t)b->members.count;
    d->op.duration = took;
    gy_ticks start = gy_busy_begin(&b->busy, p, d, ready);
    c->free_at = c->copies ? start + took : 0;
    for (size_t i = 0; i < b->members.count; i++)
        give_place(b, b->members.at[i], start, start + d->op.duration);
    p->packed = p->packed || c->copies;
    p->batched += c->copies ? 0 : (uint32_t)b->members.count - 1;
}

/* The op, with those that go along with it. false: out of memory. */
static bool place_class(batcher *b, uint32_t draft)
{
    bool copies = b->classes.at[b->class_of[draft]].copies;
    if (!(copies ? gather_copies : gather)(b, draft))
        return false;
    if (copies ? is_worth_it(b) : b->members.count > 1)
        place_batch(b);
    else
        for (size_t i = 0; i < b->members.count; i++)
            place_one(b, b->members.at[i]);
    return true;
}

/* An op that waits for nothing. */
static gy_ticks begin_of(const batcher *b, uint32_t draft)
{
    const gy_draft_op *d = &b->p->draft.op.at[draft];
    gy_ticks free_at = d->lane == GY_LANE_COMPUTE ? b->busy.device[d->device] : 0;
    return free_at > b->ready[draft] ? free_at : b->ready[draft];
}

/* Places held copies that wait no longer when `next` is come to, and all where that waits for any (`next` GY_NONE: all
 * there are). They need none but those held before them. */
static bool release(batcher *b, uint32_t next)
{
    bool copy = next != GY_NONE && b->class_of[next] != GY_NONE && b->classes.at[b->class_of[next]].copies;
    for (; b->released < b->held.count; b->released++) {
        uint32_t draft = b->held.at[b->released];
        bool needed = next == GY_NONE || (!copy && b->waits[next]);
        if (b->done[draft])
            continue;
        if (!needed && (copy || until(b, draft) >= begin_of(b, next)))
            return true;
        if (!place_class(b, draft))
            return false;
    }
    return true;
}

static bool place_next(batcher *b, uint32_t draft)
{
    uint32_t its = b->class_of[draft];
    if (!release(b, draft))
        return false;
    if (its == GY_NONE) {
        place_one(b, draft);
        return true;
    }
    return b->done[draft] || (b->classes.at[its].copies ? gy_vec_push(&b->held, draft) : place_class(b, draft));
}

static gantry_status place_all(batcher *b, gantry_error *err)
{
    const uint32_t *old = b->p->sequence.draft_of;
    for (uint32_t i = 0; i < b->count; i++)
        if (b->waits[old[i]] == 0 && b->class_of[old[i]] != GY_NONE)
            append_waiting(b, old[i]);
    for (uint32_t i = 0; i < b->count; i++)
        if (!b->done[old[i]] && !place_next(b, old[i]))
            return gy_fail_nomem(err);
    return release(b, GY_NONE) ? GANTRY_OK : gy_fail_nomem(err);
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
    gy_vec_free(&b->held);
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
    p->batched = 0;
    p->packed = false;
    bool single = p->attempt->keep_single || !gy_plan_may_batch(p);
    p->small_copies = time_of_small(p);
    if (p->attempt->in_flight > 1 || (single && !(p->attempt->pack_copies && p->small_copies)))
        return GANTRY_OK;
    gantry_status status = make(&b) ? GANTRY_OK : gy_fail_nomem(err);
    if (!status && b.classes.count) {
        link_edges(&b);
        status = gy_busy_make(&b.busy, p->machine, err);
        status = status ? status : place_all(&b, err);
    }
    if (!status && (p->batched || p->packed))
        status = take_over(&b, start, err);
    free_batcher(&b);
    return status;
}
