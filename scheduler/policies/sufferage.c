/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Sufferage: of the ready tasks the one that would lose most by going to its second-best device, on its best, gaps
 * included. M. Maheswaran, S. Ali, H. J. Siegel, D. Hensgen, R. F. Freund, Dynamic Mapping of a Class of Independent
 * Tasks onto Heterogeneous Computing Systems, J. Parallel Distrib. Comput. 59(2), 1999; here one task at a time, with
 * the loss looked at again after each. A task with one device to go to loses most.
 *
 * Cost: see batch.h; O(n r) for r ready tasks at a time.
 */
#include "scheduler/policies/list/batch.h"
#include "scheduler/policies/policy.h"

static int compare(const gy_choice *a, const gy_choice *b)
{
    gy_ticks x = a->second - a->best, y = b->second - b->best;
    return x > y ? -1 : x < y;
}

static gantry_status place(gy_plan *p, gantry_error *err)
{
    return gy_place_batch(p, &(gy_batch_rule){ compare, true }, err);
}

const gy_policy gy_policy_sufferage = {
    .name = "sufferage",
    .summary = "of the ready nodes the one with most to lose (Maheswaran 1999)",
    .place = place,
    .largest = GY_MIDDLE_GRAPHS,
};
