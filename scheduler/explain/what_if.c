/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The placement of a schedule with some tasks on other devices, or on another machine, carried through by the
 * passes that every placement goes through (gy_trials_plan), so that two answers differ by the change alone.
 */
#include "scheduler/plan/share.h"
#include "scheduler/policies/policy.h"
#include "scheduler/search/search.h"
#include "scheduler/search/trials.h"

#include "base/error.h"
#include "graph/flow/unroll.h"
#include <string.h>

typedef struct what_if {
    const gantry_schedule *from;
    const gantry_machine *machine;
    gy_plan prepared; /* costs, and which nodes belong together; nothing is placed in it */
    gy_candidate candidate;
    gy_trials trials;
} what_if;

/* ---- what can be asked ---- */

static gantry_status check_from(const gantry_schedule *s, gantry_error *err)
{
    if (s->phases.count)
        return gy_fail(err, GANTRY_E_UNSUPPORTED, NULL,
                       "the schedule is in phases 0 to %zu; ask one of them (--phase, gantry_schedule_phase)",
                       s->phases.count - 1);
    if (!s->graph)
        return gy_fail(err, GANTRY_E_UNSUPPORTED, NULL,
                       "the schedule was read from a file without its graph; attach the graph "
                       "(gantry_schedule_attach)");
    if (s->objective != GY_OBJECTIVE_MAKESPAN)
        return gy_fail(err, GANTRY_E_UNSUPPORTED, NULL,
                       "the schedule has another objective than \"makespan\", the only one that changes are answered "
                       "for; schedule the graph with that");
    return GANTRY_OK;
}

static gantry_status check_machine(const gantry_machine *old, const gantry_machine *new, gantry_error *err)
{
    if (old->devices != new->devices || old->memories != new->memories)
        return gy_fail(
            err, GANTRY_E_INVALID, NULL,
            "machine \"%s\" has %u devices and %u memories, the schedule's has %u and %u; it must be the same "
            "machine with other rates",
            new->name, new->devices, new->memories, old->devices, old->memories);
    for (uint32_t d = 0; d < old->devices; d++)
        if (strcmp(old->device[d].id, new->device[d].id) != 0 || old->device[d].memory != new->device[d].memory)
            return gy_fail(err, GANTRY_E_INVALID, NULL,
                           "device %u of machine \"%s\" is \"%s\", that of the schedule's \"%s\"; it must be the same "
                           "machine with other rates",
                           d, new->name, new->device[d].id, old->device[d].id);
    for (uint32_t m = 0; m < old->memories; m++)
        if (strcmp(old->memory[m].id, new->memory[m].id) != 0)
            return gy_fail(err, GANTRY_E_INVALID, NULL,
                           "memory %u of machine \"%s\" is \"%s\", that of the schedule's \"%s\"; it must be the same "
                           "machine with other rates",
                           m, new->name, new->memory[m].id, old->memory[m].id);
    return GANTRY_OK;
}

static gantry_status check_move(const what_if *x, gantry_move move, gantry_error *err)
{
    const gantry_graph *g = x->from->graph;
    if (!gy_graph_gave(g, move.node.graph))
        return gy_fail(err, GANTRY_E_INVALID, NULL, GY_OTHER_GRAPH, "node", move.node.id, move.node.graph, g->name,
                       g->number);
    if (move.node.id >= g->nodes.count)
        return gy_fail(err, GANTRY_E_INVALID, NULL, "no node %u; the graph has %zu", move.node.id, g->nodes.count);
    const char *id = g->nodes.at[move.node.id].id;
    if (move.device >= x->machine->devices)
        return gy_fail(err, GANTRY_E_INVALID, NULL, "node \"%s\" cannot go to device %u; the machine has %u", id,
                       move.device, x->machine->devices);
    if (g->nodes.at[move.node.id].kind == GY_NODE_COLLECTIVE)
        return gy_fail(err, GANTRY_E_INVALID, NULL,
                       "node \"%s\" is a collective, whose ranks are where their rows are; move the nodes that write "
                       "these",
                       id);
    return GANTRY_OK;
}

static gantry_status refuse(const what_if *x, uint32_t node, uint32_t device, const char *why, gantry_error *err)
{
    return gy_fail(err, GANTRY_E_INVALID, NULL, "node \"%s\" cannot be on %s: %s", x->from->graph->nodes.at[node].id,
                   x->machine->device[device].id, why);
}

/* ---- the changed placement ---- */

static gantry_status move_node(what_if *x, gantry_move move, gantry_error *err)
{
    const gy_plan *p = &x->prepared;
    GY_TRY(check_move(x, move, err));
    for (uint32_t t = 0; t < p->flow->tasks; t++) {
        uint32_t node = p->flow->task[t].node;
        if (p->cost.group[node] != p->cost.group[move.node.id])
            continue;
        if (gy_plan_time(p, node, move.device) >= GY_TICKS_MAX)
            return refuse(x, node, move.device, "its \"on\", or what its kernel runs on, says so", err);
        x->candidate.device[t] = move.device;
    }
    return GANTRY_OK;
}

static gantry_status change(what_if *x, const gantry_move *move, size_t moves, gantry_error *err)
{
    const gy_flow *flow = x->from->graph->flow;
    if (!gy_candidate_init(&x->candidate, flow->tasks) || !gy_candidate_from_schedule(&x->candidate, x->from, flow))
        return gy_fail_nomem(err);
    for (size_t i = 0; i < moves; i++)
        GY_TRY(move_node(x, move[i], err));
    return GANTRY_OK;
}

/* A node that may not be there is placed elsewhere (gy_place_on); that would be no answer. */
static gantry_status check_placed(const what_if *x, const gy_plan *p, const gantry_move *move, size_t moves,
                                  gantry_error *err)
{
    for (uint32_t t = 0; t < p->flow->tasks; t++)
        for (size_t i = moves; i-- > 0;) {
            if (p->flow->task[t].node != move[i].node.id)
                continue;
            if (p->placed.device[t] != x->candidate.device[t])
                return refuse(x, move[i].node.id, x->candidate.device[t], "a node that it is \"apart\" from is there",
                              err);
            break;
        }
    return GANTRY_OK;
}

/* ---- the plan ---- */

static gantry_status carry_out(what_if *x, gy_plan *p, const gantry_move *move, size_t moves, gantry_error *err)
{
    gantry_schedule *made = NULL;
    p->like = x->trials.like;
    GY_TRY(gy_plan_begin(p, x->trials.options, err));
    GY_TRY(check_placed(x, p, move, moves, err));
    GY_TRY(gy_trials_lower(&x->trials, p, &made, &x->trials.first, err));
    if (made)
        gy_trials_offer(&x->trials, made);
    return GANTRY_OK;
}

static gantry_status plan(what_if *x, const gantry_move *move, size_t moves, gantry_schedule **schedule,
                          gantry_error *err)
{
    gy_plan p;
    gy_attempt attempt = GY_ATTEMPT_INIT;
    attempt.candidate = &x->candidate;
    attempt.make_room = true;
    attempt.spill.spilling = x->trials.options->spilling;
    GY_TRY(gy_plan_init(&p, x->from->graph, x->machine, &gy_policy_replay, &attempt, err));
    gantry_status status = carry_out(x, &p, move, moves, err);
    gy_plan_free(&p);
    return status ? status : gy_trials_finish(&x->trials, schedule, err);
}

gantry_status gantry_schedule_what_if(gantry_schedule **schedule, const gantry_schedule *from,
                                      const gantry_machine *machine, const gantry_move *move, size_t moves,
                                      gantry_error *err)
{
    GY_NEED(schedule, err);
    GY_NEED(from, err);
    if (moves)
        GY_NEED(move, err);
    GY_TRY(check_from(from, err));
    gy_options o = { .objective = GY_OBJECTIVE_MAKESPAN, .spilling = GY_SPILL_REMAKE, .unroll = GY_UNROLL_MOST };
    o.replay = from->replay == GY_REPLAY_DEVICE ? GY_REPLAY_AUTO : from->replay;
    what_if x = { .from = from, .machine = machine ? machine : from->machine };
    GY_TRY(check_machine(from->machine, x.machine, err));
    x.trials = (gy_trials){ .graph = from->graph, .machine = x.machine, .options = &o };
    GY_TRY(gy_plan_init(&x.prepared, from->graph, x.machine, &gy_policy_replay, NULL, err));
    gantry_status status = gy_plan_prepare(&x.prepared, err);
    x.trials.like = !status && gy_plan_may_be_like(&x.prepared) ? &x.prepared : NULL;
    if (!status)
        status = change(&x, move, moves, err);
    if (!status)
        status = plan(&x, move, moves, schedule, err);
    gy_trials_free(&x.trials);
    gy_candidate_free(&x.candidate);
    gy_plan_free(&x.prepared);
    return status;
}
