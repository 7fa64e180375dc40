/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Are all the collectives together worth it, and all the batches? Each was weighed against its own copies, or launches,
 * alone; but a device is in one collective at a time, copies of others may be in the way of either, and what a batch
 * waits for may hold up what waits for it. So the graph is planned again with copies throughout, or with launches, and
 * the schedule that ends first by simulation stays: with collectives, and with batches, if both end at once, or if what
 * launches that overlap take all the same is more than they save. Where
 * copies would be faster than a collective if nothing were in their way, the graph is planned again with collectives;
 * and where rows came from nearer than from where they were made, with rows from there too: a collective has no other
 * sources, and its algorithm may heed what is near by itself. Where copies over staged or relayed routes are in
 * collectives, it is planned with these as copies. Where tasks may have replicas, it is planned again with
 * them. Last, small copies are put together as batches where the schedule with them ends sooner, and so are alike
 * collectives, in few batches or in more.
 */
#include "base/error.h"
#include "scheduler/cost/cost.h"
#include "scheduler/plan/share.h"
#include "scheduler/search/trials.h"

#define TASKS_UP_TO 4096 /* planning twice takes twice as long */
#define SMALL_PART  50   /* small copies that take a smaller part of the time are left alone */
#define MOST_JOINED 16   /* batches that alike collectives are divided into */
#define HOPELESS    2    /* times what the best takes */

/* The plan so far, and what it was asked for. */
typedef struct best {
    gy_plan *plan;
    gy_attempt attempt;
    gy_placings placings; /* all of its ways begin with the same placing, with or without the hope of replicas */
} best;

/* Carries the plan through, unless it is known how that ends. */
static gantry_status run(gy_plan *p, const gy_options *o, gantry_error *err)
{
    uint64_t hash;
    if (!p->placed.order)
        GY_TRY(gy_plan_begin(p, o, err));
    bool may_be_known = gy_known_hash(p, &hash);
    if (may_be_known && gy_known_recall(p, hash)) {
        p->recalled_as = *p->attempt;
        return GANTRY_OK;
    }
    GY_TRY(gy_plan_run(p, o, err));
    gy_plan_note_end(p);
    return !may_be_known || gy_known_keep(p, hash) ? GANTRY_OK : gy_fail_nomem(err);
}

/* Time that the launches which batches spare take of each device, though they overlap by simulation. */
static gy_ticks spared(const gy_plan_end *with, const gy_plan_end *without)
{
    uint32_t launches = with->batched > without->batched ? with->batched - without->batched : 0;
    return gy_ticks_repeated(gy_launch_beside(), launches) / (with->devices ? with->devices : 1);
}

/* Plans once more, as `attempt` says, and keeps what is faster. */
static gantry_status try_other(best *b, gy_attempt attempt, const gy_options *o, gantry_error *err)
{
    gy_plan *p = b->plan;
    const gy_attempt *asked = p->attempt;
    gy_plan other;
    attempt.make_room = attempt.is_known_not_to_fit = false;
    attempt.spill = (gy_spill_way){ .spilling = GY_SPILL_OFF };
    GY_TRY(gy_plan_init(&other, p->graph, p->machine, p->policy, &attempt, err));
    other.bound = p->bound;
    other.packings = p->packings;
    other.known = p->known;
    other.like = p->like;
    other.placings = &b->placings;
    gantry_status status = run(&other, o, err);
    gy_ticks less = attempt.one_instance && !b->attempt.one_instance ? 0 : 1;
    less = gy_ticks_both(less, spared(&p->end, &other.end));
    if (!status && other.end.makespan + less <= p->end.makespan) {
        gy_plan slower = *p;
        *p = other;
        p->attempt = asked;
        b->attempt = attempt;
        other = slower;
    }
    gy_plan_free(&other);
    return status == GANTRY_E_CAPACITY ? GANTRY_OK : status; /* the other way may take less room */
}

static gantry_status try_others(best *b, bool replicate, const gy_options *o, gantry_error *err)
{
    const gy_plan *p = b->plan;
    gy_attempt attempt = *p->attempt;
    bool once = attempt.in_flight == 1, collectives = p->end.collectives && once, batched = p->end.batched > 0;
    bool more = p->end.passed_over && once && !attempt.keep_copies;
    attempt.replicate = replicate;
    bool hops = p->end.hops && once && !attempt.keep_copies;
    bool makers = p->end.passed_makers && once && !attempt.keep_copies;
    attempt.prefer_collectives = true;
    if (more)
        GY_TRY(try_other(b, attempt, o, err));
    attempt.from_makers = true;
    if (makers)
        GY_TRY(try_other(b, attempt, o, err));
    attempt.from_makers = false;
    attempt.keep_hops = true;
    if (hops)
        GY_TRY(try_other(b, attempt, o, err));
    attempt.prefer_collectives = false;
    if (hops)
        GY_TRY(try_other(b, attempt, o, err));
    attempt.keep_hops = false;
    attempt.keep_copies = collectives || attempt.keep_copies;
    if (collectives)
        GY_TRY(try_other(b, attempt, o, err));
    attempt.keep_single = true;
    attempt.keep_copies = !p->end.collectives;
    return batched ? try_other(b, attempt, o, err) : GANTRY_OK;
}

/* So long, that another way cannot be expected to make it the best. */
static bool is_hopeless(const gy_plan *p)
{
    gy_ticks beat = p->attempt->beat;
    return beat && p->end.makespan / HOPELESS > beat;
}

static bool may_pack(const gy_plan *p, const gy_options *o)
{
    return p->end.small_copies && p->end.small_copies >= p->end.makespan / SMALL_PART &&
           p->flow->tasks <= TASKS_UP_TO && p->attempt->in_flight == 1 && !o->optimal;
}

static bool may_join(const gy_plan *p, const gy_options *o)
{
    return p->end.teams_spare && p->end.teams_spare >= p->end.makespan / SMALL_PART && p->flow->tasks <= TASKS_UP_TO &&
           p->attempt->in_flight == 1 && !o->optimal;
}

/* Fewer batches take less time in all, but the first of their ops wait longer for the last. */
static gantry_status try_joined(best *b, const gy_options *o, gantry_error *err)
{
    for (uint32_t batches = 1; batches <= MOST_JOINED; batches *= 2) {
        gy_attempt attempt = b->attempt;
        attempt.join_teams = batches;
        GY_TRY(try_other(b, attempt, o, err));
    }
    return GANTRY_OK;
}

/* A second instance for versions that take turns stays only where the schedule is the shorter by it. */
static gantry_status try_one_instance(best *b, const gy_options *o, gantry_error *err)
{
    gy_attempt attempt = b->attempt;
    attempt.one_instance = true;
    return b->plan->end.turns && b->plan->flow->tasks <= TASKS_UP_TO ? try_other(b, attempt, o, err) : GANTRY_OK;
}

/* Starts before readers elsewhere have ended may mean an order in which copies, or collectives in their place, come at
 * a bad time. */
static gantry_status try_waits(best *b, const gy_options *o, gantry_error *err)
{
    gy_attempt attempt = b->attempt;
    attempt.wait_everywhere = true;
    return b->plan->end.overtakes && b->plan->flow->tasks <= TASKS_UP_TO ? try_other(b, attempt, o, err) : GANTRY_OK;
}

/* Ways that come behind collectives, copies and replicas. */
static gantry_status try_rest(best *b, const gy_options *o, gantry_error *err)
{
    gy_plan *p = b->plan;
    GY_TRY(try_waits(b, o, err));
    b->attempt.pack_copies = may_pack(p, o);
    if (b->attempt.pack_copies)
        GY_TRY(try_other(b, b->attempt, o, err));
    b->attempt.pack_copies = p->end.packed;
    if (may_join(p, o))
        GY_TRY(try_joined(b, o, err));
    return try_one_instance(b, o, err);
}

/* The placement of a policy is planned in all ways without replicas, too, so that the default is never worse than the
 * policy alone; those of the search, of which there are many, only if that is better than with replicas. */
static gantry_status try_ways(best *b, const gy_options *o, gantry_error *err)
{
    gy_plan *p = b->plan;
    gy_attempt attempt = *p->attempt;
    bool replicable = p->end.replicable;
    if (p->attempt->settled || is_hopeless(p))
        return GANTRY_OK;
    attempt.replicate = true;
    if (p->flow->tasks > TASKS_UP_TO)
        GY_TRY(replicable ? try_other(b, attempt, o, err) : GANTRY_OK);
    else if (!replicable || !attempt.candidate)
        GY_TRY(try_others(b, false, o, err));
    if (!replicable || p->flow->tasks > TASKS_UP_TO)
        return try_rest(b, o, err);
    if (!attempt.candidate)
        GY_TRY(try_rest(b, o, err));
    GY_TRY(try_other(b, attempt, o, err));
    bool kept = p->end.replicated;
    if (!kept && !attempt.candidate)
        return GANTRY_OK;
    GY_TRY(try_others(b, kept, o, err));
    return try_rest(b, o, err);
}

gantry_status gy_trials_plan(gy_plan *p, const gy_options *o, gy_attempt *way, gantry_error *err)
{
    best b = { .plan = p, .attempt = *p->attempt };
    gantry_status status = p->placed.order ? GANTRY_OK : gy_plan_begin(p, o, err);
    /* Of a large graph there is no room for one more, and few ways are tried. */
    if (!status && !p->attempt->settled && p->flow->tasks <= TASKS_UP_TO && !gy_placings_keep(&b.placings, p))
        status = gy_fail_nomem(err);
    if (!status)
        status = run(p, o, err);
    if (!status)
        status = try_ways(&b, o, err);
    gy_placings_free(&b.placings);
    p->placings = NULL;
    b.attempt.pack_copies = p->end.packed;
    b.attempt.join_teams = p->end.teams_joined ? b.attempt.join_teams : 0;
    *way = b.attempt;
    return status;
}
