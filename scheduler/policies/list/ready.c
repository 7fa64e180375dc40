/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/policies/list/ready.h"

#include "base/error.h"
#include <stdlib.h>

bool gy_ready_init(gy_ready *r, const gy_plan *p)
{
    const gy_flow *f = p->flow;
    *r = (gy_ready){ .flow = f };
    r->waits = gy_calloc((size_t)f->lists + 1, sizeof *r->waits);
    r->now = gy_calloc((size_t)f->tasks + 1, sizeof *r->now);
    if (!gy_followers_make(&r->followers, f) || !r->waits || !r->now)
        return false;
    for (uint32_t l = 0; l < f->lists; l++)
        r->waits[l] = (uint32_t)(f->dep_first[l + 1] - f->dep_first[l]);
    return true;
}

void gy_ready_free(gy_ready *r)
{
    gy_followers_free(&r->followers);
    gy_free(r->waits);
    gy_free(r->now);
}

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

void gy_ready_placed(gy_ready *r, uint32_t task)
{
    const gy_followers *f = &r->followers;
    bool rising = true;
    r->count = 0;
    for (size_t i = f->list_first[task]; i < f->list_first[task + 1]; i++) {
        if (--r->waits[f->list[i]])
            continue;
        for (size_t k = f->member_first[f->list[i]]; k < f->member_first[f->list[i] + 1]; k++) {
            rising = rising && (!r->count || r->now[r->count - 1] < f->member[k]);
            r->now[r->count++] = f->member[k];
        }
    }
    if (!rising)
        qsort(r->now, r->count, sizeof *r->now, by_number);
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

static gantry_status push_ready(queue *q, gy_ready *r, uint32_t task, gantry_error *err)
{
    gy_ready_placed(r, task);
    for (size_t i = 0; i < r->count; i++)
        if (!push(q, r->now[i]))
            return gy_fail_nomem(err);
    return GANTRY_OK;
}

gantry_status gy_place_by_rank(gy_plan *p, const gy_rank *rank, gy_place_one place, void *context, gantry_error *err)
{
    queue q = { .p = p, .rank = rank };
    gy_ready r;
    gantry_status status = gy_ready_init(&r, p) ? GANTRY_OK : gy_fail_nomem(err);
    for (uint32_t t = 0; !status && t < p->flow->tasks; t++)
        if (gy_ready_is(&r, t) && !push(&q, t))
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
