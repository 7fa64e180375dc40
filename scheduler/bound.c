/* SPDX-License-Identifier: Apache-2.0 */
/**
 * What no schedule on this machine can beat: the longest chain of tasks that must follow each other, each on its
 * fastest device and without any transfer; and all work on its fastest devices, spread evenly. Only dependencies that
 * hold whatever memories are used count: reading what was written, and `after`. (A write after a read needs no waiting
 * when they are in different memories, nor does a contribution to a reduction need the value before it.)
 */
#include "scheduler/plan.h"

#include "base/error.h"

static gy_ticks fastest(const gy_plan *p, uint32_t node)
{
    gy_ticks best = GY_TICKS_MAX;
    if (p->graph->nodes.at[node].kind == GY_NODE_COLLECTIVE)
        return 0; /* depends on where its ranks are */
    for (uint32_t d = 0; d < p->devices; d++)
        if (gy_plan_time(p, node, d) < best)
            best = gy_plan_time(p, node, d);
    return best;
}

/* Does `to` read rows that `from` wrote or contributed to? */
static bool reads_from(const gy_plan *p, uint32_t from, uint32_t to)
{
    const gy_flow *f = p->flow;
    for (uint32_t k = 0; k < gy_plan_node(p, to)->accesses; k++) {
        size_t x = f->task[to].access + k;
        const gy_access *r = gy_flow_access_of(p->graph, f, x);
        if (r->mode != GANTRY_READ && r->mode != GANTRY_READWRITE)
            continue;
        for (uint32_t j = 0; j < gy_plan_node(p, from)->accesses; j++) {
            size_t y = f->task[from].access + j;
            const gy_access *w = gy_flow_access_of(p->graph, f, y);
            if (w->mode != GANTRY_READ && f->access[x].value == f->access[y].value && r->first < w->last &&
                w->first < r->last)
                return true;
        }
    }
    return false;
}

static bool is_after(const gy_plan *p, uint32_t from, uint32_t to)
{
    const gy_node *n = gy_plan_node(p, to);
    for (uint32_t i = 0; i < n->afters; i++)
        if (p->graph->after.at[n->after + i] == p->flow->task[from].node)
            return true;
    return false;
}

static bool always_holds(const gy_plan *p, const gy_dep *d, uint32_t to)
{
    if (d->kinds & GY_DEP_DATA && reads_from(p, d->from, to))
        return true;
    return d->kinds & GY_DEP_ORDER && is_after(p, d->from, to);
}

/* Its part of the work that the workers share; copies and collectives have lanes of their own, and what a device for
 * host calls may take is left out. */
static gy_ticks shared_work(const gy_plan *p, uint32_t node, gy_ticks time)
{
    uint32_t share = gy_plan_share(p, node);
    if (p->graph->nodes.at[node].kind == GY_NODE_COPY)
        return 0;
    for (uint32_t d = p->workers; d < p->devices; d++)
        if (gy_plan_time(p, node, d) < GY_TICKS_MAX)
            return 0;
    return share < 1000 ? time / 1000 * share : time;
}

gantry_status gy_plan_bound(gy_plan *p, gantry_error *err)
{
    const gy_flow *f = p->flow;
    gy_ticks *end = gy_calloc((size_t)f->tasks + 1, sizeof *end), work = 0, chain = 0;
    if (!end)
        return gy_fail_nomem(err);
    for (uint32_t t = 0; t < f->tasks; t++) {
        gy_ticks time = fastest(p, f->task[t].node);
        for (size_t i = f->dep_first[t]; i < f->dep_first[t + 1]; i++)
            if (end[f->dep[i].from] > end[t] && always_holds(p, &f->dep[i], t))
                end[t] = end[f->dep[i].from];
        end[t] += time;
        chain = end[t] > chain ? end[t] : chain;
        if (work < GY_TICKS_MAX) /* less is still a bound */
            work += shared_work(p, f->task[t].node, time);
    }
    gy_free(end);
    p->bound = work / p->workers > chain ? work / p->workers : chain;
    return GANTRY_OK;
}
