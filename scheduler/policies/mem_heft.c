/* SPDX-License-Identifier: Apache-2.0 */
/**
 * MemHEFT: HEFT that leaves out devices whose memory has no room for the task (J. Herrmann, L. Marchal, Y. Robert,
 * Memory-aware list scheduling for hybrid platforms, IPDPS Workshops 2014), by memory_timeline.h. Here a memory may
 * have several devices, and a task that has room nowhere goes where least is missing: whether that fits in the end is
 * for the packer to say, which knows better when bytes are free again.
 *
 * Cost: that of HEFT, and per look at a device the cells that the task touches and the bookings after its start.
 */
#include "base/error.h"
#include "scheduler/place/place.h"
#include "scheduler/policies/list/memory_timeline.h"
#include "scheduler/policies/list/ready.h"
#include "scheduler/policies/policy.h"

typedef struct choice {
    gy_try at;
    uint64_t excess;
} choice;

static gantry_status place_one(gy_plan *p, uint32_t task, void *context, gantry_error *err)
{
    gy_memory_timeline *timeline = context;
    choice best = { .at = { .device = GY_NONE } };
    for (uint32_t d = 0; d < p->devices && !gy_plan_team(p, task); d++) {
        if (!gy_place_allowed(p, task, d))
            continue;
        choice c = { .at = gy_place_try(p, task, d) };
        c.excess = gy_memory_timeline_excess(timeline, task, p->machine->device[d].memory, c.at.start);
        if (best.at.device == GY_NONE || c.excess < best.excess ||
            (c.excess == best.excess && c.at.finish < best.at.finish))
            best = c;
    }
    /* Collectives go where their ranks are; without a device that is allowed this says so. */
    gantry_status status =
        best.at.device == GY_NONE ? gy_place_earliest(p, task, err) : gy_place_at(p, task, &best.at, err);
    if (!status && !gy_memory_timeline_take(timeline, task))
        status = gy_fail_nomem(err);
    return status;
}

static gantry_status place(gy_plan *p, gantry_error *err)
{
    gy_rank *rank = gy_upward_ranks(p, GY_BY_MEAN);
    gy_memory_timeline *timeline = gy_memory_timeline_new(p);
    gantry_status status = rank && timeline ? gy_place_by_rank(p, rank, place_one, timeline, err) : gy_fail_nomem(err);
    gy_free(rank);
    gy_memory_timeline_free(timeline);
    return status;
}

const gy_policy gy_policy_mem_heft = {
    .name = "mem-heft",
    .summary = "HEFT, on devices whose memory has room (Herrmann 2014)",
    .place = place,
    .largest = GY_MIDDLE_GRAPHS,
    .last_resort = GY_ANY_SIZE,
};
