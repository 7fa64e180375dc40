/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/search/search.h"

#include "base/error.h"
#include "scheduler/load_search.h"
#include "scheduler/search/anneal.h"
#include "scheduler/search/exact.h"
#include "scheduler/search/portfolio.h"
#include <string.h>

/* Evaluations of the first round; each further round has twice as many. */
#define PER_TASK 128
#define VISITS   INT64_C(8000000) /* tasks and dependencies decoded, at most */
#define SEGMENTS 4
/* Branch and bound: tasks of a graph that it is tried on unasked, and states it may look at. */
#define SMALL         12
#define STATES_ANYWAY (1u << 18)
#define STATES_ASKED  (1u << 26)

typedef struct search {
    gy_portfolio f;
    gy_plan plan; /* cost and origin only; the model reads it */
    gy_model model;
    gy_anneal anneal;
    gy_candidate best, now; /* by the model; the one at work */
    gy_tried tried;
} search;

static uint64_t budget_of(const gy_model *m, int round)
{
    uint64_t by_tasks = (uint64_t)m->tasks * PER_TASK;
    uint64_t by_visits = (uint64_t)VISITS / (m->tasks + m->pred_first[m->tasks]) + 1;
    return (by_tasks < by_visits ? by_tasks : by_visits) << (round - 2);
}

static gantry_status simulate(search *x, const gy_candidate *c, const char *name, gantry_error *err)
{
    gy_ticks makespan;
    gantry_status status = gy_portfolio_candidate(&x->f, c, name, &makespan, err);
    if (!status && makespan < x->tried.makespan)
        x->tried.makespan = makespan;
    return status;
}

/* The first temperature: a fraction of a typical time; less where there are too few evaluations to cool down from it.
 */
static gy_ticks heat_of(const gy_model *m, uint64_t budget)
{
    uint64_t enough = (uint64_t)m->tasks * 32;
    gy_ticks heat = m->mean * 8 / 16;
    return budget >= enough ? heat : heat / (gy_ticks)(enough / budget);
}

/* One round in segments, each of which begins at the best so far and ends with a simulation of what it found. */
static gantry_status anneal(search *x, int round, gantry_error *err)
{
    uint64_t budget = budget_of(&x->model, round) / SEGMENTS + 1;
    gantry_status status = GANTRY_OK;
    for (int i = 0; i < SEGMENTS && !status; i++) {
        gy_candidate_copy(&x->now, &x->best);
        x->now.model = GY_TICKS_MAX;
        gy_anneal_run(&x->anneal, &x->now, budget, heat_of(&x->model, budget));
        if (gy_candidate_is_same(&x->now, &x->best))
            continue;
        status = simulate(x, &x->now, gy_search_name, err);
        if (x->now.model < x->best.model)
            gy_candidate_copy(&x->best, &x->now);
    }
    return status;
}

static gantry_status find_start(search *x)
{
    gy_decode *d = &x->anneal.decode;
    for (size_t i = 0; i < x->f.placed.count; i++) {
        gy_candidate *c = &x->f.placed.at[i];
        memcpy(d->device, c->device, c->tasks * sizeof *c->device);
        c->model = gy_decode_run(d, c->order, GY_TICKS_MAX);
        x->anneal.evaluations++;
        if (c->model < x->best.model)
            gy_candidate_copy(&x->best, c);
    }
    return GANTRY_OK;
}

/* Branch and bound from the best so far. Small graphs get a try at it anyway; --optimal insists on the proof, which
 * holds for the model: exact on machines without contention, before contention on others. */
static gantry_status solve(search *x, gantry_error *err)
{
    bool asked = x->f.options->optimal, proved = false;
    uint64_t states = 0;
    if (!gy_exact_can(&x->model) || (!asked && x->model.tasks > SMALL)) {
        if (!asked)
            return GANTRY_OK;
        return gy_fail(err, GANTRY_E_UNSUPPORTED, NULL,
                       "no optimum for %u tasks: branch and bound takes up to %d, without collectives, \"with\" and "
                       "\"apart\"; leave \"optimal\" off",
                       x->model.tasks, GY_EXACT_TASKS);
    }
    gy_candidate_copy(&x->now, &x->best);
    gantry_status status =
        gy_exact_run(&x->model, &x->now, asked ? STATES_ASKED : STATES_ANYWAY, &states, &proved, err);
    x->anneal.evaluations += states;
    if (!status && asked && !proved)
        status = gy_fail(err, GANTRY_E_UNSUPPORTED, NULL,
                         "the optimum of %u tasks was not proved within %llu states; leave \"optimal\" off",
                         x->model.tasks, (unsigned long long)STATES_ASKED);
    if (!status && x->now.model < x->best.model)
        status = simulate(x, &x->now, proved ? gy_optimal_name : gy_search_name, err);
    return status;
}

static gantry_status search_rounds(search *x, gantry_error *err)
{
    gantry_status status = find_start(x);
    for (int round = 2; round <= x->f.options->effort && !status && x->best.model > x->model.bound; round++)
        status = anneal(x, round, err);
    if (!status)
        status = solve(x, err);
    x->tried.evaluations = x->anneal.evaluations;
    return status;
}

static gantry_status improve(search *x, gantry_error *err)
{
    gantry_status status = gy_plan_init(&x->plan, x->f.graph, x->f.machine, &gy_policy_replay, err);
    if (status)
        return status;
    status = gy_plan_prepare(&x->plan, err);
    if (!status)
        status = gy_model_make(&x->model, &x->plan, true, err);
    if (!status)
        status = gy_anneal_init(&x->anneal, &x->model, x->f.options->seed, err);
    if (!status && !(gy_candidate_init(&x->best, x->model.tasks) && gy_candidate_init(&x->now, x->model.tasks)))
        status = gy_fail_nomem(err);
    if (!status)
        status = search_rounds(x, err);
    gy_candidate_free(&x->best);
    gy_candidate_free(&x->now);
    gy_anneal_free(&x->anneal);
    gy_model_free(&x->model);
    gy_plan_free(&x->plan);
    return status;
}

gantry_status gy_search_run(gantry_schedule **schedule, gantry_graph *graph, const gantry_machine *machine,
                            const gantry_schedule_options *options, gantry_error *err)
{
    if (!strcmp(options->objective, "max_load"))
        return gy_load_run(schedule, graph, machine, options, err);
    search x = {
        .f = { .graph = graph, .machine = machine, .options = options, .keep = options->effort > 1 || options->optimal }
    };
    x.tried = (gy_tried){ .policy = gy_search_name, .makespan = GY_TICKS_MAX };
    gantry_status status = gy_portfolio_policies(&x.f, err);
    if (!status && (options->effort > 1 || options->optimal) && x.f.placed.count) {
        status = improve(&x, err);
        if (!status)
            status = gy_portfolio_note(&x.f, &x.tried, err);
    }
    if (!status && !x.f.best && x.f.first.status == GANTRY_E_CAPACITY)
        status = gy_portfolio_squeeze(&x.f, err);
    if (!status && !x.f.best) {
        if (err)
            *err = x.f.first;
        status = x.f.first.status;
    }
    if (!status)
        status = gy_plan_verify(x.f.best, graph, err);
    if (!status) {
        *schedule = x.f.best;
        x.f.best = NULL;
    }
    gy_portfolio_free(&x.f);
    return status;
}
