/* SPDX-License-Identifier: Apache-2.0 */
/**
 * CPOP, critical path on a processor: H. Topcuoglu, S. Hariri, M.-Y. Wu, Performance-Effective and Low-Complexity Task
 * Scheduling for Heterogeneous Computing, IEEE TPDS 13(3), 2002. Of the tasks that are ready the one with the largest
 * sum of upward and downward rank. The tasks of one longest path go to the device that runs all of them in least time
 * (that runs most of them, where none runs all), the others to where they end first, gaps included.
 *
 * The path begins at the first task of those without predecessors that have the largest sum, and follows at each step
 * the first successor whose sum is the same.
 *
 * Cost: O(e p + n p log n).
 */
#include "base/error.h"
#include "scheduler/place/place.h"
#include "scheduler/policies/list/ready.h"
#include "scheduler/policies/policy.h"

typedef struct cpop {
    gy_rank *rank; /* upward plus downward */
    uint8_t *on_path;
    uint32_t device; /* of the path */
} cpop;

static bool make_ranks(cpop *c, const gy_plan *p)
{
    gy_ranks r;
    gy_rank *up = gy_upward_ranks(p, GY_BY_MEAN);
    bool done = gy_ranks_init(&r, p, GY_BY_MEAN) && up && gy_ranks_down(&r, c->rank);
    for (uint32_t t = 0; t < p->flow->tasks && done; t++)
        c->rank[t] += up[t];
    gy_ranks_free(&r);
    gy_free(up);
    return done;
}

static uint32_t first_of_path(const cpop *c, const gy_flow *f)
{
    uint32_t best = GY_NONE;
    for (uint32_t t = 0; t < f->tasks; t++)
        if (gy_deps_begin(f, t) == gy_deps_end(f, t) && (best == GY_NONE || c->rank[t] > c->rank[best]))
            best = t;
    return best;
}

/* The first successor whose rank is that of the path. */
static uint32_t next_of_path(const cpop *c, const gy_followers *f, uint32_t task)
{
    uint32_t next = GY_NONE;
    for (size_t i = f->list_first[task]; i < f->list_first[task + 1]; i++)
        for (size_t k = f->member_first[f->list[i]]; k < f->member_first[f->list[i] + 1]; k++)
            if (c->rank[f->member[k]] == c->rank[task] && f->member[k] < next)
                next = f->member[k];
    return next;
}

static bool mark_path(cpop *c, const gy_plan *p)
{
    gy_followers f;
    bool done = gy_followers_make(&f, p->flow);
    for (uint32_t t = done ? first_of_path(c, p->flow) : GY_NONE; t != GY_NONE; t = next_of_path(c, &f, t))
        c->on_path[t] = 1;
    gy_followers_free(&f);
    return done;
}

static void choose_device(cpop *c, const gy_plan *p)
{
    uint32_t most = 0;
    gy_rank least = 0;
    for (uint32_t d = 0; d < p->devices; d++) {
        uint32_t runs = 0;
        gy_rank sum = 0;
        for (uint32_t t = 0; t < p->flow->tasks; t++) {
            gy_ticks time = c->on_path[t] ? gy_plan_time(p, p->flow->task[t].node, d) : GY_TICKS_MAX;
            runs += time < GY_TICKS_MAX;
            sum += time < GY_TICKS_MAX ? time : 0;
        }
        if (d == 0 || runs > most || (runs == most && sum < least)) {
            most = runs;
            least = sum;
            c->device = d;
        }
    }
}

static gantry_status place_one(gy_plan *p, uint32_t task, void *context, gantry_error *err)
{
    const cpop *c = context;
    if (!c->on_path[task] || gy_plan_team(p, task) || !gy_place_allowed(p, task, c->device))
        return gy_place_earliest(p, task, err);
    return gy_place_on(p, task, c->device, err);
}

static gantry_status place(gy_plan *p, gantry_error *err)
{
    size_t tasks = p->flow->tasks;
    cpop c = { .rank = gy_calloc(tasks + 1, sizeof *c.rank), .on_path = gy_calloc(tasks + 1, 1) };
    bool done = c.rank && c.on_path && make_ranks(&c, p) && mark_path(&c, p);
    if (done)
        choose_device(&c, p);
    gantry_status status = done ? gy_place_by_rank(p, c.rank, place_one, &c, err) : gy_fail_nomem(err);
    gy_free(c.rank);
    gy_free(c.on_path);
    return status;
}

const gy_policy gy_policy_cpop = {
    .name = "cpop",
    .summary = "the longest path on the one device that runs it fastest (Topcuoglu 2002)",
    .place = place,
    .largest = GY_LARGE_GRAPHS,
};
