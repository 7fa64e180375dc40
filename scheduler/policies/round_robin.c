/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks in the flow's order, dealt out to the devices in turn; those that must run elsewhere do not use up a turn. */
#include "scheduler/place/place.h"
#include "scheduler/policies/policy.h"

static gantry_status place(gy_plan *p, gantry_error *err)
{
    uint32_t next = 0;
    gantry_status status = GANTRY_OK;
    for (uint32_t t = 0; t < p->flow->tasks && !status; t++) {
        status = gy_place_on(p, t, next, err);
        if (p->placed.device[t] == next && !gy_plan_team(p, t))
            next = (next + 1) % p->workers;
    }
    return status;
}

const gy_policy gy_policy_round_robin = {
    .name = "round-robin",
    .summary = "deals tasks out to the devices in turn",
    .place = place,
    .largest = GY_LARGE_GRAPHS,
    .ignores_priority = true,
};
