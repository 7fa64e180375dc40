/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The part of a rank. What must end before an op begins follows from the sync table and from lanes, through ops of all
 * ranks: an op of another rank hands on what it waited for itself. Only the last step of each queue matters, so that
 * this is one number a queue: what ops of other ranks have behind them is kept as such a list of numbers.
 */
#include "schedule/ranks/ranks.h"

#include "base/error.h"
#include "base/memory.h"
#include <string.h>

typedef struct cutter {
    const gantry_schedule *s;
    gy_part *part;
    gy_part_rows rows;
    uint32_t *last;                  /* per lane: its last op so far, or GY_NONE */
    uint32_t *step;                  /* per op: its step, or GY_NONE */
    uint32_t *head, *next;           /* per op: the one that it goes with; the next that goes with that; or GY_NONE */
    uint32_t *joint;                 /* per op of a group: 1 + the one of it before that in its lane; or 0 */
    uint32_t before_from, before_to; /* of the op at hand, of whatever ranks: the last message */
    uint64_t before_bytes;           /* of it and those that are one with it; 0: nothing may be packed with it */
    uint32_t *behind; /* per op and queue: 1 + the last step that has ended when the op has; of ops of others */
    uint32_t *known;  /* per queue and queue: the same for what the first has waited for */
    uint32_t *now;    /* per queue: for the current op */
} cutter;

static bool begin(cutter *c)
{
    size_t ops = c->s->ops.count, queues = c->part->queues;
    c->rows.first = gy_calloc(ops + 2, sizeof *c->rows.first);
    c->rows.row = gy_calloc(c->s->sync.count + 1, sizeof *c->rows.row);
    c->last = gy_calloc(c->s->lanes.count + 1, sizeof *c->last);
    c->step = gy_calloc(ops + 1, sizeof *c->step);
    c->head = gy_calloc(ops + 1, sizeof *c->head);
    c->next = gy_calloc(ops + 1, sizeof *c->next);
    c->joint = gy_calloc(ops + 1, sizeof *c->joint);
    c->behind = gy_calloc(ops * queues + 1, sizeof *c->behind);
    c->known = gy_calloc(queues * queues, sizeof *c->known);
    c->now = gy_calloc(queues, sizeof *c->now);
    return c->rows.first && c->rows.row && c->last && c->step && c->head && c->next && c->joint && c->behind &&
           c->known && c->now;
}

static void end(cutter *c)
{
    gy_free(c->rows.first);
    gy_free(c->rows.row);
    gy_free(c->last);
    gy_free(c->step);
    gy_free(c->head);
    gy_free(c->next);
    gy_free(c->joint);
    gy_free(c->behind);
    gy_free(c->known);
    gy_free(c->now);
}

static void sort_rows(cutter *c)
{
    const gantry_schedule *s = c->s;
    for (size_t i = 0; i < s->sync.count; i++)
        c->rows.first[s->sync.at[i].to + 2] += s->sync.at[i].distance == 0;
    for (size_t op = 2; op < s->ops.count + 2; op++)
        c->rows.first[op] += c->rows.first[op - 1];
    for (uint32_t i = 0; i < s->sync.count; i++)
        if (s->sync.at[i].distance == 0)
            c->rows.row[c->rows.first[s->sync.at[i].to + 1]++] = i;
    for (size_t l = 0; l < s->lanes.count; l++)
        c->last[l] = GY_NONE;
}

/* ---- what an op waits for ---- */

static void add_behind(cutter *c, uint32_t op)
{
    uint32_t queues = c->part->queues, step = c->step[op];
    if (step != GY_NONE) {
        uint32_t *to = &c->now[c->part->step.at[step].queue];
        *to = step + 1 > *to ? step + 1 : *to;
        return;
    }
    const uint32_t *behind = &c->behind[(size_t)op * queues];
    for (uint32_t q = 0; q < queues; q++)
        c->now[q] = behind[q] > c->now[q] ? behind[q] : c->now[q];
}

/* Adds all that the op waits for, up to the one that it goes with, `id`: it waits for nothing later. */
static void add_all_behind(cutter *c, uint32_t op, uint32_t id)
{
    const gy_op *o = &c->s->ops.at[op];
    for (uint32_t i = c->rows.first[op]; i < c->rows.first[op + 1]; i++)
        if (c->s->sync.at[c->rows.row[i]].from < id)
            add_behind(c, c->s->sync.at[c->rows.row[i]].from);
    for (uint32_t k = 0; k < o->lanes; k++) {
        uint32_t last = c->last[c->s->op_lane.at[o->lane + k]];
        if (last != GY_NONE && last < id)
            add_behind(c, last);
    }
}

static void find_behind(cutter *c, uint32_t id)
{
    const gy_op *op = &c->s->ops.at[id];
    memset(c->now, 0, c->part->queues * sizeof *c->now);
    add_all_behind(c, id, id);
    /* A copy of a group may be behind another of it in its lane, whose rows need not come here. */
    for (uint32_t of = id; of != GY_NONE && c->head[id] == GY_NONE; of = c->next[of]) {
        add_all_behind(c, of, id);
        for (uint32_t other = c->joint[of]; other; other = c->joint[other - 1])
            add_all_behind(c, other - 1, id);
    }
    for (uint32_t k = 0; k < op->lanes; k++)
        c->last[c->s->op_lane.at[op->lane + k]] = id;
}

/* Where both ends of a copy are: rows between the same two ranks, the same way, are together in a step. Those of its
 * own op come first. */
static uint64_t pair_of(const cutter *c, uint32_t op, uint32_t head)
{
    const gy_op *one = &c->s->ops.at[op], *first = &c->s->ops.at[head];
    uint32_t from = gy_part_rank(c->part, c->s, one, 0), to = gy_part_rank(c->part, c->s, one, 1);
    bool same = from == gy_part_rank(c->part, c->s, first, 0) && to == gy_part_rank(c->part, c->s, first, 1);
    return same ? 0 : 1 + ((uint64_t)from << 32 | to);
}

/* Each list is in the order of pairs, and of ops between two ranks: what one of them sends is in the order in which the
 * other receives. */
static void link_packs(cutter *c)
{
    for (uint32_t op = 0; op < c->s->ops.count; op++)
        c->next[op] = GY_NONE;
    for (uint32_t op = (uint32_t)c->s->ops.count; op-- > 0;) {
        uint32_t head = c->head[op], at = head;
        if (head == GY_NONE)
            continue;
        while (c->next[at] != GY_NONE && pair_of(c, c->next[at], head) < pair_of(c, op, head))
            at = c->next[at];
        c->next[op] = c->next[at];
        c->next[at] = op;
    }
}

static bool add_waits(cutter *c, gy_part_step *step)
{
    uint32_t *known = &c->known[(size_t)step->queue * c->part->queues];
    step->wait = (uint32_t)c->part->wait.count;
    for (uint32_t q = 0; q < c->part->queues; q++) {
        if (q == step->queue || c->now[q] <= known[q])
            continue;
        known[q] = c->now[q];
        if (!gy_vec_push(&c->part->wait, c->now[q] - 1))
            return false;
        step->waits++;
    }
    return true;
}

/* ---- what it sends and receives ---- */

/* The message is one with that before it. In a step those between two ranks, one way, follow each other, so both of
 * them see the same. */
static bool is_packed(cutter *c, const gy_message *m, uint32_t from, uint32_t to)
{
    const gy_op *op = &c->s->ops.at[m->op];
    bool copy = gy_op_is_copy(op), small = m->bytes > 0 && m->bytes <= GY_PACK_ONE;
    bool may = copy ? !gy_op_has_flag(op) : op->kind == GY_OP_COLLECTIVE && c->part->by == GY_PART_BY_DEVICE;
    bool packed = may && small && c->before_bytes && c->before_from == from && c->before_to == to &&
                  c->before_bytes + m->bytes <= GY_PACK_ALL;
    c->before_bytes = small ? m->bytes + (packed ? c->before_bytes : 0) : 0;
    c->before_from = from;
    c->before_to = to;
    return packed;
}

static bool add_message(cutter *c, gy_part_step *step, uint32_t id, uint32_t use, uint32_t from, uint32_t to)
{
    uint32_t rank = c->part->rank;
    gy_message m = { .op = id, .use = use, .peer = rank == from ? to : from, .sends = rank == from };
    if (from == to)
        return true;
    m.bytes = gy_use_bytes(c->s, &c->s->use.at[c->s->ops.at[id].use + use]);
    m.packed = is_packed(c, &m, from, to);
    if (rank != from && rank != to)
        return true;
    step->messages++;
    return gy_vec_push(&c->part->message, m);
}

/* The rows of a copy. */
static bool add_rows(cutter *c, gy_part_step *step, uint32_t id)
{
    const gy_op *op = &c->s->ops.at[id];
    return add_message(c, step, id, 0, gy_part_rank(c->part, c->s, op, 0), gy_part_rank(c->part, c->s, op, 1));
}

/* The flag of a copy, its rows, and those of all that goes with it. */
static bool add_copies(cutter *c, gy_part_step *step)
{
    const gantry_schedule *s = c->s;
    const gy_op *op = &s->ops.at[step->op];
    uint32_t home = gy_op_rank(s, op), from = gy_part_rank(c->part, s, op, 0), to = gy_part_rank(c->part, s, op, 1);
    bool ok = !gy_op_has_flag(op) || add_message(c, step, step->op, 2, home, home == from ? to : from);
    for (uint32_t id = step->op; id != GY_NONE && ok; id = c->next[id])
        ok = add_rows(c, step, id);
    return ok;
}

static bool add_messages(cutter *c, gy_part_step *step)
{
    const gantry_schedule *s = c->s;
    const gy_op *op = &s->ops.at[step->op];
    uint32_t home = gy_op_rank(s, op);
    bool ok = true;
    step->message = (uint32_t)c->part->message.count;
    c->before_bytes = 0;
    if (gy_op_is_copy(op))
        return step->packed || add_copies(c, step);
    for (uint32_t k = 0; k < op->uses && ok; k++) {
        uint32_t rank = gy_part_rank(c->part, s, op, k);
        ok = add_message(c, step, step->op, k, k < op->ins ? rank : home, k < op->ins ? home : rank);
    }
    return ok;
}

/* ---- steps ---- */

/* *crosses: more than one rank has it. */
static bool is_mine(const cutter *c, const gy_op *op, bool *crosses)
{
    uint32_t home = gy_op_rank(c->s, op), rank = c->part->rank;
    bool mine = home == rank;
    *crosses = false;
    for (uint32_t k = 0; k < op->uses; k++) {
        uint32_t at = gy_part_rank(c->part, c->s, op, k);
        mine = mine || at == rank;
        *crosses = *crosses || at != home;
    }
    return mine;
}

static uint32_t network_queue(const cutter *c, const gy_op *op)
{
    const gy_part *p = c->part;
    if (p->by == GY_PART_BY_LANE || !gy_op_is_copy(op) || gy_op_has_flag(op))
        return p->network;
    uint32_t from = gy_part_rank(p, c->s, op, 0), to = gy_part_rank(p, c->s, op, 1);
    if (from == to || (p->rank != from && p->rank != to))
        return p->network;
    return p->rank == from ? gy_part_sends_to(p, to) : gy_part_receives_from(p, from);
}

static bool add_op(cutter *c, uint32_t id)
{
    const gy_op *op = &c->s->ops.at[id];
    uint32_t queues = c->part->queues;
    bool crosses, mine = is_mine(c, op, &crosses);
    find_behind(c, id);
    c->step[id] = GY_NONE;
    if (!mine) {
        memcpy(&c->behind[(size_t)id * queues], c->now, queues * sizeof *c->now);
        return true;
    }
    gy_part_step step = { .op = id, .runs = gy_op_rank(c->s, op) == c->part->rank };
    step.packed = c->head[id] != GY_NONE;
    step.queue = crosses ? network_queue(c, op) : gy_part_queue(c->part, c->s, op);
    if (!add_waits(c, &step) || (crosses && !add_messages(c, &step)))
        return false;
    c->step[id] = (uint32_t)c->part->step.count;
    return gy_vec_push(&c->part->step, step);
}

gantry_status gy_part_make(gy_part *part, const gantry_schedule *s, uint32_t rank, gy_part_queues by,
                           const uint8_t *own, gantry_error *err)
{
    uint32_t queues = by == GY_PART_BY_LANE ? (uint32_t)s->lanes.count : s->machine->devices;
    *part = (gy_part){ .by = by, .rank = rank, .queues = queues, .network = queues, .own = own };
    part->queues += gy_part_network_queues(by, gy_machine_ranks(s->machine));
    cutter c = { .s = s, .part = part };
    bool ok = begin(&c);
    if (ok)
        sort_rows(&c);
    ok = ok && gy_packs_find(c.head, c.joint, part, s, &c.rows);
    if (ok)
        link_packs(&c);
    for (uint32_t id = 0; id < s->ops.count && ok; id++)
        ok = add_op(&c, id);
    end(&c);
    return ok ? GANTRY_OK : gy_fail_nomem(err);
}

void gy_part_free(gy_part *part)
{
    gy_vec_free(&part->step);
    gy_vec_free(&part->message);
    gy_vec_free(&part->wait);
}
