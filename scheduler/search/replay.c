/* SPDX-License-Identifier: Apache-2.0 */
/* The policy "search" repeats a placement. It leaves no more gaps than the model of search: no task ends later. */
#include "scheduler/place/place.h"

#include "base/error.h"
#include "scheduler/policies/policy.h"
#include "scheduler/search/search.h"

const char gy_search_name[] = "search", gy_optimal_name[] = "optimal";

static gantry_status place(gy_plan *p, gantry_error *err)
{
    const gy_candidate *c = p->attempt->candidate;
    for (uint32_t i = 0; i < c->tasks; i++)
        GY_TRY(gy_place_on(p, c->order[i], c->device[c->order[i]], err));
    return GANTRY_OK;
}

const gy_policy gy_policy_replay = {
    .name = gy_search_name,
    .summary = "places tasks where a search found that they should go",
    .place = place,
};
