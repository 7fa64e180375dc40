/* SPDX-License-Identifier: Apache-2.0 */
/* The new draft: the old ops with other instances, and the copies between them. */
#include "scheduler/spill/spill.h"

#include "base/error.h"

gantry_status gy_spill_copy(gy_spill *w, gy_op_kind kind, uint32_t from, uint32_t to, int64_t first, int64_t last,
                            gantry_error *err)
{
    gy_plan *p = w->p;
    const gy_instance *a = &p->draft.instance.at[from], *b = &p->draft.instance.at[to];
    const gy_route *r = gy_machine_route(p->machine, a->memory, b->memory);
    int64_t bytes = gy_buffer_span(gy_lower_buffer(&w->lower, a->value), first, last);
    gy_draft_op d = { .device = gy_plan_copier(p, a->memory, b->memory), .lane = GY_LANE_COPY };
    d.op = (gy_op){ .kind = (uint8_t)kind, .node = GY_NONE, .duration = gy_route_time(p->machine, r, bytes) };
    d.op.provenance = r->given ? GY_COST_MEASURED : GY_COST_ROOFLINE;
    gantry_status status = gy_lower_op(&w->lower, &d, NULL, err);
    if (!status)
        status = gy_lower_use(&w->lower, from, GANTRY_READ, 0, first, last, err);
    if (!status)
        status = gy_lower_use(&w->lower, to, GANTRY_WRITE, 0, first, last, err);
    w->moved = true;
    return status;
}

gantry_status gy_spill_lodge(gy_spill *w, uint32_t x, uint32_t memory, uint32_t *id, gantry_error *err)
{
    gy_instance in = *gy_spill_old(w, x);
    in.memory = memory;
    in.space = memory == 0 ? GY_SPACE_STAGING : GY_SPACE_SLAB;
    in.role = in.role == GY_ROLE_PERSIST ? GY_ROLE_DATA : in.role;
    in.first = w->held[x].lo;
    in.last = w->held[x].hi;
    return gy_lower_instance(&w->lower, &in, id, err);
}

gantry_status gy_spill_here(gy_spill *w, uint32_t x, gantry_error *err)
{
    gy_instance in = *gy_spill_old(w, x);
    gy_held *h = &w->held[x];
    if (h->now != GY_NONE)
        return GANTRY_OK;
    if (h->home != GY_NONE)
        in.role = GY_ROLE_DATA;
    return gy_lower_instance(&w->lower, &in, &h->now, err);
}

/* The task of an op that has a node; the order that `after` adds to what data give. */
static gantry_status add_after(gy_spill *w, uint32_t task, gantry_error *err)
{
    const gy_plan *p = w->p;
    const gy_node *n = gy_plan_node(p, task);
    gantry_status status = GANTRY_OK;
    if (!n->afters)
        return GANTRY_OK;
    for (uint32_t i = 0; i < n->afters; i++)
        w->after_stamp[p->graph->after.at[n->after + i]] = task + 1;
    for (const gy_dep *d = gy_deps_begin(p->flow, task); d < gy_deps_end(p->flow, task) && !status; d++)
        if (d->kinds & GY_DEP_ORDER && w->after_stamp[p->flow->task[d->from].node] == task + 1)
            status = gy_lower_edge(&w->lower, w->task_draft[d->from], GY_WHY_ORDER, err);
    return status;
}

/* Use k of an old op, by the new instance `id`; GY_NONE: the one that is the old one. */
static gantry_status use_one(gy_spill *w, const gy_use *u, uint32_t id, uint32_t rank, gantry_error *err)
{
    if (id == GY_NONE) {
        GY_TRY(gy_spill_here(w, u->instance, err));
        id = w->held[u->instance].now;
    }
    return gy_lower_use(&w->lower, id, u->mode, rank, u->first, u->last, err);
}

static gantry_status use_all(gy_spill *w, const gy_draft_op *d, uint32_t source, gantry_error *err)
{
    gantry_status status = GANTRY_OK;
    for (uint32_t k = 0; k < d->op.uses && !status; k++) {
        const gy_use *u = &w->old->use.at[d->op.use + k];
        status = use_one(w, u, k ? GY_NONE : source, u->rank, err);
    }
    return status;
}

/* Ranks that are left with nothing take no part. */
static bool list_ranks(gy_spill *w, const gy_draft_op *old, gy_draft_op *d, gy_ids *ranks)
{
    gy_plan *p = w->p;
    for (uint32_t r = 0; r < old->ranks; r++) {
        bool has = false;
        for (size_t n = 0; n < w->again.count && !has; n++)
            has = w->old->use.at[old->op.use + w->again.at[n]].rank == r;
        if (!gy_vec_push(ranks, has ? d->ranks : GY_NONE))
            return false;
        if (!has)
            continue;
        d->rank = d->ranks++ ? d->rank : (uint32_t)p->rank_device.count;
        if (!gy_vec_push(&p->rank_device, p->rank_device.at[old->rank + r]))
            return false;
    }
    return true;
}

gantry_status gy_spill_repeat(gy_spill *w, uint32_t i, gantry_error *err)
{
    const gy_draft_op *old = &w->old->op.at[i];
    gy_draft_op d = *old;
    gy_ids ranks = { 0 };
    d.op.repeat = d.op.node != GY_NONE;
    d.ranks = 0;
    w->moved = true;
    w->remade++;
    gantry_status status = list_ranks(w, old, &d, &ranks) ? gy_lower_op(&w->lower, &d, NULL, err) : gy_fail_nomem(err);
    for (size_t n = 0; n < w->again.count && !status; n++) {
        const gy_use *u = &w->old->use.at[old->op.use + w->again.at[n]];
        status = use_one(w, u, GY_NONE, old->ranks ? ranks.at[u->rank] : 0, err);
    }
    gy_vec_free(&ranks);
    return status;
}

gantry_status gy_spill_op(gy_spill *w, uint32_t i, uint32_t source, gantry_error *err)
{
    gy_plan *p = w->p;
    gy_draft_op d = w->old->op.at[i];
    uint64_t task;
    uint32_t id;
    if (source != GY_NONE) {
        const gy_use *u = &w->old->use.at[d.op.use];
        uint32_t from = p->draft.instance.at[source].memory, to = gy_spill_old(w, u[1].instance)->memory;
        const gy_route *r = gy_machine_route(p->machine, from, to);
        d.device = gy_plan_copier(p, from, to);
        d.op.duration = gy_route_time(
            p->machine, r,
            gy_buffer_span(gy_lower_buffer(&w->lower, p->draft.instance.at[source].value), u->first, u->last));
        d.op.provenance = r->given ? GY_COST_MEASURED : GY_COST_ROOFLINE;
    }
    gy_draft_op made = d;
    gantry_status status = gy_lower_op(&w->lower, &made, &id, err);
    if (!status)
        status = use_all(w, &w->old->op.at[i], source, err);
    if (!status && d.op.node != GY_NONE && gy_map_get(&w->task_of, (uint64_t)d.op.node << 32 | d.op.iteration, &task)) {
        w->task_draft[task] = id;
        status = add_after(w, (uint32_t)task, err);
    }
    return status;
}
