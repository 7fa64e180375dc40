/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/search/portfolio.h"

#include "base/error.h"
#include "scheduler/policies/policy.h"
#include <string.h>

gantry_status gy_portfolio_note(gy_portfolio *f, const gy_tried *tried, gantry_error *err)
{
    return gy_vec_push(&f->tried, *tried) ? GANTRY_OK : gy_fail_nomem(err);
}

/* Of equals the one that was there first stays. */
static void offer(gy_portfolio *f, gy_plan *p)
{
    if (f->best && f->best->makespan <= p->schedule->makespan)
        return;
    gantry_schedule_free(f->best);
    f->best = p->schedule;
    p->schedule = NULL;
}

/* What lies in the placement is no reason to give up: another policy may do better. */
static bool is_about_placement(gantry_status status)
{
    return status == GANTRY_E_CAPACITY || status == GANTRY_E_UNSUPPORTED;
}

/* Runs all passes for the plan. *makespan: GY_TICKS_MAX if the placement does not fit. */
static gantry_status run(gy_portfolio *f, gy_plan *p, gy_ticks *makespan, gantry_error *err)
{
    gantry_error inner = { 0 };
    gantry_status status = gy_plan_run(p, f->options, &inner);
    *makespan = GY_TICKS_MAX;
    if (!status) {
        *makespan = p->schedule->makespan;
        offer(f, p);
    } else if (is_about_placement(status)) {
        if (!f->first.status || f->squeeze) /* what is too much even so says more */
            f->first = inner;
        return GANTRY_OK;
    } else if (err) {
        *err = inner;
    }
    return status;
}

static gantry_status keep(gy_portfolio *f, const gy_plan *p, gantry_error *err)
{
    gy_candidate c;
    bool done = gy_candidate_init(&c, p->flow->tasks);
    if (done)
        gy_candidate_from_plan(&c, p);
    if (done && gy_vec_push(&f->placed, c))
        return GANTRY_OK;
    gy_candidate_free(&c);
    return gy_fail_nomem(err);
}

static gantry_status try_policy(gy_portfolio *f, const gy_policy *policy, gantry_error *err)
{
    gy_plan p;
    gy_tried tried = { .policy = policy->name };
    gantry_status status = gy_plan_init(&p, f->graph, f->machine, policy, err);
    p.squeeze = f->squeeze;
    if (!status)
        status = run(f, &p, &tried.makespan, err);
    if (!status && tried.makespan >= GY_TICKS_MAX)
        tried.skipped = "what it places does not fit the memories of the machine";
    else if (!status && f->keep)
        status = keep(f, &p, err);
    gy_plan_free(&p);
    return status ? status : gy_portfolio_note(f, &tried, err);
}

gantry_status gy_portfolio_candidate(gy_portfolio *f, const gy_candidate *c, const char *name, gy_ticks *makespan,
                                     gantry_error *err)
{
    gy_plan p;
    const gantry_schedule *before = f->best;
    gantry_status status = gy_plan_init(&p, f->graph, f->machine, &gy_policy_replay, err);
    if (status)
        return status;
    p.candidate = c;
    status = run(f, &p, makespan, err);
    if (!status && f->best != before)
        f->best->policy = name;
    gy_plan_free(&p);
    return status;
}

/* ---- which policies ---- */

/* The cost of a policy beyond what is near n log n decides how large a graph may be for it. */
static const struct limit {
    const char *name;
    uint32_t tasks;
} limits[] = {
    { "heft", UINT32_MAX },
};

static bool fits(const char *name, uint32_t tasks)
{
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        if (!strcmp(limits[i].name, name))
            return tasks <= limits[i].tasks;
    return tasks <= 2000;
}

static gantry_status try_all(gy_portfolio *f, gantry_error *err)
{
    const gy_policy *policy;
    gantry_status status = GANTRY_OK;
    const char *name;
    for (size_t i = 0; (name = gantry_policy_name(i)) && !status; i++) {
        gy_tried tried = { .policy = name, .skipped = "the graph is too large for it" };
        bool other = !strcmp(name, "split");
        if (other)
            tried.skipped = "it is for the objective \"max_load\"";
        if (other || !fits(name, f->graph->flow->tasks))
            status = gy_portfolio_note(f, &tried, err);
        else if (!(status = gy_policy_find(&policy, name, err)))
            status = try_policy(f, policy, err);
    }
    return status;
}

gantry_status gy_portfolio_policies(gy_portfolio *f, gantry_error *err)
{
    const gy_policy *policy;
    if (!f->options->policy && f->options->effort > 0)
        return try_all(f, err);
    gantry_status status = gy_policy_find(&policy, f->options->policy, err);
    return status ? status : try_policy(f, policy, err);
}

gantry_status gy_portfolio_squeeze(gy_portfolio *f, gantry_error *err)
{
    const gy_policy *named;
    gantry_status status = GANTRY_OK;
    f->squeeze = true;
    if (f->options->policy) {
        status = gy_policy_find(&named, f->options->policy, err);
        return status ? status : try_policy(f, named, err);
    }
    f->squeeze = f->options->effort > 0; /* then it was tried without */
    status = try_policy(f, &gy_policy_mem_heft, err);
    if (!status && !f->best && !f->squeeze) {
        f->squeeze = true;
        status = try_policy(f, &gy_policy_mem_heft, err);
    }
    return status || !f->squeeze ? status : try_policy(f, &gy_policy_heft, err);
}

void gy_portfolio_free(gy_portfolio *f)
{
    gantry_schedule_free(f->best);
    gy_vec_free(&f->tried);
    for (size_t i = 0; i < f->placed.count; i++)
        gy_candidate_free(&f->placed.at[i]);
    gy_vec_free(&f->placed);
}
