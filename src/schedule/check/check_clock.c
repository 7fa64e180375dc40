/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Happens-before as vector clocks (Fidge 1988, Mattern 1989) over lanes: clock[L] is how many ops of lane L end before
 * the op begins, itself included for its own lanes. An op of several lanes that is in another's past brings all its
 * lanes along, so that asking for its first lane is enough. Clocks are made in position order and kept only for as long
 * as a later row of the sync table needs them.
 */
#include "base/error.h"
#include "schedule/check/check.h"
#include <string.h>

/* Rows that the walk has to follow: not those of lane order, nor those that the in-flight limit implies. */
static bool counts(const gantry_schedule *s, const gy_sync *row)
{
    return row->carrier != GY_CARRIER_LANE && row->distance < s->in_flight;
}

static void count_lanes(gy_clocks *c)
{
    const gantry_schedule *s = c->s;
    for (size_t i = 0; i < s->ops.count; i++) {
        const gy_op *op = &s->ops.at[i];
        c->rank[i] = c->lane_ops[s->op_lane.at[op->lane]];
        for (uint32_t k = 0; k < op->lanes; k++)
            c->lane_ops[s->op_lane.at[op->lane + k]]++;
    }
}

/* Rows by the op that waits (counting sort), and how often each op's clock will be asked for. */
static void sort_rows(gy_clocks *c)
{
    const gantry_schedule *s = c->s;
    size_t ops = s->ops.count, *next = c->row_first + 1; /* next[i]: where the next row of op i goes */
    for (size_t i = 0; i < s->sync.count; i++)
        next[s->sync.at[i].to + 1] += counts(s, &s->sync.at[i]);
    for (size_t i = 0; i < ops; i++)
        next[i + 1] += next[i];
    for (size_t i = 0; i < s->sync.count; i++) {
        const gy_sync *row = &s->sync.at[i];
        if (!counts(s, row))
            continue;
        c->row[next[row->to]++] =
            (uint32_t)i; /* which leaves where op i + 1 begins in next[i], that is row_first[i + 1] */
        for (uint32_t start = 0; start < s->in_flight - row->distance; start++)
            c->left[start * ops + row->from]++;
    }
}

gantry_status gy_clocks_init(gy_clocks *c, const gantry_schedule *s, gantry_error *err)
{
    size_t ops = s->ops.count, lanes = s->lanes.count, stamps = ops * s->in_flight;
    *c = (gy_clocks){ .s = s, .lanes = lanes };
    c->lane_ops = gy_calloc(lanes + 1, sizeof *c->lane_ops);
    c->rank = gy_calloc(ops + 1, sizeof *c->rank);
    c->row_first = gy_calloc(ops + 2, sizeof *c->row_first);
    c->row = gy_calloc(s->sync.count + 1, sizeof *c->row);
    c->lane_clock = lanes && lanes > SIZE_MAX / lanes ? NULL : gy_calloc(lanes * lanes + 1, sizeof *c->lane_clock);
    c->seen = gy_calloc(lanes + 1, sizeof *c->seen);
    c->now = gy_calloc(lanes + 1, sizeof *c->now);
    c->kept = gy_calloc(stamps + 1, sizeof *c->kept);
    c->left = gy_calloc(stamps + 1, sizeof *c->left);
    if (!c->lane_ops || !c->rank || !c->row_first || !c->row || !c->lane_clock || !c->seen || !c->now || !c->kept ||
        !c->left)
        return gy_fail_nomem(err);
    memset(c->kept, 0xff, (stamps + 1) * sizeof *c->kept);
    count_lanes(c);
    sort_rows(c);
    return GANTRY_OK;
}

void gy_clocks_free(gy_clocks *c)
{
    gy_free(c->lane_ops);
    gy_free(c->rank);
    gy_free(c->row_first);
    gy_free(c->row);
    gy_free(c->lane_clock);
    gy_free(c->seen);
    gy_free(c->now);
    gy_free(c->kept);
    gy_free(c->left);
    gy_vec_free(&c->store);
    gy_vec_free(&c->unused);
}

static void join(gy_clocks *c, const uint32_t *other)
{
    for (size_t i = 0; i < c->lanes; i++)
        c->now[i] = other[i] > c->now[i] ? other[i] : c->now[i];
}

static bool keep(gy_clocks *c, size_t stamp)
{
    uint32_t slot;
    if (c->unused.count > 0) {
        slot = c->unused.at[--c->unused.count];
    } else {
        slot = (uint32_t)(c->store.count / (c->lanes ? c->lanes : 1));
        if (!gy_vec_add(&c->store, c->lanes))
            return false;
    }
    memcpy(c->store.at + slot * c->lanes, c->now, c->lanes * sizeof *c->now);
    c->kept[stamp] = slot;
    return true;
}

/* Takes the clocks that rows bring, and gives back those that were asked for the last time. */
static bool take_rows(gy_clocks *c, uint32_t start, uint32_t op)
{
    for (size_t i = c->row_first[op]; i < c->row_first[op + 1]; i++) {
        const gy_sync *row = &c->s->sync.at[c->row[i]];
        if (row->distance > start)
            continue;
        size_t stamp = (size_t)(start - row->distance) * c->s->ops.count + row->from;
        join(c, c->store.at + c->kept[stamp] * c->lanes);
        if (--c->left[stamp] == 0 && !gy_vec_push(&c->unused, c->kept[stamp]))
            return false;
    }
    return true;
}

/* An op that begins with the one before it: what waits for it is behind that one too, but it is not itself. */
static bool join_batch(gy_clocks *c, uint32_t start, uint32_t op)
{
    uint32_t lane = c->s->op_lane.at[c->s->ops.at[op].lane];
    uint32_t *clock = c->lane_clock + lane * c->lanes;
    size_t stamp = (size_t)start * c->s->ops.count + op;
    clock[lane] = ++c->seen[lane];
    memcpy(c->now, clock, c->lanes * sizeof *c->now);
    bool done = c->left[stamp] == 0 || keep(c, stamp);
    c->now[lane] = c->before_batch;
    return done;
}

bool gy_clocks_step(gy_clocks *c, uint32_t start, uint32_t op)
{
    const gy_op *o = &c->s->ops.at[op];
    if (o->joined)
        return join_batch(c, start, op);
    const uint32_t *lane = &c->s->op_lane.at[o->lane];
    memset(c->now, 0, c->lanes * sizeof *c->now);
    for (uint32_t k = 0; k < o->lanes; k++)
        join(c, c->lane_clock + lane[k] * c->lanes);
    if (!take_rows(c, start, op))
        return false;
    c->before_batch = c->seen[lane[0]];
    for (uint32_t k = 0; k < o->lanes; k++)
        c->now[lane[k]] = ++c->seen[lane[k]];
    for (uint32_t k = 0; k < o->lanes; k++)
        memcpy(c->lane_clock + lane[k] * c->lanes, c->now, c->lanes * sizeof *c->now);
    size_t stamp = (size_t)start * c->s->ops.count + op;
    return c->left[stamp] == 0 || keep(c, stamp);
}

uint32_t gy_clocks_tick(const gy_clocks *c, gy_stamp who)
{
    uint32_t lane = c->s->op_lane.at[c->s->ops.at[who.op].lane];
    return who.start * c->lane_ops[lane] + c->rank[who.op] + 1;
}

bool gy_clocks_before(const gy_clocks *c, gy_stamp earlier)
{
    uint32_t lane = c->s->op_lane.at[c->s->ops.at[earlier.op].lane];
    return c->now[lane] >= gy_clocks_tick(c, earlier);
}
