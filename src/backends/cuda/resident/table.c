/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waits and signals by op: those of the schedule, and those of *switches*. Where an op that workers carry out follows
 * one that a stream carries out in a lane, or the other way round, nothing but a counter keeps them in their order: so
 * each lane has two of its own, one for each direction. They are used as those of the schedule are, also from the last
 * op of a start to the first of the next. Counters between GPUs that do not reach each other are left out (detour.c).
 */
#include "backends/cuda/resident/resident.h"

#include "base/error.h"
#include <stdlib.h>
#include <string.h>

typedef struct joint {
    uint32_t from, to, counter, value, distance;
} joint;
typedef GY_VEC(joint) joints;

static uint32_t counters_of(const gy_cuda *h)
{
    return (uint32_t)gy_job_counters(h->job)->at.count;
}

uint32_t gy_resident_counters(const gy_cuda *h)
{
    return gy_resident_pair_counter(h, (uint32_t)h->resident->pairs.count);
}

bool gy_resident_is_switch(const gy_cuda *h, uint32_t counter)
{
    return counter >= counters_of(h) && counter < gy_resident_pair_counter(h, 0);
}

bool gy_resident_is_near(const gy_cuda *h, uint32_t counter)
{
    if (counter >= counters_of(h))
        return false;
    const gy_counter *c = &gy_job_counters(h->job)->at.at[counter];
    const gy_resident_lane *lane = h->resident->lane;
    return h->lane[c->from].queue.device == h->lane[c->to].queue.device && !lane[c->from].streamed &&
           !lane[c->to].streamed;
}

gy_resident_lanes gy_resident_lanes_of(const gy_cuda *h, uint32_t counter)
{
    uint32_t own = counters_of(h), pairs = gy_resident_pair_counter(h, 0);
    if (counter >= pairs)
        return h->resident->pairs.at[counter - pairs];
    if (counter >= own)
        return (gy_resident_lanes){ (counter - own) / 2, (counter - own) / 2 };
    const gy_counter *c = &gy_job_counters(h->job)->at.at[counter];
    return (gy_resident_lanes){ c->from, c->to };
}

uint32_t gy_resident_counter_device(const gy_cuda *h, uint32_t counter)
{
    return h->lane[gy_resident_lanes_of(h, counter).to].queue.device;
}

/* ---- pairs of lanes that meet ---- */

uint32_t gy_resident_pair_counter(const gy_cuda *h, uint32_t pair)
{
    return counters_of(h) + 2 * h->lanes + pair;
}

static int compare_pairs(const void *a, const void *b)
{
    const gy_resident_lanes *x = a, *y = b;
    return x->from != y->from ? (x->from < y->from ? -1 : 1) : x->to != y->to ? (x->to < y->to ? -1 : 1) : 0;
}

uint32_t gy_resident_pair(const gy_cuda *h, uint32_t from, uint32_t to)
{
    const gy_resident *r = h->resident;
    const gy_resident_lanes wanted = { from, to };
    const gy_resident_lanes *found = bsearch(&wanted, r->pairs.at, r->pairs.count, sizeof wanted, compare_pairs);
    return (uint32_t)(found - r->pairs.at);
}

/* Those of each op of several lanes, in order, each once. */
static bool find_pairs(gy_cuda *h)
{
    const gantry_schedule *s = h->job->schedule;
    gy_resident *r = h->resident;
    size_t kept = 0;
    for (uint32_t i = 0; i < s->ops.count; i++) {
        const gy_op *op = &s->ops.at[i];
        const uint32_t *lane = &s->op_lane.at[op->lane];
        for (uint32_t k = 0; k < op->lanes * op->lanes; k++) {
            gy_resident_lanes pair = { lane[k / op->lanes], lane[k % op->lanes] };
            if (pair.from != pair.to && !gy_vec_push(&r->pairs, pair))
                return false;
        }
    }
    if (r->pairs.count)
        qsort(r->pairs.at, r->pairs.count, sizeof *r->pairs.at, compare_pairs);
    for (size_t i = 0; i < r->pairs.count; i++)
        if (i == 0 || compare_pairs(&r->pairs.at[i], &r->pairs.at[kept - 1]) != 0)
            r->pairs.at[kept++] = r->pairs.at[i];
    r->pairs.count = kept;
    return true;
}

/* ---- switches ---- */

static bool add_switch(gy_cuda *h, joints *all, uint32_t lane, uint32_t from, uint32_t to, uint32_t distance)
{
    gy_resident *r = h->resident;
    uint32_t counter = counters_of(h) + 2 * lane + r->has[to];
    if (r->has[from] == r->has[to])
        return true;
    joint j = { from, to, counter, ++r->signals_of[counter], distance };
    return gy_vec_push(all, j);
}

/* `ends`: the first and the last op of each lane so far. */
static bool find_switches(gy_cuda *h, joints *all, uint32_t *ends)
{
    const gantry_schedule *s = h->job->schedule;
    bool done = true;
    for (uint32_t i = 0; i < s->ops.count && done; i++) {
        const gy_op *op = &s->ops.at[i];
        for (uint32_t k = 0; k < op->lanes && done; k++) {
            uint32_t lane = s->op_lane.at[op->lane + k], *end = &ends[2 * lane];
            done = end[1] == GY_NONE || add_switch(h, all, lane, end[1], i, 0);
            end[0] = end[0] == GY_NONE ? i : end[0];
            end[1] = i;
        }
    }
    for (uint32_t lane = 0; lane < h->lanes && done; lane++)
        if (ends[2 * lane] != GY_NONE)
            done = add_switch(h, all, lane, ends[2 * lane + 1], ends[2 * lane], 1);
    return done;
}

static bool all_switches(gy_cuda *h, joints *all)
{
    uint32_t *ends = gy_calloc(2 * (size_t)h->lanes + 1, sizeof *ends);
    if (!ends)
        return false;
    for (uint32_t i = 0; i < 2 * h->lanes; i++)
        ends[i] = GY_NONE;
    bool done = find_switches(h, all, ends);
    gy_free(ends);
    return done;
}

/* ---- by op ---- */

/* Of the schedule, those of a counter in the order of its lanes' ops. */
static bool all_counters(gy_cuda *h, joints *waits, joints *signals)
{
    const gy_counters *all = gy_job_counters(h->job);
    bool done = true;
    for (uint32_t id = 0; id < all->at.count && done; id++) {
        const gy_counter *c = &all->at.at[id];
        if (gy_resident_takes_detour(h, c))
            continue;
        h->resident->signals_of[id] = c->signals;
        for (uint32_t i = 0; i < c->waits && done; i++) {
            const gy_counter_wait *w = &all->wait.at[c->wait + i];
            joint j = { GY_NONE, w->op, id, w->value, w->distance };
            done = gy_vec_push(waits, j);
        }
        for (uint32_t i = 0; i < c->signals && done; i++) {
            joint j = { all->signal.at[c->signal + i], GY_NONE, id, i + 1, 0 };
            done = gy_vec_push(signals, j);
        }
    }
    return done;
}

static uint32_t op_of(const joint *j, bool waits)
{
    return waits ? j->to : j->from;
}

/* Where those of each op begin, then all of them in that order. */
static void sort_edges(gy_resident_edges *to, const joints *all, size_t ops, bool waits)
{
    memset(to->first, 0, (ops + 2) * sizeof *to->first);
    for (size_t i = 0; i < all->count; i++)
        to->first[op_of(&all->at[i], waits) + 2]++;
    for (size_t i = 0; i < ops; i++)
        to->first[i + 2] += to->first[i + 1];
    for (size_t i = 0; i < all->count; i++) {
        const joint *j = &all->at[i];
        uint32_t op = op_of(j, waits);
        to->at[to->first[op + 1]++] = (gy_resident_edge){ op, j->counter, j->value, j->distance };
    }
}

gantry_status gy_resident_table(gy_cuda *h, gantry_error *err)
{
    size_t ops = h->job->schedule->ops.count;
    gy_resident *r = h->resident;
    joints waits = { 0 }, signals = { 0 };
    memset(r->signals_of, 0, gy_resident_counters(h) * sizeof *r->signals_of);
    bool done = all_counters(h, &waits, &signals);
    size_t first = waits.count;
    done = done && all_switches(h, &waits);
    for (size_t i = first; i < waits.count && done; i++) { /* behind the op's other signals */
        joint j = waits.at[i];
        j.distance = 0; /* it signals in its own start */
        done = gy_vec_push(&signals, j);
    }
    if (done) {
        sort_edges(&r->waits, &waits, ops, true);
        sort_edges(&r->signals, &signals, ops, false);
    }
    gy_vec_free(&waits);
    gy_vec_free(&signals);
    return done ? GANTRY_OK : gy_fail_nomem(err);
}

/* A switch is between two ops of a lane, one the next after the other. */
static bool make_edges(gy_cuda *h, gy_resident_edges *to, size_t count)
{
    const gantry_schedule *s = h->job->schedule;
    to->at = gy_arena_calloc(&h->arena, count + s->op_lane.count + 1, sizeof *to->at);
    to->first = gy_arena_calloc(&h->arena, s->ops.count + 2, sizeof *to->first);
    return to->at && to->first;
}

gantry_status gy_resident_table_make(gy_cuda *h, gantry_error *err)
{
    gy_resident *r = h->resident;
    if (!find_pairs(h))
        return gy_fail_nomem(err);
    uint32_t counters = gy_resident_counters(h);
    r->number = gy_arena_calloc(&h->arena, counters + 1, sizeof *r->number);
    r->signals_of = gy_arena_calloc(&h->arena, counters + 1, sizeof *r->signals_of);
    if (!r->number || !r->signals_of || !make_edges(h, &r->waits, gy_job_counters(h->job)->wait.count) ||
        !make_edges(h, &r->signals, gy_job_counters(h->job)->signal.count))
        return gy_fail_nomem(err);
    for (uint32_t i = 0; i < counters; i++)
        r->number[i] = r->gpu[gy_resident_counter_device(h, i)].counters++;
    return GANTRY_OK;
}
