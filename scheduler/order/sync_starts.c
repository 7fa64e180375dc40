/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Rows from one start to the next. Starts that overlap have bytes and output arrays of their own, inputs and constants
 * do not change: only persistent instances of states are what two of them share. The ops are gone through twice. The
 * first time leaves, for each run of rows, its last writer and the readers since; what the second time does to the rows
 * needs a row of distance 1, until it has written them. Larger distances follow: whoever comes after the rows' last
 * writer of one start comes after what all earlier starts did to them, and rows that nobody writes need nothing.
 *
 * Left out is what lanes and other rows imply, found with vector clocks over two starts; where these would be too
 * large, only what lanes imply at once.
 */
#include "scheduler/plan/plan.h"

#include "base/error.h"
#include "base/imap.h"
#include "scheduler/order/order.h"
#include <stdlib.h>
#include <string.h>

#define CLOCKS_MOST ((size_t)1 << 25) /* ops times lanes */

/* As in hazards.c: readers since the last write, newest first; shared between intervals. */
typedef struct mark {
    uint32_t reader, writer; /* of the first start; GY_NONE: nobody */
    const struct mark *next;
} mark;

typedef struct joints {
    gy_plan *p;
    gantry_schedule *s;
    gy_imap *past; /* per instance: rows -> mark; `at` NULL: no state that persists */
    gy_edges need; /* `from` of one start, `to` of the next */
    gy_arena arena;
    bool second;
    /* Clocks: per lane, one more than the place in two starts of the last op that has ended. */
    size_t lanes;
    uint32_t *end[2];           /* per start, op and lane: when the op ends */
    uint32_t *lane_end, *begin; /* per lane: that of its last op; the current op's */
} joints;

/* ---- what is needed ---- */

static bool is_shared(const joints *j, const gy_instance *in)
{
    const gy_buffer *b = &j->p->graph->buffers.at[j->s->values.at[in->value].buffer];
    return in->role == GY_ROLE_PERSIST && b->cls != GANTRY_CONST && in->first < in->last;
}

static bool open_pasts(joints *j)
{
    j->past = gy_calloc(j->s->instances.count + 1, sizeof *j->past);
    bool done = j->past != NULL;
    for (size_t i = 0; i < j->s->instances.count && done; i++) {
        const gy_instance *in = &j->s->instances.at[i];
        done = !is_shared(j, in) || gy_imap_init(&j->past[i], in->first, in->last, 0);
    }
    return done;
}

static bool add_need(joints *j, uint32_t from, uint32_t to, uint8_t reason)
{
    gy_edge e = { from, to, reason };
    return from == GY_NONE || gy_vec_push(&j->need, e);
}

/* Adds the dependencies of an op of the second start on the past of some rows. */
static bool need_past(joints *j, const mark *m, uint32_t op, uint8_t mode)
{
    bool reads = mode != GANTRY_WRITE, done = true;
    if (m && (reads || m->reader == GY_NONE))
        done = add_need(j, m->writer, op, reads ? GY_WHY_DATA : GY_WHY_ORDER);
    for (; m && mode != GANTRY_READ && m->reader != GY_NONE && done; m = m->next)
        done = add_need(j, m->reader, op, GY_WHY_ORDER);
    return done;
}

/* Applies an op to the past of some rows. In the second start a write leaves NULL: there is nothing to wait for. */
static bool see_rows(joints *j, const mark **past, uint32_t op, uint8_t mode)
{
    const mark *old = *past;
    if (j->second) {
        *past = mode == GANTRY_READ ? old : NULL;
        return need_past(j, old, op, mode);
    }
    mark *new = gy_arena_alloc(&j->arena, sizeof *new);
    if (!new)
        return false;
    if (mode == GANTRY_READ)
        *new = (mark){ op, old ? old->writer : GY_NONE, old && old->reader != GY_NONE ? old : NULL };
    else
        *new = (mark){ GY_NONE, op, NULL };
    *past = new;
    return true;
}

static bool see_use(joints *j, uint32_t op, const gy_use *u)
{
    gy_imap *past = &j->past[u->instance];
    if (!past->at || u->first >= u->last)
        return true;
    uint32_t i = gy_imap_cut(past, u->first, u->last);
    bool done = i != GY_IMAP_NONE;
    for (; done && i != GY_IMAP_NONE && past->at[i].first < u->last; i = gy_imap_next(past, i)) {
        const mark *m = (const mark *)(uintptr_t)past->at[i].payload;
        done = see_rows(j, &m, op, u->mode);
        past->at[i].payload = (uintptr_t)m;
    }
    return done;
}

static bool see_start(joints *j, bool second)
{
    bool done = true;
    j->second = second;
    for (uint32_t op = 0; op < j->s->ops.count && done; op++)
        for (uint32_t u = 0; u < j->s->ops.at[op].uses && done; u++)
            done = see_use(j, op, &j->s->use.at[j->s->ops.at[op].use + u]);
    return done;
}

/* ---- what of it is implied ---- */

static bool open_clocks(joints *j)
{
    size_t all = j->s->ops.count * j->lanes + 1;
    j->end[0] = gy_calloc(all, sizeof *j->end[0]);
    j->end[1] = gy_calloc(all, sizeof *j->end[1]);
    j->lane_end = gy_calloc(j->lanes * j->lanes + 1, sizeof *j->lane_end);
    j->begin = gy_calloc(j->lanes + 1, sizeof *j->begin);
    return j->end[0] && j->end[1] && j->lane_end && j->begin;
}

static uint32_t lane_of(const joints *j, uint32_t op, uint32_t i)
{
    return j->s->op_lane.at[j->s->ops.at[op].lane + i];
}

static void wait_for(joints *j, uint32_t start, uint32_t op)
{
    const uint32_t *end = j->end[start] + op * j->lanes;
    for (size_t l = 0; l < j->lanes; l++)
        j->begin[l] = end[l] > j->begin[l] ? end[l] : j->begin[l];
}

static void begin_op(joints *j, uint32_t op)
{
    memset(j->begin, 0, j->lanes * sizeof *j->begin);
    for (uint32_t i = 0; i < j->s->ops.at[op].lanes; i++) {
        const uint32_t *end = j->lane_end + lane_of(j, op, i) * j->lanes;
        for (size_t l = 0; l < j->lanes; l++)
            j->begin[l] = end[l] > j->begin[l] ? end[l] : j->begin[l];
    }
}

static void end_op(joints *j, uint32_t start, uint32_t op)
{
    uint32_t place = (uint32_t)(start * j->s->ops.count) + op;
    for (uint32_t i = 0; i < j->s->ops.at[op].lanes; i++)
        j->begin[lane_of(j, op, i)] = place + 1;
    for (uint32_t i = 0; i < j->s->ops.at[op].lanes; i++)
        memcpy(j->lane_end + lane_of(j, op, i) * j->lanes, j->begin, j->lanes * sizeof *j->begin);
    memcpy(j->end[start] + op * j->lanes, j->begin, j->lanes * sizeof *j->begin);
}

static bool has_ended(const joints *j, uint32_t op)
{
    return j->begin[lane_of(j, op, 0)] > op;
}

static bool add_row(joints *j, const gy_edge *e, uint32_t *slot, uint32_t *slots)
{
    if (slot[e->from] == GY_NONE)
        slot[e->from] = (*slots)++;
    gy_sync row = { e->from, e->to, 1, GY_CARRIER_EVENT, e->reason, slot[e->from] };
    return gy_vec_push(&j->s->sync, row);
}

/* The latest first: what it implies comes after it. */
static int by_op(const void *a, const void *b)
{
    const gy_edge *x = a, *y = b;
    if (x->to != y->to)
        return x->to < y->to ? -1 : 1;
    if (x->from != y->from)
        return x->from > y->from ? -1 : 1;
    return x->reason < y->reason ? -1 : x->reason > y->reason;
}

/* Rows of the table are grouped by `to`. */
static bool add_unimplied(joints *j, uint32_t *slot, uint32_t *slots)
{
    size_t rows = j->s->sync.count;
    for (uint32_t start = 0; start < 2; start++) {
        size_t row = 0, need = 0;
        for (uint32_t op = 0; op < j->s->ops.count; op++) {
            begin_op(j, op);
            for (; row < rows && j->s->sync.at[row].to == op; row++)
                wait_for(j, start, j->s->sync.at[row].from);
            for (; start == 1 && need < j->need.count && j->need.at[need].to == op; need++) {
                if (has_ended(j, j->need.at[need].from))
                    continue;
                wait_for(j, 0, j->need.at[need].from);
                if (!add_row(j, &j->need.at[need], slot, slots))
                    return false;
            }
            end_op(j, start, op);
        }
    }
    return true;
}

static bool share_lane(const joints *j, const gy_edge *e)
{
    for (uint32_t i = 0; i < j->s->ops.at[e->from].lanes; i++)
        for (uint32_t k = 0; k < j->s->ops.at[e->to].lanes; k++)
            if (lane_of(j, e->from, i) == lane_of(j, e->to, k))
                return true;
    return false;
}

static bool add_all(joints *j, uint32_t *slot, uint32_t *slots)
{
    bool done = true;
    for (size_t i = 0; i < j->need.count && done; i++) {
        const gy_edge *e = &j->need.at[i];
        bool again = i && e[-1].to == e->to && e[-1].from == e->from;
        done = again || share_lane(j, e) || add_row(j, e, slot, slots);
    }
    return done;
}

gantry_status gy_plan_sync_starts(gy_plan *p, uint32_t *slot, uint32_t *slots, gantry_error *err)
{
    joints j = { .p = p, .s = p->schedule, .lanes = p->schedule->lanes.count };
    bool done = open_pasts(&j) && see_start(&j, false) && see_start(&j, true);
    if (done && j.need.count > 1)
        qsort(j.need.at, j.need.count, sizeof *j.need.at, by_op);
    if (done && j.need.count && j.s->ops.count <= CLOCKS_MOST / (j.lanes + 1))
        done = open_clocks(&j) && add_unimplied(&j, slot, slots);
    else if (done)
        done = add_all(&j, slot, slots);
    for (size_t i = 0; j.past && i < j.s->instances.count; i++)
        if (j.past[i].at)
            gy_imap_free(&j.past[i]);
    gy_free(j.past);
    gy_vec_free(&j.need);
    gy_arena_free(&j.arena);
    gy_free(j.end[0]);
    gy_free(j.end[1]);
    gy_free(j.lane_end);
    gy_free(j.begin);
    return done ? GANTRY_OK : gy_fail_nomem(err);
}
