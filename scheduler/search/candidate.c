/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/search/candidate.h"

#include <stdlib.h>
#include <string.h>

bool gy_candidate_init(gy_candidate *c, uint32_t tasks)
{
    *c = (gy_candidate){ .tasks = tasks, .model = GY_TICKS_MAX, .simulated = GY_TICKS_MAX };
    c->order = gy_calloc((size_t)tasks + 1, sizeof *c->order);
    c->device = gy_calloc((size_t)tasks + 1, sizeof *c->device);
    return c->order && c->device;
}

void gy_candidate_free(gy_candidate *c)
{
    gy_free(c->order);
    gy_free(c->device);
    *c = (gy_candidate){ 0 };
}

void gy_candidate_copy(gy_candidate *to, const gy_candidate *from)
{
    memcpy(to->order, from->order, from->tasks * sizeof *to->order);
    memcpy(to->device, from->device, from->tasks * sizeof *to->device);
    to->model = from->model;
    to->simulated = from->simulated;
}

bool gy_candidate_is_same(const gy_candidate *a, const gy_candidate *b)
{
    return !memcmp(a->order, b->order, a->tasks * sizeof *a->order) &&
           !memcmp(a->device, b->device, a->tasks * sizeof *a->device);
}

void gy_candidate_from_plan(gy_candidate *c, const gy_plan *p)
{
    memcpy(c->order, p->placed.order, c->tasks * sizeof *c->order);
    memcpy(c->device, p->placed.device, c->tasks * sizeof *c->device);
    c->model = c->simulated = GY_TICKS_MAX;
}

/* Ops are in an order in which old rows in another memory may be overwritten before they are read here; a task's key is
 * at least that of its predecessors, so that sorting by key, then by number, is topological. */
static int by_key(const void *a, const void *b, void *context)
{
    const uint32_t *key = context;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    if (key[x] != key[y])
        return key[x] < key[y] ? -1 : 1;
    return x < y ? -1 : x > y;
}

static bool find_tasks(gy_map *task_of, const gy_flow *flow)
{
    bool done = true;
    for (uint32_t t = 0; t < flow->tasks && done; t++)
        done = gy_map_put(task_of, (uint64_t)flow->task[t].node << 32 | flow->task[t].iteration, t);
    return done;
}

bool gy_candidate_from_schedule(gy_candidate *c, const gantry_schedule *s, const gy_flow *flow)
{
    gy_map task_of = { 0 };
    uint32_t *key = gy_calloc((size_t)c->tasks + 1, sizeof *key);
    bool done = key && find_tasks(&task_of, flow);
    for (uint32_t i = 0; i < s->ops.count && done; i++) {
        const gy_op *op = &s->ops.at[i];
        uint64_t t;
        if (op->node == GY_NONE || op->repeat || !gy_map_get(&task_of, (uint64_t)op->node << 32 | op->iteration, &t))
            continue;
        key[t] = i;
        c->device[t] = gy_op_device(s, op, 0);
    }
    for (uint32_t t = 0; t < c->tasks && done; t++) {
        c->order[t] = t;
        for (const gy_dep *d = gy_deps_begin(flow, t); d < gy_deps_end(flow, t); d++)
            if (key[d->from] > key[t])
                key[t] = key[d->from];
    }
    if (done)
        qsort_r(c->order, c->tasks, sizeof *c->order, by_key, key);
    c->model = c->simulated = GY_TICKS_MAX;
    gy_map_free(&task_of);
    gy_free(key);
    return done;
}
