/* SPDX-License-Identifier: Apache-2.0 */
/**
 * DLS, dynamic level scheduling: G. C. Sih, E. A. Lee, A Compile-Time Scheduling Heuristic for
 * Interconnection-Constrained Heterogeneous Processor Architectures, IEEE TPDS 4(2), 1993. Of all pairs of a ready task
 * and a device the one of the largest dynamic level:
 *
 *   DL(t, d) = SL(t) - max(data ready, device free) + (median time of t - time of t on d)
 *
 * where SL is the static level with median times and without transfers. No insertion. Equal levels: lower task, then
 * lower device. As published the level also looks at where descendants could run; that term is left out here, as in
 * most later comparisons.
 *
 * Cost: O(e p + n p log n); see pairs.h for why not n^3.
 */
#include "base/error.h"
#include "scheduler/policies/list/pairs.h"
#include "scheduler/policies/policy.h"

static gantry_status place(gy_plan *p, gantry_error *err)
{
    gy_ranks r;
    gy_rank *level = gy_calloc((size_t)p->flow->tasks + 1, sizeof *level);
    bool done = gy_ranks_init(&r, p, GY_BY_MEDIAN) && level && gy_ranks_up(&r, false, level);
    for (uint32_t t = 0; t < p->flow->tasks && done; t++)
        level[t] += gy_ranks_time(&r, t);
    gy_pairing how = { .level = level, .unit = r.scale };
    gy_ranks_free(&r);
    gantry_status status = done ? gy_place_pairs(p, &how, err) : gy_fail_nomem(err);
    gy_free(level);
    return status;
}

const gy_policy gy_policy_dls = {
    .name = "dls",
    .summary = "largest dynamic level first (Sih, Lee 1993)",
    .place = place,
    .largest = GY_MIDDLE_GRAPHS,
};
