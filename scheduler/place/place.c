/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Placing one task. The model is that of list scheduling: a device does one task at a time, data of a predecessor on
 * another memory arrive a transfer time after it ends, transfers do not disturb each other. Bound inputs are in host
 * memory at time 0. Contention comes in later, when the schedule is simulated, unless the policy has transfers booked
 * on the links (links.h).
 */
#include "scheduler/place/place.h"

#include "base/error.h"
#include "scheduler/cost/apart.h"
#include "scheduler/cost/cost.h"
#include "scheduler/place/arrivals.h"
#include "scheduler/place/gaps.h"
#include "scheduler/place/inputs.h"
#include "scheduler/place/links.h"
#include "scheduler/plan/planning.h"
#include "scheduler/plan/share.h"

static uint32_t node_of(const gy_plan *p, uint32_t task)
{
    return p->flow->task[task].node;
}

static bool kept_apart(const gy_plan *p, uint32_t group, uint32_t device)
{
    const uint32_t *list = p->cost.apart[group];
    for (uint32_t i = 0; list && i < list[0]; i++)
        if (p->placed.group_device[list[i + 1]] == device)
            return true;
    return false;
}

bool gy_place_allowed(const gy_plan *p, uint32_t task, uint32_t device)
{
    uint32_t node = node_of(p, task), group = p->cost.group[node];
    if (gy_plan_time(p, node, device) >= GY_TICKS_MAX)
        return false;
    if (!p->cost.pinned[node])
        return true;
    if (p->placed.group_device[group] != GY_NONE)
        return p->placed.group_device[group] == device;
    return p->cost.coloured && p->cost.apart[group] ? gy_apart_is_open(p, group, device)
                                                    : !kept_apart(p, group, device);
}

/* `upload`: gy_upload_time of it. */
static gy_ticks ready_with(const gy_plan *p, uint32_t task, uint32_t memory, gy_ticks upload)
{
    gy_ticks made = gy_arrivals_ready(p, task, memory);
    return made > upload ? made : upload;
}

static gy_ticks data_ready(const gy_plan *p, uint32_t task, uint32_t memory)
{
    return ready_with(p, task, memory, gy_upload_time(p, task, memory));
}

/* One try a device is kept: the last, which is that of the slot taken if it is taken. */
static void note(gy_plan *p, const gy_try *t)
{
    for (size_t i = 0; i < p->placed.tries.count; i++)
        if (p->placed.tries.at[i].device == t->device) {
            p->placed.tries.at[i] = *t;
            return;
        }
    (void)gy_vec_push(&p->placed.tries, *t); /* one that is lost is missing from an explanation, no more */
}

void gy_place_again(const gy_plan *p, uint32_t task, gy_try *t)
{
    uint32_t node = node_of(p, task);
    t->start = gy_gaps_find(&p->placed.gap[t->device], t->ready, gy_plan_hold(p, node, t->device));
    t->finish = t->start + gy_plan_time(p, node, t->device);
}

gy_try gy_place_try(gy_plan *p, uint32_t task, uint32_t device)
{
    uint32_t memory = p->machine->device[device].memory;
    gy_try t = { .device = device, .upload = gy_upload_time(p, task, memory) };
    t.ready = p->placed.links ? gy_links_try(p->placed.links, p, task, memory) : ready_with(p, task, memory, t.upload);
    gy_place_again(p, task, &t);
    if (task == p->attempt->watch)
        note(p, &t);
    return t;
}

static gantry_status too_long(const gy_plan *p, uint32_t task, gantry_error *err)
{
    return gy_fail(err, GANTRY_E_UNSUPPORTED, NULL,
                   "node \"%s\" would end later than 26 days after the start; make its time or the graph smaller",
                   gy_plan_node(p, task)->id);
}

/* Explaining wants to know how all devices stood when the watched task got its place. */
static void look_around(gy_plan *p, uint32_t task, const gy_try *t)
{
    for (uint32_t d = 0; d < p->devices; d++)
        if (d != t->device && gy_place_allowed(p, task, d))
            (void)gy_place_try(p, task, d);
    note(p, t);
}

/* From now on the group of the node is on the device. */
static void hold_group(gy_plan *p, uint32_t node, uint32_t device)
{
    if (!p->cost.pinned[node])
        return;
    gy_apart_placed(p, p->cost.group[node], device);
    p->placed.group_device[p->cost.group[node]] = device;
    p->placed.group_placed[p->cost.group[node]]++;
}

gantry_status gy_place_at(gy_plan *p, uint32_t task, const gy_try *t, gantry_error *err)
{
    uint32_t node = node_of(p, task);
    GY_TRY(gy_planning_check(p->planning, err));
    if (task == p->attempt->watch)
        look_around(p, task, t);
    /* First: a try that ran out of memory has no other way to say so than to end never. */
    if (p->placed.links && !gy_links_book(p->placed.links, p, task, p->machine->device[t->device].memory))
        return gy_fail_nomem(err);
    if (t->finish >= GY_TICKS_MAX)
        return too_long(p, task, err);
    if (!gy_gaps_take(&p->placed.gap[t->device], t->start, gy_plan_hold(p, node, t->device)))
        return gy_fail_nomem(err);
    p->placed.device[task] = t->device;
    p->placed.start[task] = t->start;
    p->placed.finish[task] = t->finish;
    gy_arrivals_changed(p, task);
    hold_group(p, node, t->device);
    return GANTRY_OK;
}

void gy_place_undo(gy_plan *p, uint32_t task)
{
    uint32_t node = node_of(p, task), group = p->cost.group[node];
    gy_gaps_give(&p->placed.gap[p->placed.device[task]], p->placed.start[task],
                 gy_plan_hold(p, node, p->placed.device[task]));
    p->placed.device[task] = GY_NONE;
    gy_arrivals_changed(p, task);
    if (!p->cost.pinned[node] || --p->placed.group_placed[group])
        return;
    p->placed.group_device[group] = GY_NONE;
    gy_apart_taken_back(p);
}

/* ---- collectives ---- */

static bool is_used(const uint32_t *device, uint32_t ranks, uint32_t d)
{
    for (uint32_t i = 0; i < ranks; i++)
        if (device[i] == d)
            return true;
    return false;
}

/* One that has no rank yet, from `first` on; `first` itself where all have one. */
static uint32_t deal(const gy_plan *p, const uint32_t *device, uint32_t ranks, uint32_t first)
{
    for (uint32_t i = 0; i < p->workers; i++)
        if (!is_used(device, ranks, (first + i) % p->workers))
            return (first + i) % p->workers;
    return first;
}

/* Bytes of the regions of a rank, each once. */
static int64_t bytes_of_rank(const gy_plan *p, uint32_t task, uint32_t rank)
{
    const gy_node *n = gy_plan_node(p, task);
    const gy_node_extra *x = gy_plan_extra(p, node_of(p, task));
    const gy_access *a = gy_vec_from(&p->graph->access, n->access);
    int64_t sum = 0;
    for (uint32_t k = 0; k < n->accesses; k++) {
        bool again = false; /* in place */
        for (uint32_t i = 0; i < k && gy_access_rank(x, k) == rank; i++)
            again = again || (gy_access_rank(x, i) == rank && a[i].buffer == a[k].buffer && a[i].first == a[k].first &&
                              a[i].last == a[k].last);
        sum += gy_access_rank(x, k) == rank && !again ? gy_access_bytes(p->graph, &a[k]) : 0;
    }
    return sum;
}

/* Bytes that the memory of a device has left beside the ranks that are there. */
static int64_t room_beside(const gy_plan *p, uint32_t task, const uint32_t *device, uint32_t ranks, uint32_t d)
{
    uint32_t memory = p->machine->device[d].memory;
    int64_t room = p->capacity[memory] < INT64_MAX ? (int64_t)p->capacity[memory] : INT64_MAX;
    for (uint32_t i = 0; i < ranks; i++)
        if (device[i] != GY_NONE && p->machine->device[device[i]].memory == memory)
            room -= bytes_of_rank(p, task, i);
    return room;
}

/* The first with room for the rank, those that have no rank yet before others; where there is none, the one with most
 * room. */
static uint32_t deal_by_room(const gy_plan *p, uint32_t task, const uint32_t *device, uint32_t ranks, uint32_t rank)
{
    int64_t need = bytes_of_rank(p, task, rank), most = INT64_MIN;
    uint32_t best = 0;
    for (int used = 0; used < 2; used++)
        for (uint32_t i = 0; i < p->workers; i++) {
            uint32_t d = (rank + i) % p->workers;
            int64_t room = room_beside(p, task, device, ranks, d);
            if (room >= need && is_used(device, ranks, d) == used)
                return d;
            if (room > most) {
                most = room;
                best = d;
            }
        }
    return best;
}

void gy_place_ranks(const gy_plan *p, uint32_t task, uint32_t *device, uint32_t ranks)
{
    for (uint32_t i = 0; i < ranks; i++)
        if (device[i] == GY_NONE)
            device[i] = p->attempt->spare_memory ? deal_by_room(p, task, device, ranks, i)
                                                 : deal(p, device, ranks, i % p->workers);
}

/* Each rank goes where what it gives was written. */
static void choose_team(gy_plan *p, uint32_t task, gy_team *team)
{
    for (uint32_t i = 0; i < team->ranks; i++)
        team->device[i] = gy_plan_rank_home(p, team, i);
    gy_place_ranks(p, task, team->device, team->ranks);
}

/* Where the regions of a collective are on these devices. false: out of memory. */
static bool make_group(const gy_plan *p, uint32_t task, const uint32_t *device, gy_group *g)
{
    const gy_node *n = gy_plan_node(p, task);
    const gy_node_extra *x = gy_plan_extra(p, node_of(p, task));
    gy_group_end *end = gy_calloc((size_t)n->accesses + 1, sizeof *end);
    for (uint32_t k = 0; end && k < n->accesses; k++) {
        const gy_access *a = &p->graph->access.at[n->access + k];
        uint32_t memory = p->machine->device[device[gy_access_rank(x, k)]].memory;
        end[k] = (gy_group_end){ memory, gy_access_bytes(p->graph, a), a->buffer, a->first, a->last };
    }
    bool done = end && gy_group_of_node(g, x->collective, (uint8_t)x->op, end, x->ins, x->outs);
    gy_free(end);
    if (done)
        gy_group_type(g, p->graph->buffers.at[p->graph->access.at[n->access].buffer].dtype);
    return done;
}

gantry_status gy_place_team_time(const gy_plan *p, uint32_t task, const uint32_t *device, gy_way *choice,
                                 gantry_error *err)
{
    gy_group g;
    const gy_node *n = gy_plan_node(p, task);
    if (!make_group(p, task, device, &g))
        return gy_fail_nomem(err);
    gantry_status status =
        gy_collective_obey(p->net, &g, gy_plan_extra(p, node_of(p, task))->algorithm, n->id, choice, err);
    gy_group_free(&g);
    if (status == GANTRY_E_GRAPH && err)
        gy_graph_locate(p->graph, &p->graph->origins.at[n->origin], "/algorithm", err);
    return status;
}

/* Collectives have lanes of their own: they take no time of the devices. */
static gantry_status place_team(gy_plan *p, uint32_t task, gy_team *team, gantry_error *err)
{
    gy_way choice;
    gy_ticks start = 0;
    GY_TRY(gy_place_team_time(p, task, team->device, &choice, err));
    team->algorithm = (uint8_t)choice.algorithm;
    team->provenance = choice.provenance;
    for (uint32_t i = 0; i < team->ranks; i++) {
        gy_ticks t = data_ready(p, task, p->machine->device[team->device[i]].memory);
        start = t > start ? t : start;
    }
    p->placed.device[task] = team->device[0];
    p->placed.start[task] = start;
    p->placed.finish[task] = start + choice.time;
    if (p->placed.finish[task] >= GY_TICKS_MAX)
        return too_long(p, task, err);
    gy_arrivals_changed(p, task);
    hold_group(p, node_of(p, task), team->device[0]);
    return GANTRY_OK;
}

/* The one rank of a tied collective: the first device that it may be on, from `device` on. */
static gantry_status place_tied(gy_plan *p, uint32_t task, gy_team *team, uint32_t device, gantry_error *err)
{
    for (uint32_t i = 0; i < p->devices; i++) {
        team->device[0] = (device + i) % p->devices;
        if (gy_place_allowed(p, task, team->device[0]))
            return place_team(p, task, team, err);
    }
    return gy_apart_refuse(p, node_of(p, task), err);
}

/* The device, of those that a tied collective may be on, where its rows are soonest: the one that wrote them if it may
 * be there, of equals the lowest. */
static uint32_t soonest(const gy_plan *p, uint32_t task, uint32_t home)
{
    gy_ticks least = GY_TICKS_MAX;
    uint32_t best = home;
    if (gy_place_allowed(p, task, home))
        return home;
    for (uint32_t d = 0; d < p->devices; d++) {
        gy_ticks ready =
            gy_place_allowed(p, task, d) ? data_ready(p, task, p->machine->device[d].memory) : GY_TICKS_MAX;
        if (ready < least) {
            least = ready;
            best = d;
        }
    }
    return best;
}

static gantry_status place_ranks(gy_plan *p, uint32_t task, gy_team *team, gantry_error *err)
{
    choose_team(p, task, team);
    if (team->fixed || !gy_plan_is_tied(p, node_of(p, task)))
        return place_team(p, task, team, err);
    return place_tied(p, task, team, soonest(p, task, team->device[0]), err);
}

/* ---- what policies call ---- */

gantry_status gy_place_earliest(gy_plan *p, uint32_t task, gantry_error *err)
{
    gy_team *team = gy_plan_team(p, task);
    gy_try best = { .device = GY_NONE };
    if (team)
        return place_ranks(p, task, team, err);
    for (uint32_t d = 0; d < p->devices; d++) {
        if (!gy_place_allowed(p, task, d))
            continue;
        gy_try t = gy_place_try(p, task, d);
        if (best.device == GY_NONE || t.finish < best.finish)
            best = t;
    }
    return best.device == GY_NONE ? gy_apart_refuse(p, node_of(p, task), err) : gy_place_at(p, task, &best, err);
}

gantry_status gy_place_on(gy_plan *p, uint32_t task, uint32_t device, gantry_error *err)
{
    gy_team *team = gy_plan_team(p, task);
    if (team && !team->fixed && gy_plan_is_tied(p, node_of(p, task)))
        return place_tied(p, task, team, device, err);
    if (team)
        return place_ranks(p, task, team, err);
    for (uint32_t i = 0; i < p->devices; i++) {
        uint32_t d = (device + i) % p->devices;
        if (!gy_place_allowed(p, task, d))
            continue;
        gy_try t = gy_place_try(p, task, d);
        return gy_place_at(p, task, &t, err);
    }
    return gy_apart_refuse(p, node_of(p, task), err);
}

/* ---- the pass ---- */

static gantry_status place(gy_plan *p, gy_place_all *place_all, gantry_error *err)
{
    GY_TRY(place_all(p, err));
    bool done =
        !p->placed.arrivals->failed && gy_place_in_order(p) && (!p->placings || gy_placings_keep(p->placings, p));
    return done ? GANTRY_OK : gy_fail_nomem(err);
}

gantry_status gy_plan_place(gy_plan *p, gy_place_all *place_all, gantry_error *err)
{
    size_t tasks = p->flow->tasks;
    p->placed.device = gy_calloc(tasks + 1, sizeof *p->placed.device);
    p->placed.start = gy_calloc(tasks + 1, sizeof *p->placed.start);
    p->placed.finish = gy_calloc(tasks + 1, sizeof *p->placed.finish);
    p->placed.order = gy_calloc(tasks + 1, sizeof *p->placed.order);
    p->placed.gap = gy_calloc(p->devices, sizeof *p->placed.gap);
    p->placed.group_placed = gy_calloc(p->graph->nodes.count + 1, sizeof *p->placed.group_placed);
    p->placed.arrivals = gy_calloc(1, sizeof *p->placed.arrivals);
    if (!p->placed.device || !p->placed.start || !p->placed.finish || !p->placed.order || !p->placed.gap ||
        !p->placed.group_placed || !p->placed.arrivals || !gy_arrivals_init(p->placed.arrivals, p))
        return gy_fail_nomem(err);
    for (uint32_t t = 0; t < tasks; t++)
        p->placed.device[t] = GY_NONE;
    for (uint32_t d = 0; d < p->devices; d++)
        if (!gy_gaps_init(&p->placed.gap[d]))
            return gy_fail_nomem(err);
    GY_TRY(gy_place_anywhere(p, err));
    if (p->placings && gy_placings_recall(p->placings, p))
        return GANTRY_OK;
    return place(p, place_all, err);
}
