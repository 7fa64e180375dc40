/* SPDX-License-Identifier: Apache-2.0 */
/* gantry_schedule_new: the passes, one after the other. */
#include "scheduler/lower/find_collectives.h"
#include "scheduler/options.h"
#include "scheduler/phases.h"
#include "scheduler/plan/plan.h"
#include "scheduler/policies/policy.h"
#include "scheduler/search/search.h"

#include "base/error.h"
#include "sim/sim.h"

static gantry_status prepare(gy_plan *p, const gantry_schedule_options *o, gantry_error *err)
{
    gantry_schedule *s = p->schedule;
    gantry_status status = gy_plan_head(p, err);
    s->policy = p->policy->name;
    s->replay = gy_arena_strdup(&s->arena, o->replay);
    s->objective = gy_arena_strdup(&s->arena, o->objective);
    s->effort = o->effort;
    s->seed = o->seed;
    if (!status && (!s->replay || !s->objective))
        status = gy_fail_nomem(err);
    return status ? status : gy_plan_capacity(p, o->max_memory, err);
}

gantry_status gy_plan_prepare(gy_plan *p, gantry_error *err)
{
    gantry_status status = gy_plan_specialise(p, err);
    if (!status)
        status = gy_plan_cost(p, err);
    return status ? status : gy_plan_origin(p, err);
}

gantry_status gy_plan_to_place(gy_plan *p, gantry_error *err)
{
    gantry_status status = gy_plan_prepare(p, err);
    return status ? status : gy_plan_place(p, err);
}

static gantry_status lower_to_fit(gy_plan *p, gantry_error *err)
{
    gantry_status status = gy_plan_lower(p, err);
    if (!status)
        status = gy_plan_collect(p, err);
    return status ? status : gy_plan_fit(p, err);
}

gantry_status gy_plan_run(gy_plan *p, const gantry_schedule_options *o, gantry_error *err)
{
    gantry_status status = prepare(p, o, err);
    if (!status)
        status = gy_plan_to_place(p, err);
    if (!status && !p->bound_by) /* before scratch, which depends on where tasks are: a bound must not */
        status = gy_plan_bound(p, err);
    if (!status)
        status = gy_plan_scratch(p, err);
    gy_plan_forget_costs(p);
    if (!status)
        status = p->hopeless ? GANTRY_E_CAPACITY : lower_to_fit(p, err);
    if (status == GANTRY_E_CAPACITY && p->squeeze)
        status = gy_plan_squeeze(p, err);
    if (!status)
        status = gy_plan_sync(p, err);
    if (status)
        return status;
    p->schedule->bound = p->bound;
    p->schedule->bound_by = p->bound_by;
    status = gy_sim_run(p->schedule, err);
    return status ? status : gy_collect_compare(p, o, err);
}

/* A schedule that the checker refuses is a mistake of the scheduler, whatever the graph. */
gantry_status gy_plan_verify(gantry_schedule *s, const gantry_graph *graph, gantry_error *err)
{
    gantry_error inner = { 0 };
    gantry_status status = gy_schedule_index(s, err);
    if (status)
        return status;
    status = gy_schedule_verify(s, graph, &inner);
    if (status != GANTRY_E_SCHEDULE) {
        if (status && err)
            *err = inner;
        return status;
    }
    return gy_fail(err, GANTRY_E_SCHEDULE, inner.where,
                   "internal error: the scheduler made a schedule that is not right (%s); please report it with the "
                   "graph",
                   inner.text);
}

/* Buffers that are kept outside name memories that the machine has. */
static gantry_status check_homes(const gantry_graph *g, const gantry_machine *m, gantry_error *err)
{
    for (size_t i = 0; i < g->buffers.count; i++) {
        const gy_buffer *b = &g->buffers.at[i];
        if (gy_buffer_home(m, b) == GY_NONE)
            return gy_graph_fail(g, b->origin, err, GANTRY_E_GRAPH,
                                 "buffer \"%s\" is external, kept in \"%s\", and machine \"%s\" has no memory and no "
                                 "device of that name (its first device is \"%s\")",
                                 b->name, b->external, m->name, m->device[0].id);
    }
    return GANTRY_OK;
}

gantry_status gantry_schedule_new(gantry_schedule **schedule, gantry_graph *graph, const gantry_machine *machine,
                                  const gantry_schedule_options *options, gantry_error *err)
{
    gantry_schedule_options o;
    const gy_policy *policy;
    if (!schedule || !machine)
        return gy_fail(err, GANTRY_E_INVALID, NULL, "%s is NULL", schedule ? "machine" : "schedule");
    gantry_status status = gy_options_read(&o, options, err);
    if (!status)
        status = gy_policy_find(&policy, o.policy, err);
    if (!status)
        status = gantry_graph_check(graph, err);
    if (!status)
        status = check_homes(graph, machine, err);
    return status ? status : gy_phases_run(schedule, graph, machine, &o, err);
}
