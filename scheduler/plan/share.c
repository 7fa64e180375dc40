/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/plan/share.h"

#include <string.h>

/* ---- costs and inputs ---- */

bool gy_plan_may_be_like(const gy_plan *p)
{
    for (uint32_t n = 0; n < p->graph->nodes.count; n++)
        if (p->cost.apart[n])
            return false;
    return !p->cost.coloured;
}

/* The devices of ranks are each plan's own. */
static bool copy_teams(gy_plan *p)
{
    for (size_t i = 0; i < p->like->inputs.teams.count; i++) {
        gy_team team = p->like->inputs.teams.at[i];
        team.device = gy_arena_alloc(&p->arena, (team.ranks + 1) * sizeof *team.device);
        if (!team.device || !gy_vec_push(&p->inputs.teams, team))
            return false;
        for (uint32_t k = 0; k < team.ranks; k++)
            team.device[k] = GY_NONE;
    }
    return true;
}

gantry_status gy_plan_be_like(gy_plan *p, gantry_error *err)
{
    size_t nodes = p->graph->nodes.count;
    p->cost = p->like->cost;
    p->inputs = p->like->inputs;
    p->inputs.teams.at = NULL;
    p->inputs.teams.count = p->inputs.teams.capacity = 0;
    p->placed.group_device = gy_alloc((nodes + 1) * sizeof *p->placed.group_device);
    for (size_t n = 0; p->placed.group_device && n <= nodes; n++)
        p->placed.group_device[n] = GY_NONE;
    return p->placed.group_device && copy_teams(p) ? GANTRY_OK : gy_fail_nomem(err);
}

/* ---- placements ---- */

/* Hash of all that placing reads of an attempt, beside its candidate. */
static uint64_t way_of(const gy_plan *p)
{
    uint64_t way = p->attempt->spare_memory + 2 * (uint64_t)p->attempt->wait_everywhere;
    bool any = false;
    for (uint32_t n = 0; p->placed.anywhere && n < p->graph->nodes.count; n++)
        any = any || p->placed.anywhere[n];
    return any ? gy_hash_bytes(p->placed.anywhere, p->graph->nodes.count, way) : way;
}

static size_t ranks_of(const gy_plan *p)
{
    size_t ranks = 0;
    for (size_t i = 0; i < p->inputs.teams.count; i++)
        ranks += p->inputs.teams.at[i].ranks;
    return ranks;
}

static void *copy_of(const void *from, size_t count, size_t size)
{
    void *to = gy_alloc((count + 1) * size);
    if (to)
        memcpy(to, from, count * size);
    return to;
}

static bool keep_teams(gy_placing *k, const gy_plan *p)
{
    size_t at = 0;
    k->team_device = gy_alloc((ranks_of(p) + 1) * sizeof *k->team_device);
    k->team_way = gy_alloc(2 * p->inputs.teams.count + 1);
    for (size_t i = 0; k->team_device && k->team_way && i < p->inputs.teams.count; i++) {
        const gy_team *team = &p->inputs.teams.at[i];
        memcpy(k->team_device + at, team->device, team->ranks * sizeof *team->device);
        at += team->ranks;
        k->team_way[2 * i] = team->algorithm;
        k->team_way[2 * i + 1] = team->provenance;
    }
    return k->team_device && k->team_way;
}

bool gy_placings_keep(gy_placings *all, const gy_plan *p)
{
    const gy_placement *from = &p->placed;
    size_t tasks = p->flow->tasks;
    if (all->count == GY_PLACINGS)
        return true;
    gy_placing *k = &all->at[all->count++];
    *k = (gy_placing){ .way = way_of(p), .overtakes = from->overtakes };
    k->device = copy_of(from->device, tasks, sizeof *k->device);
    k->order = copy_of(from->order, tasks, sizeof *k->order);
    k->start = copy_of(from->start, tasks, sizeof *k->start);
    k->finish = copy_of(from->finish, tasks, sizeof *k->finish);
    k->group_device = copy_of(from->group_device, p->graph->nodes.count, sizeof *k->group_device);
    return keep_teams(k, p) && k->device && k->order && k->start && k->finish && k->group_device;
}

static void recall_teams(const gy_placing *k, gy_plan *p)
{
    size_t at = 0;
    for (size_t i = 0; i < p->inputs.teams.count; i++) {
        gy_team *team = &p->inputs.teams.at[i];
        memcpy(team->device, k->team_device + at, team->ranks * sizeof *team->device);
        at += team->ranks;
        team->algorithm = k->team_way[2 * i];
        team->provenance = k->team_way[2 * i + 1];
    }
}

bool gy_placings_recall(const gy_placings *all, gy_plan *p)
{
    gy_placement *to = &p->placed;
    size_t tasks = p->flow->tasks;
    uint64_t way = way_of(p);
    const gy_placing *k = all->at;
    while (k < all->at + all->count && k->way != way)
        k++;
    if (k == all->at + all->count)
        return false;
    memcpy(to->device, k->device, tasks * sizeof *k->device);
    memcpy(to->order, k->order, tasks * sizeof *k->order);
    memcpy(to->start, k->start, tasks * sizeof *k->start);
    memcpy(to->finish, k->finish, tasks * sizeof *k->finish);
    memcpy(to->group_device, k->group_device, p->graph->nodes.count * sizeof *k->group_device);
    to->overtakes = k->overtakes;
    recall_teams(k, p);
    return true;
}

void gy_placings_free(gy_placings *all)
{
    for (uint32_t i = 0; i < all->count; i++) {
        gy_free(all->at[i].device);
        gy_free(all->at[i].order);
        gy_free(all->at[i].start);
        gy_free(all->at[i].finish);
        gy_free(all->at[i].group_device);
        gy_free(all->at[i].team_device);
        gy_free(all->at[i].team_way);
    }
    *all = (gy_placings){ 0 };
}
