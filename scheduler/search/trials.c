/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/search/trials.h"

#include "scheduler/search/better.h"

bool gy_is_about_placement(gantry_status status)
{
    return status == GANTRY_E_CAPACITY || status == GANTRY_E_UNSUPPORTED;
}

static void note_least(gy_trials *t, gy_ticks makespan)
{
    if (!t->best || makespan < t->least)
        t->least = makespan;
}

/* Would it be better than the best so far? Plans are recalled where gy_is_preferred, or the makespan alone, decides. */
static bool is_wanted(const gy_trials *t, const gy_plan_end *end)
{
    if (!t->best)
        return true;
    return t->options->optimal ? end->makespan < t->best->makespan : gy_is_end_preferred(end, t->best, t->least);
}

/* The schedule of a plan that was recalled. */
static gantry_status carry_through(gy_plan *p, const gy_options *o, gantry_error *err)
{
    const gy_attempt *asked = p->attempt;
    p->attempt = &p->recalled_as;
    gantry_status status = gy_plan_run(p, o, err);
    p->attempt = asked;
    p->recalled = false;
    return status;
}

gantry_status gy_trials_lower(gy_trials *t, gy_plan *p, gantry_schedule **made, gantry_error *why, gantry_error *err)
{
    *made = NULL;
    *why = (gantry_error){ 0 };
    p->bound = t->bound;
    p->packings = &t->packings;
    gantry_status status = gy_trials_plan(p, t->options, &t->last, why);
    if (!status && p->recalled && is_wanted(t, &p->end))
        status = carry_through(p, t->options, why);
    t->bound = p->bound;
    if (!status && p->recalled) {
        note_least(t, p->end.makespan);
    } else if (!status) {
        *made = p->schedule;
        p->schedule = NULL;
    } else if (gy_is_about_placement(status)) {
        return GANTRY_OK;
    } else if (err) {
        *err = *why;
    }
    return status;
}

static bool is_better(const gy_trials *t, const gantry_schedule *s)
{
    if (!t->best)
        return true;
    if (t->is_better)
        return t->is_better(s, t->best);
    return t->options->optimal ? s->makespan < t->best->makespan : gy_is_preferred(s, t->best, t->least);
}

bool gy_trials_offer(gy_trials *t, gantry_schedule *s)
{
    bool better = is_better(t, s);
    note_least(t, s->makespan);
    gantry_schedule_free(better ? t->best : s);
    t->best = better ? s : t->best;
    t->way = better ? t->last : t->way;
    return better;
}

gantry_status gy_trials_note(gy_trials *t, const gy_tried *tried, gantry_error *err)
{
    return gy_vec_push(&t->tried, *tried) ? GANTRY_OK : gy_fail_nomem(err);
}

static gantry_status fail_with_first(const gy_trials *t, gantry_error *err)
{
    if (err)
        *err = t->first;
    return t->first.status;
}

gantry_status gy_trials_finish(gy_trials *t, gantry_schedule **schedule, gantry_error *err)
{
    gantry_schedule *s = t->best;
    if (!s)
        return fail_with_first(t, err);
    GY_TRY(gy_plan_verify(s, t->graph, err));
    s->tried.at = t->tried.at;
    s->tried.count = t->tried.count;
    s->tried.capacity = t->tried.capacity;
    t->tried.at = NULL;
    t->tried.count = t->tried.capacity = 0;
    t->best = NULL;
    *schedule = s;
    return GANTRY_OK;
}

void gy_trials_free(gy_trials *t)
{
    gantry_schedule_free(t->best);
    gy_vec_free(&t->tried);
    for (size_t i = 0; i < t->placed.count; i++)
        gy_candidate_free(&t->placed.at[i]);
    gy_vec_free(&t->placed);
    gy_packings_free(&t->packings);
}
