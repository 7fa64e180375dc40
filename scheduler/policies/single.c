/* SPDX-License-Identifier: Apache-2.0 */
/* Everything on device 0; what cannot run there goes to the next device that can. The baseline of every comparison. */
#include "scheduler/place/place.h"

#include "base/error.h"
#include "scheduler/policies/policy.h"

static gantry_status place(gy_plan *p, gantry_error *err)
{
    for (uint32_t t = 0; t < p->flow->tasks; t++)
        GY_TRY(gy_place_on(p, t, 0, err));
    return GANTRY_OK;
}

const gy_policy gy_policy_single = {
    .name = "single",
    .summary = "puts everything on the first device",
    .place = place,
    .largest = GY_LARGE_GRAPHS,
    .ignores_priority = true,
};
