/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Groups: copies between memories of GPUs, of the same moment and any ranks (schedule/part.h). All ranks find the same,
 * as they look at the schedule alone.
 *
 * A rank has one step of a group, at the first of its copies there. Let the key of a step of the network be the op at
 * the head of its group, of all ranks, and of any other step its own op. A rank joins a group only if all of its steps
 * of the network so far have lower keys; so on each rank keys rise from step to step. And all that a copy waits for
 * comes before the head of its group, or is of the group. That is why groups cannot wait for each other in a circle:
 * docs/design/ranks.md has the proof.
 */
#include "schedule/ranks/packs.h"

/* A group that may be joined: of both ranks of the copy, what they have of it. */
typedef struct chance {
    uint32_t id, group;
    uint32_t rank[2];
} chance;

static bool is_of(const gy_packer *p, uint32_t rank, uint32_t group)
{
    return p->grouped[rank].group == group + 1;
}

/* The rank has a step of the group, or would have none between its head and here. */
static bool may_come(const gy_packer *p, const chance *c, uint32_t rank)
{
    const gy_rank_grouped *of = &p->grouped[rank];
    uint64_t bytes = gy_use_bytes(p->s, &p->s->use.at[p->s->ops.at[c->id].use]);
    if (!is_of(p, rank, c->group))
        return of->key <= p->group.at[c->group];
    return of->count < GY_GROUP_MOST && of->bytes + bytes <= GY_GROUP_ALL;
}

/* All that the copy waits for comes before the head in the order of ops, so it may come right behind the head. The
 * lane is but an order, in which members may be beside each other. */
static bool may_follow(const gy_packer *p, const chance *c)
{
    uint32_t before = p->before[c->id], head = p->group.at[c->group];
    bool may = before <= head || p->group_of[before - 1] == c->group + 1;
    for (uint32_t i = p->rows->first[c->id]; i < p->rows->first[c->id + 1] && may; i++)
        may = p->s->sync.at[p->rows->row[i]].from < head;
    return may;
}

/* ---- bytes ---- */

static bool overlap(const gy_packer *p, const gy_use *a, const gy_use *b)
{
    const gy_instance *x = &p->s->instances.at[a->instance], *y = &p->s->instances.at[b->instance];
    uint64_t from = x->offset + gy_instance_offset(p->s, x, a->first);
    uint64_t other = y->offset + gy_instance_offset(p->s, y, b->first);
    return x->memory == y->memory && from < other + gy_use_bytes(p->s, b) && other < from + gy_use_bytes(p->s, a);
}

/* Neither writes what the other reads or writes: they move in any order. */
static bool are_apart(const gy_packer *p, uint32_t a, uint32_t b)
{
    const gy_use *one = &p->s->use.at[p->s->ops.at[a].use], *other = &p->s->use.at[p->s->ops.at[b].use];
    return !overlap(p, &one[1], &other[0]) && !overlap(p, &one[1], &other[1]) && !overlap(p, &one[0], &other[1]);
}

static uint32_t receiver_of(const gy_packer *p, uint32_t op)
{
    return gy_part_rank(p->part, p->s, &p->s->ops.at[op], 1);
}

static bool is_apart_from_all(const gy_packer *p, const chance *c, uint32_t rank)
{
    bool apart = true;
    uint32_t i = is_of(p, rank, c->group) ? p->grouped[rank].last : 0;
    for (; i && apart; i = p->member[2 * (size_t)(i - 1) + (receiver_of(p, i - 1) == rank)])
        apart = are_apart(p, i - 1, c->id);
    return apart;
}

/* ---- time ---- */

/* Nothing that the copy waits for ends after the step of the rank begins. */
static bool is_ready(const gy_packer *p, const chance *c, uint32_t rank)
{
    uint32_t before = p->before[c->id], first = p->grouped[rank].first;
    bool ready = is_of(p, rank, c->group) &&
                 (before == 0 || p->group_of[before - 1] == c->group + 1 || gy_packer_has_ended(p, before - 1, first));
    for (uint32_t i = p->rows->first[c->id]; i < p->rows->first[c->id + 1] && ready; i++)
        ready = gy_packer_has_ended(p, p->s->sync.at[p->rows->row[i]].from, first);
    return ready;
}

static gy_rank_span span_with(gy_rank_span span, gy_ticks at)
{
    return (gy_rank_span){ at < span.from ? at : span.from, at > span.to ? at : span.to };
}

static bool is_short(gy_rank_span span)
{
    return span.to - span.from <= GY_GROUP_TICKS;
}

/* As predicted, all that the copy waits for has ended then, but others of its group. */
static gy_ticks wait_of(const gy_packer *p, const chance *c)
{
    uint32_t before = p->before[c->id];
    gy_ticks last = before && p->group_of[before - 1] != c->group + 1 ? p->s->ops.at[before - 1].end : 0;
    for (uint32_t i = p->rows->first[c->id]; i < p->rows->first[c->id + 1]; i++) {
        gy_ticks end = p->s->ops.at[p->s->sync.at[p->rows->row[i]].from].end;
        last = end > last ? end : last;
    }
    return last;
}

/* The rank does not wait long for the copy with its part of the group: all begin at the same moment; or may, where they
 * are small, if each had not to be given out behind the other; or all that it waits for has ended anyway. */
static bool is_soon(const gy_packer *p, const chance *c, uint32_t rank)
{
    const gy_rank_grouped *of = &p->grouped[rank];
    const gy_op *op = &p->s->ops.at[c->id];
    bool small = of->bytes + gy_use_bytes(p->s, &p->s->use.at[op->use]) <= GY_GROUP_SMALL;
    return !is_of(p, rank, c->group) || is_short(span_with(of->starts, op->start)) ||
           (small && is_short(span_with(of->waits, wait_of(p, c)))) || is_ready(p, c, rank);
}

/* ---- joining ---- */

static bool may_join(const gy_packer *p, const chance *c)
{
    bool may = may_follow(p, c);
    for (size_t end = 0; end < 2 && may; end++)
        may = may_come(p, c, c->rank[end]) && is_soon(p, c, c->rank[end]) && is_apart_from_all(p, c, c->rank[end]);
    return may;
}

/* The copy is the next one of the rank in the group: `end` 0 where it sends, 1 where it receives. */
static void put(gy_packer *p, const chance *c, uint32_t end)
{
    gy_rank_grouped *of = &p->grouped[c->rank[end]];
    const gy_op *op = &p->s->ops.at[c->id];
    bool here = is_of(p, c->rank[end], c->group);
    gy_ticks wait = wait_of(p, c);
    if (!here) {
        *of = (gy_rank_grouped){ .group = c->group + 1, .first = c->id, .key = p->group.at[c->group] + 1 };
        of->starts = (gy_rank_span){ op->start, op->start };
        of->waits = (gy_rank_span){ wait, wait };
    }
    p->member[2 * (size_t)c->id + end] = of->last;
    of->last = c->id + 1;
    of->count++;
    of->bytes += gy_use_bytes(p->s, &p->s->use.at[op->use]);
    of->starts = span_with(of->starts, op->start);
    of->waits = span_with(of->waits, wait);
    if (here && c->rank[end] == p->part->rank)
        p->head[c->id] = of->first;
}

static void join(gy_packer *p, const chance *c)
{
    put(p, c, 0);
    put(p, c, 1);
    p->group_of[c->id] = c->group + 1;
}

bool gy_groups_look_for(gy_packer *p, uint32_t id, uint32_t from, uint32_t to)
{
    /* The last groups of both, and the last of all: a copy of ranks that are of none joins what is of its moment. */
    const uint32_t last[] = { p->grouped[from].group, p->grouped[to].group, (uint32_t)p->group.count };
    chance c = { .id = id, .rank = { from, to } };
    for (size_t i = 0; i < sizeof last / sizeof *last; i++) {
        c.group = last[i] - 1;
        if (last[i] && may_join(p, &c)) {
            join(p, &c);
            return true;
        }
    }
    c.group = (uint32_t)p->group.count;
    if (!gy_vec_push(&p->group, id))
        return false;
    join(p, &c);
    return true;
}

void gy_groups_pass(gy_packer *p, uint32_t id)
{
    const gy_op *op = &p->s->ops.at[id];
    uint32_t home = gy_op_rank(p->s, op);
    bool crosses = false;
    for (uint32_t k = 0; k < op->uses; k++) {
        uint32_t rank = gy_part_rank(p->part, p->s, op, k);
        crosses = crosses || rank != home;
        if (rank != home)
            p->grouped[rank].key = id + 1;
    }
    if (crosses)
        p->grouped[home].key = id + 1;
}
