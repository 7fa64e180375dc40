/* SPDX-License-Identifier: Apache-2.0 */
/**
 * HEFT with insertion: H. Topcuoglu, S. Hariri, M.-Y. Wu, Performance-Effective and Low-Complexity Task Scheduling for
 * Heterogeneous Computing, IEEE TPDS 13(3), 2002. Tasks by falling upward rank, each to the device where it ends first.
 * The rank of a task is its mean time plus the largest, over its successors, of the mean transfer time plus their rank.
 * Equal ranks: lower task number; equal finish: lower device. `priority` goes before rank among tasks whose
 * predecessors are placed; without it this order is the order of ranks.
 *
 * The variants take another figure for a task's time in its rank: the least, the most, the median over the devices
 * (H. Zhao, R. Sakellariou, An Experimental Investigation into the Rank Function of the Heterogeneous Earliest Finish
 * Time Scheduling Algorithm, Euro-Par 2003). None is always best; the best of the four is cheap to find.
 *
 * Cost: O(e p + n p log n) for n tasks, e dependencies, p devices.
 */
#include "scheduler/policies/heft.h"

#include "base/error.h"
#include "scheduler/place/place.h"
#include "scheduler/policies/list/ready.h"
#include "scheduler/policies/policy.h"

static gantry_status earliest(gy_plan *p, uint32_t task, void *context, gantry_error *err)
{
    (void)context;
    return gy_place_earliest(p, task, err);
}

gantry_status gy_heft(gy_plan *p, gy_rank_by by, gantry_error *err)
{
    gy_rank *rank = gy_upward_ranks(p, by);
    gantry_status status = rank ? gy_place_by_rank(p, rank, earliest, NULL, err) : gy_fail_nomem(err);
    gy_free(rank);
    return status;
}

static gantry_status place_mean(gy_plan *p, gantry_error *err)
{
    return gy_heft(p, GY_BY_MEAN, err);
}

static gantry_status place_least(gy_plan *p, gantry_error *err)
{
    return gy_heft(p, GY_BY_LEAST, err);
}

static gantry_status place_most(gy_plan *p, gantry_error *err)
{
    return gy_heft(p, GY_BY_MOST, err);
}

static gantry_status place_median(gy_plan *p, gantry_error *err)
{
    return gy_heft(p, GY_BY_MEDIAN, err);
}

const gy_policy gy_policy_heft = {
    .name = "heft",
    .summary = "heterogeneous earliest finish time, with insertion (Topcuoglu 2002)",
    .place = place_mean,
    .largest = GY_ANY_SIZE,
};
const gy_policy gy_policy_heft_min = {
    .name = "heft-min",
    .summary = "HEFT, ranks by the fastest device of each node",
    .place = place_least,
    .largest = GY_MIDDLE_GRAPHS,
};
const gy_policy gy_policy_heft_max = {
    .name = "heft-max",
    .summary = "HEFT, ranks by the slowest device of each node",
    .place = place_most,
    .largest = GY_MIDDLE_GRAPHS,
};
const gy_policy gy_policy_heft_median = {
    .name = "heft-median",
    .summary = "HEFT, ranks by the median device of each node",
    .place = place_median,
    .largest = GY_MIDDLE_GRAPHS,
};
