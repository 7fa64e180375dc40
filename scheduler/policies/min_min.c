/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Min-min: of the ready tasks the one whose earliest end is the earliest, on the device of that end, gaps included.
 * O. H. Ibarra, C. E. Kim, Heuristic Algorithms for Scheduling Independent Tasks on Nonidentical Processors, J. ACM
 * 24(2), 1977 (algorithm D), under the name of T. D. Braun et al., A Comparison of Eleven Static Heuristics, J.
 * Parallel Distrib. Comput. 61(6), 2001. Made for independent tasks: it does not know what hangs on a task.
 *
 * Cost: see batch.h; O(n r) for r ready tasks at a time.
 */
#include "scheduler/policies/list/batch.h"
#include "scheduler/policies/policy.h"

static int compare(const gy_choice *a, const gy_choice *b)
{
    return a->best < b->best ? -1 : a->best > b->best;
}

static gantry_status place(gy_plan *p, gantry_error *err)
{
    return gy_place_batch(p, &(gy_batch_rule){ compare, false }, err);
}

const gy_policy gy_policy_min_min = {
    .name = "min-min",
    .summary = "of the ready nodes the one that ends first (Ibarra, Kim 1977)",
    .place = place,
    .largest = GY_MIDDLE_GRAPHS,
};
