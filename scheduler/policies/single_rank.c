/* SPDX-License-Identifier: Apache-2.0 */
/* Everything on device 0, by falling upward rank as HEFT goes (heft.c): what more devices have to beat. */
#include "scheduler/place/place.h"
#include "scheduler/policies/list/ready.h"
#include "scheduler/policies/policy.h"

#include "base/error.h"

static gantry_status on_first(gy_plan *p, uint32_t task, void *context, gantry_error *err)
{
    (void)context;
    return gy_place_on(p, task, 0, err);
}

static gantry_status place(gy_plan *p, gantry_error *err)
{
    gy_rank *rank = gy_upward_ranks(p, GY_BY_MEAN);
    gantry_status status = rank ? gy_place_by_rank(p, rank, on_first, NULL, err) : gy_fail_nomem(err);
    gy_free(rank);
    return status;
}

const gy_policy gy_policy_single_rank = {
    .name = "single-rank",
    .summary = "puts everything on the first device, by falling upward rank",
    .place = place,
    .largest = GY_LARGE_GRAPHS,
};
