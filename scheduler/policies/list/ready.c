/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/policies/list/ready.h"

#include "base/error.h"

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

/* ---- the queue: a heap whose entries hold what they are compared by, so that no comparison goes far for it ---- */

typedef struct waiting {
    gy_rank rank;
    int32_t priority;
    uint32_t task;
} waiting;

typedef struct queue {
    const gy_plan *p;
    const gy_rank *rank;
    GY_VEC(waiting) at;
} queue;

static bool goes_before(const waiting *a, const waiting *b)
{
    if (a->priority != b->priority)
        return a->priority > b->priority;
    return a->rank != b->rank ? a->rank > b->rank : a->task < b->task;
}

static bool push(queue *q, uint32_t task)
{
    waiting new = { q->rank[task], gy_priority(q->p, task), task };
    if (!gy_vec_push(&q->at, new))
        return false;
    waiting *at = q->at.at;
    size_t i = q->at.count - 1;
    for (; i && goes_before(&new, &at[(i - 1) / 2]); i = (i - 1) / 2)
        at[i] = at[(i - 1) / 2];
    at[i] = new;
    return true;
}

static uint32_t pop(queue *q)
{
    waiting *at = q->at.at, last = at[--q->at.count];
    uint32_t top = at[0].task;
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < q->at.count; i = child) {
        if (child + 1 < q->at.count && goes_before(&at[child + 1], &at[child]))
            child++;
        if (!goes_before(&at[child], &last))
            break;
        at[i] = at[child];
    }
    at[i] = last;
    return top;
}

static gantry_status push_ready(queue *q, const gy_ready *r, uint32_t task, gantry_error *err)
{
    for (size_t i = r->first[task]; i < r->first[task + 1]; i++)
        if (!--r->waits[r->next[i]] && !push(q, r->next[i]))
            return gy_fail_nomem(err);
    return GANTRY_OK;
}

gantry_status gy_place_by_rank(gy_plan *p, const gy_rank *rank, gy_place_one place, void *context, gantry_error *err)
{
    queue q = { .p = p, .rank = rank };
    gy_ready r;
    gantry_status status = gy_ready_init(&r, p) ? GANTRY_OK : gy_fail_nomem(err);
    for (uint32_t t = 0; !status && t < p->flow->tasks; t++)
        if (!r.waits[t] && !push(&q, t))
            status = gy_fail_nomem(err);
    while (!status && q.at.count) {
        uint32_t task = pop(&q);
        status = place(p, task, context, err);
        if (!status)
            status = push_ready(&q, &r, task, err);
    }
    gy_vec_free(&q.at);
    gy_ready_free(&r);
    return status;
}
