/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Happens-before as vector clocks (Fidge 1988, Mattern 1989) over lanes: clock[L] is how many ops of lane L end before
 * the op begins, itself included for its own lanes. An op of several lanes that is in another's past brings all its
 * lanes along, so that asking for its first lane is enough. Clocks are made in position order and kept only for as long
 * as a later row of the sync table needs them. They are trees that share what they have in common: as arrays
 * those of n lanes would be n times n counts.
 */
#include "base/error.h"
#include "schedule/check/check.h"

/* Rows that the walk has to follow: not those of lane order, nor those that the in-flight limit implies. */
static bool counts(const gy_clocks *c, const gy_sync *row)
{
    return row->carrier != GY_CARRIER_LANE && row->distance < c->starts;
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
    size_t ops = c->s->ops.count, *next = c->row_first + 1; /* next[i]: where the next row of op i goes */
    for (size_t i = 0; i < c->syncs; i++)
        next[c->sync[i].to + 1] += counts(c, &c->sync[i]);
    for (size_t i = 0; i < ops; i++)
        next[i + 1] += next[i];
    for (size_t i = 0; i < c->syncs; i++) {
        const gy_sync *row = &c->sync[i];
        if (!counts(c, row))
            continue;
        c->row[next[row->to]++] =
            (uint32_t)i; /* which leaves where op i + 1 begins in next[i], that is row_first[i + 1] */
        for (uint32_t start = 0; start < c->starts - row->distance; start++)
            c->left[start * ops + row->from]++;
    }
}

gantry_status gy_clocks_init(gy_clocks *c, const gantry_schedule *s, gantry_error *err)
{
    return gy_clocks_of(c, s, s->sync.at, s->sync.count, s->in_flight, err);
}

gantry_status gy_clocks_of(gy_clocks *c, const gantry_schedule *s, const gy_sync *rows, size_t count, uint32_t starts,
                           gantry_error *err)
{
    size_t ops = s->ops.count, lanes = s->lanes.count, stamps = ops * starts;
    *c = (gy_clocks){ .s = s, .sync = rows, .syncs = count, .starts = starts };
    while (lanes > (uint64_t)GY_CLOCK_FAN << GY_CLOCK_BITS * c->height)
        c->height++;
    c->lane_ops = gy_calloc(lanes + 1, sizeof *c->lane_ops);
    c->rank = gy_calloc(ops + 1, sizeof *c->rank);
    c->row_first = gy_calloc(ops + 2, sizeof *c->row_first);
    c->row = gy_calloc(c->syncs + 1, sizeof *c->row);
    c->lane_clock = gy_calloc(lanes + 1, sizeof *c->lane_clock);
    c->seen = gy_calloc(lanes + 1, sizeof *c->seen);
    c->before_batch = gy_calloc(lanes + 1, sizeof *c->before_batch);
    c->kept = gy_calloc(stamps + 1, sizeof *c->kept);
    c->left = gy_calloc(stamps + 1, sizeof *c->left);
    if (!c->lane_ops || !c->rank || !c->row_first || !c->row || !c->lane_clock || !c->seen || !c->before_batch ||
        !c->kept || !c->left || !gy_vec_push(&c->node, (gy_clock_node){ 0 }))
        return gy_fail_nomem(err);
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
    gy_free(c->before_batch);
    gy_free(c->kept);
    gy_free(c->left);
    gy_vec_free(&c->node);
}

/* ---- trees; all of them are freed at once, so that nothing is given back where memory runs out ---- */

static uint32_t share(gy_clocks *c, uint32_t node)
{
    c->node.at[node].owners++;
    return node;
}

static void drop(gy_clocks *c, uint32_t node, uint32_t level)
{
    gy_clock_node *n = &c->node.at[node];
    if (!node || --n->owners)
        return;
    for (int i = 0; i < GY_CLOCK_FAN && level; i++)
        drop(c, n->slot[i], level - 1);
    n->slot[0] = c->unused;
    c->unused = node;
}

static bool add(gy_clocks *c, const gy_clock_node *made, uint32_t *out)
{
    *out = c->unused;
    if (*out) {
        c->unused = c->node.at[*out].slot[0];
    } else {
        *out = (uint32_t)c->node.count;
        if (!gy_vec_add(&c->node, 1))
            return false;
    }
    c->node.at[*out] = *made;
    c->node.at[*out].owners = 1;
    return true;
}

/* At every lane the larger count of both: one of the two, where that has them all. */
static bool join(gy_clocks *c, uint32_t a, uint32_t b, uint32_t level, uint32_t *out)
{
    bool is_a = !b || a == b, is_b = !a, fine = true;
    gy_clock_node made;
    if (!is_a && !is_b) {
        is_a = is_b = true;
        for (int i = 0; i < GY_CLOCK_FAN && fine; i++) {
            uint32_t x = c->node.at[a].slot[i], y = c->node.at[b].slot[i], *most = &made.slot[i];
            *most = x > y ? x : y;
            fine = !level || join(c, x, y, level - 1, most);
            is_a = is_a && *most == x;
            is_b = is_b && *most == y;
        }
        if (!fine || (!is_a && !is_b))
            return fine && add(c, &made, out);
        for (int i = 0; i < GY_CLOCK_FAN && level; i++)
            drop(c, made.slot[i], level - 1);
    }
    *out = share(c, is_a ? a : b);
    return true;
}

/* The same clock with another count of the lane. */
static bool set(gy_clocks *c, uint32_t clock, uint32_t lane, uint32_t count, uint32_t level, uint32_t *out)
{
    gy_clock_node made = c->node.at[clock];
    uint32_t *slot = &made.slot[lane >> GY_CLOCK_BITS * level & (GY_CLOCK_FAN - 1)], old = *slot;
    if (!level) {
        *slot = count;
        return add(c, &made, out);
    }
    for (int i = 0; i < GY_CLOCK_FAN; i++)
        share(c, made.slot[i]);
    if (!set(c, old, lane, count, level - 1, slot))
        return false;
    drop(c, old, level - 1);
    return add(c, &made, out);
}

/* ---- clocks ---- */

static void replace(gy_clocks *c, uint32_t *clock, uint32_t other)
{
    drop(c, *clock, c->height);
    *clock = other;
}

static bool take(gy_clocks *c, uint32_t clock)
{
    uint32_t both;
    if (!join(c, c->now, clock, c->height, &both))
        return false;
    replace(c, &c->now, both);
    return true;
}

/* Gives the clock another count of the lane. */
static bool put(gy_clocks *c, uint32_t *clock, uint32_t lane, uint32_t count)
{
    uint32_t next;
    if (!set(c, *clock, lane, count, c->height, &next))
        return false;
    replace(c, clock, next);
    return true;
}

/* Takes the clocks that rows bring, and gives back those that were asked for the last time. */
static bool take_rows(gy_clocks *c, uint32_t start, uint32_t op)
{
    for (size_t i = c->row_first[op]; i < c->row_first[op + 1]; i++) {
        const gy_sync *row = &c->sync[c->row[i]];
        if (row->distance > start)
            continue;
        if (c->watch && start + 1 == c->starts && gy_clocks_before(c, (gy_stamp){ row->from, start - row->distance }))
            c->needless = c->row[i] + 1;
        size_t stamp = (size_t)(start - row->distance) * c->s->ops.count + row->from;
        if (!take(c, c->kept[stamp]))
            return false;
        if (--c->left[stamp] == 0)
            replace(c, &c->kept[stamp], 0);
    }
    return true;
}

/* An op that begins with the one before it: what waits for it is behind that one too, but it is not itself. */
static bool join_batch(gy_clocks *c, uint32_t start, uint32_t op)
{
    const gy_op *o = &c->s->ops.at[op];
    const uint32_t *lane = &c->s->op_lane.at[o->lane];
    size_t stamp = (size_t)start * c->s->ops.count + op;
    uint32_t behind = share(c, c->lane_clock[lane[0]]);
    bool fine = true, begun = gy_clocks_count(c, lane[0]) == c->before_batch[0];
    for (uint32_t k = 0; k < o->lanes && fine; k++)
        fine = put(c, &behind, lane[k], ++c->seen[lane[k]]);
    for (uint32_t k = 0; k < o->lanes && fine; k++)
        replace(c, &c->lane_clock[lane[k]], share(c, behind));
    if (fine && c->left[stamp])
        c->kept[stamp] = share(c, behind);
    drop(c, behind, c->height);
    for (uint32_t k = 0; k < o->lanes && fine && !begun; k++)
        fine = put(c, &c->now, lane[k], c->before_batch[k]);
    return fine;
}

bool gy_clocks_step(gy_clocks *c, uint32_t start, uint32_t op)
{
    const gy_op *o = &c->s->ops.at[op];
    if (o->joined)
        return join_batch(c, start, op);
    const uint32_t *lane = &c->s->op_lane.at[o->lane];
    size_t stamp = (size_t)start * c->s->ops.count + op;
    bool fine = true;
    replace(c, &c->now, 0);
    for (uint32_t k = 0; k < o->lanes && fine; k++)
        fine = take(c, c->lane_clock[lane[k]]);
    fine = fine && take_rows(c, start, op);
    for (uint32_t k = 0; k < o->lanes && fine; k++) {
        c->before_batch[k] = c->seen[lane[k]];
        fine = put(c, &c->now, lane[k], ++c->seen[lane[k]]);
    }
    for (uint32_t k = 0; k < o->lanes && fine; k++)
        replace(c, &c->lane_clock[lane[k]], share(c, c->now));
    if (fine && c->left[stamp])
        c->kept[stamp] = share(c, c->now);
    return fine;
}

uint32_t gy_clocks_count(const gy_clocks *c, uint32_t lane)
{
    uint32_t node = c->now;
    for (uint32_t level = c->height; level > 0; level--)
        node = c->node.at[node].slot[lane >> GY_CLOCK_BITS * level & (GY_CLOCK_FAN - 1)];
    return c->node.at[node].slot[lane & (GY_CLOCK_FAN - 1)];
}

uint32_t gy_clocks_tick(const gy_clocks *c, gy_stamp who)
{
    uint32_t lane = c->s->op_lane.at[c->s->ops.at[who.op].lane];
    return who.start * c->lane_ops[lane] + c->rank[who.op] + 1;
}

bool gy_clocks_before(const gy_clocks *c, gy_stamp earlier)
{
    uint32_t lane = c->s->op_lane.at[c->s->ops.at[earlier.op].lane];
    return gy_clocks_count(c, lane) >= gy_clocks_tick(c, earlier);
}
