/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Are all the collectives together worth it? Each was weighed against its own copies alone; but a device is in one
 * collective at a time, and copies of others may be in the way of either. So the graph is planned again with copies
 * throughout, and the schedule that ends first by simulation stays: with collectives if both end at once.
 */
#include "scheduler/lower/find_collectives.h"
#include "scheduler/search/search.h"

#define TASKS_UP_TO 4096 /* planning twice takes twice as long */

static gantry_status plan_copies(gy_plan *other, const gy_plan *p, const gantry_schedule_options *o, gantry_error *err)
{
    gantry_status status = gy_plan_init(other, p->graph, p->machine, p->policy, err);
    if (status)
        return status;
    other->candidate = p->candidate;
    other->load_device = p->load_device;
    other->watch = p->watch;
    other->bound = p->bound;
    other->bound_by = p->bound_by;
    other->keep_copies = true;
    return gy_plan_run(other, o, err);
}

gantry_status gy_collect_compare(gy_plan *p, const gantry_schedule_options *o, gantry_error *err)
{
    gy_plan other;
    if (!p->put_in || p->in_flight != 1 || p->flow->tasks > TASKS_UP_TO)
        return GANTRY_OK;
    gantry_status status = plan_copies(&other, p, o, err);
    if (!status && other.schedule->makespan < p->schedule->makespan) {
        gy_plan slower = *p;
        *p = other;
        p->squeeze = slower.squeeze;
        p->spill = slower.spill;
        other = slower;
    }
    gy_plan_free(&other);
    return status == GANTRY_E_CAPACITY ? GANTRY_OK : status; /* collectives may take less room */
}
