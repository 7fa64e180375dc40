/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Lookahead HEFT: L. F. Bittencourt, R. Sakellariou, E. R. M. Madeira, DAG Scheduling Using a Lookahead Variant of the
 * Heterogeneous Earliest Finish Time Algorithm, PDP 2010; one level. Tasks by falling upward rank. A device is judged
 * by the task's successors: with the task there, all of them are placed as HEFT would (by falling rank, each where it
 * ends first, taking time from the next), as far as their predecessors are known; the last of these ends counts. The
 * lower device of equals. A task without successors goes where it ends first.
 *
 * A collective has no choice of device and takes no time from one: as a successor it counts with the end of the task.
 *
 * Cost: O(p^2 sum over dependencies of (predecessors of the successor + log n)).
 */
#include "base/error.h"
#include "scheduler/place/place.h"
#include "scheduler/policies/list/ready.h"
#include "scheduler/policies/policy.h"
#include <stdlib.h>

typedef struct lookahead {
    gy_plan *p;
    gy_rank *rank;
    size_t *first; /* per task: its successors in `next`, by falling rank */
    uint32_t *next;
    uint32_t *booked;
} lookahead;

static bool find_earliest(gy_plan *p, uint32_t task, gy_try *best)
{
    best->device = GY_NONE;
    for (uint32_t d = 0; d < p->devices; d++) {
        if (!gy_place_allowed(p, task, d))
            continue;
        gy_try t = gy_place_try(p, task, d);
        if (best->device == GY_NONE || t.finish < best->finish)
            *best = t;
    }
    return best->device != GY_NONE;
}

/* When the last successor of the task would end, with the task in its place. Nothing of it stays. */
static gantry_status look(lookahead *a, uint32_t task, gy_ticks *last, gantry_error *err)
{
    gantry_status status = GANTRY_OK;
    uint32_t booked = 0;
    *last = a->p->placed.finish[task];
    for (size_t i = a->first[task]; i < a->first[task + 1] && !status; i++) {
        uint32_t next = a->next[i];
        gy_try t;
        if (gy_plan_team(a->p, next) || !find_earliest(a->p, next, &t))
            continue; /* nothing allowed: the error comes when it is the task's turn */
        status = gy_place_at(a->p, next, &t, err);
        if (!status)
            a->booked[booked++] = next;
        *last = t.finish > *last ? t.finish : *last;
    }
    while (booked)
        gy_place_undo(a->p, a->booked[--booked]);
    return status;
}

static gantry_status place_one(gy_plan *p, uint32_t task, void *context, gantry_error *err)
{
    lookahead *a = context;
    gy_try best = { .device = GY_NONE };
    gy_ticks least = 0, last;
    gantry_status status = GANTRY_OK;
    for (uint32_t d = 0; d < p->devices && !status && !gy_plan_team(p, task); d++) {
        if (!gy_place_allowed(p, task, d))
            continue;
        gy_try t = gy_place_try(p, task, d);
        status = gy_place_at(p, task, &t, err);
        if (status)
            break;
        status = look(a, task, &last, err);
        gy_place_undo(p, task);
        if (!status && (best.device == GY_NONE || last < least)) {
            best = t;
            least = last;
        }
    }
    if (status)
        return status;
    return best.device == GY_NONE ? gy_place_earliest(p, task, err) : gy_place_at(p, task, &best, err);
}

/* The successors of a task are the members of all the lists that it is in. */
static void add_next(lookahead *a, const gy_followers *f, uint32_t task)
{
    size_t count = a->first[task];
    for (size_t i = f->list_first[task]; i < f->list_first[task + 1]; i++)
        for (size_t k = f->member_first[f->list[i]]; k < f->member_first[f->list[i] + 1]; k++)
            a->next[count++] = f->member[k];
    a->first[task + 1] = count;
    qsort_r(a->next + a->first[task], count - a->first[task], sizeof *a->next, gy_by_falling_rank, a->rank);
}

static bool make(lookahead *a)
{
    const gy_flow *flow = a->p->flow;
    gy_followers f;
    a->rank = gy_upward_ranks(a->p, GY_BY_MEAN);
    a->booked = gy_calloc((size_t)flow->tasks + 1, sizeof *a->booked);
    a->first = gy_calloc((size_t)flow->tasks + 1, sizeof *a->first);
    a->next = gy_calloc(flow->deps + 1, sizeof *a->next);
    bool done = gy_followers_make(&f, flow) && a->rank && a->booked && a->first && a->next;
    for (uint32_t t = 0; t < flow->tasks && done; t++)
        add_next(a, &f, t);
    gy_followers_free(&f);
    return done;
}

static gantry_status place(gy_plan *p, gantry_error *err)
{
    lookahead a = { .p = p };
    bool done = make(&a);
    gantry_status status = done ? gy_place_by_rank(p, a.rank, place_one, &a, err) : gy_fail_nomem(err);
    gy_free(a.first);
    gy_free(a.next);
    gy_free(a.rank);
    gy_free(a.booked);
    return status;
}

const gy_policy gy_policy_lookahead = {
    .name = "lookahead",
    .summary = "HEFT that tries the successors too (Bittencourt 2010)",
    .place = place,
    .largest = GY_MIDDLE_GRAPHS,
    .pairs = true,
};
