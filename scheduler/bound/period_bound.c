/* SPDX-License-Identifier: Apache-2.0 */

#include "base/error.h"
#include "scheduler/bound/bound.h"

#define CHAINS 64                 /* readers of states that are followed */
#define STEPS  UINT64_C(20000000) /* dependencies looked at for them */

typedef struct chains {
    const gy_plan *p;
    gy_ticks *end; /* per task: longest chain from the reader to its end; -1: none */
    gy_ticks most;
    uint64_t steps;
    uint32_t readers;
} chains;

static const gy_access *access_of(const gy_plan *p, uint32_t task, uint32_t k)
{
    return gy_flow_access_of(p->graph, p->flow, p->flow->task[task].access + k);
}

static uint32_t value_of(const gy_plan *p, uint32_t task, uint32_t k)
{
    return p->flow->access[p->flow->task[task].access + k].value;
}

/* Does one of the tasks [first, last) change any of the rows? */
static bool is_changed(const gy_plan *p, uint32_t value, int64_t from, int64_t to, uint32_t first, uint32_t last)
{
    for (uint32_t t = first; t < last; t++)
        for (uint32_t k = 0; k < gy_plan_node(p, t)->accesses; k++) {
            const gy_access *a = access_of(p, t, k);
            if (value_of(p, t, k) == value && a->mode != GANTRY_READ && a->first < to && from < a->last)
                return true;
        }
    return false;
}

static void follow(chains *c, uint32_t reader)
{
    const gy_flow *f = c->p->flow;
    for (uint32_t t = 0; t < f->tasks; t++) {
        gy_ticks before = t == reader ? 0 : -1;
        for (const gy_dep *d = gy_deps_begin(f, t); t > reader && d < gy_deps_end(f, t); d++)
            if (c->end[d->from] > before && gy_plan_holds(c->p, d, t))
                before = c->end[d->from];
        c->end[t] = before < 0 ? -1 : before + gy_bound_fastest(c->p, f->task[t].node);
    }
    c->steps += f->deps + f->tasks;
}

/* The reader's rows [first, last) of a state: who writes them last, at the end of a chain from the reader? */
static void close_chains(chains *c, uint32_t buffer, uint32_t reader, int64_t first, int64_t last)
{
    const gy_flow *f = c->p->flow;
    for (uint32_t t = reader; t < f->tasks; t++)
        for (uint32_t k = 0; c->end[t] > c->most && k < gy_plan_node(c->p, t)->accesses; k++) {
            const gy_access *a = access_of(c->p, t, k);
            int64_t from = a->first > first ? a->first : first, to = a->last < last ? a->last : last;
            if (value_of(c->p, t, k) != f->exit[buffer] || a->mode == GANTRY_READ || from >= to)
                continue;
            if (!is_changed(c->p, f->exit[buffer], from, to, t + 1, f->tasks))
                c->most = c->end[t];
        }
}

static void look_at_reader(chains *c, uint32_t task)
{
    const gy_plan *p = c->p;
    bool followed = false;
    for (uint32_t k = 0; k < gy_plan_node(p, task)->accesses && c->readers < CHAINS && c->steps < STEPS; k++) {
        const gy_access *a = access_of(p, task, k);
        uint32_t value = value_of(p, task, k), buffer = p->flow->value[value].buffer;
        bool reads = a->mode == GANTRY_READ || a->mode == GANTRY_READWRITE;
        if (!reads || p->graph->buffers.at[buffer].cls != GANTRY_STATE || p->flow->entry[buffer] != value ||
            a->first >= a->last || is_changed(p, value, a->first, a->last, 0, task))
            continue;
        if (!followed)
            follow(c, task);
        followed = true;
        c->readers++;
        close_chains(c, buffer, task, a->first, a->last);
    }
}

static gantry_status longest_circle(const gy_plan *p, gy_ticks *most, gantry_error *err)
{
    chains c = { .p = p, .end = gy_calloc((size_t)p->flow->tasks + 1, sizeof *c.end) };
    if (!c.end)
        return gy_fail_nomem(err);
    for (uint32_t t = 0; t < p->flow->tasks && c.readers < CHAINS && c.steps < STEPS; t++)
        look_at_reader(&c, t);
    *most = c.most > *most ? c.most : *most;
    gy_free(c.end);
    return GANTRY_OK;
}

gantry_status gy_period_bound(const gy_plan *p, gy_ticks *bound, gantry_error *err)
{
    gy_ticks most = 0;
    gantry_status status = gy_bound_throughput(p, &most, err);
    if (!status)
        status = longest_circle(p, &most, err);
    if (!status)
        *bound = most;
    return status;
}
