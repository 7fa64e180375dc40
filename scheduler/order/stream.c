/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Lanes. A device computes in one lane; but on a GPU an op that takes hardly more than its launch goes to the lane of
 * one that it waits for, if that was the last there, else to one that is free, up to as many as the device has: so
 * launches overlap. Copies take the lane
 * that is free first, of as many as the device has copy engines. Long ones between host memory and the device all take
 * one lane, each direction its own: several at once would share the link and all end late, where one after the other
 * lets the first reader begin, and what it makes go back, while the rest comes. With contention off a copy that would
 * wait gets a new lane, so copies never hold each other up (colouring intervals by their beginnings). Each rank of a
 * collective is in a collective lane of its device; two ranks on one device take two lanes. Where workers of GPUs
 * carry ops out (stream_workers.c), copies between GPUs are in lanes that compute. Where starts overlap, each
 * route has a copy lane of its own, or what a start fetches at its end would hold up what the next one brings. Lanes
 * are numbered by device, kind, and order of appearance.
 */
#include "scheduler/order/stream.h"

#include "base/error.h"
#include "scheduler/order/order.h"
#include <stdlib.h>

static bool add_lane(gy_stream *st, gy_stream_queues *q, uint32_t device, uint8_t kind)
{
    gy_stream_lane new = { device, (uint32_t)q->count, 0, kind, false, GY_NONE, 0, 0 };
    gy_stream_queue entry = { (uint32_t)st->lanes.count, 0 };
    return gy_vec_push(&st->lanes, new) && gy_vec_push(q, entry);
}

static bool is_before(const gy_stream_queue *a, const gy_stream_queue *b)
{
    return a->free_at != b->free_at ? a->free_at < b->free_at : a->lane < b->lane;
}

static void sift_up(gy_stream_queues *q, size_t i)
{
    for (; i && is_before(&q->at[i], &q->at[(i - 1) / 2]); i = (i - 1) / 2) {
        gy_stream_queue t = q->at[i];
        q->at[i] = q->at[(i - 1) / 2];
        q->at[(i - 1) / 2] = t;
    }
}

static void sift_down(gy_stream_queues *q, size_t i)
{
    for (size_t child; (child = 2 * i + 1) < q->count; i = child) {
        if (child + 1 < q->count && is_before(&q->at[child + 1], &q->at[child]))
            child++;
        if (!is_before(&q->at[child], &q->at[i]))
            break;
        gy_stream_queue t = q->at[i];
        q->at[i] = q->at[child];
        q->at[child] = t;
    }
}

/* The lanes for a copy by the device: those of the route where starts overlap. */
static gy_stream_queues *copy_queue(const gy_stream *st, uint32_t device, const gy_op *op)
{
    const gantry_schedule *s = st->p->schedule;
    const gantry_machine *m = st->p->machine;
    if (st->p->attempt->in_flight == 1)
        return &st->of[device * 3 + GY_LANE_COPY];
    uint32_t from = s->instances.at[s->use.at[op->use].instance].memory;
    uint32_t to = s->instances.at[s->use.at[op->use + 1].instance].memory;
    bool out = m->device[device].memory == from;
    return &st->of[m->devices * 3 + (device * m->memories + (out ? to : from)) * 2 + out];
}

/* Brings the lane that is free first to the top, a new one if that is not free at `ready` and there may be another. */
static bool find_free_lane(gy_stream *st, gy_stream_queues *q, uint32_t device, gy_ticks ready)
{
    const gantry_machine *m = st->p->machine;
    size_t engines = st->p->attempt->in_flight > 1 ? 1 : m->device[device].copy_engines;
    size_t limit = m->contention ? engines : SIZE_MAX;
    if (q->count && (q->at[0].free_at <= ready || q->count >= limit))
        return true;
    if (!add_lane(st, q, device, GY_LANE_COPY))
        return false;
    sift_up(q, q->count - 1); /* free from 0 on: it comes to the top */
    return true;
}

/* Where the lane of long copies of this direction is kept, or NULL if the copy is none. */
static uint32_t *host_lane_of(const gy_stream *st, uint32_t device, const gy_op *op)
{
    const gantry_schedule *s = st->p->schedule;
    const gy_use *u = gy_vec_from(&s->use, op->use);
    uint32_t from = s->instances.at[u[0].instance].memory, to = s->instances.at[u[1].instance].memory;
    if (st->p->attempt->in_flight > 1)
        return NULL; /* it has that lane anyway */
    if (!gy_copy_is_long(st->p->machine, from, to, op->duration) || (from != 0 && to != 0))
        return NULL;
    return &st->host_lane[device * 2 + (to == 0)];
}

static size_t index_of(const gy_stream_queues *q, uint32_t lane_id)
{
    size_t i = 0;
    while (q->at[i].lane != lane_id)
        i++;
    return i;
}

static bool choose_copy_lane(gy_stream *st, uint32_t device, const gy_op *op, gy_ticks ready, uint32_t *lane_id)
{
    gy_stream_queues *q = copy_queue(st, device, op);
    uint32_t *host = host_lane_of(st, device, op);
    size_t i = 0;
    if (host && *host != GY_NONE)
        i = index_of(q, *host);
    else if (!find_free_lane(st, q, device, host ? -1 : ready)) /* a direction's lane is a new one if possible */
        return false;
    if (host)
        *host = q->at[i].lane;
    *lane_id = q->at[i].lane;
    q->at[i].free_at = (q->at[i].free_at > ready ? q->at[i].free_at : ready) + op->duration;
    sift_down(q, i);
    return true;
}

bool gy_stream_nth_lane(gy_stream *st, uint32_t device, uint8_t kind, size_t n, uint32_t *lane_id)
{
    gy_stream_queues *q = &st->of[device * 3 + kind];
    while (q->count <= n)
        if (!add_lane(st, q, device, kind))
            return false;
    *lane_id = q->at[n].lane;
    return true;
}

/* ---- computing ---- */

bool gy_stream_spreads(const gy_plan *p, uint32_t device)
{
    return gy_plan_spreads(p, device) && !(p->one_lane && p->one_lane[device]);
}

/* The lane, of those from `first` on, whose last op this one waits for; GY_NONE: there is none. */
static uint32_t lane_behind(const gy_stream *st, const gy_stream_queues *q, size_t first, uint32_t position)
{
    const gy_plan *p = st->p;
    for (size_t e = p->sequence.need_first[position]; e < p->sequence.need_first[position + 1]; e++)
        for (size_t i = first; i < q->count; i++)
            if (st->lanes.at[q->at[i].lane].tail == p->sequence.need.at[e].from)
                return q->at[i].lane;
    return GY_NONE;
}

/* The lane, of those from `first` on, that is free first, a new one if that is not free at `ready` and there may be
 * another. There is one before `first`, if that is not 0. */
static bool free_lane(gy_stream *st, gy_stream_queues *q, size_t first, uint32_t device, gy_ticks ready,
                      uint32_t *lane_id)
{
    size_t best = first;
    for (size_t i = first + 1; i < q->count; i++)
        if (st->lanes.at[q->at[i].lane].free_at < st->lanes.at[q->at[best].lane].free_at)
            best = i;
    bool none = q->count <= first, late = !none && st->lanes.at[q->at[best].lane].free_at > ready;
    if (none || (late && q->count < st->p->machine->device[device].lanes)) {
        best = q->count;
        if (!add_lane(st, q, device, GY_LANE_COMPUTE))
            return false;
    }
    *lane_id = q->at[best].lane;
    return true;
}

/* When all that the op waits for may have ended. */
static gy_ticks ready_at(const gy_stream *st, uint32_t position)
{
    const gy_plan *p = st->p;
    gy_ticks ready = 0;
    for (size_t e = p->sequence.need_first[position]; e < p->sequence.need_first[position + 1]; e++)
        if (st->end[p->sequence.need.at[e].from] > ready)
            ready = st->end[p->sequence.need.at[e].from];
    return ready;
}

/* The order expects ops of a device one after the other. Where they compute beside each other, what they give is there
 * earlier, and copies of it begin earlier: without that, lanes that wait for copies would seem to be busy for long, and
 * one lane would get all the rest. What waits for nothing begins as expected, when its link is free. Where the host
 * takes time to give out each wait, that is what ops follow each other by, and more lanes are more waits. */
static gy_ticks begins_at(const gy_stream *st, uint32_t position)
{
    const gy_plan *p = st->p;
    return gy_stream_waits(p, position) && !p->machine->issue ? ready_at(st, position) : p->sequence.expect[position];
}

/* Any lane but the one of urgent ops, which such an op takes where it is free. */
static bool choose_spread_lane(gy_stream *st, uint32_t device, uint32_t position, gy_ticks ready, uint32_t *lane_id)
{
    gy_stream_queues *q = &st->of[device * 3 + GY_LANE_COMPUTE];
    size_t first = st->has_urgent && st->has_urgent[device];
    if (first) {
        if (!gy_stream_nth_lane(st, device, GY_LANE_COMPUTE, 0, lane_id))
            return false;
        gy_stream_lane *l = &st->lanes.at[*lane_id];
        l->urgent = true;
        if (st->urgent[position] && l->free_at <= ready)
            return true;
    }
    *lane_id = lane_behind(st, q, first, position);
    return *lane_id != GY_NONE || free_lane(st, q, first, device, ready, lane_id);
}

static bool choose_compute_lane(gy_stream *st, const gy_draft_op *d, uint32_t position, uint32_t *lane_id)
{
    gy_ticks ready = ready_at(st, position);
    if (st->p->machine->workers && gy_stream_spreads(st->p, d->device)) {
        if (!gy_stream_choose_worker(st, d, position, lane_id, &ready))
            return false;
    } else if (!(gy_stream_spreads(st->p, d->device)
                     ? choose_spread_lane(st, d->device, position, ready, lane_id)
                     : gy_stream_nth_lane(st, d->device, GY_LANE_COMPUTE, 0, lane_id))) {
        return false;
    }
    gy_stream_lane *l = &st->lanes.at[*lane_id];
    l->tail = position;
    l->free_at = st->end[position] = (l->free_at > ready ? l->free_at : ready) + d->op.duration;
    return true;
}

/* Workers copy between GPUs: who has made rows sends them on, which spares a signal. */
static bool is_by_worker(const gy_plan *p, const gy_draft_op *d, const gy_op *op)
{
    const gantry_schedule *s = p->schedule;
    const gantry_machine *m = p->machine;
    const gy_use *u = gy_vec_from(&s->use, op->use);
    if (d->lane != GY_LANE_COPY || !m->workers || !m->device[d->device].gpu)
        return false;
    return !m->memory[s->instances.at[u[0].instance].memory].host &&
           !m->memory[s->instances.at[u[1].instance].memory].host;
}

static bool choose_rank_lanes(gy_stream *st, const gy_draft_op *d)
{
    const uint32_t *device = &st->p->rank_device.at[d->rank];
    for (uint32_t i = 0; i < d->ranks; i++) {
        size_t before = 0;
        uint32_t id;
        for (uint32_t k = 0; k < i; k++)
            before += device[k] == device[i];
        if (!gy_stream_nth_lane(st, device[i], GY_LANE_COLLECTIVE, before, &id) || !gy_vec_push(&st->op_lane, id))
            return false;
    }
    return true;
}

/* In a batch all are in the same lanes, and end together. */
static bool follow_batch(gy_stream *st, uint32_t position)
{
    const gy_op *op = &st->p->schedule->ops.at[position];
    st->end[position] = st->end[position - 1];
    for (uint32_t k = 0; k < op->lanes; k++) {
        uint32_t id = st->op_lane.at[op->lane - op->lanes + k];
        st->lanes.at[id].tail = position;
        if (!gy_vec_push(&st->op_lane, id))
            return false;
    }
    return true;
}

static bool choose_lanes(gy_stream *st, uint32_t position)
{
    gy_plan *p = st->p;
    const gy_draft_op *d = &p->draft.op.at[p->sequence.draft_of[position]];
    gy_op *op = &p->schedule->ops.at[position];
    uint32_t id = 0;
    op->lane = (uint32_t)st->op_lane.count;
    op->lanes = d->lane == GY_LANE_COLLECTIVE ? d->ranks : 1;
    if (op->joined)
        return follow_batch(st, position);
    gy_ticks begin = begins_at(st, position);
    st->end[position] = begin + op->duration;
    if (d->lane == GY_LANE_COLLECTIVE)
        return choose_rank_lanes(st, d);
    bool done = d->lane == GY_LANE_COPY && !is_by_worker(p, d, op) ? choose_copy_lane(st, d->device, op, begin, &id)
                                                                   : choose_compute_lane(st, d, position, &id);
    return done && gy_vec_push(&st->op_lane, id);
}

static int by_device(const void *a, const void *b, void *context)
{
    const gy_stream *st = context;
    const gy_stream_lane *x = &st->lanes.at[*(const uint32_t *)a], *y = &st->lanes.at[*(const uint32_t *)b];
    if (x->device != y->device)
        return x->device < y->device ? -1 : 1;
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    if (x->index != y->index)
        return x->index < y->index ? -1 : 1;
    return x < y ? -1 : x > y;
}

static gantry_status number_lanes(gy_stream *st, gantry_error *err)
{
    gantry_schedule *s = st->p->schedule;
    size_t count = st->lanes.count;
    uint32_t *sorted = gy_calloc(count + 1, sizeof *sorted);
    s->lanes.count = s->op_lane.count = 0;
    if (!sorted || !gy_vec_add(&s->lanes, count) || !gy_vec_add(&s->op_lane, st->op_lane.count)) {
        gy_free(sorted);
        return gy_fail_nomem(err);
    }
    for (uint32_t i = 0; i < count; i++)
        sorted[i] = i;
    qsort_r(sorted, count, sizeof *sorted, by_device, st);
    for (uint32_t i = 0; i < count; i++) {
        gy_stream_lane *l = &st->lanes.at[sorted[i]];
        l->final = i;
        s->lanes.at[i] = (gy_lane){ l->device, l->kind, l->urgent };
    }
    for (size_t i = 0; i < st->op_lane.count; i++)
        s->op_lane.at[i] = st->lanes.at[st->op_lane.at[i]].final;
    gy_free(sorted);
    return GANTRY_OK;
}

/* Where ops of a GPU compute beside each other, those that the end waits for have its first lane, if it has several.
 * Workers have no precedence. */
static bool find_urgent(gy_stream *st)
{
    const gy_plan *p = st->p;
    if (!p->machine->contention || p->machine->workers)
        return true;
    st->urgent = gy_calloc(p->schedule->ops.count + 1, sizeof *st->urgent);
    st->has_urgent = gy_calloc(p->devices, sizeof *st->has_urgent);
    if (!st->urgent || !st->has_urgent || !gy_plan_urgent(p, st->urgent))
        return false;
    for (size_t i = 0; i < p->schedule->ops.count; i++) {
        const gy_draft_op *d = &p->draft.op.at[p->sequence.draft_of[i]];
        if (d->lane == GY_LANE_COMPUTE && st->urgent[i] && gy_stream_spreads(p, d->device))
            st->has_urgent[d->device] = true;
    }
    return true;
}

static void free_stream(gy_stream *st)
{
    for (size_t i = 0; st->of && i < st->queues; i++)
        gy_vec_free(&st->of[i]);
    gy_free(st->of);
    gy_free(st->host_lane);
    gy_free(st->end);
    gy_free(st->urgent);
    gy_free(st->has_urgent);
    gy_free(st->crews);
    gy_vec_free(&st->lanes);
    gy_vec_free(&st->op_lane);
}

gantry_status gy_plan_stream(gy_plan *p, const gy_arrangement *how, gantry_error *err)
{
    gy_stream st = { .p = p,
                     .queues = (size_t)p->devices * (p->attempt->in_flight == 1 ? 3 : 3 + 2 * p->machine->memories) };
    st.of = gy_calloc(st.queues, sizeof *st.of);
    st.host_lane = gy_calloc((size_t)p->devices * 2, sizeof *st.host_lane);
    st.end = gy_calloc(p->schedule->ops.count + 1, sizeof *st.end);
    st.crews = gy_calloc(p->devices, sizeof *st.crews);
    bool room = st.of && st.host_lane && st.end && st.crews && find_urgent(&st);
    gantry_status status = room ? GANTRY_OK : gy_fail_nomem(err);
    for (uint32_t i = 0; i < p->schedule->ops.count && !status; i++)
        gy_stream_note_needs(&st, i);
    for (size_t i = 0; i < (size_t)p->devices * 2 && !status; i++)
        st.host_lane[i] = GY_NONE;
    for (uint32_t i = 0; i < p->schedule->ops.count && !status; i++)
        if (!choose_lanes(&st, i))
            status = gy_fail_nomem(err);
    if (!status)
        status = number_lanes(&st, err);
    free_stream(&st);
    if (how->last)
        gy_plan_forget_draft(p);
    return status;
}
