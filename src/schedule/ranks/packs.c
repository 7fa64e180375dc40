/* SPDX-License-Identifier: Apache-2.0 */
/* Copies whose messages go as one (schedule/part.h). All ranks find the same, as they look at the schedule alone. */
#include "schedule/ranks/ranks.h"

#include "base/memory.h"

/* The last pack between two ranks: a copy may join it. */
typedef struct pack {
    uint32_t head; /* 1 + the op; 0: there is none */
    uint64_t bytes;
} pack;

typedef struct packer {
    const gantry_schedule *s;
    const gy_part *part;
    const gy_part_rows *rows;
    uint32_t *head;
    uint32_t *last;   /* per lane: 1 + its last op so far */
    uint32_t *before; /* per op of one lane: 1 + the op before it in its lane */
    pack *open;       /* per rank that sends and rank that receives */
    uint32_t ranks;
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

static bool may_pack(const packer *p, const gy_op *op, uint32_t *from, uint32_t *to)
{
    if (!gy_op_is_copy(op) || op->uses != 2 || op->lanes != 1)
        return false;
    uint32_t home = gy_op_rank(p->s, op);
    *from = gy_part_rank(p->part, p->s, op, 0);
    *to = gy_part_rank(p->part, p->s, op, 1);
    uint64_t bytes = gy_use_bytes(p->s, &p->s->use.at[op->use]);
    return *from != *to && (home == *from || home == *to) && bytes > 0 && bytes <= GY_PACK_ONE;
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

static void look_at(packer *p, uint32_t id)
{
    const gy_op *op = &p->s->ops.at[id];
    uint32_t from, to;
    p->head[id] = GY_NONE;
    p->before[id] = op->lanes ? p->last[p->s->op_lane.at[op->lane]] : 0;
    for (uint32_t k = 0; k < op->lanes; k++)
        p->last[p->s->op_lane.at[op->lane + k]] = id + 1;
    if (!may_pack(p, op, &from, &to))
        return;
    pack *open = &p->open[(size_t)from * p->ranks + to];
    uint64_t bytes = gy_use_bytes(p->s, &p->s->use.at[op->use]);
    if (open->head && open->bytes + bytes <= GY_PACK_ALL && is_alike(p, open->head - 1, id) &&
        is_ready(p, id, open->head - 1)) {
        p->head[id] = open->head - 1;
        open->bytes += bytes;
    } else {
        *open = (pack){ .head = id + 1, .bytes = bytes };
    }
}

bool gy_packs_find(uint32_t *head, const gy_part *part, const gantry_schedule *s, const gy_part_rows *rows)
{
    packer p = { .s = s, .part = part, .rows = rows, .head = head, .ranks = gy_machine_ranks(s->machine) };
    for (uint32_t i = 0; i < s->machine->devices; i++)
        p.gpus = p.gpus || s->machine->device[i].gpu;
    p.last = gy_calloc(s->lanes.count + 1, sizeof *p.last);
    p.before = gy_calloc(s->ops.count + 1, sizeof *p.before);
    p.open = gy_calloc((size_t)p.ranks * p.ranks + 1, sizeof *p.open);
    bool ok = p.last && p.before && p.open;
    for (uint32_t id = 0; id < s->ops.count && ok; id++)
        look_at(&p, id);
    gy_free(p.last);
    gy_free(p.before);
    gy_free(p.open);
    return ok;
}
