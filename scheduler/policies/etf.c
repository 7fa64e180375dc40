/* SPDX-License-Identifier: Apache-2.0 */
/**
 * ETF, earliest task first: J.-J. Hwang, Y.-C. Chow, F. D. Anger, C.-Y. Lee, Scheduling Precedence Graphs in Systems
 * with Interprocessor Communication Times, SIAM J. Computing 18(2), 1989. Of all pairs of a ready task and a device the
 * one that can start earliest; of equals the task with the largest static level (the mean times on the longest path to
 * the end, without transfers), then the lower task, then the lower device. No insertion. It looks at starts and not at
 * ends, so it does not know a fast device from a slow one.
 *
 * Cost: O(e p + n p log n).
 */
#include "scheduler/policies/etf.h"

#include "base/error.h"
#include "scheduler/policies/policy.h"

gantry_status gy_etf(gy_plan *p, gy_pairing *how, gantry_error *err)
{
    gy_ranks r;
    gy_rank *level = gy_calloc((size_t)p->flow->tasks + 1, sizeof *level);
    bool done = gy_ranks_init(&r, p, GY_BY_MEAN) && level && gy_ranks_up(&r, false, level);
    gy_ranks_free(&r);
    how->level = level;
    gantry_status status = done ? gy_place_pairs(p, how, err) : gy_fail_nomem(err);
    gy_free(level);
    return status;
}

static gantry_status place(gy_plan *p, gantry_error *err)
{
    gy_pairing how = { 0 };
    return gy_etf(p, &how, err);
}

const gy_policy gy_policy_etf = {
    .name = "etf",
    .summary = "earliest start first (Hwang 1989)",
    .place = place,
    .largest = GY_MIDDLE_GRAPHS,
};
