/* SPDX-License-Identifier: Apache-2.0 */
/* Copies whose messages go as one, or together (schedule/part.h). All ranks find the same, as they look at the schedule
 * alone. */
#include "schedule/ranks/ranks.h"

#include "base/memory.h"

/* The last pack between two ranks: a copy may join it. */
typedef struct pack {
    uint32_t head; /* 1 + the op; 0: there is none */
    uint64_t bytes;
} pack;

/* The last group of two ranks, whose rows go both ways. */
typedef struct group {
    uint32_t head, last; /* 1 + its first and its last op; 0: there is none */
    uint32_t count;
    uint64_t bytes;
    gy_ticks from, to; /* its first start as predicted, and its last */
} group;

typedef struct packer {
    const gantry_schedule *s;
    const gy_part *part;
    const gy_part_rows *rows;
    uint32_t *head;
    uint32_t *last;   /* per lane: 1 + its last op so far */
    uint32_t *before; /* per op of one lane: 1 + the op before it in its lane */
    uint32_t *member; /* per op of a group: 1 + the one that joined it before */
    pack *open;       /* per rank that sends and rank that receives */
    group *group;     /* per two ranks, the lower one first; where queues are lanes */
    uint32_t ranks;
    bool *gpu; /* per memory: that of a GPU */
    bool gpus; /* the machine has some: what goes by NCCL, and what through hosts, is not packed together */
} packer;

static uint32_t memory_of(const packer *p, const gy_op *op, uint32_t k)
{
    return p->s->instances.at[p->s->use.at[op->use + k].instance].memory;
}

static uint8_t space_of(const packer *p, const gy_op *op, uint32_t k)
{
    return p->s->instances.at[p->s->use.at[op->use + k].instance].space;
}

/* A copy of rows from a rank to another. */
static bool is_plain(const packer *p, const gy_op *op, uint32_t *from, uint32_t *to)
{
    if (!gy_op_is_copy(op) || op->uses != 2 || op->lanes != 1)
        return false;
    uint32_t home = gy_op_rank(p->s, op);
    *from = gy_part_rank(p->part, p->s, op, 0);
    *to = gy_part_rank(p->part, p->s, op, 1);
    return *from != *to && (home == *from || home == *to) && gy_use_bytes(p->s, &p->s->use.at[op->use]) > 0;
}

/* In memory of GPUs at both ends, as what NCCL carries. */
static bool is_between_gpus(const packer *p, const gy_op *op)
{
    bool between = true;
    for (uint32_t k = 0; k < 2; k++)
        between = between && space_of(p, op, k) == GY_SPACE_SLAB && p->gpu[memory_of(p, op, k)];
    return between;
}

/* Do both have ends of the same kind? */
static bool is_alike(const packer *p, uint32_t a, uint32_t b)
{
    const gy_op *one = &p->s->ops.at[a], *other = &p->s->ops.at[b];
    bool alike = true;
    for (uint32_t k = 0; k < 2 && p->gpus; k++)
        alike = alike && memory_of(p, one, k) == memory_of(p, other, k) && space_of(p, one, k) == space_of(p, other, k);
    return alike;
}

/* `early` is `late`, or before it in one of its lanes. */
static bool is_behind(const packer *p, uint32_t early, uint32_t late)
{
    const gy_op *a = &p->s->ops.at[early], *b = &p->s->ops.at[late];
    bool found = early == late;
    for (uint32_t i = 0; i < a->lanes && early < late; i++)
        for (uint32_t k = 0; k < b->lanes; k++)
            found = found || p->s->op_lane.at[a->lane + i] == p->s->op_lane.at[b->lane + k];
    return found;
}

/* Has `op` ended when the copy begins? Not all of that is found, but what the copy itself waits for, and before that in
 * the same lanes. */
static bool has_ended(const packer *p, uint32_t op, uint32_t copy)
{
    bool found = p->before[copy] && is_behind(p, op, p->before[copy] - 1);
    for (uint32_t i = p->rows->first[copy]; i < p->rows->first[copy + 1] && !found; i++)
        found = is_behind(p, op, p->s->sync.at[p->rows->row[i]].from);
    return found;
}

/* The copy may go with the one at the head: nothing that it waits for ends after that one begins. */
static bool is_ready(const packer *p, uint32_t copy, uint32_t head)
{
    uint32_t before = p->before[copy];
    bool ready = before == 0 || before - 1 == head || p->head[before - 1] == head || has_ended(p, before - 1, head);
    for (uint32_t i = p->rows->first[copy]; i < p->rows->first[copy + 1] && ready; i++) {
        uint32_t from = p->s->sync.at[p->rows->row[i]].from;
        ready = from == head || p->head[from] == head || has_ended(p, from, head);
    }
    return ready;
}

static void look_for_pack(packer *p, uint32_t id, uint32_t from, uint32_t to)
{
    pack *open = &p->open[(size_t)from * p->ranks + to];
    uint64_t bytes = gy_use_bytes(p->s, &p->s->use.at[p->s->ops.at[id].use]);
    if (bytes > GY_PACK_ONE)
        return;
    if (open->head && open->bytes + bytes <= GY_PACK_ALL && is_alike(p, open->head - 1, id) &&
        is_ready(p, id, open->head - 1)) {
        p->head[id] = open->head - 1;
        open->bytes += bytes;
    } else {
        *open = (pack){ .head = id + 1, .bytes = bytes };
    }
}

/* ---- groups ---- */

/* All that the copy waits for comes before the head in the order of ops, so it may come right behind the head. The
 * lane is but an order, in which members may be beside each other. */
static bool may_follow(const packer *p, uint32_t copy, uint32_t head)
{
    uint32_t before = p->before[copy];
    bool may = before <= head || before - 1 == head || p->head[before - 1] == head;
    for (uint32_t i = p->rows->first[copy]; i < p->rows->first[copy + 1] && may; i++)
        may = p->s->sync.at[p->rows->row[i]].from < head;
    return may;
}

static bool overlap(const packer *p, const gy_use *a, const gy_use *b)
{
    const gy_instance *x = &p->s->instances.at[a->instance], *y = &p->s->instances.at[b->instance];
    uint64_t from = x->offset + gy_instance_offset(p->s, x, a->first);
    uint64_t other = y->offset + gy_instance_offset(p->s, y, b->first);
    return x->memory == y->memory && from < other + gy_use_bytes(p->s, b) && other < from + gy_use_bytes(p->s, a);
}

/* Neither writes what the other reads or writes: they move in any order. */
static bool are_apart(const packer *p, uint32_t a, uint32_t b)
{
    const gy_use *one = &p->s->use.at[p->s->ops.at[a].use], *other = &p->s->use.at[p->s->ops.at[b].use];
    return !overlap(p, &one[1], &other[0]) && !overlap(p, &one[1], &other[1]) && !overlap(p, &one[0], &other[1]);
}

static bool is_apart_from_all(const packer *p, uint32_t copy, const group *g)
{
    bool apart = true;
    for (uint32_t i = g->last; i && apart; i = p->member[i - 1])
        apart = are_apart(p, i - 1, copy);
    return apart;
}

/* All that it waits for has ended anyway when the head begins, or soon: the head waits for it, too. */
static bool is_soon(const packer *p, uint32_t copy, const group *g)
{
    gy_ticks start = p->s->ops.at[copy].start, from = g->from < start ? g->from : start;
    return (g->to > start ? g->to : start) - from <= GY_GROUP_TICKS || is_ready(p, copy, g->head - 1);
}

static void look_for_group(packer *p, uint32_t id, uint32_t from, uint32_t to)
{
    bool up = from < to;
    group *g = &p->group[(size_t)(up ? from : to) * p->ranks + (up ? to : from)];
    gy_ticks start = p->s->ops.at[id].start;
    uint64_t bytes = gy_use_bytes(p->s, &p->s->use.at[p->s->ops.at[id].use]);
    bool joins = g->head && g->count < GY_GROUP_MOST && g->bytes + bytes <= GY_GROUP_ALL &&
                 may_follow(p, id, g->head - 1) && is_soon(p, id, g) && is_apart_from_all(p, id, g);
    if (!joins) {
        *g = (group){ .head = id + 1, .last = id + 1, .count = 1, .bytes = bytes, .from = start, .to = start };
        return;
    }
    p->head[id] = g->head - 1;
    p->member[id] = g->last;
    g->last = id + 1;
    g->count++;
    g->bytes += bytes;
    g->from = g->from < start ? g->from : start;
    g->to = g->to > start ? g->to : start;
}

/* ---- all ops ---- */

static void look_at(packer *p, uint32_t id)
{
    const gy_op *op = &p->s->ops.at[id];
    uint32_t from, to;
    p->head[id] = GY_NONE;
    p->before[id] = op->lanes ? p->last[p->s->op_lane.at[op->lane]] : 0;
    for (uint32_t k = 0; k < op->lanes; k++)
        p->last[p->s->op_lane.at[op->lane + k]] = id + 1;
    if (!is_plain(p, op, &from, &to))
        return;
    if (p->part->by == GY_PART_BY_LANE && is_between_gpus(p, op))
        look_for_group(p, id, from, to);
    else
        look_for_pack(p, id, from, to);
}

static bool begin(packer *p)
{
    const gantry_machine *m = p->s->machine;
    size_t ops = p->s->ops.count, pairs = (size_t)p->ranks * p->ranks;
    p->last = gy_calloc(p->s->lanes.count + 1, sizeof *p->last);
    p->before = gy_calloc(ops + 1, sizeof *p->before);
    p->member = gy_calloc(ops + 1, sizeof *p->member);
    p->open = gy_calloc(pairs + 1, sizeof *p->open);
    p->group = gy_calloc(pairs + 1, sizeof *p->group);
    p->gpu = gy_calloc(m->memories + 1, sizeof *p->gpu);
    for (uint32_t i = 0; p->gpu && i < m->devices; i++) {
        p->gpus = p->gpus || m->device[i].gpu;
        p->gpu[m->device[i].memory] = p->gpu[m->device[i].memory] || (m->device[i].gpu && m->device[i].memory);
    }
    return p->last && p->before && p->member && p->open && p->group && p->gpu;
}

static void end(packer *p)
{
    gy_free(p->last);
    gy_free(p->before);
    gy_free(p->member);
    gy_free(p->open);
    gy_free(p->group);
    gy_free(p->gpu);
}

bool gy_packs_find(uint32_t *head, const gy_part *part, const gantry_schedule *s, const gy_part_rows *rows)
{
    packer p = { .s = s, .part = part, .rows = rows, .head = head, .ranks = gy_machine_ranks(s->machine) };
    bool ok = begin(&p);
    for (uint32_t id = 0; id < s->ops.count && ok; id++)
        look_at(&p, id);
    end(&p);
    return ok;
}
