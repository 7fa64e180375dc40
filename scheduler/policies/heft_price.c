/* SPDX-License-Identifier: Apache-2.0 */
/**
 * HEFT where devices are of several kinds, and the fast ones have a price. The relaxation of the problem in which work
 * is shared out among kinds (bound_kinds.h) gives each kind a price: what a unit of its time is worth, counted in
 * makespan. At these prices a task is cheapest on some kind; elsewhere it costs more, and all schedules are longer by
 * what is wasted so. A task goes to the device where end + DEAR x waste is least: with DEAR 0 that is HEFT, which lets
 * each device grab whatever it ends first, and with very large DEAR every task is on the kind that the relaxation gives
 * it. The lower device of equals.
 *
 * Prices are the dual of the assignment by fractions in M. Amaris, G. Lucarelli, C. Mommessin, D. Trystram, Generic
 * algorithms for scheduling applications on hybrid multi-core machines, Euro-Par 2017, without chains.
 *
 * Ranks are by mean or by least times. Where devices are of one kind it is HEFT. Cost: as HEFT, and O(n k) for k kinds.
 */
#include "base/error.h"
#include "scheduler/bound/bound_kinds.h"
#include "scheduler/place/place.h"
#include "scheduler/policies/heft.h"
#include "scheduler/policies/list/ready.h"
#include "scheduler/policies/policy.h"
#include <math.h>

#define DEAR  10
#define KINDS 8 /* more than these: no prices are looked for */

typedef struct priced {
    gy_kind_work work;
    double price[KINDS];
    gy_ticks extra[KINDS]; /* of the task at hand: DEAR x waste on each kind */
} priced;

static void find_extra(priced *x, uint32_t task)
{
    const gy_kind_work *w = &x->work;
    double cost[KINDS], least = HUGE_VAL;
    for (uint32_t k = 0; k < w->kinds; k++) {
        const gy_kind_time *t = &w->time[(size_t)task * w->kinds + k];
        cost[k] = t->time < HUGE_VAL ? x->price[k] * t->hold : HUGE_VAL;
        least = cost[k] < least ? cost[k] : least;
    }
    for (uint32_t k = 0; k < w->kinds; k++) {
        double extra = cost[k] < HUGE_VAL ? DEAR * (cost[k] - least) : 0;
        x->extra[k] = extra < (double)GY_TICKS_MAX ? (gy_ticks)extra : GY_TICKS_MAX;
    }
}

static gantry_status place_one(gy_plan *p, uint32_t task, void *context, gantry_error *err)
{
    priced *x = context;
    gy_try best = { .device = GY_NONE };
    gy_ticks least = 0;
    if (gy_plan_team(p, task))
        return gy_place_earliest(p, task, err);
    find_extra(x, task);
    for (uint32_t d = 0; d < p->devices; d++) {
        if (!gy_place_allowed(p, task, d))
            continue;
        gy_try t = gy_place_try(p, task, d);
        gy_ticks worth = gy_ticks_both(t.finish, x->extra[x->work.kind[d]]);
        if (best.device != GY_NONE && worth >= least)
            continue;
        best = t;
        least = worth;
    }
    return best.device == GY_NONE ? gy_place_earliest(p, task, err) : gy_place_at(p, task, &best, err);
}

static gantry_status place_by(gy_plan *p, gy_rank_by by, gantry_error *err)
{
    priced x = { .price = { 0 } };
    gy_rank *rank = NULL;
    gantry_status status = gy_kind_work_make(&x.work, p, KINDS, err);
    if (!status && x.work.kinds > 1) {
        rank = gy_upward_ranks(p, by);
        status = rank ? gy_kind_work_prices(&x.work, x.price, err) : gy_fail_nomem(err);
        if (!status)
            status = gy_place_by_rank(p, rank, place_one, &x, err);
    } else if (!status) {
        status = gy_heft(p, by, err);
    }
    gy_free(rank);
    gy_kind_work_free(&x.work);
    return status;
}

static gantry_status place_mean(gy_plan *p, gantry_error *err)
{
    return place_by(p, GY_BY_MEAN, err);
}

static gantry_status place_least(gy_plan *p, gantry_error *err)
{
    return place_by(p, GY_BY_LEAST, err);
}

const gy_policy gy_policy_heft_price = {
    .name = "heft-price",
    .summary = "HEFT that pays for each kind of device by its price",
    .place = place_mean,
    .largest = GY_LARGE_GRAPHS,
};
const gy_policy gy_policy_heft_price_min = {
    .name = "heft-price-min",
    .summary = "heft-price, ranks by the fastest device of each node",
    .place = place_least,
    .largest = GY_LARGE_GRAPHS,
};
