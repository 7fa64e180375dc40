/* SPDX-License-Identifier: Apache-2.0 */
/* Copies whose messages go as one (schedule/part.h). All ranks find the same, as they look at the schedule alone. */
#include "schedule/ranks/packs.h"

#include "base/memory.h"

static uint32_t memory_of(const gy_packer *p, const gy_op *op, uint32_t k)
{
    return p->s->instances.at[p->s->use.at[op->use + k].instance].memory;
}

static uint8_t space_of(const gy_packer *p, const gy_op *op, uint32_t k)
{
    return p->s->instances.at[p->s->use.at[op->use + k].instance].space;
}

/* A copy of rows from a rank to another. */
static bool is_plain(const gy_packer *p, const gy_op *op, uint32_t *from, uint32_t *to)
{
    if (!gy_op_is_copy(op) || op->uses != 2 || op->lanes != 1)
        return false;
    uint32_t home = gy_op_rank(p->s, op);
    *from = gy_part_rank(p->part, p->s, op, 0);
    *to = gy_part_rank(p->part, p->s, op, 1);
    return *from != *to && (home == *from || home == *to) && gy_use_bytes(p->s, &p->s->use.at[op->use]) > 0;
}

/* In memory of GPUs at both ends, as what NCCL carries. */
static bool is_between_gpus(const gy_packer *p, const gy_op *op)
{
    bool between = true;
    for (uint32_t k = 0; k < 2; k++)
        between = between && space_of(p, op, k) == GY_SPACE_SLAB && p->gpu[memory_of(p, op, k)];
    return between;
}

/* Do both have ends of the same kind? */
static bool is_alike(const gy_packer *p, uint32_t a, uint32_t b)
{
    const gy_op *one = &p->s->ops.at[a], *other = &p->s->ops.at[b];
    bool alike = true;
    for (uint32_t k = 0; k < 2 && p->gpus; k++)
        alike = alike && memory_of(p, one, k) == memory_of(p, other, k) && space_of(p, one, k) == space_of(p, other, k);
    return alike;
}

/* `early` is `late`, or before it in one of its lanes. */
static bool is_behind(const gy_packer *p, uint32_t early, uint32_t late)
{
    const gy_op *a = &p->s->ops.at[early], *b = &p->s->ops.at[late];
    bool found = early == late;
    for (uint32_t i = 0; i < a->lanes && early < late; i++)
        for (uint32_t k = 0; k < b->lanes; k++)
            found = found || p->s->op_lane.at[a->lane + i] == p->s->op_lane.at[b->lane + k];
    return found;
}

bool gy_packer_has_ended(const gy_packer *p, uint32_t op, uint32_t copy)
{
    bool found = p->before[copy] && is_behind(p, op, p->before[copy] - 1);
    for (uint32_t i = p->rows->first[copy]; i < p->rows->first[copy + 1] && !found; i++)
        found = is_behind(p, op, p->s->sync.at[p->rows->row[i]].from);
    return found;
}

/* The copy may go with the one at the head: nothing that it waits for ends after that one begins. */
static bool is_ready(const gy_packer *p, uint32_t copy, uint32_t head)
{
    uint32_t before = p->before[copy];
    bool ready =
        before == 0 || before - 1 == head || p->head[before - 1] == head || gy_packer_has_ended(p, before - 1, head);
    for (uint32_t i = p->rows->first[copy]; i < p->rows->first[copy + 1] && ready; i++) {
        uint32_t from = p->s->sync.at[p->rows->row[i]].from;
        ready = from == head || p->head[from] == head || gy_packer_has_ended(p, from, head);
    }
    return ready;
}

static void look_for_pack(gy_packer *p, uint32_t id, uint32_t from, uint32_t to)
{
    gy_rank_pack *open = &p->open[(size_t)from * p->ranks + to];
    uint64_t bytes = gy_use_bytes(p->s, &p->s->use.at[p->s->ops.at[id].use]);
    if (bytes > GY_PACK_ONE)
        return;
    if (open->head && open->bytes + bytes <= GY_PACK_ALL && is_alike(p, open->head - 1, id) &&
        is_ready(p, id, open->head - 1)) {
        p->head[id] = open->head - 1;
        open->bytes += bytes;
    } else {
        *open = (gy_rank_pack){ .head = id + 1, .bytes = bytes };
    }
}

/* ---- all ops ---- */

/* False: no memory. */
static bool look_at(gy_packer *p, uint32_t id)
{
    const gy_op *op = &p->s->ops.at[id];
    uint32_t from, to;
    p->head[id] = GY_NONE;
    p->before[id] = op->lanes ? p->last[p->s->op_lane.at[op->lane]] : 0;
    for (uint32_t k = 0; k < op->lanes; k++)
        p->last[p->s->op_lane.at[op->lane + k]] = id + 1;
    bool plain = is_plain(p, op, &from, &to);
    if (plain && p->part->by == GY_PART_BY_LANE && is_between_gpus(p, op))
        return gy_groups_look_for(p, id, from, to);
    if (plain)
        look_for_pack(p, id, from, to);
    gy_groups_pass(p, id);
    return true;
}

static bool begin(gy_packer *p)
{
    const gantry_machine *m = p->s->machine;
    size_t ops = p->s->ops.count, pairs = (size_t)p->ranks * p->ranks;
    p->last = gy_calloc(p->s->lanes.count + 1, sizeof *p->last);
    p->before = gy_calloc(ops + 1, sizeof *p->before);
    p->member = gy_calloc(2 * ops + 1, sizeof *p->member);
    p->group_of = gy_calloc(ops + 1, sizeof *p->group_of);
    p->open = gy_calloc(pairs + 1, sizeof *p->open);
    p->grouped = gy_calloc(p->ranks, sizeof *p->grouped);
    p->gpu = gy_calloc(m->memories + 1, sizeof *p->gpu);
    for (uint32_t i = 0; p->gpu && i < m->devices; i++) {
        p->gpus = p->gpus || m->device[i].gpu;
        p->gpu[m->device[i].memory] = p->gpu[m->device[i].memory] || (m->device[i].gpu && m->device[i].memory);
    }
    return p->last && p->before && p->member && p->group_of && p->open && p->grouped && p->gpu;
}

static void end(gy_packer *p)
{
    gy_free(p->last);
    gy_free(p->before);
    gy_free(p->member);
    gy_free(p->group_of);
    gy_free(p->open);
    gy_free(p->grouped);
    gy_free(p->gpu);
    gy_vec_free(&p->group);
}

bool gy_packs_find(uint32_t *head, uint32_t *before, const gy_part *part, const gantry_schedule *s,
                   const gy_part_rows *rows)
{
    gy_packer p = { .s = s, .part = part, .rows = rows, .head = head, .ranks = gy_machine_ranks(s->machine) };
    bool ok = begin(&p);
    for (uint32_t id = 0; id < s->ops.count && ok; id++)
        ok = look_at(&p, id);
    for (uint32_t id = 0; id < s->ops.count && ok; id++) {
        uint32_t last = p.before[id];
        before[id] = last && p.group_of[id] && p.group_of[id] == p.group_of[last - 1] ? last : 0;
    }
    end(&p);
    return ok;
}
