/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which dependencies need a wait. Starts 0 to in_flight are gone through with clocks that say, of each lane, up to
 * which op of start 0 it is known to have ended: waits of distance 0 are decided in start 0, those of the next start in
 * start 1, those of windows in start in_flight. The needs of an op are looked at from the latest to the earliest, so
 * what one of them implies comes after it.
 */
#include "schedule/counters/counters.h"

#include "base/error.h"
#include <stdlib.h>
#include <string.h>

enum { FIRST, BEFORE, NOW, CLOCKS }; /* of start 0, of the start before, of this one */

typedef struct clocks {
    gantry_schedule *s;
    gy_counted_needs *needs;
    size_t lanes, waited;       /* lanes; ops that somebody waits for */
    uint32_t *asked;            /* per op: its number among those that somebody waits for; GY_NONE: nobody does */
    uint32_t *end[CLOCKS];      /* of these, what is known when they have ended; an entry for each lane */
    uint32_t *lane_end, *begin; /* per lane: of its last op; of the current op */
} clocks;

static uint32_t lane_of(const clocks *c, uint32_t op, uint32_t i)
{
    return c->s->op_lane.at[c->s->ops.at[op].lane + i];
}

/* Numbers the ops that are waited for, and makes room for their clocks. */
static bool open_clocks(clocks *c)
{
    c->asked = gy_alloc((c->s->ops.count + 1) * sizeof *c->asked);
    c->lane_end = gy_calloc(c->lanes * c->lanes + 1, sizeof *c->lane_end);
    c->begin = gy_calloc(c->lanes + 1, sizeof *c->begin);
    if (!c->asked || !c->lane_end || !c->begin)
        return false;
    memset(c->asked, 0xff, (c->s->ops.count + 1) * sizeof *c->asked);
    for (size_t i = 0; i < c->needs->count; i++) {
        uint32_t *number = &c->asked[c->needs->at[i].from];
        *number = *number == GY_NONE ? (uint32_t)c->waited++ : *number;
    }
    for (int i = 0; i < CLOCKS; i++)
        if (!(c->end[i] = gy_calloc(c->waited * c->lanes + 1, sizeof *c->end[i])))
            return false;
    return true;
}

static void close_clocks(clocks *c)
{
    for (int i = 0; i < CLOCKS; i++)
        gy_free(c->end[i]);
    gy_free(c->asked);
    gy_free(c->lane_end);
    gy_free(c->begin);
}

static void take(clocks *c, const uint32_t *end)
{
    for (size_t l = 0; l < c->lanes; l++)
        c->begin[l] = end[l] > c->begin[l] ? end[l] : c->begin[l];
}

/* The waits of an op in a start, decided there or in an earlier one. */
static void wait_in(clocks *c, uint32_t start, gy_counted_need *n)
{
    static const int clock[] = { NOW, BEFORE };
    const uint32_t number = c->asked[n->from];
    if (n->distance > start)
        return;
    if (n->distance == start)
        n->kept = c->begin[lane_of(c, n->from, 0)] <= n->from;
    if (n->kept)
        take(c, c->end[n->distance < 2 ? clock[n->distance] : FIRST] + number * c->lanes);
}

static void end_op(clocks *c, uint32_t start, uint32_t op)
{
    for (uint32_t i = 0; i < c->s->ops.at[op].lanes && start == 0; i++)
        c->begin[lane_of(c, op, i)] = op + 1;
    for (uint32_t i = 0; i < c->s->ops.at[op].lanes; i++)
        memcpy(c->lane_end + lane_of(c, op, i) * c->lanes, c->begin, c->lanes * sizeof *c->begin);
    if (c->asked[op] != GY_NONE)
        memcpy(c->end[NOW] + c->asked[op] * c->lanes, c->begin, c->lanes * sizeof *c->begin);
}

static void walk_start(clocks *c, uint32_t start)
{
    size_t need = 0;
    for (uint32_t op = 0; op < c->s->ops.count; op++) {
        memset(c->begin, 0, c->lanes * sizeof *c->begin);
        for (uint32_t i = 0; i < c->s->ops.at[op].lanes; i++)
            take(c, c->lane_end + lane_of(c, op, i) * c->lanes);
        for (; need < c->needs->count && c->needs->at[need].to == op; need++)
            wait_in(c, start, &c->needs->at[need]);
        end_op(c, start, op);
    }
}

/* Those of an op together, the nearest start first, in it the latest op first: what that implies comes after it. */
static int by_op(const void *a, const void *b)
{
    const gy_counted_need *x = a, *y = b;
    if (x->to != y->to)
        return x->to < y->to ? -1 : 1;
    if (x->distance != y->distance)
        return x->distance < y->distance ? -1 : 1;
    return (x->from < y->from) - (x->from > y->from);
}

static bool collect(gy_counted_needs *needs, const gantry_schedule *s)
{
    bool done = gy_counters_hazards(needs, s);
    for (size_t i = 0; i < s->sync.count && done; i++) {
        const gy_sync *row = &s->sync.at[i];
        gy_counted_need need = { row->to, 0, row->from, false };
        done = row->distance > 0 || row->carrier == GY_CARRIER_LANE || gy_vec_push(needs, need);
    }
    size_t kept = 0;
    if (needs->count > 1)
        qsort(needs->at, needs->count, sizeof *needs->at, by_op);
    for (size_t i = 0; i < needs->count; i++)
        if (i == 0 || by_op(&needs->at[kept - 1], &needs->at[i]) != 0)
            needs->at[kept++] = needs->at[i];
    needs->count = kept;
    return done;
}

static bool make(gantry_schedule *s)
{
    gy_counted_needs needs = { 0 };
    clocks c = { .s = s, .needs = &needs, .lanes = s->lanes.count };
    bool done = collect(&needs, s) && open_clocks(&c);
    for (uint32_t start = 0; start <= s->in_flight && done; start++) {
        walk_start(&c, start);
        if (start == 0)
            memcpy(c.end[FIRST], c.end[NOW], c.waited * c.lanes * sizeof *c.begin);
        uint32_t *swap = c.end[BEFORE];
        c.end[BEFORE] = c.end[NOW];
        c.end[NOW] = swap;
    }
    close_clocks(&c);
    done = done && gy_counters_build(s, &needs);
    gy_vec_free(&needs);
    return done;
}

gantry_status gy_counters_make(gantry_schedule *s, gantry_error *err)
{
    for (size_t i = 0; i < s->phases.count; i++)
        GY_TRY(gy_counters_make(s->phases.at[i].schedule, err));
    s->replay = GY_REPLAY_DEVICE;
    return make(s) ? GANTRY_OK : gy_fail_nomem(err);
}
