/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Rule ranks, messages: each has its other half, and no speed of ranks leads to a deadlock.
 *
 * The steps of all ranks are carried out: each rank does one step after the other, in the order of ops, and each send
 * waits for its receive. Where queues are lanes, the messages of copies in one step are given to NCCL at once: of those
 * with one peer, one way, the first that has not met may meet; all other messages come one after the other. Nothing
 * that can go on is ever kept from it by something else that does, as each message has one other half; so if all steps
 * come to their end in one order, they do in any, and where ranks have several queues, too, as these only let more
 * happen. As a step ends when all of its messages have met, those from one rank to another meet in the order of steps,
 * and within a step in that of their list, on both sides.
 */
#include "schedule/check/parts.h"

#include "base/error.h"
#include "base/memory.h"

typedef struct meeting {
    gy_fitting *f;
    uint32_t *front; /* per rank: of its step, the first message that has not met, from 0 */
    uint32_t *met;   /* per rank, from first_message: messages that have */
    size_t *first_message;
    uint32_t *arrived; /* per use of all ops: how many messages have moved it */
    uint32_t *todo;    /* ranks that may go on */
    bool *listed;
    uint32_t count;
} meeting;

static const gy_part_step *step_of(const meeting *m, uint32_t rank)
{
    const gy_part *p = &m->f->part[rank];
    return m->f->at[rank] < p->step.count ? &p->step.at[m->f->at[rank]] : NULL;
}

static uint32_t *met(const meeting *m, uint32_t rank, const gy_part_step *step, uint32_t i)
{
    return &m->met[m->first_message[rank] + step->message + i];
}

/* All of its messages are given away at once. */
static bool is_joint(const meeting *m, uint32_t rank, const gy_part_step *step)
{
    const gy_op *op = &m->f->s->ops.at[step->op];
    return m->f->part[rank].by == GY_PART_BY_LANE && gy_op_is_copy(op) && !gy_op_has_flag(op);
}

/* ---- one message ---- */

/* The rank that the bytes of a use have to come from, and that they have to get to. */
static void ends_of(const gy_fitting *f, const gy_op *op, uint32_t use, uint32_t *from, uint32_t *to)
{
    uint32_t home = gy_op_rank(f->s, op), rank = gy_parts_rank(f, op, use);
    bool copy = gy_op_is_copy(op);
    *from = (copy && use < 2) || (!copy && use < op->ins) ? rank : home;
    *to = copy ? gy_parts_rank(f, op, 1) : use < op->ins ? home : rank;
    if (copy && use == 2 && *to == home)
        *to = gy_parts_rank(f, op, 0);
}

/* A message of another op is that of a later copy; one that is packed goes the way of that before it. */
static gantry_status check_packed(const gy_fitting *f, uint32_t rank, const gy_part_step *step, uint32_t i)
{
    const gy_message *m = &f->part[rank].message.at[step->message + i];
    uint32_t id = step->op;
    if (m->op >= f->s->ops.count)
        return gy_parts_stuck(f, id, "carries rows of no op", rank);
    bool copies = m->op > id && gy_op_is_copy(&f->s->ops.at[id]) && gy_op_is_copy(&f->s->ops.at[m->op]) && m->use == 0;
    bool may = m->packed || f->part[rank].by == GY_PART_BY_LANE;
    if (m->op != id && (!copies || !may))
        return gy_parts_stuck(f, id, "carries rows of another op", rank);
    bool one = i > 0 && (m - 1)->peer == m->peer && (m - 1)->sends == m->sends;
    bool flag = gy_op_has_flag(&f->s->ops.at[id]) || gy_op_has_flag(&f->s->ops.at[m->op]);
    if (m->packed && (!one || flag))
        return gy_parts_stuck(f, id, "has messages that cannot be one", rank);
    if (m->op != id && flag)
        return gy_parts_stuck(f, id, "has messages that cannot go together", rank);
    return GANTRY_OK;
}

static gantry_status check_message(const gy_fitting *f, uint32_t rank, const gy_part_step *step, uint32_t i)
{
    uint32_t from, to;
    GY_TRY(check_packed(f, rank, step, i));
    const gy_message *m = &f->part[rank].message.at[step->message + i];
    const gy_op *op = &f->s->ops.at[m->op];
    if (m->use >= op->uses || (gy_op_is_copy(op) && m->use == 1))
        return gy_parts_stuck(f, step->op, "sends what is no source", rank);
    ends_of(f, op, m->use, &from, &to);
    if (from == to || rank != (m->sends ? from : to) || m->peer != (m->sends ? to : from))
        return gy_parts_stuck(f, step->op, "exchanges a message with a wrong peer", rank);
    if (m->bytes != gy_use_bytes(f->s, &f->s->use.at[op->use + m->use]))
        return gy_parts_stuck(f, step->op, "exchanges a message of a wrong size", rank);
    return GANTRY_OK;
}

static gantry_status check_messages(const meeting *m, uint32_t rank)
{
    const gy_part_step *step = step_of(m, rank);
    gantry_status status = GANTRY_OK;
    for (uint32_t i = 0; step && i < step->messages && !status; i++)
        status = check_message(m->f, rank, step, i);
    return status;
}

/* ---- meeting ---- */

/* Of the step of the rank, the first message with that peer, that way, which has not met; but only the first of all
 * where they come one after the other. */
static uint32_t pending(const meeting *m, uint32_t rank, uint32_t peer, bool sends)
{
    const gy_part_step *step = step_of(m, rank);
    uint32_t i = m->front[rank], end = step ? is_joint(m, rank, step) ? step->messages : i + 1 : 0;
    for (; i < end && i < step->messages; i++) {
        const gy_message *one = &m->f->part[rank].message.at[step->message + i];
        if (!*met(m, rank, step, i) && one->peer == peer && one->sends == sends)
            return i;
    }
    return GY_NONE;
}

/* Both are halves of the same. */
static bool match(const gy_message *a, const gy_message *b)
{
    return a->op == b->op && a->use == b->use && a->bytes == b->bytes && a->packed == b->packed;
}

static void list(meeting *m, uint32_t rank)
{
    if (!m->listed[rank])
        m->todo[m->count++] = rank;
    m->listed[rank] = true;
}

static void note_met(meeting *m, uint32_t rank, const gy_part_step *step, uint32_t i)
{
    const gy_message *one = &m->f->part[rank].message.at[step->message + i];
    *met(m, rank, step, i) = 1;
    while (m->front[rank] < step->messages && *met(m, rank, step, m->front[rank]))
        m->front[rank]++;
    if (gy_op_is_copy(&m->f->s->ops.at[one->op]) && one->use == 0)
        m->f->carrier[2 * (size_t)one->op + !one->sends] = m->f->at[rank] + 1;
}

/* Message i of the step of the rank meets its other half, if its peer has come to that. */
static void try_to_meet(meeting *m, uint32_t rank, uint32_t i)
{
    const gy_part_step *step = step_of(m, rank);
    const gy_message *one = &m->f->part[rank].message.at[step->message + i];
    uint32_t there = one->peer, other = pending(m, there, rank, !one->sends);
    if (pending(m, rank, there, one->sends) != i || other == GY_NONE)
        return;
    const gy_part_step *step_there = step_of(m, there);
    if (!match(one, &m->f->part[there].message.at[step_there->message + other]))
        return;
    m->arrived[m->f->s->ops.at[one->op].use + one->use]++;
    note_met(m, rank, step, i);
    note_met(m, there, step_there, other);
    list(m, there);
}

/* Goes on with the rank as far as it comes. */
static gantry_status advance(meeting *m, uint32_t rank)
{
    for (const gy_part_step *step; (step = step_of(m, rank));) {
        for (uint32_t i = m->front[rank]; i < step->messages; i++)
            if (!*met(m, rank, step, i))
                try_to_meet(m, rank, i);
        if (m->front[rank] < step->messages)
            return GANTRY_OK;
        m->f->at[rank]++;
        m->front[rank] = 0;
        GY_TRY(check_messages(m, rank));
    }
    return GANTRY_OK;
}

/* Of all ranks that are stuck, the one whose step is the first in the order of ops. */
static gantry_status find_stuck(const meeting *m)
{
    uint32_t stuck = GY_NONE;
    for (uint32_t rank = 0; rank < m->f->ranks; rank++) {
        const gy_part_step *step = step_of(m, rank);
        if (step && (stuck == GY_NONE || step->op < step_of(m, stuck)->op))
            stuck = rank;
    }
    if (stuck == GY_NONE)
        return GANTRY_OK;
    return gy_parts_stuck(m->f, step_of(m, stuck)->op, "has a message that meets no other: a deadlock", stuck);
}

/* Each use that has to get to another rank does so, once. The messages that there are have met. */
static gantry_status check_complete(const meeting *m)
{
    const gantry_schedule *s = m->f->s;
    for (uint32_t id = 0; id < s->ops.count; id++) {
        const gy_op *op = &s->ops.at[id];
        for (uint32_t use = 0; use < op->uses; use++) {
            uint32_t from, to, arrived = m->arrived[op->use + use];
            ends_of(m->f, op, use, &from, &to);
            if (from == to || (gy_op_is_copy(op) && use == 1) || arrived == 1)
                continue;
            return gy_parts_stuck(m->f, id, arrived ? "sends rows twice" : "does not send rows that another rank needs",
                                  from);
        }
    }
    return GANTRY_OK;
}

/* ---- all ---- */

static bool begin(meeting *m)
{
    gy_fitting *f = m->f;
    size_t messages = 0;
    m->front = gy_calloc(f->ranks, sizeof *m->front);
    m->first_message = gy_calloc(f->ranks, sizeof *m->first_message);
    for (uint32_t i = 0; m->first_message && i < f->ranks; i++) {
        m->first_message[i] = messages;
        messages += f->part[i].message.count;
    }
    m->met = gy_calloc(messages + 1, sizeof *m->met);
    m->arrived = gy_calloc(f->s->use.count + 1, sizeof *m->arrived);
    m->todo = gy_calloc(f->ranks, sizeof *m->todo);
    m->listed = gy_calloc(f->ranks, sizeof *m->listed);
    return m->front && m->first_message && m->met && m->arrived && m->todo && m->listed;
}

static void end(meeting *m)
{
    gy_free(m->front);
    gy_free(m->first_message);
    gy_free(m->met);
    gy_free(m->arrived);
    gy_free(m->todo);
    gy_free(m->listed);
}

gantry_status gy_parts_exchange(gy_fitting *f)
{
    meeting m = { .f = f };
    gantry_status status = begin(&m) ? GANTRY_OK : gy_fail_nomem(f->err);
    for (uint32_t rank = f->ranks; rank-- > 0 && !status;) {
        f->at[rank] = 0;
        status = check_messages(&m, rank);
        list(&m, rank);
    }
    while (m.count && !status) {
        uint32_t rank = m.todo[--m.count];
        m.listed[rank] = false;
        status = advance(&m, rank);
    }
    status = status ? status : find_stuck(&m);
    status = status ? status : check_complete(&m);
    end(&m);
    return status;
}
