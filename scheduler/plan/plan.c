/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a plan. */
#include "scheduler/plan/plan.h"

#include "base/error.h"
#include "scheduler/collective/collective.h"
#include "scheduler/place/gaps.h"
#include "scheduler/place/links.h"

gantry_status gy_plan_init(gy_plan *p, gantry_graph *graph, const gantry_machine *machine, const gy_policy *policy,
                           gantry_error *err)
{
    *p = (gy_plan){ .graph = graph, .flow = graph->flow, .machine = machine, .policy = policy, .watch = GY_NONE };
    p->workers = gy_machine_workers(machine);
    p->in_flight = 1;
    p->devices = machine->devices;
    p->schedule = gy_schedule_alloc();
    p->net = gy_calloc(1, sizeof *p->net);
    if (p->schedule && p->net && gy_net_init(p->net, machine))
        return GANTRY_OK;
    gy_plan_free(p);
    return gy_fail_nomem(err);
}

void gy_plan_forget_draft(gy_plan *p)
{
    gy_vec_free(&p->instance);
    gy_vec_free(&p->draft);
    gy_vec_free(&p->use);
    gy_vec_free(&p->rank_device);
    gy_vec_free(&p->edges);
    gy_free(p->draft_of);
    gy_free(p->expect);
    p->draft_of = NULL;
    p->expect = NULL;
}

void gy_plan_forget_costs(gy_plan *p)
{
    for (uint32_t d = 0; p->gap && d < p->devices; d++)
        gy_gaps_free(&p->gap[d]);
    gy_free(p->gap);
    gy_links_free(p->links);
    gy_free(p->time);
    gy_free(p->upload);
    gy_vec_free(&p->outside);
    p->gap = NULL;
    p->links = NULL;
    p->time = NULL;
    p->upload = NULL;
}

void gy_plan_free(gy_plan *p)
{
    gy_plan_forget_costs(p);
    gy_plan_forget_draft(p);
    gy_free(p->group_placed);
    gy_free(p->capacity);
    gy_free(p->provenance);
    gy_free(p->group);
    gy_free(p->pinned);
    gy_free(p->group_device);
    gy_free(p->apart);
    gy_map_free(&p->team_of);
    gy_vec_free(&p->teams);
    gy_free(p->device);
    gy_free(p->start);
    gy_free(p->finish);
    gy_free(p->order);
    gy_vec_free(&p->tries);
    gy_vec_free(&p->need);
    gy_free(p->need_first);
    gantry_schedule_free(p->schedule);
    if (p->net)
        gy_net_free(p->net);
    gy_free(p->net);
    gy_arena_free(&p->arena);
    *p = (gy_plan){ 0 };
}

uint32_t gy_plan_copier(const gy_plan *p, uint32_t from, uint32_t to)
{
    uint32_t there = gy_plan_device_of(p, to), here = gy_plan_device_of(p, from);
    if (from != 0 && here != GY_NONE)
        return here;
    if (to != 0 && there != GY_NONE)
        return there;
    return here != GY_NONE ? here : there;
}

uint32_t gy_plan_device_of(const gy_plan *p, uint32_t memory)
{
    for (uint32_t d = 0; d < p->devices; d++) /* those that are no workers come last */
        if (p->machine->device[d].memory == memory)
            return d;
    return GY_NONE;
}

uint32_t gy_plan_nearest(const gy_plan *p, uint32_t task, uint32_t memory, int64_t bytes)
{
    const gy_team *team = gy_plan_team(p, task);
    uint32_t best = p->machine->device[p->device[task]].memory;
    for (uint32_t i = 0; team && i < team->ranks; i++) {
        uint32_t m = p->machine->device[team->device[i]].memory;
        if (gy_transfer_time(p, m, memory, bytes) < gy_transfer_time(p, best, memory, bytes))
            best = m;
    }
    return best;
}
