/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/policies/ready.h"

#include "base/error.h"
#include "scheduler/policies/heap.h"

static void fill(gy_ready *r)
{
    const gy_flow *f = r->p->flow;
    for (size_t i = 0; i < f->dep_first[f->tasks]; i++)
        r->first[f->dep[i].from + 1]++;
    for (uint32_t t = 0; t < f->tasks; t++) {
        r->first[t + 1] += r->first[t];
        r->waits[t] = (uint32_t)(f->dep_first[t + 1] - f->dep_first[t]);
    }
    /* From behind: first[t + 1] walks from the end of t's successors to their begin, and is moved down afterwards. */
    for (uint32_t t = f->tasks; t-- > 0;)
        for (size_t i = f->dep_first[t + 1]; i-- > f->dep_first[t];)
            r->next[--r->first[f->dep[i].from + 1]] = t;
    for (uint32_t t = 0; t < f->tasks; t++)
        r->first[t] = r->first[t + 1];
    r->first[f->tasks] = f->dep_first[f->tasks];
}

bool gy_ready_init(gy_ready *r, const gy_plan *p)
{
    size_t tasks = p->flow->tasks;
    *r = (gy_ready){ .p = p };
    r->waits = gy_calloc(tasks + 1, sizeof *r->waits);
    r->first = gy_calloc(tasks + 1, sizeof *r->first);
    r->next = gy_calloc(p->flow->dep_first[tasks] + 1, sizeof *r->next);
    if (!r->waits || !r->first || !r->next)
        return false;
    fill(r);
    return true;
}

void gy_ready_free(gy_ready *r)
{
    gy_free(r->waits);
    gy_free(r->first);
    gy_free(r->next);
}

int gy_priority(const gy_plan *p, uint32_t task)
{
    const gy_node_extra *x = gy_plan_extra(p, p->flow->task[task].node);
    return x ? x->priority : 0;
}

typedef struct list {
    const gy_plan *p;
    const gy_rank *rank;
} list;

static bool goes_before(const void *context, uint32_t a, uint32_t b)
{
    const list *l = context;
    int x = gy_priority(l->p, a), y = gy_priority(l->p, b);
    if (x != y)
        return x > y;
    return l->rank[a] != l->rank[b] ? l->rank[a] > l->rank[b] : a < b;
}

static gantry_status push_ready(gy_heap *heap, const gy_ready *r, uint32_t task, gantry_error *err)
{
    for (size_t i = r->first[task]; i < r->first[task + 1]; i++)
        if (!--r->waits[r->next[i]] && !gy_heap_push(heap, r->next[i]))
            return gy_fail_nomem(err);
    return GANTRY_OK;
}

gantry_status gy_place_by_rank(gy_plan *p, const gy_rank *rank, gy_place_one place, void *context, gantry_error *err)
{
    list l = { p, rank };
    gy_heap heap = { .before = goes_before, .context = &l };
    gy_ready r;
    gantry_status status = gy_ready_init(&r, p) ? GANTRY_OK : gy_fail_nomem(err);
    for (uint32_t t = 0; !status && t < p->flow->tasks; t++)
        if (!r.waits[t] && !gy_heap_push(&heap, t))
            status = gy_fail_nomem(err);
    while (!status && heap.at.count) {
        uint32_t task = gy_heap_pop(&heap);
        status = place(p, task, context, err);
        if (!status)
            status = push_ready(&heap, &r, task, err);
    }
    gy_heap_free(&heap);
    gy_ready_free(&r);
    return status;
}
