/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Rule ranks: do the parts of all ranks carry the schedule out together?
 *
 * No deadlock. Steps of a queue are in the order of ops, and wait for earlier ones only. Take the first op in the total
 * order of which some rank's step has not ended: all that its steps wait for has, and all its ranks have come to it. So
 * they end if the messages of that one op do, with each send waiting for its receive; that is tried here, op by op. A
 * send that need not wait only lets more happen. Each message is of queues that meet, which its op alone says; with
 * those between two ranks in the order of ops on both sides, each receive gets what was sent for it.
 *
 * Packs. A copy may give its messages to a step of an earlier copy, with which they are one message. Both ranks have
 * the same ones there, in the same order. On each of them all that has to end before the later copy begins has ended
 * when the earlier one begins, or is packed with it; so its rows may move that early. Where queues are lanes, messages
 * of one step need not be one: they are a group, also of both ways. All that may end before one of them begins, has
 * ended when their step begins, or is of the step; and none of them writes what another reads or writes, so that they
 * may move in any order.
 *
 * No race. What is in the memory of a rank is touched by steps of that rank only. Of any two such ops, one ends before
 * the other begins if the clocks of the schedule say so; here it is seen that then the steps do so, too.
 */
#include "base/error.h"
#include "base/memory.h"
#include "schedule/check/check.h"
#include "schedule/part.h"

typedef struct fitting {
    const gantry_schedule *s;
    const gy_part *part;
    uint32_t ranks;
    gantry_error *err;
    uint32_t *at;      /* per rank: its next step */
    uint32_t *message; /* per rank: the next message of that step */
    uint32_t *ended;   /* per rank: the place of its rows in `clock` */
    uint32_t *clock;   /* per step of all ranks and queue: 1 + the last step that has ended when this one has */
    size_t *first;     /* per rank: its first row of `clock` */
    uint32_t *lane_first, *lane_entry; /* per lane: its entries of op_lane, in the order of ops */
    uint32_t *op_of;                   /* per entry of op_lane */
    uint32_t *latest; /* per rank and entry: 1 + the latest step of that lane up to it; 0: the rank has none */
    uint32_t *packed; /* per op: the op whose step carries its message; GY_NONE: its own does */
    uint32_t *early;  /* per op that is packed: that step on the rank that sends, and on the one that receives */
    gy_clocks clocks;
} fitting;

static gantry_status stuck(const fitting *f, uint32_t op, const char *what, uint32_t rank)
{
    return gy_breach(f->err, "ranks", "ops", op, "%s %s on rank %u", gy_label_op(f->s, op).at, what, rank);
}

static const gy_part_step *step_at(const fitting *f, uint32_t rank, uint32_t op)
{
    const gy_part *p = &f->part[rank];
    const gy_part_step *step = f->at[rank] < p->step.count ? &p->step.at[f->at[rank]] : NULL;
    return step && step->op == op ? step : NULL;
}

/* ---- who does what ---- */

/* The rank that has what a use touches: that of its memory, but of arrays that each rank has itself. */
static uint32_t rank_of(const fitting *f, const gy_op *op, uint32_t k)
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

static bool touches(const fitting *f, const gy_op *op, uint32_t rank)
{
    for (uint32_t k = 0; k < op->uses; k++)
        if (rank_of(f, op, k) == rank)
            return true;
    return gy_op_rank(f->s, op) == rank;
}

static bool crosses(const fitting *f, const gy_op *op)
{
    for (uint32_t k = 0; k < op->uses; k++)
        if (rank_of(f, op, k) != gy_op_rank(f->s, op))
            return true;
    return false;
}

/* Of an op that crosses, on one of its ranks: rows of a copy without a flag are in the queue of their way, so each
 * other rank has the same messages in the queue that meets this one. */
static uint32_t network_queue(const fitting *f, const gy_op *op, uint32_t rank)
{
    const gy_part *p = &f->part[rank];
    if (p->by == GY_PART_BY_LANE || !gy_op_is_copy(op) || gy_op_has_flag(op))
        return p->network;
    uint32_t from = rank_of(f, op, 0), to = rank_of(f, op, 1);
    if (from == to || (rank != from && rank != to))
        return p->network;
    return rank == from ? p->network + 1 + 2 * to : p->network + 2 + 2 * from;
}

/* The ranks that have it, who runs it, and in which queue. */
static gantry_status check_step(const fitting *f, uint32_t id, uint32_t rank)
{
    const gy_op *op = &f->s->ops.at[id];
    const gy_part_step *step = step_at(f, rank, id);
    if (!step != !touches(f, op, rank))
        return stuck(f, id, step ? "is done, though it touches no memory," : "is not done", rank);
    if (!step)
        return GANTRY_OK;
    uint32_t queue = crosses(f, op) ? network_queue(f, op, rank) : gy_part_queue(&f->part[rank], f->s, op);
    if (step->runs != (gy_op_rank(f->s, op) == rank))
        return stuck(f, id, step->runs ? "is run, though its device is not," : "is not run, though its device is",
                     rank);
    if (step->queue != queue)
        return stuck(f, id, "is in the wrong queue", rank);
    if (step->packed != (f->packed[id] != GY_NONE) || (step->packed && (step->messages || step->waits)))
        return stuck(f, id, step->packed ? "is left to a step that does not carry it" : "is done twice", rank);
    for (uint32_t i = 0; i < step->waits; i++)
        if (f->part[rank].wait.at[step->wait + i] >= f->at[rank])
            return stuck(f, id, "waits for a later step", rank);
    return GANTRY_OK;
}

/* ---- messages ---- */

static const gy_message *next_message(const fitting *f, uint32_t rank, uint32_t op)
{
    const gy_part_step *step = step_at(f, rank, op);
    return step && f->message[rank] < step->messages ? &f->part[rank].message.at[step->message + f->message[rank]]
                                                     : NULL;
}

/* The rank that the bytes of a use have to come from, and that they have to get to. */
static void ends_of(const fitting *f, const gy_op *op, uint32_t use, uint32_t *from, uint32_t *to)
{
    uint32_t home = gy_op_rank(f->s, op), rank = rank_of(f, op, use);
    bool copy = gy_op_is_copy(op);
    *from = (copy && use < 2) || (!copy && use < op->ins) ? rank : home;
    *to = copy ? rank_of(f, op, 1) : use < op->ins ? home : rank;
    if (copy && use == 2 && *to == home)
        *to = rank_of(f, op, 0);
}

/* A message is one with that before it where both go from one rank to the other. They have met, so that one has, too.
 */
static gantry_status check_packed(const fitting *f, uint32_t id, uint32_t rank, const gy_message *m)
{
    bool copies = m->op > id && m->op < f->s->ops.count && gy_op_is_copy(&f->s->ops.at[id]) &&
                  gy_op_is_copy(&f->s->ops.at[m->op]) && m->use == 0;
    bool may = m->packed || f->part[rank].by == GY_PART_BY_LANE;
    if (m->op != id && (!copies || !may || f->packed[m->op] != GY_NONE))
        return stuck(f, id, "carries rows of another op", rank);
    bool one = f->message[rank] > 0 && (m - 1)->peer == m->peer && (m - 1)->sends == m->sends;
    bool flag = gy_op_has_flag(&f->s->ops.at[id]) || gy_op_has_flag(&f->s->ops.at[m->op]);
    if (m->packed && (!one || flag))
        return stuck(f, id, "has messages that cannot be one", rank);
    if (m->op != id && flag)
        return stuck(f, id, "has messages that cannot go together", rank);
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
static gantry_status check_apart(const fitting *f, uint32_t id, uint32_t rank)
{
    const gy_part_step *step = step_at(f, rank, id);
    const gy_message *m = step ? &f->part[rank].message.at[step->message] : NULL;
    for (uint32_t i = 1; step && gy_op_is_copy(&f->s->ops.at[id]) && i < step->messages; i++)
        for (uint32_t k = 0; k < i; k++) {
            const gy_use *a = &f->s->use.at[f->s->ops.at[m[i].op].use], *b = &f->s->use.at[f->s->ops.at[m[k].op].use];
            if (m[i].op != m[k].op &&
                (share_bytes(f->s, &a[0], &b[1]) || share_bytes(f->s, &a[1], &b[0]) || share_bytes(f->s, &a[1], &b[1])))
                return stuck(f, id, "moves rows together of which some are those of another", rank);
        }
    return GANTRY_OK;
}

static gantry_status check_message(const fitting *f, uint32_t id, uint32_t rank, const gy_message *m)
{
    uint32_t from, to;
    GY_TRY(check_packed(f, id, rank, m));
    const gy_op *op = &f->s->ops.at[m->op];
    if (m->use >= op->uses || (gy_op_is_copy(op) && m->use == 1))
        return stuck(f, id, "sends what is no source", rank);
    ends_of(f, op, m->use, &from, &to);
    if (from == to || rank != (m->sends ? from : to) || m->peer != (m->sends ? to : from))
        return stuck(f, id, "exchanges a message with a wrong peer", rank);
    if (m->bytes != gy_use_bytes(f->s, &f->s->use.at[op->use + m->use]))
        return stuck(f, id, "exchanges a message of a wrong size", rank);
    return GANTRY_OK;
}

/* A send and its receive, both next on their ranks. */
static bool meet(const gy_message *a, uint32_t rank, const gy_message *b)
{
    return a->sends && b && !b->sends && b->peer == rank && a->op == b->op && a->use == b->use &&
           a->bytes == b->bytes && a->packed == b->packed;
}

/* Notes who carries the rows of a copy that is packed. */
static void note_packed(fitting *f, uint32_t id, uint32_t from, const gy_message *sent)
{
    if (sent->op == id)
        return;
    f->packed[sent->op] = id;
    f->early[2 * (size_t)sent->op] = f->at[from];
    f->early[2 * (size_t)sent->op + 1] = f->at[sent->peer];
}

/* Lets messages of the op meet until none can. */
static gantry_status exchange(fitting *f, uint32_t id)
{
    uint32_t met = 0, last = GY_NONE;
    while (met != last) {
        last = met;
        for (uint32_t rank = 0; rank < f->ranks; rank++) {
            const gy_message *m = next_message(f, rank, id);
            if (!m)
                continue;
            GY_TRY(check_message(f, id, rank, m));
            if (m->peer < f->ranks && meet(m, rank, next_message(f, m->peer, id))) {
                note_packed(f, id, rank, m);
                f->message[rank]++;
                f->message[m->peer]++;
                met++;
            }
        }
    }
    for (uint32_t rank = 0; rank < f->ranks; rank++)
        if (next_message(f, rank, id))
            return stuck(f, id, "has a message that meets no other: a deadlock", rank);
    return GANTRY_OK;
}

/* Each use that has to get to another rank does so. The messages that there are have met. */
static gantry_status check_complete(const fitting *f, uint32_t id)
{
    const gy_op *op = &f->s->ops.at[id];
    for (uint32_t use = 0; use < op->uses; use++) {
        uint32_t from, to, found = 0;
        ends_of(f, op, use, &from, &to);
        if (from == to || (gy_op_is_copy(op) && use == 1))
            continue;
        const gy_part_step *step = step_at(f, from, id);
        for (uint32_t i = 0; i < step->messages; i++) {
            const gy_message *m = &f->part[from].message.at[step->message + i];
            found += m->op == id && m->use == use && m->sends && m->peer == to;
        }
        found += f->packed[id] != GY_NONE && use == 0;
        if (found != 1)
            return stuck(f, id, found ? "sends rows twice" : "does not send rows that another rank needs", from);
    }
    return GANTRY_OK;
}

/* ---- what ends before what ---- */

static uint32_t *row_of(const fitting *f, uint32_t rank, uint32_t step)
{
    return &f->clock[(f->first[rank] + step) * f->part[rank].queues];
}

static void join(uint32_t *to, const uint32_t *from, uint32_t queues)
{
    for (uint32_t q = 0; q < queues; q++)
        to[q] = from[q] > to[q] ? from[q] : to[q];
}

/* The step knows what its queue and those that it waits for know. `ended`: per rank and queue, 1 + its last step. */
static void advance(fitting *f, uint32_t rank)
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

/* The step that moves the rows of the op: an earlier one where they are packed. */
static uint32_t moved_by(const fitting *f, uint32_t id, uint32_t rank)
{
    if (f->packed[id] == GY_NONE)
        return f->at[rank];
    return f->early[2 * (size_t)id + (rank_of(f, &f->s->ops.at[id], 0) != rank)];
}

static bool is_one_with(const fitting *f, uint32_t id, uint32_t before)
{
    uint32_t head = f->packed[id];
    return head != GY_NONE && (before == head || f->packed[before] == head);
}

/* Of each lane, the last op of the rank that ends before the current one begins. */
static gantry_status check_before(const fitting *f, uint32_t id, uint32_t rank)
{
    const gy_part *p = &f->part[rank];
    const uint32_t *row = row_of(f, rank, moved_by(f, id, rank));
    size_t entries = f->s->op_lane.count;
    for (uint32_t lane = 0; lane < f->s->lanes.count; lane++) {
        uint32_t count = gy_clocks_count(&f->clocks, lane), first = f->lane_first[lane];
        while (count && f->op_of[f->lane_entry[first + count - 1]] >= id)
            count--;
        uint32_t latest = count ? f->latest[rank * entries + f->lane_entry[first + count - 1]] : 0;
        if (latest && row[p->step.at[latest - 1].queue] < latest && !is_one_with(f, id, p->step.at[latest - 1].op))
            return gy_breach(f->err, "ranks", "ops", id, "%s does not wait on rank %u for %s, which ends before it",
                             gy_label_op(f->s, id).at, rank, gy_label_op(f->s, p->step.at[latest - 1].op).at);
    }
    return GANTRY_OK;
}

/* Notes the op as the latest of its lanes, for ranks that have it. */
static void note_latest(fitting *f, uint32_t id, uint32_t *seen)
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

static gantry_status check_op(fitting *f, uint32_t id, uint32_t *seen)
{
    gantry_status status = GANTRY_OK;
    if (!gy_clocks_step(&f->clocks, 0, id))
        return gy_fail_nomem(f->err);
    for (uint32_t rank = 0; rank < f->ranks && !status; rank++)
        status = check_step(f, id, rank);
    if (!status)
        status = exchange(f, id);
    if (!status)
        status = check_complete(f, id);
    for (uint32_t rank = 0; rank < f->ranks && !status; rank++)
        status = check_apart(f, id, rank);
    for (uint32_t rank = 0; rank < f->ranks && !status; rank++)
        if (step_at(f, rank, id)) {
            advance(f, rank);
            status = check_before(f, id, rank);
        }
    if (status)
        return status;
    note_latest(f, id, seen);
    for (uint32_t rank = 0; rank < f->ranks; rank++)
        if (step_at(f, rank, id)) {
            f->at[rank]++;
            f->message[rank] = 0;
        }
    return GANTRY_OK;
}

/* `seen`: of each lane, how many entries have been listed; all 0 before and after. */
static void list_entries(fitting *f, uint32_t *seen)
{
    for (uint32_t id = 0; id < f->s->ops.count; id++)
        for (uint32_t k = 0; k < f->s->ops.at[id].lanes; k++) {
            uint32_t entry = f->s->ops.at[id].lane + k, lane = f->s->op_lane.at[entry];
            f->lane_entry[f->lane_first[lane] + seen[lane]++] = entry;
        }
    for (size_t l = 0; l < f->s->lanes.count; l++)
        seen[l] = 0;
}

static bool begin(fitting *f, uint32_t **seen)
{
    const gantry_schedule *s = f->s;
    size_t lanes = s->lanes.count, entries = s->op_lane.count, queues = f->part[0].queues, rows = 0;
    f->first = gy_calloc(f->ranks, sizeof *f->first);
    for (uint32_t i = 0; f->first && i < f->ranks; i++) {
        f->first[i] = rows;
        rows += f->part[i].step.count;
    }
    f->at = gy_calloc(f->ranks, sizeof *f->at);
    f->message = gy_calloc(f->ranks, sizeof *f->message);
    f->ended = gy_calloc(f->ranks * queues, sizeof *f->ended);
    f->clock = gy_calloc(rows * queues + 1, sizeof *f->clock);
    f->lane_first = gy_calloc(lanes + 2, sizeof *f->lane_first);
    f->lane_entry = gy_calloc(entries + 1, sizeof *f->lane_entry);
    f->op_of = gy_calloc(entries + 1, sizeof *f->op_of);
    f->latest = gy_calloc(f->ranks * entries + 1, sizeof *f->latest);
    f->packed = gy_calloc(s->ops.count + 1, sizeof *f->packed);
    f->early = gy_calloc(2 * s->ops.count + 1, sizeof *f->early);
    *seen = gy_calloc(lanes + 1, sizeof **seen);
    if (!f->first || !f->at || !f->message || !f->ended || !f->clock || !f->lane_first || !f->lane_entry || !f->op_of ||
        !f->latest || !f->packed || !f->early || !*seen)
        return false;
    for (size_t id = 0; id < s->ops.count; id++)
        f->packed[id] = GY_NONE;
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

static void end(fitting *f, uint32_t *seen)
{
    gy_free(f->first);
    gy_free(f->at);
    gy_free(f->message);
    gy_free(f->ended);
    gy_free(f->clock);
    gy_free(f->lane_first);
    gy_free(f->lane_entry);
    gy_free(f->op_of);
    gy_free(f->latest);
    gy_free(f->packed);
    gy_free(f->early);
    gy_free(seen);
    gy_clocks_free(&f->clocks);
}

gantry_status gy_parts_verify(const gantry_schedule *s, const gy_part *part, uint32_t ranks, gantry_error *err)
{
    fitting f = { .s = s, .part = part, .ranks = ranks, .err = err };
    uint32_t *seen = NULL;
    gantry_status status = begin(&f, &seen) ? gy_clocks_init(&f.clocks, s, err) : gy_fail_nomem(err);
    for (uint32_t rank = 1; rank < ranks && !status; rank++)
        if (part[rank].own != part[0].own)
            status = gy_fail(err, GANTRY_E_SCHEDULE, "/ops", "rule ranks: rank %u has other arrays itself than rank 0",
                             rank);
    if (!status && part[0].own)
        status = gy_own_verify(s, part[0].own, err);
    for (uint32_t id = 0; id < s->ops.count && !status; id++)
        status = check_op(&f, id, seen);
    for (uint32_t rank = 0; rank < ranks && !status; rank++)
        if (f.at[rank] < part[rank].step.count)
            status = gy_fail(err, GANTRY_E_SCHEDULE, "/ops", "rule ranks: rank %u has %zu steps, of which %u are ops",
                             rank, part[rank].step.count, f.at[rank]);
    end(&f, seen);
    return status;
}
