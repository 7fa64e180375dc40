/* SPDX-License-Identifier: Apache-2.0 */
/* The passes, one after the other: this file is the one place that knows their order. */
#include "scheduler/pipeline/pipeline.h"

#include "base/assert.h"
#include "base/error.h"
#include "schedule/check/verify.h"
#include "scheduler/bound/bound.h"
#include "scheduler/collective/collective.h"
#include "scheduler/cost/cost.h"
#include "scheduler/lower/lower.h"
#include "scheduler/order/order.h"
#include "scheduler/pipeline/fit.h"
#include "scheduler/place/arrivals.h"
#include "scheduler/place/gaps.h"
#include "scheduler/place/inputs.h"
#include "scheduler/place/links.h"
#include "scheduler/place/place.h"
#include "scheduler/plan/metadata.h"
#include "scheduler/plan/planning.h"
#include "scheduler/plan/promises.h"
#include "scheduler/plan/share.h"
#include "scheduler/policies/policy.h"
#include "sim/sim.h"

/* ---- the life of a plan ---- */

/* The first device of each memory: those that are no workers come last. */
static bool find_devices(gy_plan *p)
{
    p->device_of = gy_alloc((p->machine->memories + 1) * sizeof *p->device_of);
    for (uint32_t m = 0; p->device_of && m < p->machine->memories; m++)
        p->device_of[m] = GY_NONE;
    for (uint32_t d = p->devices; p->device_of && d-- > 0;)
        p->device_of[p->machine->device[d].memory] = d;
    return p->device_of;
}

gantry_status gy_plan_init(gy_plan *p, gantry_graph *graph, const gantry_machine *machine, const gy_policy *policy,
                           const gy_attempt *attempt, gantry_error *err)
{
    static const gy_attempt plain = GY_ATTEMPT_INIT;
    *p = (gy_plan){ .graph = graph, .flow = graph->flow, .machine = machine, .policy = policy };
    p->attempt = attempt ? attempt : &plain;
    p->workers = gy_machine_workers(machine);
    p->devices = machine->devices;
    p->schedule = gy_schedule_alloc();
    p->net = gy_calloc(1, sizeof *p->net);
    if (p->schedule && p->net && find_devices(p) && gy_net_init(p->net, machine))
        return GANTRY_OK;
    gy_plan_free(p);
    return gy_fail_nomem(err);
}

/* Frees what was only needed to place tasks and to bound: times, bytes of inputs, when devices and links are free. */
static void forget_costs(gy_plan *p)
{
    for (uint32_t d = 0; p->placed.gap && d < p->devices; d++)
        gy_gaps_free(&p->placed.gap[d]);
    gy_free(p->placed.gap);
    if (p->placed.arrivals)
        gy_arrivals_free(p->placed.arrivals);
    gy_free(p->placed.arrivals);
    gy_links_free(p->placed.links);
    p->placed.gap = NULL;
    p->placed.arrivals = NULL;
    p->placed.links = NULL;
    if (p->like)
        return;
    gy_free(p->cost.time);
    gy_free(p->inputs.upload);
    gy_vec_free(&p->inputs.outside);
    p->cost.time = NULL;
    p->inputs.upload = NULL;
}

/* Costs and inputs that are not those of another plan. */
static void free_prepared(gy_plan *p)
{
    gy_free(p->cost.provenance);
    gy_free(p->cost.spare);
    gy_free(p->cost.batched);
    gy_free(p->cost.scratch);
    gy_free(p->cost.group);
    gy_free(p->cost.pinned);
    gy_free(p->cost.apart);
    gy_map_free(&p->inputs.team_of);
}

void gy_plan_free(gy_plan *p)
{
    forget_costs(p);
    gy_plan_forget_draft(p);
    gy_free(p->placed.group_placed);
    gy_free(p->capacity);
    gy_free(p->limited);
    gy_free(p->device_of);
    if (!p->like)
        free_prepared(p);
    gy_free(p->placed.group_device);
    gy_vec_free(&p->inputs.teams);
    gy_free(p->placed.device);
    gy_free(p->placed.start);
    gy_free(p->placed.finish);
    gy_free(p->placed.order);
    gy_vec_free(&p->placed.tries);
    gy_vec_free(&p->placed.replica);
    gy_free(p->placed.replica_first);
    gy_vec_free(&p->sequence.need);
    gy_free(p->sequence.need_first);
    gantry_schedule_free(p->schedule);
    if (p->net)
        gy_net_free(p->net);
    gy_free(p->net);
    gy_arena_free(&p->arena);
    *p = (gy_plan){ 0 };
}

/* ---- the passes ---- */

/* Loops that have nodes and an `until` are phases (scheduler/phases.h); a plan never sees them. */
static gantry_status check_loops(const gy_plan *p, gantry_error *err)
{
    const gantry_graph *g = p->graph;
    for (size_t i = 0; i < g->loops.count; i++) {
        const gy_loop *l = &g->loops.at[i];
        if (l->until == GY_NONE || l->count == 0)
            continue;
        return gy_graph_fail(g, l->origin, err, GANTRY_E_UNSUPPORTED,
                             "a repeat of %lld without nodes ends by \"until\" on buffer \"%s\", which nothing in it "
                             "can change; drop \"until\"",
                             (long long)l->count, g->buffers.at[l->until].name);
    }
    return GANTRY_OK;
}

gantry_status gy_plan_prepare(gy_plan *p, gantry_error *err)
{
    if (p->like)
        return gy_plan_be_like(p, err);
    GY_TRY(check_loops(p, err));
    GY_TRY(gy_plan_cost(p, err));
    GY_TRY(gy_planning_check(p->planning, err));
    GY_ASSERT(gy_promises_cost(p));
    GY_TRY(gy_plan_inputs(p, err));
    GY_ASSERT(gy_promises_inputs(p));
    return GANTRY_OK;
}

gantry_status gy_plan_to_place(gy_plan *p, gantry_error *err)
{
    GY_TRY(gy_plan_prepare(p, err));
    GY_TRY(gy_plan_place(p, p->policy->place, err));
    GY_ASSERT(gy_promises_placement(p));
    return GANTRY_OK;
}

static gantry_status lower_to_fit(gy_plan *p, gantry_error *err)
{
    GY_TRY(gy_plan_lower(p, err));
    GY_TRY(gy_planning_check(p->planning, err));
    GY_ASSERT(gy_promises_draft(p));
    GY_TRY(gy_plan_find_collectives(p, err));
    GY_ASSERT(gy_promises_draft(p));
    return gy_plan_fit(p, err);
}

static gantry_status fit(gy_plan *p, gantry_error *err)
{
    gantry_status status = p->attempt->is_known_not_to_fit ? GANTRY_E_CAPACITY : lower_to_fit(p, err);
    return status == GANTRY_E_CAPACITY && p->attempt->make_room ? gy_plan_fit_by_spilling(p, err) : status;
}

/* ---- times ---- */

typedef struct times {
    gy_ticks makespan, *start, *end; /* per op */
} times;

static bool save_times(times *t, const gantry_schedule *s)
{
    t->makespan = s->makespan;
    t->start = gy_calloc(s->ops.count + 1, sizeof *t->start);
    t->end = gy_calloc(s->ops.count + 1, sizeof *t->end);
    for (size_t i = 0; t->start && t->end && i < s->ops.count; i++) {
        t->start[i] = s->ops.at[i].start;
        t->end[i] = s->ops.at[i].end;
    }
    return t->start && t->end;
}

static void restore_times(const times *t, gantry_schedule *s)
{
    s->makespan = t->makespan;
    for (size_t i = 0; i < s->ops.count; i++) {
        s->ops.at[i].start = t->start[i];
        s->ops.at[i].end = t->end[i];
    }
}

/* `of` has an entry for each lane. */
static gantry_status simulate(gantry_schedule *s, const bool *of, bool urgent, gantry_error *err)
{
    for (size_t i = 0; i < s->lanes.count; i++)
        s->lanes.at[i].urgent = urgent && of[i];
    return gy_sim_run(s, err);
}

/* An urgent op that fills the device may hold up others that would have run beside each other: then no lane is. */
static gantry_status try_urgent(gantry_schedule *s, const bool *of, gantry_error *err)
{
    times without = { 0 };
    GY_TRY(simulate(s, of, false, err));
    gantry_status status = save_times(&without, s) ? simulate(s, of, true, err) : gy_fail_nomem(err);
    if (!status && s->makespan > without.makespan) {
        restore_times(&without, s);
        for (size_t i = 0; i < s->lanes.count; i++)
            s->lanes.at[i].urgent = false;
    }
    gy_free(without.start);
    gy_free(without.end);
    return status;
}

static gantry_status predict(gantry_schedule *s, gantry_error *err)
{
    bool any = false, *urgent = gy_calloc(s->lanes.count + 1, sizeof *urgent);
    if (!urgent)
        return gy_fail_nomem(err);
    for (size_t i = 0; i < s->lanes.count; i++)
        any = (urgent[i] = s->lanes.at[i].urgent) || any;
    gantry_status status = any ? try_urgent(s, urgent, err) : gy_sim_run(s, err);
    gy_free(urgent);
    return status;
}

/* ---- all of them ---- */

gantry_status gy_plan_begin(gy_plan *p, const gy_options *o, gantry_error *err)
{
    p->planning = o->planning;
    GY_TRY(gy_planning_check(p->planning, err));
    GY_TRY(gy_plan_metadata(p, o, err));
    p->schedule->policy = p->policy->name;
    GY_TRY(gy_plan_capacity(p, o->max_memory, err));
    return gy_plan_to_place(p, err);
}

gantry_status gy_plan_run(gy_plan *p, const gy_options *o, gantry_error *err)
{
    if (!p->placed.order) /* else gy_plan_begin has been called */
        GY_TRY(gy_plan_begin(p, o, err));
    p->planning = o->planning;
    GY_TRY(gy_planning_check(p->planning, err));
    GY_TRY(gy_plan_replicas(p, o, err));
    if (!p->bound.by) /* before scratch, which depends on where tasks are: a bound must not */
        GY_TRY(gy_plan_bound(p, err));
    GY_TRY(gy_plan_scratch(p, err));
    forget_costs(p);
    gy_planning_bound(o->part ? NULL : p->planning, p->bound.time);
    GY_TRY(fit(p, err));
    GY_TRY(gy_planning_check(p->planning, err));
    GY_TRY(gy_plan_sync(p, err));
    GY_TRY(gy_planning_check(p->planning, err));
    GY_ASSERT(gy_promises_sync(p));
    gy_bound_tell(p->schedule, &p->bound);
    GY_TRY(predict(p->schedule, err));
    gy_planning_plan(p->planning, o->part ? 0 : p->schedule->makespan);
    return GANTRY_OK;
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

gantry_status gy_pipeline_bound(gy_bound *bound, gantry_graph *graph, const gantry_machine *machine,
                                const char *max_memory, gantry_error *err)
{
    gy_plan p;
    gantry_status status = gy_plan_init(&p, graph, machine, gy_policy_at(0), NULL, err);
    if (status)
        return status;
    status = gy_plan_capacity(&p, max_memory, err);
    if (!status)
        status = gy_plan_prepare(&p, err);
    if (!status)
        status = gy_plan_bound(&p, err);
    *bound = p.bound;
    gy_plan_free(&p);
    return status;
}
