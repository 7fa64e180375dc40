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
    uint32_t *row_first, *row; /* ops + 1: rows of the sync table by `to` */
    uint32_t *last;            /* per lane: its last op so far, or GY_NONE */
    uint32_t *step;            /* per op: its step, or GY_NONE */
    uint32_t *behind; /* per op and queue: 1 + the last step that has ended when the op has; of ops of others */
    uint32_t *known;  /* per queue and queue: the same for what the first has waited for */
    uint32_t *now;    /* per queue: for the current op */
} cutter;

static bool begin(cutter *c)
{
    size_t ops = c->s->ops.count, queues = c->part->queues;
    c->row_first = gy_calloc(ops + 2, sizeof *c->row_first);
    c->row = gy_calloc(c->s->sync.count + 1, sizeof *c->row);
    c->last = gy_calloc(c->s->lanes.count + 1, sizeof *c->last);
    c->step = gy_calloc(ops + 1, sizeof *c->step);
    c->behind = gy_calloc(ops * queues + 1, sizeof *c->behind);
    c->known = gy_calloc(queues * queues, sizeof *c->known);
    c->now = gy_calloc(queues, sizeof *c->now);
    return c->row_first && c->row && c->last && c->step && c->behind && c->known && c->now;
}

static void end(cutter *c)
{
    gy_free(c->row_first);
    gy_free(c->row);
    gy_free(c->last);
    gy_free(c->step);
    gy_free(c->behind);
    gy_free(c->known);
    gy_free(c->now);
}

static void sort_rows(cutter *c)
{
    const gantry_schedule *s = c->s;
    for (size_t i = 0; i < s->sync.count; i++)
        c->row_first[s->sync.at[i].to + 2] += s->sync.at[i].distance == 0;
    for (size_t op = 2; op < s->ops.count + 2; op++)
        c->row_first[op] += c->row_first[op - 1];
    for (uint32_t i = 0; i < s->sync.count; i++)
        if (s->sync.at[i].distance == 0)
            c->row[c->row_first[s->sync.at[i].to + 1]++] = i;
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

static void find_behind(cutter *c, uint32_t id)
{
    const gy_op *op = &c->s->ops.at[id];
    memset(c->now, 0, c->part->queues * sizeof *c->now);
    for (uint32_t i = c->row_first[id]; i < c->row_first[id + 1]; i++)
        add_behind(c, c->s->sync.at[c->row[i]].from);
    for (uint32_t k = 0; k < op->lanes; k++) {
        uint32_t *last = &c->last[c->s->op_lane.at[op->lane + k]];
        if (*last != GY_NONE)
            add_behind(c, *last);
        *last = id;
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

static bool add_message(cutter *c, gy_part_step *step, uint32_t use, uint32_t from, uint32_t to)
{
    const gy_op *op = &c->s->ops.at[step->op];
    uint32_t rank = c->part->rank;
    if (from == to || (rank != from && rank != to))
        return true;
    gy_message m = { .use = use, .peer = rank == from ? to : from, .sends = rank == from };
    m.bytes = gy_use_bytes(c->s, &c->s->use.at[op->use + use]);
    step->messages++;
    return gy_vec_push(&c->part->message, m);
}

static bool add_messages(cutter *c, gy_part_step *step)
{
    const gantry_schedule *s = c->s;
    const gy_op *op = &s->ops.at[step->op];
    uint32_t home = gy_op_rank(s, op);
    bool ok = true;
    step->message = (uint32_t)c->part->message.count;
    if (gy_op_is_copy(op)) {
        uint32_t from = gy_part_rank(c->part, s, op, 0), to = gy_part_rank(c->part, s, op, 1);
        if (gy_op_has_flag(op))
            ok = add_message(c, step, 2, home, home == from ? to : from);
        return ok && add_message(c, step, 0, from, to);
    }
    for (uint32_t k = 0; k < op->uses && ok; k++) {
        uint32_t rank = gy_part_rank(c->part, s, op, k);
        ok = k < op->ins ? add_message(c, step, k, rank, home) : add_message(c, step, k, home, rank);
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
    step.queue = crosses ? queues - 1 : gy_part_queue(c->part, c->s, op);
    if (!add_waits(c, &step) || (crosses && !add_messages(c, &step)))
        return false;
    c->step[id] = (uint32_t)c->part->step.count;
    return gy_vec_push(&c->part->step, step);
}

gantry_status gy_part_make(gy_part *part, const gantry_schedule *s, uint32_t rank, gy_part_queues by,
                           const uint8_t *own, gantry_error *err)
{
    uint32_t queues = by == GY_PART_BY_LANE ? (uint32_t)s->lanes.count : s->machine->devices;
    *part = (gy_part){ .by = by, .rank = rank, .queues = queues + 1, .own = own };
    cutter c = { .s = s, .part = part };
    bool ok = begin(&c);
    if (ok)
        sort_rows(&c);
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
