/* SPDX-License-Identifier: Apache-2.0 */
/* `--objective max_load`: an assignment of least load, lowered and simulated like any other. */
#include "scheduler/objective/max_load_search.h"

#include "base/error.h"
#include "scheduler/cost/cost.h"
#include "scheduler/pipeline/pipeline.h"
#include "scheduler/place/place.h"
#include "scheduler/policies/policy.h"
#include "scheduler/policies/split/split.h"
#include "scheduler/search/search.h"
#include "scheduler/search/trials.h"
#include <string.h>

const char gy_load_search_name[] = "split+search";

/* Moves of the first step of effort that searches; each further one has twice as many. */
#define MOVES  UINT64_C(250000)
#define BRIEF  16                 /* one part of so many of the moves improves the split, whatever the effort */
#define VISITS UINT64_C(40000000) /* items of units that are moved, at most */

typedef struct run {
    gantry_graph *graph;
    const gantry_machine *machine;
    const gy_options *options;
    const gy_policy *named; /* NULL: the split */
    gy_plan plan;           /* cost and origin (and what the named policy places) */
    gy_load load;
    uint32_t *device; /* per unit */
} run;

static gantry_status refuse_collective(const gy_plan *p, uint32_t task, gantry_error *err)
{
    const gy_node *n = gy_plan_node(p, task);
    return gy_graph_fail(
        p->graph, n->origin, err, GANTRY_E_UNSUPPORTED,
        "node \"%s\" is a collective, which has no one device, and objective \"max_load\" counts the load of "
        "each device: it takes graphs without collective nodes; choose makespan or period",
        n->id);
}

static gantry_status refuse_collectives(const gy_plan *p, gantry_error *err)
{
    for (uint32_t t = 0; p->inputs.teams.count && t < p->flow->tasks; t++)
        if (gy_plan_team(p, t))
            return refuse_collective(p, t, err);
    return GANTRY_OK;
}

static gantry_status prepare(run *r, gantry_error *err)
{
    gantry_status status =
        gy_plan_init(&r->plan, r->graph, r->machine, r->named ? r->named : &gy_policy_split, NULL, err);
    r->plan.planning = r->options->planning;
    if (!status)
        status = gy_plan_capacity(&r->plan, r->options->max_memory, err);
    if (!status)
        status = r->named ? gy_plan_to_place(&r->plan, err) : gy_plan_prepare(&r->plan, err);
    if (!status)
        status = refuse_collectives(&r->plan, err);
    return status ? status : gy_load_make(&r->load, &r->plan, err);
}

static uint32_t items_of(const gy_load *l, uint32_t unit)
{
    return l->item_first[unit + 1] - l->item_first[unit];
}

/* Items that a move visits: those of any unit, and those of one that shares an item with it, which are many where all
 * hang on a few. */
static double visits_of(const gy_load *l)
{
    double all = 0;
    for (uint32_t i = 0; i < l->items.count; i++) {
        const gy_load_item *item = &l->items.at[i];
        double ends = item->maker == GY_NONE ? 0 : items_of(l, item->maker), chances = 0;
        for (uint32_t k = 0; k < item->readers; k++)
            ends += items_of(l, l->reader.at[item->reader + k]);
        for (uint32_t k = 0; k < item->readers; k++)
            chances += 1.0 / items_of(l, l->reader.at[item->reader + k]);
        chances += item->maker == GY_NONE ? 0 : 1.0 / items_of(l, item->maker);
        all += chances * ends / (item->readers + 1);
    }
    return (all + l->item_first[l->units]) / l->units * l->devices + l->devices;
}

static uint64_t moves_of(const run *r)
{
    const gy_load *l = &r->load;
    bool briefly = !r->named && r->options->objective == GY_OBJECTIVE_MAX_LOAD;
    if ((r->options->effort < 2 && !briefly) || !l->units)
        return 0;
    uint64_t most = (uint64_t)(8 * (double)VISITS / visits_of(l));
    return MOVES < most ? MOVES : most;
}

/* ---- where a search begins ---- */

/* Takes the assignment if more of it fits, or else if its load is less. */
static gantry_status take_better(run *r, const uint32_t *device, gantry_error *err)
{
    gy_assignment at, other;
    bool done = gy_assignment_init(&at, &r->load), both = gy_assignment_init(&other, &r->load) && done;
    if (both) {
        gy_assignment_set(&at, r->device);
        gy_assignment_set(&other, device);
        uint64_t before = gy_assignment_excess(&at), now = gy_assignment_excess(&other);
        if (now < before || (now == before && gy_assignment_load(&other) < gy_assignment_load(&at)))
            memcpy(r->device, device, r->load.units * sizeof *device);
    }
    gy_assignment_free(&at);
    gy_assignment_free(&other);
    return both ? GANTRY_OK : gy_fail_nomem(err);
}

static void read_placed(const run *r, const gy_plan *p, uint32_t *device)
{
    for (uint32_t t = 0; t < r->graph->flow->tasks; t++)
        device[r->load.unit_of[t]] = p->placed.device[t];
}

/* The placement of the policy, improved a little. */
static gantry_status place_as(run *r, gy_plan *p, uint64_t moves, gantry_error *err)
{
    GY_TRY(gy_plan_capacity(p, r->options->max_memory, err));
    GY_TRY(gy_plan_to_place(p, err));
    uint32_t *device = gy_calloc((size_t)r->load.units + 1, sizeof *device);
    if (!device)
        return gy_fail_nomem(err);
    read_placed(r, p, device);
    bool improved = gy_load_improve(&r->load, device, moves, r->options->seed - 1);
    gantry_status status = improved ? take_better(r, device, err) : gy_fail_nomem(err);
    gy_free(device);
    return status;
}

/* Where the policy cannot place the graph, nothing changes. */
static gantry_status begin_as(run *r, const gy_policy *policy, uint64_t moves, gantry_error *err)
{
    gy_plan p;
    gantry_error why = { 0 };
    gantry_status status = gy_plan_init(&p, r->graph, r->machine, policy, NULL, &why);
    p.planning = r->options->planning;
    if (!status)
        status = place_as(r, &p, moves, &why);
    gy_plan_free(&p);
    if (gy_is_about_placement(status))
        return GANTRY_OK;
    if (status && err)
        *err = why;
    return status;
}

/* The split is improved a little at any effort: its parts are consecutive, and what follows from that a few moves often
 * mend. Where it is not known which of many lines to cut, as in a grid that is gone through again and again, a division
 * that cuts little is the better beginning. */
static gantry_status begin_from_split(run *r, uint64_t moves, gantry_error *err)
{
    if (!gy_load_improve(&r->load, r->device, moves / BRIEF, r->options->seed - 1))
        return gy_fail_nomem(err);
    if (!moves || r->options->objective != GY_OBJECTIVE_MAX_LOAD || r->load.devices < 2)
        return GANTRY_OK;
    bool large = r->graph->flow->tasks > gy_policy_families.largest;
    GY_TRY(begin_as(r, large ? &gy_policy_partition : &gy_policy_families, moves / BRIEF, err));
    return begin_as(r, gy_policy_at(0), moves / BRIEF, err);
}

/* Each effort begins where the one below it ended, so that more of it is never worse. */
static bool improve(run *r, uint64_t moves)
{
    bool done = true;
    for (int effort = 2; moves && effort <= r->options->effort && done; effort++) {
        done = gy_load_improve(&r->load, r->device, moves, r->options->seed + (uint64_t)(effort - 2));
        moves *= 2;
    }
    return done;
}

/* Without effort a quarter of the steps; for a period, of which it is one candidate among others, no more than a policy
 * may take. */
static gy_split_limits limits_of(const gy_options *o)
{
    gy_split_limits limits = GY_SPLIT_LIMITS;
    if (o->effort == 0 && o->objective == GY_OBJECTIVE_PERIOD)
        return GY_SPLIT_QUICK;
    limits.steps /= o->effort == 0 ? 4 : 1;
    return limits;
}

static gantry_status take_placed(run *r, gantry_error *err)
{
    r->device = gy_calloc((size_t)r->load.units + 1, sizeof *r->device);
    if (!r->device)
        return gy_fail_nomem(err);
    read_placed(r, &r->plan, r->device);
    return GANTRY_OK;
}

static gantry_status too_full(const gy_assignment *a, gantry_error *err)
{
    char text[2][40];
    const gantry_machine *m = a->l->p->machine;
    uint32_t i = 0;
    while (i + 1 < m->memories && a->used[i] <= a->l->p->capacity[i])
        i++;
    return gy_fail(err, GANTRY_E_CAPACITY, NULL,
                   "memory \"%s\" would have to hold %s of constants and states, and has %s; nothing that was tried "
                   "spreads them so that all fit: use more devices, or memory",
                   m->memory[i].id, gy_bytes_text(text[0], sizeof text[0], a->used[i]),
                   gy_bytes_text(text[1], sizeof text[1], a->l->p->capacity[i]));
}

static gantry_status check_memory(const run *r, gantry_error *err)
{
    gy_assignment a;
    gantry_status status = gy_assignment_init(&a, &r->load) ? GANTRY_OK : gy_fail_nomem(err);
    if (!status) {
        gy_assignment_set(&a, r->device);
        status = gy_assignment_excess(&a) ? too_full(&a, err) : GANTRY_OK;
    }
    gy_assignment_free(&a);
    return status;
}

/* ---- the schedule of an assignment ---- */

static gantry_status place_candidate(gy_plan *p, gantry_error *err)
{
    gy_load l;
    gantry_status status = gy_load_make(&l, p, err);
    if (!status)
        status = gy_split_place(p, &l, p->attempt->assigned, err);
    gy_load_free(&l);
    return status;
}

static const gy_policy follow = {
    .name = gy_load_search_name,
    .summary = "places tasks where a search for the least load put them",
    .place = place_candidate,
};

/* The loads as the schedule has them, so that what is reported is what was lowered. */
static gantry_status note_loads(run *r, gy_plan *p, gantry_error *err)
{
    gy_assignment a;
    gantry_schedule *s = p->schedule;
    gantry_status status = gy_assignment_init(&a, &r->load) ? GANTRY_OK : gy_fail_nomem(err);
    for (uint32_t t = 0; !status && t < r->graph->flow->tasks; t++)
        gy_assignment_move(&a, r->load.unit_of[t], p->placed.device[t]);
    if (!status && !gy_vec_add(&s->load, r->load.devices))
        status = gy_fail_nomem(err);
    for (uint32_t d = 0; !status && d < r->load.devices; d++)
        s->load.at[d] = a.load[d];
    gy_assignment_free(&a);
    return status;
}

static gantry_status lower(run *r, gantry_schedule **schedule, const char *name, bool make_room, bool spare,
                           gantry_error *err)
{
    gy_plan p;
    gy_attempt attempt = GY_ATTEMPT_INIT;
    attempt.make_room = make_room;
    attempt.spare_memory = spare;
    attempt.assigned = r->device;
    if (r->options->spilling != GY_SPILL_OFF)
        attempt.spill.spilling = GY_SPILL_COPY; /* nothing is made again, as devices are busy enough */
    gantry_status status = gy_plan_init(&p, r->graph, r->machine, &follow, &attempt, err);
    if (!status)
        status = gy_trials_plan(&p, r->options, &attempt, err);
    if (!status)
        status = note_loads(r, &p, err);
    if (!status) {
        *schedule = p.schedule;
        (*schedule)->policy = name;
        p.schedule = NULL;
    }
    gy_plan_free(&p);
    return status;
}

/* Data that stay fit; data that are under way for a while may not, and are then spilled. */
static gantry_status lower_to_fit(run *r, gantry_schedule **schedule, const char *name, gantry_error *err)
{
    gantry_error inner = { 0 };
    gantry_status status = lower(r, schedule, name, false, false, &inner);
    if (status == GANTRY_E_CAPACITY)
        status = lower(r, schedule, name, true, false, &inner);
    if (status == GANTRY_E_CAPACITY && gy_plan_can_spare(r->graph, r->machine) &&
        !lower(r, schedule, name, true, true, NULL))
        return GANTRY_OK;
    if (status && err)
        *err = inner;
    return status;
}

gantry_status gy_load_run(gantry_schedule **schedule, gantry_graph *graph, const gantry_machine *machine,
                          const gy_options *options, gantry_error *err)
{
    run r = { .graph = graph, .machine = machine, .options = options };
    gy_split_limits limits = limits_of(options);
    gantry_schedule *made = NULL;
    r.named = options->policy == &gy_policy_split ? NULL : options->policy;
    gantry_status status = prepare(&r, err);
    if (!status)
        status = r.named ? take_placed(&r, err) : gy_split_assign(&r.load, &limits, &r.device, err);
    uint64_t moves = status ? 0 : moves_of(&r);
    if (!status && !r.named)
        status = begin_from_split(&r, moves, err);
    if (!status && !improve(&r, moves))
        status = gy_fail_nomem(err);
    if (!status)
        status = check_memory(&r, err);
    const char *name = moves ? gy_load_search_name : r.named ? r.named->name : gy_policy_split.name;
    if (!status)
        status = lower_to_fit(&r, &made, name, err);
    if (!status)
        status = gy_plan_verify(made, graph, err);
    if (!status)
        *schedule = made;
    else
        gantry_schedule_free(made);
    gy_free(r.device);
    gy_load_free(&r.load);
    gy_plan_free(&r.plan);
    return status;
}
