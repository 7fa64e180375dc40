/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Rule ranks: do the parts of all ranks carry the schedule out together?
 *
 * Messages. Steps of a queue are in the order of ops, and wait for earlier ones only; so a rank may do all of them in
 * that order. That all ranks come to their ends then, and what each message is: check_messages.c.
 *
 * Packs and groups. A copy may give its messages to a step of an earlier copy. In a pack both ranks have the same ones
 * there, which are one message. Where queues are lanes they are a group, of any ways and peers, and each rank has it at
 * a step of its own. On each rank all that has to end before a copy begins has ended when the step begins that moves
 * its rows, or is moved by that step, too; and none of a step writes what another reads or writes, so that they may
 * move in any order.
 *
 * No race. What is in the memory of a rank is touched by steps of that rank only. Of any two such ops, one ends before
 * the other begins if the clocks of the schedule say so; here it is seen that then the steps do so, too.
 */
#include "schedule/check/parts.h"

#include "base/error.h"
#include "base/memory.h"

gantry_status gy_parts_stuck(const gy_fitting *f, uint32_t op, const char *what, uint32_t rank)
{
    return gy_breach(f->err, "ranks", "ops", op, "%s %s on rank %u", gy_label_op(f->s, op).at, what, rank);
}

static const gy_part_step *step_at(const gy_fitting *f, uint32_t rank, uint32_t op)
{
    const gy_part *p = &f->part[rank];
    const gy_part_step *step = f->at[rank] < p->step.count ? &p->step.at[f->at[rank]] : NULL;
    return step && step->op == op ? step : NULL;
}

/* ---- who does what ---- */

uint32_t gy_parts_rank(const gy_fitting *f, const gy_op *op, uint32_t k)
{
    const gy_instance *in = &f->s->instances.at[f->s->use.at[op->use + k].instance];
    const uint8_t *own = f->part[0].own;
    bool input = in->space == GY_SPACE_INPUT, bound = input || in->space == GY_SPACE_OUTPUT;
    if (!bound) /* its value may be rows that are packed, and no buffer */
        return f->s->machine->memory[in->memory].rank;
    if (in->memory != 0 && (!f->s->graph || f->s->graph->buffers.at[in->value].external))
        return f->s->machine->memory[in->memory].rank;
    bool edge = own && own[in->value] & (input ? GY_OWN_INPUT : GY_OWN_OUTPUT);
    return edge ? gy_device_rank(f->s->machine, gy_op_device(f->s, op, 0)) : 0;
}

static bool touches(const gy_fitting *f, const gy_op *op, uint32_t rank)
{
    for (uint32_t k = 0; k < op->uses; k++)
        if (gy_parts_rank(f, op, k) == rank)
            return true;
    return gy_op_rank(f->s, op) == rank;
}

static bool crosses(const gy_fitting *f, const gy_op *op)
{
    for (uint32_t k = 0; k < op->uses; k++)
        if (gy_parts_rank(f, op, k) != gy_op_rank(f->s, op))
            return true;
    return false;
}

/* Of an op that crosses, on one of its ranks: rows of a copy without a flag are in the queue of their way, so each
 * other rank has the same messages in the queue that meets this one. */
static uint32_t network_queue(const gy_fitting *f, const gy_op *op, uint32_t rank)
{
    const gy_part *p = &f->part[rank];
    if (p->by == GY_PART_BY_LANE || !gy_op_is_copy(op) || gy_op_has_flag(op))
        return p->network;
    uint32_t from = gy_parts_rank(f, op, 0), to = gy_parts_rank(f, op, 1);
    if (from == to || (rank != from && rank != to))
        return p->network;
    return rank == from ? p->network + 1 + 2 * to : p->network + 2 + 2 * from;
}

/* The ranks that have it, who runs it, and in which queue. */
static gantry_status check_step(const gy_fitting *f, uint32_t id, uint32_t rank)
{
    const gy_op *op = &f->s->ops.at[id];
    const gy_part_step *step = step_at(f, rank, id);
    if (!step != !touches(f, op, rank))
        return gy_parts_stuck(f, id, step ? "is done, though it touches no memory," : "is not done", rank);
    if (!step)
        return GANTRY_OK;
    uint32_t queue = crosses(f, op) ? network_queue(f, op, rank) : gy_part_queue(&f->part[rank], f->s, op);
    if (step->runs != (gy_op_rank(f->s, op) == rank))
        return gy_parts_stuck(
            f, id, step->runs ? "is run, though its device is not," : "is not run, though its device is", rank);
    if (step->queue != queue)
        return gy_parts_stuck(f, id, "is in the wrong queue", rank);
    if (step->packed && (step->messages || step->waits))
        return gy_parts_stuck(f, id, "is left to a step that does not carry it", rank);
    for (uint32_t i = 0; i < step->waits; i++)
        if (f->part[rank].wait.at[step->wait + i] >= f->at[rank])
            return gy_parts_stuck(f, id, "waits for a later step", rank);
    return GANTRY_OK;
}

/* ---- copies that move together ---- */

/* The step that moves the rows of the op; of a copy that is packed, an earlier one. */
static uint32_t moved_by(const gy_fitting *f, uint32_t id, uint32_t rank, uint32_t step)
{
    const gy_op *op = &f->s->ops.at[id];
    bool end = gy_op_is_copy(op) && (gy_parts_rank(f, op, 0) == rank || gy_parts_rank(f, op, 1) == rank);
    uint32_t carrier = end ? f->carrier[2 * (size_t)id + (gy_parts_rank(f, op, 0) != rank)] : 0;
    return carrier ? carrier - 1 : step;
}

/* It is left to another step if that carries it. */
static gantry_status check_carrier(const gy_fitting *f, uint32_t id, uint32_t rank)
{
    const gy_part_step *step = step_at(f, rank, id);
    if (step && step->packed != (moved_by(f, id, rank, f->at[rank]) != f->at[rank]))
        return gy_parts_stuck(f, id, step->packed ? "is left to a step that does not carry it" : "is done twice", rank);
    return GANTRY_OK;
}

/* Both uses touch some of the same bytes. */
static bool share_bytes(const gantry_schedule *s, const gy_use *a, const gy_use *b)
{
    const gy_instance *x = &s->instances.at[a->instance], *y = &s->instances.at[b->instance];
    if (x->memory != y->memory || x->space != y->space || (x->space != GY_SPACE_SLAB && x->value != y->value))
        return false;
    uint64_t begin = x->offset + gy_instance_offset(s, x, a->first), other = y->offset;
    other += gy_instance_offset(s, y, b->first);
    return begin < other ? begin + gy_use_bytes(s, a) > other : other + gy_use_bytes(s, b) > begin;
}

/* Copies of one step move in any order. */
static gantry_status check_apart(const gy_fitting *f, uint32_t id, uint32_t rank)
{
    const gy_part_step *step = step_at(f, rank, id);
    const gy_message *m = step ? &f->part[rank].message.at[step->message] : NULL;
    for (uint32_t i = 1; step && gy_op_is_copy(&f->s->ops.at[id]) && i < step->messages; i++)
        for (uint32_t k = 0; k < i; k++) {
            const gy_use *a = &f->s->use.at[f->s->ops.at[m[i].op].use], *b = &f->s->use.at[f->s->ops.at[m[k].op].use];
            if (m[i].op != m[k].op &&
                (share_bytes(f->s, &a[0], &b[1]) || share_bytes(f->s, &a[1], &b[0]) || share_bytes(f->s, &a[1], &b[1])))
                return gy_parts_stuck(f, id, "moves rows together of which some are those of another", rank);
        }
    return GANTRY_OK;
}

/* ---- what ends before what ---- */

static uint32_t *row_of(const gy_fitting *f, uint32_t rank, uint32_t step)
{
    return &f->clock[(f->first[rank] + step) * f->part[rank].queues];
}

static void join(uint32_t *to, const uint32_t *from, uint32_t queues)
{
    for (uint32_t q = 0; q < queues; q++)
        to[q] = from[q] > to[q] ? from[q] : to[q];
}

/* The step knows what its queue and those that it waits for know. `ended`: per rank and queue, 1 + its last step. */
static void advance(gy_fitting *f, uint32_t rank)
{
    const gy_part *p = &f->part[rank];
    uint32_t at = f->at[rank], queues = p->queues, *row = row_of(f, rank, at);
    const gy_part_step *step = &p->step.at[at];
    uint32_t *last = &f->ended[(size_t)rank * queues + step->queue];
    if (*last)
        join(row, row_of(f, rank, *last - 1), queues);
    for (uint32_t i = 0; i < step->waits; i++)
        join(row, row_of(f, rank, p->wait.at[step->wait + i]), queues);
    row[step->queue] = *last = at + 1;
}

/* Of each lane, the last op of the rank that ends before the current one begins. */
static gantry_status check_before(const gy_fitting *f, uint32_t id, uint32_t rank)
{
    const gy_part *p = &f->part[rank];
    uint32_t mover = moved_by(f, id, rank, f->at[rank]);
    const uint32_t *row = row_of(f, rank, mover);
    size_t entries = f->s->op_lane.count;
    for (uint32_t lane = 0; lane < f->s->lanes.count; lane++) {
        uint32_t count = gy_clocks_count(&f->clocks, lane), first = f->lane_first[lane];
        while (count && f->op_of[f->lane_entry[first + count - 1]] >= id)
            count--;
        uint32_t latest = count ? f->latest[rank * entries + f->lane_entry[first + count - 1]] : 0;
        if (latest && row[p->step.at[latest - 1].queue] < latest &&
            moved_by(f, p->step.at[latest - 1].op, rank, latest - 1) != mover)
            return gy_breach(f->err, "ranks", "ops", id, "%s does not wait on rank %u for %s, which ends before it",
                             gy_label_op(f->s, id).at, rank, gy_label_op(f->s, p->step.at[latest - 1].op).at);
    }
    return GANTRY_OK;
}

/* Notes the op as the latest of its lanes, for ranks that have it. */
static void note_latest(gy_fitting *f, uint32_t id, uint32_t *seen)
{
    const gy_op *op = &f->s->ops.at[id];
    size_t entries = f->s->op_lane.count;
    for (uint32_t k = 0; k < op->lanes; k++) {
        uint32_t entry = op->lane + k, lane = f->s->op_lane.at[entry];
        for (uint32_t rank = 0; rank < f->ranks; rank++) {
            uint32_t before =
                seen[lane] ? f->latest[rank * entries + f->lane_entry[f->lane_first[lane] + seen[lane] - 1]] : 0;
            f->latest[rank * entries + entry] = step_at(f, rank, id) ? f->at[rank] + 1 : before;
        }
        seen[lane]++;
    }
}

/* ---- all ops ---- */

/* Which steps each rank has. */
static gantry_status check_steps(gy_fitting *f)
{
    gantry_status status = GANTRY_OK;
    for (uint32_t id = 0; id < f->s->ops.count; id++)
        for (uint32_t rank = 0; rank < f->ranks && !status; rank++) {
            status = check_step(f, id, rank);
            f->at[rank] += !status && step_at(f, rank, id);
        }
    for (uint32_t rank = 0; rank < f->ranks && !status; rank++)
        if (f->at[rank] < f->part[rank].step.count)
            status =
                gy_fail(f->err, GANTRY_E_SCHEDULE, "/ops", "rule ranks: rank %u has %zu steps, of which %u are ops",
                        rank, f->part[rank].step.count, f->at[rank]);
    return status;
}

static gantry_status check_op(gy_fitting *f, uint32_t id, uint32_t *seen)
{
    gantry_status status = GANTRY_OK;
    if (!gy_clocks_step(&f->clocks, 0, id))
        return gy_fail_nomem(f->err);
    for (uint32_t rank = 0; rank < f->ranks && !status; rank++)
        if (step_at(f, rank, id)) {
            advance(f, rank);
            status = check_carrier(f, id, rank);
            status = status ? status : check_apart(f, id, rank);
            status = status ? status : check_before(f, id, rank);
        }
    if (status)
        return status;
    note_latest(f, id, seen);
    for (uint32_t rank = 0; rank < f->ranks; rank++)
        f->at[rank] += step_at(f, rank, id) != NULL;
    return GANTRY_OK;
}

static gantry_status check_order(gy_fitting *f, uint32_t *seen)
{
    gantry_status status = GANTRY_OK;
    for (uint32_t rank = 0; rank < f->ranks; rank++)
        f->at[rank] = 0;
    for (uint32_t id = 0; id < f->s->ops.count && !status; id++)
        status = check_op(f, id, seen);
    return status;
}

/* `seen`: of each lane, how many entries have been listed; all 0 before and after. */
static void list_entries(gy_fitting *f, uint32_t *seen)
{
    for (uint32_t id = 0; id < f->s->ops.count; id++)
        for (uint32_t k = 0; k < f->s->ops.at[id].lanes; k++) {
            uint32_t entry = f->s->ops.at[id].lane + k, lane = f->s->op_lane.at[entry];
            f->lane_entry[f->lane_first[lane] + seen[lane]++] = entry;
        }
    for (size_t l = 0; l < f->s->lanes.count; l++)
        seen[l] = 0;
}

static bool begin(gy_fitting *f, uint32_t **seen)
{
    const gantry_schedule *s = f->s;
    size_t lanes = s->lanes.count, entries = s->op_lane.count, queues = f->part[0].queues, rows = 0;
    f->first = gy_calloc(f->ranks, sizeof *f->first);
    for (uint32_t i = 0; f->first && i < f->ranks; i++) {
        f->first[i] = rows;
        rows += f->part[i].step.count;
    }
    f->at = gy_calloc(f->ranks, sizeof *f->at);
    f->ended = gy_calloc(f->ranks * queues, sizeof *f->ended);
    f->clock = gy_calloc(rows * queues + 1, sizeof *f->clock);
    f->lane_first = gy_calloc(lanes + 2, sizeof *f->lane_first);
    f->lane_entry = gy_calloc(entries + 1, sizeof *f->lane_entry);
    f->op_of = gy_calloc(entries + 1, sizeof *f->op_of);
    f->latest = gy_calloc(f->ranks * entries + 1, sizeof *f->latest);
    f->carrier = gy_calloc(2 * s->ops.count + 1, sizeof *f->carrier);
    *seen = gy_calloc(lanes + 1, sizeof **seen);
    if (!f->first || !f->at || !f->ended || !f->clock || !f->lane_first || !f->lane_entry || !f->op_of || !f->latest ||
        !f->carrier || !*seen)
        return false;
    for (uint32_t id = 0; id < s->ops.count; id++)
        for (uint32_t k = 0; k < s->ops.at[id].lanes; k++) {
            f->op_of[s->ops.at[id].lane + k] = id;
            f->lane_first[s->op_lane.at[s->ops.at[id].lane + k] + 1]++;
        }
    for (size_t l = 0; l < lanes; l++)
        f->lane_first[l + 1] += f->lane_first[l];
    list_entries(f, *seen);
    return true;
}

static void end(gy_fitting *f, uint32_t *seen)
{
    gy_free(f->first);
    gy_free(f->at);
    gy_free(f->ended);
    gy_free(f->clock);
    gy_free(f->lane_first);
    gy_free(f->lane_entry);
    gy_free(f->op_of);
    gy_free(f->latest);
    gy_free(f->carrier);
    gy_free(seen);
    gy_clocks_free(&f->clocks);
}

gantry_status gy_parts_verify(const gantry_schedule *s, const gy_part *part, uint32_t ranks, gantry_error *err)
{
    gy_fitting f = { .s = s, .part = part, .ranks = ranks, .err = err };
    uint32_t *seen = NULL;
    gantry_status status = begin(&f, &seen) ? gy_clocks_init(&f.clocks, s, err) : gy_fail_nomem(err);
    for (uint32_t rank = 1; rank < ranks && !status; rank++)
        if (part[rank].own != part[0].own)
            status = gy_fail(err, GANTRY_E_SCHEDULE, "/ops", "rule ranks: rank %u has other arrays itself than rank 0",
                             rank);
    if (!status && part[0].own)
        status = gy_own_verify(s, part[0].own, err);
    status = status ? status : check_steps(&f);
    status = status ? status : gy_parts_exchange(&f);
    status = status ? status : check_order(&f, seen);
    end(&f, seen);
    return status;
}
