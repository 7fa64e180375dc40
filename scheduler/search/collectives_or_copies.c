/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Are all the collectives together worth it, and all the batches? Each was weighed against its own copies, or launches,
 * alone; but a device is in one collective at a time, copies of others may be in the way of either, and what a batch
 * waits for may hold up what waits for it. So the graph is planned again with copies throughout, or with launches, and
 * the schedule that ends first by simulation stays: with collectives, and with batches, if both end at once. Where
 * copies would be faster than a collective if nothing were in their way, the graph is planned again with collectives.
 */
#include "scheduler/search/trials.h"

#define TASKS_UP_TO 4096 /* planning twice takes twice as long */

/* Plans once more, as `attempt` says, and keeps what is faster. */
static gantry_status try_other(gy_plan *p, gy_attempt attempt, const gy_options *o, gantry_error *err)
{
    const gy_attempt *asked = p->attempt;
    gy_plan other;
    attempt.make_room = attempt.is_known_not_to_fit = attempt.fetch_late = false;
    attempt.spilling = GY_SPILL_OFF;
    GY_TRY(gy_plan_init(&other, p->graph, p->machine, p->policy, &attempt, err));
    other.bound = p->bound;
    gantry_status status = gy_plan_run(&other, o, err);
    if (!status && other.schedule->makespan < p->schedule->makespan) {
        gy_plan slower = *p;
        *p = other;
        p->attempt = asked;
        other = slower;
    }
    gy_plan_free(&other);
    return status == GANTRY_E_CAPACITY ? GANTRY_OK : status; /* the other way may take less room */
}

gantry_status gy_trials_plan(gy_plan *p, const gy_options *o, gantry_error *err)
{
    gy_attempt attempt = *p->attempt;
    GY_TRY(gy_plan_run(p, o, err));
    bool once = attempt.in_flight == 1, collectives = p->collectives && once, batched = p->batched;
    bool more = p->passed_over && once && !attempt.keep_copies;
    if (p->flow->tasks > TASKS_UP_TO)
        return GANTRY_OK;
    attempt.prefer_collectives = true;
    if (more)
        GY_TRY(try_other(p, attempt, o, err));
    attempt.prefer_collectives = false;
    attempt.keep_copies = collectives || attempt.keep_copies;
    if (collectives)
        GY_TRY(try_other(p, attempt, o, err));
    attempt.keep_single = true;
    attempt.keep_copies = !p->collectives;
    return batched ? try_other(p, attempt, o, err) : GANTRY_OK;
}
