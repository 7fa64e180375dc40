/* SPDX-License-Identifier: Apache-2.0 */
/* Devices by kind: those that take the same times for all nodes. */
#include "base/error.h"
#include "scheduler/bound/bound.h"
#include "scheduler/bound/bound_kinds.h"
#include "scheduler/cost/cost.h"
#include <math.h>

#define LOOKS UINT64_C(8000000) /* at nodes on devices: beyond that no kinds are looked for */

typedef struct maker {
    gy_kind_work *w;
    const gy_plan *p;
    bool batches;
    uint32_t *device; /* per kind */
    bool *work;       /* per node: is_work */
} maker;

/* The work of copies, and of what a device for host calls may take, is not that of the workers. */
static bool is_work(const maker *m, uint32_t node)
{
    if (m->p->graph->nodes.at[node].kind == GY_NODE_COPY)
        return false;
    for (uint32_t d = m->p->workers; d < m->p->devices; d++)
        if (gy_plan_time(m->p, node, d) < GY_TICKS_MAX)
            return false;
    return true;
}

static gy_kind_time time_on(const maker *m, uint32_t node, uint32_t device)
{
    gy_ticks time = gy_plan_time(m->p, node, device), hold, added;
    if (m->p->graph->nodes.at[node].kind == GY_NODE_COLLECTIVE)
        return (gy_kind_time){ 0, 0 }; /* depends on where its ranks are */
    if (time >= GY_TICKS_MAX)
        return (gy_kind_time){ HUGE_VAL, HUGE_VAL };
    hold = time - gy_device_overlap(&m->p->machine->device[device], time);
    added = m->batches ? gy_plan_batched(m->p, node, device) : hold;
    hold = added < hold ? added : hold;
    double share = (double)(GY_WHOLE_DEVICE - gy_plan_spare(m->p, node, device)) / GY_WHOLE_DEVICE;
    return (gy_kind_time){ (double)time, m->work[node] ? (double)hold * share : 0 };
}

static bool is_same(double a, double b)
{
    return !(a < b) && !(a > b);
}

static bool is_alike(const maker *m, uint32_t a, uint32_t b)
{
    bool same = (a < m->p->workers) == (b < m->p->workers);
    for (uint32_t n = 0; n < m->p->graph->nodes.count && same; n++) {
        gy_kind_time x = time_on(m, n, a), y = time_on(m, n, b);
        same = is_same(x.time, y.time) && is_same(x.hold, y.hold);
    }
    return same;
}

/* false: there are more kinds than `most`. */
static bool find_kinds(maker *m, uint32_t most)
{
    gy_kind_work *w = m->w;
    for (uint32_t d = 0; d < m->p->devices; d++) {
        uint32_t k = 0;
        while (k < w->kinds && !is_alike(m, m->device[k], d))
            k++;
        if (k == most)
            return false;
        if (k == w->kinds)
            m->device[w->kinds++] = d;
        w->count[k] += d < m->p->workers;
        w->kind[d] = k;
    }
    return true;
}

static bool list_tasks(maker *m)
{
    const gy_flow *f = m->p->flow;
    gy_kind_work *w = m->w;
    w->time = gy_calloc((size_t)f->tasks * w->kinds + 1, sizeof *w->time);
    w->first = gy_calloc((size_t)f->tasks + 2, sizeof *w->first);
    w->before = gy_calloc(f->deps + 1, sizeof *w->before);
    if (!w->time || !w->first || !w->before)
        return false;
    uint32_t count = 0;
    for (uint32_t t = 0; t < f->tasks; t++) {
        w->first[t] = count;
        for (uint32_t k = 0; k < w->kinds; k++)
            w->time[(size_t)t * w->kinds + k] = time_on(m, f->task[t].node, m->device[k]);
        for (const gy_dep *d = gy_deps_begin(f, t); d < gy_deps_end(f, t); d++)
            if (gy_plan_holds(m->p, d, t))
                w->before[count++] = d->from;
    }
    w->first[f->tasks] = count;
    w->tasks = f->tasks;
    return true;
}

gantry_status gy_kind_work_make(gy_kind_work *w, const gy_plan *p, uint32_t most, gantry_error *err)
{
    maker m = { .w = w, .p = p, .batches = gy_plan_may_batch(p) };
    *w = (gy_kind_work){ 0 };
    w->count = gy_calloc((size_t)most + 1, sizeof *w->count);
    w->kind = gy_calloc((size_t)p->devices + 1, sizeof *w->kind);
    m.device = gy_calloc((size_t)most + 1, sizeof *m.device);
    m.work = gy_calloc((size_t)p->graph->nodes.count + 1, sizeof *m.work);
    bool done = w->count && w->kind && m.device && m.work, large = (uint64_t)p->graph->nodes.count * p->devices > LOOKS;
    for (uint32_t n = 0; n < p->graph->nodes.count && done && !large; n++)
        m.work[n] = is_work(&m, n);
    if (done && !large) {
        bool few = find_kinds(&m, most);
        w->kinds = few ? w->kinds : 0;
        done = w->kinds < 2 || list_tasks(&m);
    }
    gy_free(m.device);
    gy_free(m.work);
    return done ? GANTRY_OK : gy_fail_nomem(err);
}

void gy_kind_work_free(gy_kind_work *w)
{
    gy_free(w->kind);
    gy_free(w->count);
    gy_free(w->time);
    gy_free(w->first);
    gy_free(w->before);
    *w = (gy_kind_work){ 0 };
}
