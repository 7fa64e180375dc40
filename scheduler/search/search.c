/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/search/search.h"

#include "base/error.h"
#include "scheduler/cost/cost.h"
#include "scheduler/pipeline/pipeline.h"
#include "scheduler/plan/share.h"
#include "scheduler/policies/partition/partition.h"
#include "scheduler/search/anneal.h"
#include "scheduler/search/exact.h"
#include "scheduler/search/portfolio.h"
#include "scheduler/search/seats.h"
#include <string.h>

/* Evaluations of the first round; each further round has twice as many. */
#define PER_TASK 128
#define VISITS   INT64_C(8000000) /* tasks and dependencies decoded, at most */
#define SEGMENTS 4
#define MORE     4 /* times as many where there are kinds of device to choose from, and devices of a kind to share */
/* Steps that are simulated: so many times 2^effort, shared out among the tasks; fewer where each has to spill. */
#define CLIMBS      INT64_C(625)
#define ORDERS      8    /* so many times that where most nodes say where they run, as long as it pays: */
#define PAYS        1000 /* one part of so many in as many steps as there are elsewhere, */
#define PATIENCE    128  /* and no fewer than these */
#define CHOICES     2    /* steps among which the model chooses before one is simulated */
#define SQUEEZED    8
#define DEALT_UP_TO 2000  /* tasks of graphs whose families, dealt out, are simulated */
#define REORDERED   10    /* those that take one part of so many longer than the best are tried in other orders */
#define HOPELESS    4     /* families are left alone where gathering them takes one part of so many longer */
#define LARGE       10000 /* tasks; of larger graphs whole divisions are looked at, a round each */
/* Branch and bound: tasks of a graph that it is tried on unasked, and states it may look at. */
#define SMALL         12
#define STATES_ANYWAY (1u << 18)
#define STATES_ASKED  (1u << 26)
#define LOOKS_ASKED   (UINT64_C(1) << 33) /* tasks and devices that states look at: half a minute */

typedef struct search {
    gy_portfolio f;
    gy_plan plan; /* cost and origin only; the model reads it */
    gy_model model;
    gy_anneal anneal;
    gy_folding fold;
    gy_room room;                     /* where memory is short */
    gy_candidate best, champion, now; /* by the model, by simulation; the one at work */
    gy_candidate folded, dealt; /* of those that keep families together, the best by the model; by simulation, of those
                                   that were dealt out */
    gy_candidate squeezed;      /* the best by the model and by what lacks room */
    bool seated;                /* devices that are alike are not as good as each other (seats.h) */
    gy_tried tried;
} search;

static uint64_t budget_of(const gy_model *m, int round)
{
    uint64_t more = m->like && m->kinds_of_device > 1 ? MORE : 1;
    uint64_t by_tasks = (uint64_t)m->tasks * PER_TASK * more;
    uint64_t by_visits = (uint64_t)VISITS * more / (m->tasks + m->pred_first[m->tasks]) + 1;
    return (by_tasks < by_visits ? by_tasks : by_visits) << (round - 2);
}

static gantry_status simulate_ways(search *x, gy_candidate *c, bool all_ways, const char *name, gantry_error *err)
{
    GY_TRY(gy_portfolio_candidate(&x->f, c, all_ways, name, &c->simulated, err));
    if (c->simulated < x->champion.simulated)
        gy_candidate_copy(&x->champion, c);
    if (c->simulated < x->tried.makespan)
        x->tried.makespan = c->simulated;
    return GANTRY_OK;
}

static gantry_status simulate(search *x, gy_candidate *c, const char *name, gantry_error *err)
{
    return simulate_ways(x, c, false, name, err);
}

/* The best of the search was planned as the best before it was; another way may suit it better. */
static gantry_status try_all_ways(search *x, gantry_error *err)
{
    const gantry_schedule *best = x->f.t.best;
    if (!best || strcmp(best->policy, gy_search_name) != 0)
        return GANTRY_OK;
    gy_candidate_copy(&x->now, &x->champion);
    return simulate_ways(x, &x->now, true, gy_search_name, err);
}

static gy_ticks decode_now(search *x, gy_ticks limit)
{
    gy_decode *d = &x->anneal.decode;
    memcpy(d->device, x->now.device, x->now.tasks * sizeof *d->device);
    x->anneal.evaluations++;
    return gy_decode_run(d, x->now.order, limit);
}

/* The placement, with devices that are near each other for what sends much. Annealing may begin there, too. */
static gantry_status seat(search *x, const gy_candidate *from, gantry_error *err)
{
    bool changed = false;
    gy_candidate_copy(&x->now, from);
    GY_TRY(x->seated ? gy_seats_choose(&x->model, &x->now, &changed, err) : GANTRY_OK);
    if (!changed)
        return GANTRY_OK;
    x->now.model = decode_now(x, GY_TICKS_MAX);
    if (x->now.model < x->best.model)
        gy_candidate_copy(&x->best, &x->now);
    return simulate(x, &x->now, gy_search_name, err);
}

/* The first temperature: a fraction of a typical time; less where there are too few evaluations to cool down from it.
 */
static gy_ticks heat_of(const gy_model *m, uint64_t budget)
{
    uint64_t enough = (uint64_t)m->tasks * 32;
    gy_ticks heat = m->mean * (m->like ? 4 : 8) / 16;
    return budget >= enough ? heat : heat / (gy_ticks)(enough / budget);
}

/* The candidate at work, if the model likes it better than all that kept families together. */
static void offer_folded(search *x)
{
    x->now.model = decode_now(x, x->folded.model);
    if (x->now.model < x->folded.model)
        gy_candidate_copy(&x->folded, &x->now);
}

/* An order for the devices of the candidate at work: 0, that of the graph; 1, by rank; then those of policies, of which
 * each thinks of something else. */
static bool give_order(search *x, size_t which)
{
    if (which == 1)
        return gy_partition_order(&x->plan, x->now.device, x->now.order);
    for (uint32_t t = 0; t < x->now.tasks; t++)
        x->now.order[t] = which ? x->f.t.placed.at[which - 2].order[t] : t;
    return true;
}

/* In both orders of its own. Of small graphs they are simulated, as where work goes on in waves the model is far off.
 */
static gantry_status offer_dealt(search *x, gantry_error *err)
{
    for (size_t which = 0; which < 2; which++) {
        if (!give_order(x, which))
            return gy_fail_nomem(err);
        offer_folded(x);
        if (x->now.tasks > DEALT_UP_TO)
            continue;
        GY_TRY(simulate(x, &x->now, gy_search_name, err));
        if (x->now.simulated < x->dealt.simulated)
            gy_candidate_copy(&x->dealt, &x->now);
    }
    return GANTRY_OK;
}

static bool is_order_known(const search *x, size_t which)
{
    const gy_candidate *c = x->f.t.placed.at;
    for (size_t i = 0; i < which; i++)
        if (!memcmp(c[i].order, c[which].order, c->tasks * sizeof *c->order))
            return true;
    return false;
}

/* The best of those that were dealt out, if it may become the best, in the orders of policies. */
static gantry_status reorder_dealt(search *x, gantry_error *err)
{
    gy_ticks least = x->champion.simulated;
    for (size_t i = 0; i < x->f.t.placed.count && x->dealt.simulated < GY_TICKS_MAX; i++) {
        gy_candidate_copy(&x->now, &x->dealt);
        if (x->dealt.simulated > least + least / REORDERED || is_order_known(x, i) || !give_order(x, i + 2))
            continue;
        offer_folded(x);
        GY_TRY(simulate(x, &x->now, gy_search_name, err));
    }
    return GANTRY_OK;
}

/* Rows of a square. */
static uint32_t side_of(uint32_t units)
{
    uint32_t side = 1;
    while ((side + 1) * (side + 1) <= units)
        side++;
    return side;
}

/* Placements of policies, families gathered; and families dealt out, in lots of 1, 2, 4, ..., one lot a device, and
 * rows of a square. */
static gantry_status begin_folded(search *x, gantry_error *err)
{
    uint32_t units = x->fold.units, workers = x->plan.workers;
    uint32_t least = units < workers ? units : workers;
    for (size_t i = 0; i < x->f.t.placed.count; i++) {
        gy_candidate_copy(&x->now, &x->f.t.placed.at[i]);
        gy_folding_gather(&x->fold, &x->model, &x->now);
        offer_folded(x);
    }
    for (uint32_t lots = units, last = 0; lots != last; last = lots, lots = lots / 2 > workers ? lots / 2 : least) {
        gy_folding_deal(&x->fold, &x->model, lots, &x->now);
        GY_TRY(offer_dealt(x, err));
    }
    if (side_of(units) > workers) {
        gy_folding_deal(&x->fold, &x->model, side_of(units), &x->now);
        GY_TRY(offer_dealt(x, err));
    }
    return reorder_dealt(x, err);
}

/* One round in segments, which begin by turns at what the model and at what simulation likes best so far, and end with
 * a simulation of what they found. */
static gantry_status anneal(search *x, int round, gantry_error *err)
{
    uint64_t budget = budget_of(&x->model, round) / SEGMENTS + 1;
    gantry_status status = GANTRY_OK;
    for (int i = 0; i < SEGMENTS && !status; i++) {
        const gy_candidate *from = i % 2 ? &x->champion : &x->best;
        gy_candidate_copy(&x->now, from);
        x->now.model = GY_TICKS_MAX;
        gy_anneal_run(&x->anneal, &x->now, budget, heat_of(&x->model, budget));
        if (gy_candidate_is_same(&x->now, from))
            continue;
        status = simulate(x, &x->now, gy_search_name, err);
        if (x->now.model < x->best.model)
            gy_candidate_copy(&x->best, &x->now);
    }
    return status;
}

/* The model begins at once, a simulation when the start has been given out. */
static gy_ticks simulated_as(const search *x, const gy_candidate *c)
{
    return gy_ticks_both(c->model, x->f.t.machine->start);
}

static bool is_exact(const search *x, const gy_candidate *c)
{
    return c->simulated == simulated_as(x, c);
}

static int64_t climbs_of(const search *x, int round)
{
    int64_t budget = x->model.tasks ? (CLIMBS << round) / x->model.tasks : 0;
    return x->f.make_room ? budget / SQUEEZED : budget;
}

/* Where the model does not say what simulation says: from the champion on one step after the other, each of which is
 * simulated and kept if that is no worse. */
static gantry_status climb(search *x, int round, gantry_error *err)
{
    gantry_status status = GANTRY_OK;
    int64_t budget = climbs_of(x, round), most = gy_portfolio_is_placed(x->f.t.graph) ? ORDERS * budget : budget;
    int64_t more = budget > PATIENCE || budget == most ? budget : PATIENCE;
    gy_ticks mark = x->champion.simulated;
    for (int64_t i = 0, end = more < most ? more : most; i < end && !status && !is_exact(x, &x->champion); i++) {
        if (x->champion.simulated <= x->f.t.best->bound ||
            !gy_anneal_neighbour(&x->anneal, &x->champion, CHOICES, &x->now))
            break;
        status = simulate(x, &x->now, gy_search_name, err);
        if (x->now.simulated == x->champion.simulated)
            gy_candidate_copy(&x->champion, &x->now);
        if (x->champion.simulated < mark - mark / PAYS) {
            mark = x->champion.simulated;
            end = i + 1 + more < most ? i + 1 + more : most;
        }
    }
    return status;
}

/* Moves of whole families: what takes many steps for the worse otherwise. */
static gantry_status anneal_families(search *x, int round, gantry_error *err)
{
    uint64_t budget = budget_of(&x->model, round) / SEGMENTS / 2 + 1;
    gy_ticks heat = heat_of(&x->model, budget) * (x->model.tasks / x->fold.units);
    gy_anneal_fold(&x->anneal, &x->fold);
    gy_anneal_run(&x->anneal, &x->folded, budget, heat);
    gy_anneal_unfold(&x->anneal);
    x->anneal.evaluations += gy_folding_exchange(&x->anneal.decode, &x->folded, budget / 4);
    gy_candidate_copy(&x->now, &x->folded);
    return simulate(x, &x->now, gy_search_name, err);
}

/* With lots of its own: where families do not help, all else goes on as without them. */
static gantry_status search_families(search *x, int round, gantry_error *err)
{
    gy_ticks before = x->champion.simulated;
    gy_random random = x->anneal.random;
    gantry_status status = GANTRY_OK;
    if (!x->fold.units)
        return GANTRY_OK;
    if (round == 2)
        status = begin_folded(x, err);
    if (!status && round == 2) {
        gy_candidate_copy(&x->now, &x->folded);
        status = simulate(x, &x->now, gy_search_name, err);
        status = status ? status : seat(x, &x->folded, err);
        if (!status && x->dealt.simulated < GY_TICKS_MAX)
            status = seat(x, &x->dealt, err);
    }
    if (!status && x->folded.model <= x->best.model + x->best.model / HOPELESS)
        status = anneal_families(x, round, err);
    x->anneal.random = random;
    if (x->champion.simulated < before)
        gy_candidate_copy(&x->best, x->folded.model < x->best.model ? &x->folded : &x->champion);
    return status;
}

/* From the placement on, families or tasks. */
static gantry_status anneal_squeezed(search *x, const gy_candidate *from, bool folded, uint64_t budget,
                                     gantry_error *err)
{
    gy_ticks heat = heat_of(&x->model, budget);
    gy_candidate_copy(&x->now, from);
    x->now.model = GY_TICKS_MAX;
    x->anneal.room = &x->room;
    if (folded)
        gy_anneal_fold(&x->anneal, &x->fold);
    gy_anneal_run(&x->anneal, &x->now, budget, folded ? heat * (x->model.tasks / x->fold.units) : heat);
    gy_anneal_unfold(&x->anneal);
    x->anneal.room = NULL;
    if (x->now.model < x->squeezed.model)
        gy_candidate_copy(&x->squeezed, &x->now);
    return simulate(x, &x->now, gy_search_name, err);
}

static gantry_status make_room(search *x, gantry_error *err)
{
    if (!x->plan.capacity)
        GY_TRY(gy_plan_capacity(&x->plan, x->f.t.options->max_memory, err));
    return x->room.m ? GANTRY_OK : gy_room_make(&x->room, &x->model, err);
}

/* Where memory is short: annealing that counts what would have to leave memories and come back, which the model does
 * not know. With lots of its own, as families. */
static gantry_status squeeze(search *x, int round, gantry_error *err)
{
    uint64_t budget = budget_of(&x->model, round) / SEGMENTS + 1;
    gy_random random = x->anneal.random;
    if (!x->f.make_room || x->model.tasks > DEALT_UP_TO || x->f.t.options->optimal)
        return GANTRY_OK;
    GY_TRY(make_room(x, err));
    if (!x->room.pieces)
        return GANTRY_OK;
    if (x->fold.units)
        GY_TRY(anneal_squeezed(x, &x->champion, true, budget, err));
    if (x->squeezed.model < GY_TICKS_MAX)
        GY_TRY(anneal_squeezed(x, &x->squeezed, false, budget, err));
    GY_TRY(anneal_squeezed(x, &x->champion, false, budget, err));
    x->anneal.random = random;
    return GANTRY_OK;
}

/* Large graphs: there annealing has too few evaluations for anything. Another division of the graph instead, which is
 * simulated if it looks better than all before. */
static gantry_status divide_again(search *x, int round, gantry_error *err)
{
    gy_candidate *c = &x->now;
    uint32_t way = (uint32_t)(round - 1);
    if (x->model.bound_units || way >= GY_PARTITIONS)
        return GANTRY_OK;
    if (!gy_partition_divide(&x->plan, way, c->order, c->device))
        return gy_fail_nomem(err);
    memcpy(x->anneal.decode.device, c->device, c->tasks * sizeof *c->device);
    c->model = gy_decode_run(&x->anneal.decode, c->order, x->best.model);
    x->anneal.evaluations++;
    if (c->model >= x->best.model)
        return GANTRY_OK;
    gy_candidate_copy(&x->best, c);
    return simulate(x, c, gy_search_name, err);
}

/* All on one device, on each that is unlike those before it: where parts of sums or shared rows have to be brought
 * together, which the model does not count, no way leads there step by step. */
static gantry_status try_single_devices(search *x, gantry_error *err)
{
    const gy_model *m = &x->model;
    gantry_status status = GANTRY_OK;
    bool possible = x->f.t.placed.count && !m->team && !m->bound_units && m->tasks <= DEALT_UP_TO;
    for (uint32_t d = 1; possible && d < x->plan.workers && !status; d++) {
        uint32_t e = 0, t = 0;
        while (e < d && !gy_model_alike_alone(m, d, e))
            e++;
        while (t < m->tasks && gy_model_time(m, t, d) < GY_TICKS_MAX)
            t++;
        if (e < d || t < m->tasks)
            continue;
        gy_candidate_copy(&x->now, &x->champion);
        for (t = 0; t < m->tasks; t++)
            x->now.device[t] = d;
        x->now.model = decode_now(x, x->champion.simulated);
        if (x->now.model < x->champion.simulated)
            status = simulate(x, &x->now, gy_search_name, err);
    }
    return status;
}

static gantry_status find_start(search *x, gantry_error *err)
{
    gy_decode *d = &x->anneal.decode;
    for (size_t i = 0; i < x->f.t.placed.count; i++) {
        gy_candidate *c = &x->f.t.placed.at[i];
        memcpy(d->device, c->device, c->tasks * sizeof *c->device);
        c->model = gy_decode_run(d, c->order, GY_TICKS_MAX);
        if (x->model.pool) /* which chooses devices */
            memcpy(c->device, d->device, c->tasks * sizeof *c->device);
        x->anneal.evaluations++;
        if (c->model < x->best.model)
            gy_candidate_copy(&x->best, c);
        if (c->simulated < x->champion.simulated)
            gy_candidate_copy(&x->champion, c);
    }
    /* The order of a policy may be worth more than what the policy made of it. */
    bool better = x->model.pool && simulated_as(x, &x->best) < x->champion.simulated;
    gantry_status status = better ? simulate(x, &x->best, gy_search_name, err) : GANTRY_OK;
    status = status ? status : seat(x, &x->best, err);
    status = status ? status : seat(x, &x->champion, err);
    return status ? status : try_single_devices(x, err);
}

/* Branch and bound knows no contention: what it found is the best where annealing, which does, finds so too. */
static void take_solved(search *x)
{
    gy_decode *d = &x->anneal.decode;
    if (x->model.roads) {
        memcpy(d->device, x->now.device, x->now.tasks * sizeof *x->now.device);
        x->now.model = gy_decode_run(d, x->now.order, GY_TICKS_MAX);
        x->anneal.evaluations++;
    }
    if (x->now.model < x->best.model)
        gy_candidate_copy(&x->best, &x->now);
}

static uint64_t states_asked(const gy_model *m)
{
    uint64_t most = LOOKS_ASKED / ((uint64_t)m->tasks * m->devices);
    return most < STATES_ASKED ? most : STATES_ASKED;
}

/* Then nothing is left to prove. */
static bool is_at_bound(const search *x)
{
    return x->f.t.best->makespan <= x->f.t.best->bound;
}

/* Branch and bound from the best so far. Small graphs get a try at it anyway; --optimal insists on the proof, which
 * holds for the model: exact on machines without contention, before contention on others. */
static gantry_status solve(search *x, gantry_error *err)
{
    bool asked = x->f.t.options->optimal, proved = false;
    uint64_t states = 0;
    if (!gy_exact_can(&x->model) || (!asked && x->model.tasks > SMALL)) {
        if (!asked)
            return GANTRY_OK;
        return gy_fail(
            err, GANTRY_E_UNSUPPORTED, NULL,
            "no optimum for %u tasks: branch and bound takes up to %d, without collectives, batches, \"share\", "
            "\"with\" and \"apart\"; leave \"optimal\" off",
            x->model.tasks, GY_EXACT_TASKS);
    }
    if (asked && is_at_bound(x))
        return GANTRY_OK;
    gy_candidate_copy(&x->now, &x->best);
    gantry_status status =
        gy_exact_run(&x->model, &x->now, asked ? states_asked(&x->model) : STATES_ANYWAY, &states, &proved, err);
    x->anneal.evaluations += states;
    status = status ? status : gy_planning_check(x->f.t.options->planning, err);
    if (status)
        return status;
    if (proved)
        x->model.bound = x->now.model;
    if (x->now.model < x->best.model) {
        status = simulate(x, &x->now, proved ? gy_optimal_name : gy_search_name, err);
        take_solved(x);
    }
    if (!status && asked && !proved && !is_at_bound(x))
        status = gy_exact_refuse(x->model.tasks, states, x->f.t.best->makespan, x->f.t.best->bound, err);
    return status;
}

static gantry_status search_round(search *x, int round, gantry_error *err)
{
    gantry_status status = GANTRY_OK;
    if (x->best.model > x->model.bound)
        status = x->model.tasks > LARGE ? divide_again(x, round, err) : anneal(x, round, err);
    if (!status && !x->f.t.options->optimal)
        status = climb(x, round, err);
    bool done = x->champion.simulated <= x->f.t.best->bound;
    if (!status && !done)
        status = squeeze(x, round, err);
    return status || done || x->f.t.options->optimal ? status : search_families(x, round, err);
}

static gantry_status search_rounds(search *x, gantry_error *err)
{
    bool asked = x->f.t.options->optimal; /* then the best that is to be had is a good start */
    gantry_status status = find_start(x, err);
    if (!status && !asked)
        status = solve(x, err);
    for (int round = 2; round <= x->f.t.options->effort && !status; round++)
        status = search_round(x, round, err);
    status = status ? status : asked ? solve(x, err) : try_all_ways(x, err);
    x->tried.evaluations = x->anneal.evaluations;
    return status;
}

static gantry_status prepare(search *x, gantry_error *err)
{
    GY_TRY(gy_plan_init(&x->plan, x->f.t.graph, x->f.t.machine, &gy_policy_replay, NULL, err));
    x->plan.planning = x->f.t.options->planning;
    gantry_status status = gy_plan_prepare(&x->plan, err);
    if (status)
        gy_plan_free(&x->plan);
    return status;
}

/* Costs and inputs for all plans. Where they cannot be had, each plan finds out why by itself; and of a large graph
 * there is no room for them beside a plan. */
static gantry_status share(search *x, gantry_error *err)
{
    const gy_options *o = x->f.t.options;
    if (o->policy || o->effort == 0 || x->f.t.graph->flow->tasks > LARGE)
        return GANTRY_OK;
    gantry_status status = prepare(x, NULL);
    if (status)
        return status == GANTRY_E_NOMEM ? gy_fail_nomem(err) : GANTRY_OK;
    x->f.t.like = gy_plan_may_be_like(&x->plan) ? &x->plan : NULL;
    if (!x->f.t.like)
        gy_plan_free(&x->plan);
    return GANTRY_OK;
}

static gantry_status improve(search *x, gantry_error *err)
{
    gantry_status status = x->f.t.like ? GANTRY_OK : prepare(x, err);
    if (!status)
        status = gy_model_make(&x->model, &x->plan, true, err);
    if (!status)
        status = gy_anneal_init(&x->anneal, &x->model, x->f.t.options->seed, err);
    if (!status && !(gy_candidate_init(&x->best, x->model.tasks) && gy_candidate_init(&x->now, x->model.tasks) &&
                     gy_candidate_init(&x->champion, x->model.tasks) && gy_candidate_init(&x->folded, x->model.tasks) &&
                     gy_candidate_init(&x->dealt, x->model.tasks) && gy_candidate_init(&x->squeezed, x->model.tasks)))
        status = gy_fail_nomem(err);
    x->seated = !status && gy_seats_matter(&x->model);
    if (!status && x->model.tasks <= LARGE)
        status = gy_folding_make(&x->fold, &x->model, err);
    if (!status)
        status = search_rounds(x, err);
    gy_candidate_free(&x->best);
    gy_candidate_free(&x->champion);
    gy_candidate_free(&x->now);
    gy_candidate_free(&x->folded);
    gy_candidate_free(&x->dealt);
    gy_candidate_free(&x->squeezed);
    gy_room_free(&x->room);
    gy_folding_free(&x->fold);
    gy_anneal_free(&x->anneal);
    gy_model_free(&x->model);
    return status;
}

gantry_status gy_search_run(gantry_schedule **schedule, gantry_graph *graph, const gantry_machine *machine,
                            const gy_options *options, gantry_error *err)
{
    search x = { .f = { .t = { .graph = graph, .machine = machine, .options = options },
                        .keep = options->effort > 1 || options->optimal } };
    x.tried = (gy_tried){ .policy = gy_search_name, .makespan = GY_TICKS_MAX };
    gantry_status status = share(&x, err);
    if (!status)
        status = gy_portfolio_policies(&x.f, err);
    if (!status && (options->effort > 1 || options->optimal) && x.f.t.placed.count) {
        status = improve(&x, err);
        if (!status)
            status = gy_trials_note(&x.f.t, &x.tried, err);
    }
    if (!status && !x.f.t.best && x.f.t.first.status == GANTRY_E_CAPACITY)
        status = gy_portfolio_make_room(&x.f, err);
    if (!status)
        status = gy_trials_finish(&x.f.t, schedule, err);
    gy_portfolio_free(&x.f);
    if (x.plan.graph)
        gy_plan_free(&x.plan);
    return status;
}
