/* SPDX-License-Identifier: Apache-2.0 */
/**
 * HEFT that sees contention: each transfer is booked on the links and copy engines of its route while tasks are placed,
 * so a task ends first where its data can really get to. O. Sinnen, L. A. Sousa, Communication Contention in Task
 * Scheduling, IEEE TPDS 16(6), 2005; how the booking goes is told in scheduler/links.h. On a machine with contention
 * off it is HEFT.
 *
 * Of devices where a task ends equally soon, the one with least work so far: where the way out of host memory is what
 * all wait for, ends are equal everywhere, and the lowest device would get it all.
 *
 * Cost: O(n p log n + e p r log e), r resources on a route.
 */
#include "scheduler/place/links.h"

#include "base/error.h"
#include "scheduler/place/place.h"
#include "scheduler/policies/heft.h"
#include "scheduler/policies/list/ready.h"
#include "scheduler/policies/policy.h"

static gantry_status place_one(gy_plan *p, uint32_t task, void *context, gantry_error *err)
{
    gy_ticks *work = context;
    gy_try best = { .device = GY_NONE };
    for (uint32_t d = 0; d < p->devices && !gy_plan_team(p, task); d++) {
        if (!gy_place_allowed(p, task, d))
            continue;
        gy_try t = gy_place_try(p, task, d);
        if (best.device == GY_NONE || t.finish < best.finish ||
            (t.finish == best.finish && work[d] < work[best.device]))
            best = t;
    }
    if (best.device == GY_NONE)
        return gy_place_earliest(p, task, err);
    work[best.device] += best.finish - best.start;
    return gy_place_at(p, task, &best, err);
}

static gantry_status place(gy_plan *p, gantry_error *err)
{
    if (!p->machine->contention)
        return gy_heft(p, GY_BY_MEAN, err);
    gy_rank *rank = gy_upward_ranks(p, GY_BY_MEAN);
    gy_ticks *work = gy_calloc(p->devices, sizeof *work);
    bool done = rank && work && gy_links_open(p);
    gantry_status status = done ? gy_place_by_rank(p, rank, place_one, work, err) : gy_fail_nomem(err);
    gy_free(rank);
    gy_free(work);
    return status;
}

const gy_policy gy_policy_heft_links = {
    .name = "heft-links",
    .summary = "HEFT that books each transfer on its links (Sinnen, Sousa 2005)",
    .place = place,
    .largest = GY_LARGE_GRAPHS,
    .books = true,
};
