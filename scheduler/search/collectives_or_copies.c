/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Are all the collectives together worth it? Each was weighed against its own copies alone; but a device is in one
 * collective at a time, and copies of others may be in the way of either. So the graph is planned again with copies
 * throughout, and the schedule that ends first by simulation stays: with collectives if both end at once.
 */
#include "scheduler/search/trials.h"

#define TASKS_UP_TO 4096 /* planning twice takes twice as long */

static gantry_status plan_copies(gy_plan *other, const gy_plan *p, const gy_attempt *attempt, const gy_options *o,
                                 gantry_error *err)
{
    GY_TRY(gy_plan_init(other, p->graph, p->machine, p->policy, attempt, err));
    other->bound = p->bound;
    return gy_plan_run(other, o, err);
}

gantry_status gy_trials_plan(gy_plan *p, const gy_options *o, gantry_error *err)
{
    const gy_attempt *asked = p->attempt;
    GY_TRY(gy_plan_run(p, o, err));
    if (!p->collectives || asked->in_flight != 1 || p->flow->tasks > TASKS_UP_TO)
        return GANTRY_OK;
    gy_plan other;
    gy_attempt attempt = *asked;
    attempt.keep_copies = true;
    attempt.make_room = attempt.is_known_not_to_fit = attempt.fetch_late = false;
    attempt.spilling = GY_SPILL_OFF;
    gantry_status status = plan_copies(&other, p, &attempt, o, err);
    if (!status && other.schedule->makespan < p->schedule->makespan) {
        gy_plan slower = *p;
        *p = other;
        p->attempt = asked;
        other = slower;
    }
    gy_plan_free(&other);
    return status == GANTRY_E_CAPACITY ? GANTRY_OK : status; /* collectives may take less room */
}
