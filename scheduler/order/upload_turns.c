/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Taking turns. When long uploads of several devices share a link of host memory, all of them at once share its rate,
 * and all devices begin late. So no more of them go at a time than fill the link: each waits for the one whose turn it
 * takes over, in the order of positions, lanes keeping their own order. Only uploads of inputs: these could all begin
 * at once, others come when what they carry has been made.
 */
#include "scheduler/plan/plan.h"

#include "base/error.h"
#include "scheduler/order/order.h"
#include <stdlib.h>

enum { LONG = 6 }; /* latencies: waiting for another device costs about one */

bool gy_copy_is_long(const gantry_machine *m, uint32_t from, uint32_t to, gy_ticks duration)
{
    const gy_route *r = gy_machine_route(m, from, to);
    if (!m->contention || from == to || r->kind != GY_ROUTE_DIRECT || duration < LONG * gy_route_latency(r))
        return false;
    int64_t rate = gy_route_rate(r, INT64_C(1) << 24);
    for (uint32_t i = 0; i < r->resources; i++)
        if (m->resource[r->resource[i]].rate / 2 < rate)
            return true;
    return false;
}

typedef struct upload {
    uint32_t position, lane, resource;
} upload;

/* Uploads of one lane that have not had their turn. */
typedef struct queue {
    uint32_t lane;
    size_t next, last;      /* range of `upload` */
    gy_ticks left, free_at; /* left: what its uploads take in all, alone on the link */
} queue;

typedef struct turn {
    uint32_t position; /* who had it last; GY_NONE: nobody */
    uint32_t lane;
    gy_ticks free_at;
} turn;

typedef struct sharing {
    gy_plan *p;
    GY_VEC(upload) upload; /* by resource, lane, position */
    GY_VEC(queue) queue;   /* of one resource */
    GY_VEC(turn) turn;
    GY_VEC(gy_edge) edge; /* by `to`, when sorted */
} sharing;

/* The routes out of host memory that the resource is on. */
static uint32_t count_routes(const gantry_machine *m, uint32_t resource)
{
    uint32_t count = 0;
    for (uint32_t to = 1; to < m->memories; to++) {
        const gy_route *r = gy_machine_route(m, 0, to);
        for (uint32_t i = 0; i < r->resources; i++)
            count += r->resource[i] == resource;
    }
    return count;
}

uint32_t gy_link_turns(const gantry_machine *m, uint32_t resource, const gy_route *r)
{
    int64_t rate = gy_route_rate(r, INT64_C(1) << 24), turns = m->resource[resource].rate / rate;
    turns += m->resource[resource].rate % rate != 0;
    return turns < m->memories ? (uint32_t)turns : m->memories;
}

uint32_t gy_shared_link(const gantry_machine *m, uint32_t to)
{
    const gy_route *r = gy_machine_route(m, 0, to);
    for (uint32_t i = 0; i < r->resources; i++)
        if (count_routes(m, r->resource[i]) > gy_link_turns(m, r->resource[i], r))
            return r->resource[i];
    return GY_MACHINE_NONE;
}

static bool is_long_upload(const gy_plan *p, const gy_op *op)
{
    const gantry_schedule *s = p->schedule;
    if (op->kind != GY_OP_COPY)
        return false;
    const gy_instance *from = &s->instances.at[s->use.at[op->use].instance];
    const gy_instance *to = &s->instances.at[s->use.at[op->use + 1].instance];
    return from->space == GY_SPACE_INPUT && from->memory == 0 &&
           gy_copy_is_long(p->machine, 0, to->memory, op->duration);
}

static bool find_uploads(sharing *k, const uint32_t *link)
{
    const gantry_schedule *s = k->p->schedule;
    for (uint32_t i = 0; i < s->ops.count; i++) {
        const gy_op *op = &s->ops.at[i];
        if (!is_long_upload(k->p, op))
            continue;
        upload u = { i, s->op_lane.at[op->lane], link[s->instances.at[s->use.at[op->use + 1].instance].memory] };
        if (u.resource != GY_MACHINE_NONE && !gy_vec_push(&k->upload, u))
            return false;
    }
    return true;
}

static int by_lane(const void *a, const void *b)
{
    const upload *x = a, *y = b;
    if (x->resource != y->resource)
        return x->resource < y->resource ? -1 : 1;
    if (x->lane != y->lane)
        return x->lane < y->lane ? -1 : 1;
    return x->position < y->position ? -1 : x->position > y->position;
}

/* More turns than fill the link cost nothing, but fewer in the last round leave it half empty: as many as it takes for
 * all rounds to fill it. */
static size_t fill_turns(size_t turns, size_t uploads)
{
    size_t enough = turns;
    while (turns < uploads && uploads % turns && uploads % turns < enough)
        turns++;
    return turns;
}

/* Queues and turns of the uploads [first, last), which share a link. */
static bool make_queues(sharing *k, size_t first, size_t last)
{
    const gantry_schedule *s = k->p->schedule;
    const gy_op *op = &s->ops.at[k->upload.at[first].position];
    uint32_t to = s->instances.at[s->use.at[op->use + 1].instance].memory;
    const gy_route *r = gy_machine_route(k->p->machine, 0, to);
    k->queue.count = k->turn.count = 0;
    for (size_t i = first; i < last; i++) {
        queue new = { .lane = k->upload.at[i].lane, .next = i };
        if ((i == first || new.lane != k->upload.at[i - 1].lane) && !gy_vec_push(&k->queue, new))
            return false;
        gy_vec_last(&k->queue)->last = i + 1;
        gy_vec_last(&k->queue)->left += s->ops.at[k->upload.at[i].position].duration;
    }
    size_t turns = fill_turns(gy_link_turns(k->p->machine, k->upload.at[first].resource, r), last - first);
    for (size_t i = 0; i < turns; i++) {
        turn new = { GY_NONE, GY_NONE, 0 };
        if (!gy_vec_push(&k->turn, new))
            return false;
    }
    return true;
}

static turn *free_turn(sharing *k)
{
    turn *best = &k->turn.at[0];
    for (size_t i = 1; i < k->turn.count; i++)
        if (k->turn.at[i].free_at < best->free_at)
            best = &k->turn.at[i];
    return best;
}

static bool is_before(const sharing *k, const queue *a, const queue *b, gy_ticks time)
{
    gy_ticks x = a->free_at > time ? a->free_at : time, y = b->free_at > time ? b->free_at : time;
    if (x != y)
        return x < y;
    if (a->left != b->left)
        return a->left > b->left;
    return k->upload.at[a->next].position < k->upload.at[b->next].position;
}

/* Of the lanes that are free at the time the one that has most to do, since nobody can help it; else the one that is
 * free next. NULL: all have had their turn. */
static queue *next_queue(const sharing *k, gy_ticks time)
{
    queue *best = NULL;
    for (size_t i = 0; i < k->queue.count; i++) {
        queue *q = &k->queue.at[i];
        if (q->next < q->last && (!best || is_before(k, q, best, time)))
            best = q;
    }
    return best;
}

static bool take_turns(sharing *k)
{
    const gantry_schedule *s = k->p->schedule;
    for (;;) {
        turn *t = free_turn(k);
        queue *q = next_queue(k, t->free_at);
        if (!q)
            return true;
        uint32_t position = k->upload.at[q->next++].position;
        gy_edge e = { t->position, position, GY_WHY_ORDER };
        /* A dependency never goes backwards in the order: who would have to wait so goes at once. */
        bool waits = t->position != GY_NONE && t->lane != q->lane && t->position < position;
        if (waits && !gy_vec_push(&k->edge, e))
            return false;
        gy_ticks begin = q->free_at > t->free_at ? q->free_at : t->free_at;
        q->free_at = begin + s->ops.at[position].duration;
        q->left -= s->ops.at[position].duration;
        *t = (turn){ position, q->lane, q->free_at };
    }
}

static bool find_edges(sharing *k)
{
    size_t last;
    if (k->upload.count)
        qsort(k->upload.at, k->upload.count, sizeof *k->upload.at, by_lane);
    for (size_t first = 0; first < k->upload.count; first = last) {
        for (last = first; last < k->upload.count && k->upload.at[last].resource == k->upload.at[first].resource;)
            last++;
        if (!make_queues(k, first, last) || !take_turns(k))
            return false;
    }
    return true;
}

static int by_to(const void *a, const void *b)
{
    const gy_edge *x = a, *y = b;
    return x->to < y->to ? -1 : x->to > y->to;
}

/* Each upload waits for one other at most: its edge goes where it belongs among the needs of its position. */
static bool add_needs(sharing *k)
{
    gy_plan *p = k->p;
    gy_edges need = { 0 };
    size_t e = 0, ops = p->schedule->ops.count;
    qsort(k->edge.at, k->edge.count, sizeof *k->edge.at, by_to);
    if (!gy_vec_reserve(&need, p->sequence.need.count + k->edge.count))
        return false;
    for (size_t i = 0; i < ops; i++) {
        bool more = e < k->edge.count && k->edge.at[e].to == i;
        size_t begin = need.count;
        for (size_t n = p->sequence.need_first[i]; n < p->sequence.need_first[i + 1]; n++) {
            if (more && k->edge.at[e].from > p->sequence.need.at[n].from) {
                need.at[need.count++] = k->edge.at[e++];
                more = false;
            }
            need.at[need.count++] = p->sequence.need.at[n];
        }
        if (more)
            need.at[need.count++] = k->edge.at[e++];
        p->sequence.need_first[i] = begin;
    }
    p->sequence.need_first[ops] = need.count;
    gy_vec_free(&p->sequence.need);
    p->sequence.need = need;
    return true;
}

gantry_status gy_plan_upload_turns(gy_plan *p, gantry_error *err)
{
    const gantry_machine *m = p->machine;
    sharing k = { .p = p };
    uint32_t *link = gy_calloc((size_t)m->memories + 1, sizeof *link);
    bool done = link != NULL, any = false;
    for (uint32_t to = 1; to < m->memories && done; to++) {
        link[to] = m->contention ? gy_shared_link(m, to) : GY_MACHINE_NONE;
        any |= link[to] != GY_MACHINE_NONE;
    }
    if (done && any)
        done = find_uploads(&k, link) && find_edges(&k) && (!k.edge.count || add_needs(&k));
    gy_vec_free(&k.upload);
    gy_vec_free(&k.queue);
    gy_vec_free(&k.turn);
    gy_vec_free(&k.edge);
    gy_free(link);
    return done ? GANTRY_OK : gy_fail_nomem(err);
}
