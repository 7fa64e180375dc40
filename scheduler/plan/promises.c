/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/plan/promises.h"

#include "base/align.h"

bool gy_promises_cost(const gy_plan *p)
{
    size_t nodes = p->graph->nodes.count;
    for (uint32_t n = 0; n < nodes; n++) {
        uint32_t first = p->cost.group[n];
        if (first > n || p->cost.group[first] != first)
            return false;
        for (uint32_t d = 0; d < p->devices; d++)
            if (gy_plan_time(p, n, d) < 0)
                return false;
    }
    return true;
}

bool gy_promises_inputs(const gy_plan *p)
{
    for (size_t i = 0; i < p->inputs.outside.count; i++) {
        const gy_outside *o = &p->inputs.outside.at[i];
        if (o->task >= p->flow->tasks || o->memory >= p->machine->memories || o->bytes <= 0)
            return false;
        if (i > 0 && o[-1].task > o->task)
            return false;
    }
    for (uint32_t t = 0; t < p->flow->tasks; t++) {
        const gy_team *team = gy_plan_team(p, t);
        if (p->inputs.upload[t] < 0 || (team != NULL) != (gy_plan_node(p, t)->kind == GY_NODE_COLLECTIVE))
            return false;
    }
    return true;
}

static bool may_run_there(const gy_plan *p, uint32_t task)
{
    uint32_t device = p->placed.device[task];
    return device < p->devices &&
           (gy_plan_team(p, task) || gy_plan_time(p, p->flow->task[task].node, device) < GY_TICKS_MAX);
}

bool gy_promises_placement(const gy_plan *p)
{
    const gy_placement *x = &p->placed;
    for (uint32_t t = 0; t < p->flow->tasks; t++)
        if (x->start[t] < 0 || x->finish[t] < x->start[t] || !may_run_there(p, t))
            return false;
    return true;
}

static bool uses_are_in_range(const gy_op *op, size_t uses)
{
    return (size_t)op->use + op->uses <= uses && op->ins <= op->uses;
}

bool gy_promises_draft(const gy_plan *p)
{
    const gy_draft *d = &p->draft;
    for (size_t i = 0; i < d->op.count; i++)
        if (!uses_are_in_range(&d->op.at[i].op, d->use.count))
            return false;
    for (size_t i = 0; i < d->use.count; i++)
        if (d->use.at[i].instance >= d->instance.count || d->use.at[i].first > d->use.at[i].last)
            return false;
    for (size_t i = 0; i < d->edges.count; i++) {
        const gy_edge *e = &d->edges.at[i];
        if (e->from >= e->to || e->to >= d->op.count || (i > 0 && e[-1].to > e->to))
            return false;
    }
    return true;
}

bool gy_promises_order(const gy_plan *p)
{
    const gantry_schedule *s = p->schedule;
    const gy_sequence *q = &p->sequence;
    for (size_t i = 0; i < s->ops.count; i++) {
        if (!uses_are_in_range(&s->ops.at[i], s->use.count) || q->need_first[i] > q->need_first[i + 1])
            return false;
        for (size_t e = q->need_first[i]; e < q->need_first[i + 1]; e++)
            if (q->need.at[e].to != i || q->need.at[e].from >= i ||
                (e > q->need_first[i] && q->need.at[e - 1].from < q->need.at[e].from))
                return false;
    }
    for (size_t i = 0; i < s->use.count; i++)
        if (s->use.at[i].instance >= s->instances.count)
            return false;
    return true;
}

bool gy_promises_lanes(const gy_plan *p)
{
    const gantry_schedule *s = p->schedule;
    for (size_t i = 0; i < s->ops.count; i++)
        if (s->ops.at[i].lanes == 0 || (size_t)s->ops.at[i].lane + s->ops.at[i].lanes > s->op_lane.count)
            return false;
    for (size_t i = 0; i < s->op_lane.count; i++)
        if (s->op_lane.at[i] >= s->lanes.count || s->lanes.at[s->op_lane.at[i]].device >= p->devices)
            return false;
    return true;
}

bool gy_promises_addresses(const gy_plan *p)
{
    const gantry_schedule *s = p->schedule;
    for (size_t i = 0; i < s->instances.count; i++) {
        const gy_instance *in = &s->instances.at[i];
        if (in->space == GY_SPACE_SLAB &&
            (in->offset % GY_ALIGN != 0 || in->offset + in->bytes > s->slab.at[in->memory]))
            return false;
    }
    return true;
}

bool gy_promises_sync(const gy_plan *p)
{
    const gantry_schedule *s = p->schedule;
    for (size_t i = 0; i < s->sync.count; i++) {
        const gy_sync *row = &s->sync.at[i];
        if (row->from >= s->ops.count || row->to >= s->ops.count || (row->distance == 0 && row->from >= row->to))
            return false;
    }
    return true;
}
