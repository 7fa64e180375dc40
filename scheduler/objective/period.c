/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/objective/period.h"

#include "base/error.h"
#include "scheduler/bound/bound.h"
#include "scheduler/cost/cost.h"
#include "scheduler/objective/max_load_search.h"
#include "scheduler/pipeline/pipeline.h"
#include "scheduler/policies/policy.h"
#include "scheduler/search/portfolio.h"

#define LARGE 2000 /* tasks of graphs that only the default policy and the split are tried on */

typedef struct search {
    gy_trials t;    /* `placed`: what was looked at, to look at nothing twice */
    gy_ticks least; /* no period is less */
} search;

static bool is_better(const gantry_schedule *a, const gantry_schedule *b)
{
    if (a->period != b->period)
        return a->period < b->period;
    return a->in_flight != b->in_flight ? a->in_flight < b->in_flight : a->makespan < b->makespan;
}

/* Where the starts that are simulated do not yet wait for what will hold them up in the end, the bound knows more. */
static gantry_status measure(const search *x, gantry_schedule *s, gantry_error *err)
{
    gantry_status status = gy_period_measure(s, &s->period, err);
    if (!status && s->period < x->least)
        s->period = x->least;
    return status;
}

/* *made stays NULL where so many starts do not fit. */
static gantry_status lower(search *x, const gy_candidate *c, const char *name, uint32_t in_flight,
                           gantry_schedule **made, gantry_error *err)
{
    gy_plan p;
    gantry_error why;
    gy_attempt attempt = GY_ATTEMPT_INIT;
    attempt.candidate = c;
    attempt.in_flight = in_flight;
    gantry_status status = gy_plan_init(&p, x->t.graph, x->t.machine, &gy_policy_replay, &attempt, err);
    if (status)
        return status;
    status = gy_trials_lower(&x->t, &p, made, &why, err);
    gy_plan_free(&p);
    if (status)
        return status;
    if (!*made) {
        x->t.first = x->t.first.status ? x->t.first : why;
        return GANTRY_OK;
    }
    (*made)->policy = name;
    status = measure(x, *made, err);
    if (status) {
        gantry_schedule_free(*made);
        *made = NULL;
    }
    return status;
}

/* Starts that hide how long one takes, and one more, so that the next is there when one ends. */
static uint32_t enough(const gantry_schedule *s, gy_ticks period)
{
    gy_ticks starts = s->makespan / (period > 0 ? period : 1) + (s->makespan % (period > 0 ? period : 1) > 0) + 1;
    return starts < GY_PERIOD_STARTS ? (uint32_t)starts : GY_PERIOD_STARTS;
}

/* The most starts up to `high` that fit, more than one; *made stays NULL if there are none. */
static gantry_status fit(search *x, const gy_candidate *c, const char *name, uint32_t high, gantry_schedule **made,
                         gantry_error *err)
{
    gantry_status status = GANTRY_OK;
    for (uint32_t low = 2, try = high; low <= high && !status; try = low + (high - low) / 2) {
        gantry_schedule *s = NULL;
        status = lower(x, c, name, try, &s, err);
        if (s) {
            gantry_schedule_free(*made);
            *made = s;
            low = try + 1;
        } else {
            high = try - 1;
        }
    }
    return status;
}

/* Fewer starts take less memory: are those enough that the period now asks for? */
static gantry_status save(search *x, const gy_candidate *c, const char *name, gantry_schedule **made, gantry_error *err)
{
    gantry_schedule *s = NULL;
    uint32_t need = enough(*made, (*made)->period);
    if (need < 2 || need >= (*made)->in_flight)
        return GANTRY_OK;
    gantry_status status = lower(x, c, name, need, &s, err);
    if (s && is_better(s, *made)) {
        gantry_schedule *more = *made;
        *made = s;
        s = more;
    }
    gantry_schedule_free(s);
    return status;
}

static gantry_status try_given(search *x, const gy_candidate *c, const char *name, gantry_error *err)
{
    gantry_schedule *s = NULL;
    gantry_status status = lower(x, c, name, (uint32_t)x->t.options->in_flight, &s, err);
    if (s)
        gy_trials_offer(&x->t, s);
    return status;
}

static gantry_status try_candidate(search *x, const gy_candidate *c, const char *name, gantry_error *err)
{
    gantry_schedule *one = NULL, *many = NULL;
    gy_ticks least = 0;
    if (x->t.options->in_flight > 0)
        return try_given(x, c, name, err);
    gantry_status status = lower(x, c, name, 1, &one, err);
    if (!one)
        return status;
    status = gy_period_least(one, &least, err);
    if (!status && (!x->t.best || least < x->t.best->period))
        status = fit(x, c, name, enough(one, least), &many, err);
    if (!status && many)
        status = save(x, c, name, &many, err);
    if (status) {
        gantry_schedule_free(many);
        gantry_schedule_free(one);
        return status;
    }
    gy_trials_offer(&x->t, one);
    if (many)
        gy_trials_offer(&x->t, many);
    return GANTRY_OK;
}

static gantry_status note(search *x, const char *policy, const char *skipped, gy_ticks makespan, gantry_error *err)
{
    gy_tried tried = { .policy = policy, .skipped = skipped, .makespan = makespan };
    return gy_trials_note(&x->t, &tried, err);
}

/* Takes the candidate. */
static gantry_status try_new(search *x, gy_candidate *c, const char *name, gantry_error *err)
{
    bool again = false;
    for (size_t i = 0; i < x->t.placed.count && !again; i++)
        again = gy_candidate_is_same(&x->t.placed.at[i], c);
    if (again || !gy_vec_push(&x->t.placed, *c)) {
        gy_candidate_free(c);
        return again ? GANTRY_OK : gy_fail_nomem(err);
    }
    return try_candidate(x, gy_vec_last(&x->t.placed), name, err);
}

/* The assignment of least load. Graphs that it cannot count are left to the policies. */
static gantry_status try_load(search *x, gantry_error *err)
{
    gantry_error inner = { 0 };
    gantry_schedule *s = NULL;
    gy_candidate c = { 0 };
    gantry_status status = gy_load_run(&s, x->t.graph, x->t.machine, x->t.options, &inner);
    if (gy_is_about_placement(status))
        return note(x, gy_policy_split.name,
                    status == GANTRY_E_CAPACITY ? "what it places does not fit the memories of the machine"
                                                : "it is for graphs without collectives",
                    0, err);
    if (status) {
        if (err)
            *err = inner;
        return status;
    }
    const char *name = s->policy;
    status = note(x, name, NULL, s->makespan, err);
    bool room = gy_candidate_init(&c, x->t.graph->flow->tasks) && gy_candidate_from_schedule(&c, s, x->t.graph->flow);
    gantry_schedule_free(s);
    if (!status && room)
        return try_new(x, &c, name, err);
    gy_candidate_free(&c);
    return status ? status : gy_fail_nomem(err);
}

static gantry_status place_by(search *x, const gy_policy *policy, gy_candidate *c, gantry_error *err)
{
    gy_plan p;
    gantry_status status = gy_plan_init(&p, x->t.graph, x->t.machine, policy, NULL, err);
    if (status)
        return status;
    status = gy_plan_capacity(&p, x->t.options->max_memory, err);
    if (!status)
        status = gy_plan_to_place(&p, err);
    if (!status && !gy_candidate_init(c, x->t.graph->flow->tasks))
        status = gy_fail_nomem(err);
    if (!status)
        gy_candidate_from_plan(c, &p);
    gy_plan_free(&p);
    return status;
}

static gantry_status try_policy(search *x, const gy_policy *policy, gantry_error *err)
{
    gantry_error inner = { 0 };
    gy_candidate c = { 0 };
    gantry_status status = place_by(x, policy, &c, &inner);
    if (!status) {
        status = try_new(x, &c, policy->name, err);
        return status ? status : note(x, policy->name, NULL, GY_TICKS_MAX, err);
    }
    gy_candidate_free(&c);
    if (gy_is_about_placement(status)) {
        x->t.first = x->t.first.status ? x->t.first : inner;
        return note(x, policy->name, "it finds no place for some node", 0, err);
    }
    if (err)
        *err = inner;
    return status;
}

/* As many as the portfolio would try (search/portfolio.h); the split has been tried for what it is made for. */
static gantry_status try_policies(search *x, gantry_error *err)
{
    const gy_policy *policy;
    if (x->t.options->policy || x->t.options->effort == 0)
        return try_policy(x, x->t.options->policy ? x->t.options->policy : gy_policy_at(0), err);
    for (size_t i = 0; (policy = gy_policy_at(i)); i++) {
        if (policy->objective == GY_OBJECTIVE_MAX_LOAD)
            continue;
        bool large = policy != gy_policy_at(0) && x->t.graph->flow->tasks > LARGE;
        GY_TRY(large ? note(x, policy->name, "the graph is too large for it", 0, err) : try_policy(x, policy, err));
    }
    return GANTRY_OK;
}

/* Nothing fits as it is, even one start at a time: then what the portfolio can do about that is it. */
static gantry_status make_room(search *x, gantry_error *err)
{
    gy_portfolio f = { .t = { .graph = x->t.graph, .machine = x->t.machine, .options = x->t.options } };
    gantry_status status = gy_portfolio_policies(&f, err);
    if (!status && !f.t.best)
        status = gy_portfolio_make_room(&f, err);
    x->t.first = f.t.first;
    if (!status && f.t.best)
        status = measure(x, f.t.best, err);
    if (!status) {
        x->t.best = f.t.best;
        f.t.best = NULL;
    }
    gy_portfolio_free(&f);
    return status;
}

static gantry_status find_bound(const search *x, gy_ticks *bound, gantry_error *err)
{
    gy_plan p;
    gantry_status status = gy_plan_init(&p, x->t.graph, x->t.machine, &gy_policy_replay, NULL, err);
    if (status)
        return status;
    status = gy_plan_prepare(&p, err);
    if (!status)
        status = gy_period_bound(&p, bound, err);
    gy_plan_free(&p);
    return status;
}

static gantry_status too_many(const search *x, gantry_error *err)
{
    return gy_fail(err, GANTRY_E_CAPACITY, x->t.first.where,
                   "%d starts in flight do not fit (%s); take fewer, or leave in_flight at 0",
                   (int)x->t.options->in_flight, x->t.first.text);
}

static gantry_status try_all(search *x, gantry_error *err)
{
    gantry_status status = x->t.options->policy ? GANTRY_OK : try_load(x, err);
    if (!status)
        status = try_policies(x, err);
    if (status || x->t.best)
        return status;
    return x->t.options->in_flight > 1 && x->t.first.status == GANTRY_E_CAPACITY ? too_many(x, err) : make_room(x, err);
}

gantry_status gy_period_run(gantry_schedule **schedule, gantry_graph *graph, const gantry_machine *machine,
                            const gy_options *options, gantry_error *err)
{
    search x = { .t = { .graph = graph, .machine = machine, .options = options, .is_better = is_better } };
    gantry_status status = find_bound(&x, &x.least, err);
    if (!status)
        status = try_all(&x, err);
    if (!status)
        status = gy_trials_finish(&x.t, schedule, err);
    if (!status)
        (*schedule)->period_bound = x.least;
    gy_trials_free(&x.t);
    return status;
}
