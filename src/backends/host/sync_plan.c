/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/host/host.h"

#include "base/error.h"
#include "base/memory.h"

/* Events, then flags, then one slot per op for the edges that leave it. */
typedef struct numbering {
    uint32_t events, flags;
} numbering;

static numbering count_slots(const gantry_schedule *s)
{
    numbering n = { 0 };
    for (size_t i = 0; i < s->sync.count; i++) {
        const gy_sync *row = &s->sync.at[i];
        if (row->carrier == GY_CARRIER_EVENT && row->slot >= n.events)
            n.events = row->slot + 1;
        else if (row->carrier == GY_CARRIER_FLAG && row->slot >= n.flags)
            n.flags = row->slot + 1;
    }
    return n;
}

static uint32_t slot_of(numbering n, const gy_sync *row)
{
    switch ((gy_carrier)row->carrier) {
    case GY_CARRIER_EVENT:
        return row->slot;
    case GY_CARRIER_FLAG:
        return n.events + row->slot;
    default:
        return n.events + n.flags + row->from;
    }
}

/* first[op] .. first[op + 1] after counting; rows of carrier LANE ask for nothing. */
static uint32_t *group(const gantry_schedule *s, bool by_target)
{
    uint32_t *first = gy_calloc(s->ops.count + 2, sizeof *first);
    for (size_t i = 0; first && i < s->sync.count; i++) {
        const gy_sync *row = &s->sync.at[i];
        first[(by_target ? row->to : row->from) + 2] += row->carrier != GY_CARRIER_LANE;
    }
    for (size_t op = 2; first && op < s->ops.count + 2; op++)
        first[op] += first[op - 1];
    return first; /* shifted by one: filling in moves it into place */
}

static void fill_in(gy_sync_plan *plan, const gantry_schedule *s, numbering n, uint32_t *by_to, uint32_t *by_from)
{
    for (size_t i = 0; i < s->sync.count; i++) {
        const gy_sync *row = &s->sync.at[i];
        if (row->carrier != GY_CARRIER_LANE) {
            plan->await[by_to[row->to + 1]++] = (gy_await){ slot_of(n, row), row->distance };
            plan->signal[by_from[row->from + 1]++] = slot_of(n, row);
        }
    }
}

/* Several rows may share the event of one op: it is set once. */
static uint32_t drop_repeats(uint32_t *signal, uint32_t first, uint32_t last)
{
    uint32_t kept = first;
    for (uint32_t i = first; i < last; i++) {
        bool seen = false;
        for (uint32_t k = first; k < kept && !seen; k++)
            seen = signal[k] == signal[i];
        if (!seen)
            signal[kept++] = signal[i];
    }
    return kept - first;
}

static bool has_step(const gy_sync_plan *plan, uint32_t device, uint32_t op)
{
    const gy_steps *steps = &plan->steps[device];
    return steps->count && gy_vec_last(steps)->op == op;
}

/* A step for the thread of every device whose lanes the op occupies; the first one leads. */
static bool add_steps(gy_sync_plan *plan, const gantry_schedule *s, uint32_t id, gy_step step)
{
    const gy_op *op = &s->ops.at[id];
    uint32_t leader = gy_op_device(s, op, 0), party = 0;
    for (uint32_t i = 0; i < op->lanes; i++)
        party += gy_op_device(s, op, i) != leader;
    step.meeting = party ? plan->meetings : GY_NONE;
    party = 0;
    for (uint32_t i = 0; i < op->lanes; i++) {
        uint32_t device = gy_op_device(s, op, i);
        if (has_step(plan, device, id))
            continue;
        step.leads = device == leader;
        if (!gy_vec_push(&plan->steps[device], step))
            return false;
        step.waits = step.sets = 0; /* the leader does that for all */
        party++;
    }
    if (step.meeting != GY_NONE)
        plan->party[plan->meetings++] = party;
    return true;
}

static bool make_steps(gy_sync_plan *plan, const gantry_schedule *s, const uint32_t *by_to, const uint32_t *by_from)
{
    for (uint32_t op = 0; op < s->ops.count; op++) {
        gy_step step = { .op = op,
                         .wait = by_to[op],
                         .waits = by_to[op + 1] - by_to[op],
                         .set = by_from[op],
                         .sets = drop_repeats(plan->signal, by_from[op], by_from[op + 1]) };
        if (!add_steps(plan, s, op, step))
            return false;
    }
    return true;
}

gantry_status gy_sync_plan_make(gy_sync_plan *plan, const gantry_schedule *s, gantry_error *err)
{
    numbering n = count_slots(s);
    *plan = (gy_sync_plan){ .devices = s->machine->devices };
    plan->slots = n.events + n.flags + (uint32_t)s->ops.count;
    plan->steps = gy_calloc(plan->devices, sizeof *plan->steps);
    plan->await = gy_calloc(s->sync.count, sizeof *plan->await);
    plan->signal = gy_calloc(s->sync.count, sizeof *plan->signal);
    plan->party = gy_calloc(s->ops.count, sizeof *plan->party);
    uint32_t *by_to = group(s, true), *by_from = group(s, false);
    gantry_status status = GANTRY_OK;
    if (!plan->steps || !plan->await || !plan->signal || !plan->party || !by_to || !by_from) {
        status = gy_fail_nomem(err);
    } else {
        fill_in(plan, s, n, by_to, by_from);
        status = make_steps(plan, s, by_to, by_from) ? GANTRY_OK : gy_fail_nomem(err);
    }
    gy_free(by_to);
    gy_free(by_from);
    if (status)
        gy_sync_plan_free(plan);
    return status;
}

static bool make_part(gy_sync_plan *plan, const gantry_schedule *s, const gy_part *part)
{
    for (uint32_t id = 0; id < s->ops.count; id++)
        plan->signal[id] = id;
    for (size_t i = 0; i < part->wait.count; i++)
        plan->await[i] = (gy_await){ part->step.at[part->wait.at[i]].op, 0 };
    for (size_t i = 0; i < part->step.count; i++) {
        const gy_part_step *from = &part->step.at[i];
        gy_step step = { from->op, from->wait, from->waits, from->op, 1, GY_NONE, true };
        bool network = from->messages || from->packed;
        if (network ? !gy_vec_push(&plan->steps[from->queue], step) : !add_steps(plan, s, from->op, step))
            return false;
    }
    return true;
}

gantry_status gy_sync_plan_make_part(gy_sync_plan *plan, const gantry_schedule *s, const gy_part *part,
                                     gantry_error *err)
{
    *plan = (gy_sync_plan){ .devices = part->queues, .slots = (uint32_t)s->ops.count };
    plan->steps = gy_calloc(plan->devices, sizeof *plan->steps);
    plan->await = gy_calloc(part->wait.count, sizeof *plan->await);
    plan->signal = gy_calloc(s->ops.count, sizeof *plan->signal);
    plan->party = gy_calloc(s->ops.count, sizeof *plan->party);
    if (plan->steps && plan->await && plan->signal && plan->party && make_part(plan, s, part))
        return GANTRY_OK;
    gy_sync_plan_free(plan);
    return gy_fail_nomem(err);
}

void gy_sync_plan_free(gy_sync_plan *plan)
{
    for (uint32_t d = 0; plan->steps && d < plan->devices; d++)
        gy_vec_free(&plan->steps[d]);
    gy_free(plan->steps);
    gy_free(plan->await);
    gy_free(plan->signal);
    gy_free(plan->party);
    *plan = (gy_sync_plan){ 0 };
}
