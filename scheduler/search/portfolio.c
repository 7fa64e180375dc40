/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/search/portfolio.h"

#include "base/error.h"
#include "base/map.h"
#include "scheduler/cost/cost.h"
#include "scheduler/pipeline/pipeline.h"
#include "scheduler/policies/frugal.h"
#include "scheduler/policies/policy.h"
#include "scheduler/search/better.h"
#include <string.h>

#define SPILLED_UP_TO 2000 /* tasks: where some policies fit, the others are tried with spilling */

/* Why nothing fits: what is too much even with spilling says more; of equals the first, that of the default policy. */
static void remember(gy_portfolio *f, const gantry_error *why)
{
    if (f->t.first.status && (!f->make_room || f->first_made_room))
        return;
    f->t.first = *why;
    f->first_made_room = f->make_room;
}

static gy_known_plans *known_to(gy_portfolio *f)
{
    gy_known_plans *before = f->t.options->known;
    return before && before->graph == f->t.graph ? before : &f->known;
}

#define EQUAL_WITHIN 1000 /* one part of so many; then fewer bytes decide */

/* Remembers which policy is best where rows are not gathered again. */
static void note_plain(gy_portfolio *f, const gy_plan *p)
{
    gy_ticks near = f->plain_end.makespan / EQUAL_WITHIN, other = f->plain_end.makespan;
    bool faster = p->end.makespan<other - near, slower = p->end.makespan> other + near;
    bool better = !f->plain || faster || (!slower && p->end.moved < f->plain_end.moved);
    if (p->attempt->spill.gather_again || p->attempt->candidate || !better)
        return;
    f->plain = p->policy;
    f->plain_end = p->end;
}

/* Runs all passes for the plan. *makespan: GY_TICKS_MAX if the placement does not fit. */
static gantry_status run(gy_portfolio *f, gy_plan *p, gy_ticks *makespan, gantry_error *err)
{
    gantry_schedule *made;
    gantry_error why;
    p->known = known_to(f);
    GY_TRY(gy_trials_lower(&f->t, p, &made, &why, err));
    *makespan = made || p->recalled ? p->end.makespan : GY_TICKS_MAX;
    if (made) {
        note_plain(f, p);
        bool better = gy_trials_offer(&f->t, made);
        f->persistent = better ? p->spilled.persistent : f->persistent;
        f->moved = better ? p->spilled.moved : f->moved;
        f->best_way = better ? p->attempt->spill : f->best_way;
    } else if (!p->recalled) {
        remember(f, &why);
        f->last = why.status;
    }
    return GANTRY_OK;
}

static gantry_status keep(gy_portfolio *f, const gy_plan *p, gy_ticks makespan, gantry_error *err)
{
    gy_candidate c;
    bool done = gy_candidate_init(&c, p->flow->tasks);
    if (done)
        gy_candidate_from_plan(&c, p);
    c.simulated = makespan;
    if (done && gy_vec_push(&f->t.placed, c))
        return GANTRY_OK;
    gy_candidate_free(&c);
    return gy_fail_nomem(err);
}

static gantry_status begin(const gy_portfolio *f, gy_plan *p, const gy_policy *policy, const gy_attempt *attempt,
                           gantry_error *err)
{
    GY_TRY(gy_plan_init(p, f->t.graph, f->t.machine, policy, attempt, err));
    p->like = f->t.like;
    return GANTRY_OK;
}

static gy_attempt attempt_of(const gy_portfolio *f, const gy_candidate *c)
{
    gy_attempt a = GY_ATTEMPT_INIT;
    a.candidate = c;
    a.make_room = f->make_room;
    a.spare_memory = f->spare_memory;
    a.spill = f->way;
    a.spill.spilling = f->t.options->spilling;
    a.beat = f->t.best ? f->t.least : 0;
    return a;
}

/* In this way, and in no other. Rows that can be dropped and gathered again are worth little where each reader has them
 * from another place. */
static void spill_so(gy_attempt *a, const gy_spill_way *way)
{
    a->spill = *way;
    a->make_room = a->is_known_not_to_fit = true;
    if (way->gather_again)
        a->prefer_collectives = a->from_makers = a->settled = true;
}

static gantry_status run_attempt(gy_portfolio *f, const gy_policy *policy, const gy_attempt *attempt,
                                 gy_ticks *makespan, gantry_error *err)
{
    gy_plan p;
    gy_ticks other = GY_TICKS_MAX;
    gantry_status status = begin(f, &p, policy, attempt, err);
    if (!status)
        status = run(f, &p, &other, err);
    *makespan = other < *makespan ? other : *makespan;
    gy_plan_free(&p);
    return status;
}

gantry_status gy_portfolio_spill(gy_portfolio *f, const gy_policy *policy, const gy_candidate *c,
                                 const gy_spill_way *way, gy_ticks *makespan, gantry_error *err)
{
    gy_attempt a = attempt_of(f, c);
    spill_so(&a, way);
    return run_attempt(f, policy, &a, makespan, err);
}

/* Where nodes were repeated instead of copying rows, it may be faster to copy; and in small graphs where copies take
 * long, to copy no sooner than must be. */
static gantry_status run_others(gy_portfolio *f, const gy_plan *first, gy_ticks *makespan, gantry_error *err)
{
    const gy_attempt *a = first->attempt;
    gy_spill_way way = a->spill;
    way.spilling = GY_SPILL_COPY;
    if (first->spilled.repeats)
        GY_TRY(gy_portfolio_spill(f, first->policy, a->candidate, &way, makespan, err));
    way = a->spill;
    way.late = true;
    if (first->spilled.copies_bound && f->t.graph->flow->tasks <= SPILLED_UP_TO)
        GY_TRY(gy_portfolio_spill(f, first->policy, a->candidate, &way, makespan, err));
    return GANTRY_OK;
}

/* Are there devices whose rows go to each other by way of another memory? */
static bool has_detours(const gy_plan *p)
{
    const gantry_machine *m = p->machine;
    for (uint32_t a = 0; a < p->workers; a++)
        for (uint32_t b = 0; b < p->workers; b++) {
            uint32_t from = m->device[a].memory, to = m->device[b].memory;
            if (from && to && from != to && gy_machine_route(m, from, to)->kind != GY_ROUTE_DIRECT)
                return true;
        }
    return false;
}

/* Where memory is short, or rows persist where they do not live: rows that live in the memories of other devices are
 * dropped, and brought from there again. Where rows go by way of other memories, collectives may bring them. In large
 * graphs, where nothing else is left to try. */
static gantry_status run_gathering(gy_portfolio *f, const gy_plan *first, gy_ticks *makespan, gantry_error *err)
{
    bool small = f->t.graph->flow->tasks <= SPILLED_UP_TO || f->make_room;
    gy_spill_way way = first->attempt->spill;
    bool may_help = first->short_of_memory || first->persists_beyond || first->relays ||
                    (first->passed_makers && has_detours(first));
    if (!may_help || first->workers < 2 || !small || f->t.options->spilling == GY_SPILL_OFF)
        return GANTRY_OK;
    way.spilling = f->t.options->spilling;
    way.gather_again = way.walk = way.weigh = true;
    way.relayed = true;
    if (has_detours(first))
        GY_TRY(gy_portfolio_spill(f, first->policy, first->attempt->candidate, &way, makespan, err));
    way.relayed = false;
    return gy_portfolio_spill(f, first->policy, first->attempt->candidate, &way, makespan, err);
}

/* Hash of all that the passes after the placement read of it, and of what is asked of them. */
static uint64_t hash_of(const gy_portfolio *f, const gy_plan *p)
{
    uint32_t asked[] = { f->make_room, f->spare_memory };
    return gy_placement_hash(p, gy_hash_bytes(asked, sizeof asked, 1));
}

static const gy_outcome *find_outcome(const gy_portfolio *f, uint64_t hash)
{
    for (size_t i = 0; i < f->outcomes.count; i++)
        if (f->outcomes.at[i].hash == hash)
            return &f->outcomes.at[i];
    return NULL;
}

static const char no_room[] = "what it places does not fit the memories of the machine",
                  no_way[] = "what it places cannot be carried out on the machine";

/* Lowers what was placed, and notes how that ended. */
static gantry_status carry_on(gy_portfolio *f, gy_plan *p, uint64_t hash, gy_outcome *o, gantry_error *err)
{
    *o = (gy_outcome){ .hash = hash };
    GY_TRY(run(f, p, &o->makespan, err));
    bool fits = o->makespan < GY_TICKS_MAX;
    if (fits || f->make_room) /* else it is tried once more, with room made */
        GY_TRY(run_gathering(f, p, &o->makespan, err));
    o->status = o->makespan < GY_TICKS_MAX ? GANTRY_OK : f->last;
    if (fits)
        GY_TRY(run_others(f, p, &o->makespan, err));
    return gy_vec_push(&f->outcomes, *o) ? GANTRY_OK : gy_fail_nomem(err);
}

/* Places the tasks; what was placed so before, and is to be lowered alike, ends as it did then. */
static gantry_status run_plan(gy_portfolio *f, gy_plan *p, gy_outcome *o, gantry_error *err)
{
    gantry_error why = { 0 };
    gantry_status status = gy_plan_begin(p, f->t.options, &why);
    *o = (gy_outcome){ .makespan = GY_TICKS_MAX, .status = status };
    if (gy_is_about_placement(status)) {
        remember(f, &why);
        return GANTRY_OK;
    }
    if (status && err)
        *err = why;
    if (status)
        return status;
    uint64_t hash = hash_of(f, p) + p->attempt->is_known_not_to_fit;
    const gy_outcome *before = find_outcome(f, hash);
    if (!before)
        return carry_on(f, p, hash, o, err);
    *o = *before;
    return GANTRY_OK;
}

/* A policy and its entry of the report, which may be there already: then it is tried again. */
static gantry_status run_policy(gy_portfolio *f, const gy_policy *policy, gy_tried *tried, gantry_error *err)
{
    gy_plan p;
    gy_outcome o = { 0 };
    gy_attempt a = attempt_of(f, NULL);
    a.is_known_not_to_fit = f->make_room && tried->skipped == no_room && f->t.graph->flow->tasks > SPILLED_UP_TO;
    gantry_status status = begin(f, &p, policy, &a, err);
    *tried = (gy_tried){ .policy = policy->name, .tight = f->make_room };
    if (!status)
        status = run_plan(f, &p, &o, err);
    tried->makespan = o.makespan;
    if (!status && o.status)
        *tried = o.status == GANTRY_E_CAPACITY ? (gy_tried){ .policy = policy->name, .skipped = no_room, .tight = true }
                                               : (gy_tried){ .policy = policy->name, .skipped = no_way };
    else if (!status && f->keep)
        status = keep(f, &p, tried->makespan, err);
    gy_plan_free(&p);
    return status;
}

static gantry_status try_policy(gy_portfolio *f, const gy_policy *policy, gantry_error *err)
{
    gy_tried tried = { 0 };
    GY_TRY(run_policy(f, policy, &tried, err));
    return gy_trials_note(&f->t, &tried, err);
}

/* In the way in which the best was made. */
static void settle(gy_attempt *a, const gy_attempt *way)
{
    a->keep_copies = way->keep_copies;
    a->prefer_collectives = way->prefer_collectives;
    a->keep_hops = way->keep_hops;
    a->from_makers = way->from_makers;
    a->keep_single = way->keep_single;
    a->pack_copies = way->pack_copies;
    a->join_teams = way->join_teams;
    a->one_instance = way->one_instance;
    a->wait_everywhere = way->wait_everywhere;
    a->replicate = way->replicate;
    a->settled = true;
    if (way->spill.gather_again)
        spill_so(a, &way->spill);
}

gantry_status gy_portfolio_candidate(gy_portfolio *f, const gy_candidate *c, bool all_ways, const char *name,
                                     gy_ticks *makespan, gantry_error *err)
{
    gy_plan p;
    const gantry_schedule *before = f->t.best;
    gy_attempt a = attempt_of(f, c);
    if (before && !all_ways)
        settle(&a, &f->t.way);
    gantry_status status = begin(f, &p, &gy_policy_replay, &a, err);
    if (status)
        return status;
    status = run(f, &p, makespan, err);
    if (!status && *makespan < GY_TICKS_MAX)
        status = run_others(f, &p, makespan, err);
    if (!status && f->t.best != before)
        f->t.best->policy = name;
    gy_plan_free(&p);
    return status;
}

/* ---- which policies ---- */

enum { PAIRED = 32 };       /* devices */
enum { MANY = 128 };        /* devices */
enum { BOOKED = 2000000 };  /* dependencies times devices */
enum { DEPENDENCIES = 64 }; /* take a policy and the passes after it about as long as a task */

static size_t size_of(const gy_portfolio *f)
{
    const gy_flow *flow = f->t.graph->flow;
    return flow->deps / DEPENDENCIES > flow->tasks ? flow->deps / DEPENDENCIES : flow->tasks;
}

/* On more than MANY devices, each of which a policy looks at for each task, it takes as long as for a graph that is so
 * many times as large; one that looks at pairs of more than PAIRED, by the square. */
static bool fits(const gy_policy *policy, const gy_portfolio *f)
{
    if (policy->books && f->t.graph->flow->deps > BOOKED / f->t.machine->devices)
        return false;
    size_t times = f->t.machine->devices / (policy->pairs ? PAIRED : MANY), most = policy->largest;
    times = times > 1 ? times : 1;
    return most == GY_ANY_SIZE || f->t.options->any_size ? most == GY_ANY_SIZE
                                                         : size_of(f) * (policy->pairs ? times * times : times) <= most;
}

static gantry_status try_all(gy_portfolio *f, gantry_error *err)
{
    const gy_policy *policy;
    for (size_t i = 0; (policy = gy_policy_at(i)); i++) {
        gy_tried tried = { .policy = policy->name, .skipped = "the graph is too large for it" };
        bool other = policy->objective == GY_OBJECTIVE_MAX_LOAD;
        if (other)
            tried.skipped = "it is for the objective \"max_load\"";
        GY_TRY(other || !fits(policy, f) ? gy_trials_note(&f->t, &tried, err) : try_policy(f, policy, err));
    }
    return GANTRY_OK;
}

/* When nothing fits: what looks at memory, however large the graph, and what is for another objective. */
static bool is_last_resort(const gy_portfolio *f, const gy_policy *policy)
{
    return !f->t.best && size_of(f) <= policy->last_resort;
}

/* Spilling for every policy that had no room without; in large graphs, for the first of them that it helps. */
static gantry_status try_again(gy_portfolio *f, gantry_error *err)
{
    const gy_policy *policy;
    bool small = f->t.graph->flow->tasks <= SPILLED_UP_TO;
    f->make_room = true;
    for (size_t i = 0; i < f->t.tried.count && (small || !f->t.best); i++) {
        gy_tried *t = &f->t.tried.at[i];
        if (!t->skipped)
            continue;
        GY_TRY(gy_policy_find(&policy, t->policy, err));
        if (t->skipped == no_room || is_last_resort(f, policy))
            GY_TRY(run_policy(f, policy, t, err));
    }
    return GANTRY_OK;
}

static bool is_tight(const gy_portfolio *f)
{
    for (size_t i = 0; i < f->t.tried.count; i++)
        if (f->t.tried.at[i].skipped == no_room)
            return true;
    return false;
}

bool gy_portfolio_is_placed(const gantry_graph *g)
{
    size_t placed = 0;
    for (uint32_t i = 0; i < g->nodes.count; i++) {
        const gy_node_extra *x = gy_node_extra_of(g, i);
        placed += x->on || x->on_expr;
    }
    return g->nodes.count && 2 * placed >= g->nodes.count;
}

/* Where memory is short; and in pipelines, of which ranks make all forwards and then all backwards. An entry of the
 * report only where it fits: it is not to be tried again. */
static gantry_status try_frugal(gy_portfolio *f, gantry_error *err)
{
    gy_tried tried = { 0 };
    if (!(is_tight(f) || gy_portfolio_is_placed(f->t.graph)) || !fits(&gy_policy_frugal, f))
        return GANTRY_OK;
    gantry_status status = run_policy(f, &gy_policy_frugal, &tried, err);
    return status || tried.skipped ? status : gy_trials_note(&f->t, &tried, err);
}

/* No effort. HEFT decides task by task, before it sees who reads what it makes. Where it ends well after the bound,
 * because of transfers mostly, or has no room, a graph that is divided as a whole may end many times sooner, and so may
 * one device alone; not where nodes say where they run. */
static gantry_status try_few(gy_portfolio *f, gantry_error *err)
{
    const gy_policy *whole = fits(&gy_policy_families, f) ? &gy_policy_families : &gy_policy_partition;
    GY_TRY(try_policy(f, gy_policy_at(0), err));
    bool good = f->t.best && gy_is_near_bound(f->t.best);
    if (good || gy_machine_workers(f->t.machine) < 2 || gy_portfolio_is_placed(f->t.graph))
        return GANTRY_OK;
    GY_TRY(try_policy(f, whole, err));
    return fits(&gy_policy_single_rank, f) ? try_policy(f, &gy_policy_single_rank, err) : GANTRY_OK;
}

gantry_status gy_portfolio_policies(gy_portfolio *f, gantry_error *err)
{
    if (f->t.options->policy)
        return try_policy(f, f->t.options->policy, err);
    if (f->t.options->effort == 0)
        return try_few(f, err);
    gantry_status status = try_all(f, err);
    if (!status)
        status = try_frugal(f, err);
    /* Spilled, a good placement may still be faster than another that fits. */
    bool small = f->t.graph->flow->tasks <= SPILLED_UP_TO;
    if (!status && small && is_tight(f))
        status = try_again(f, err);
    return status || f->t.graph->flow->tasks > SPILLED_UP_TO ? status : gy_portfolio_spill_ways(f, err);
}

static gantry_status spill_all(gy_portfolio *f, gantry_error *err)
{
    gantry_status status = GANTRY_OK;
    if (f->make_room)
        return GANTRY_OK; /* it was tried */
    if (!f->t.options->policy && f->t.options->effort == 0)
        status = try_policy(f, &gy_policy_mem_heft, err);
    if (!status && !f->t.best)
        status = try_again(f, err);
    return status || f->t.graph->flow->tasks > SPILLED_UP_TO ? status : gy_portfolio_spill_ways(f, err);
}

gantry_status gy_portfolio_make_room(gy_portfolio *f, gantry_error *err)
{
    bool kept = f->keep;
    f->keep = false;
    gantry_status status = spill_all(f, err);
    if (!status && !f->t.best && gy_plan_can_spare(f->t.graph, f->t.machine)) {
        f->spare_memory = true;
        f->make_room = false;
        f->t.tried.count = 0;
        status = gy_portfolio_policies(f, err);
        if (!status && !f->t.best)
            status = spill_all(f, err);
    }
    f->keep = kept;
    return status;
}

void gy_portfolio_free(gy_portfolio *f)
{
    gy_trials_free(&f->t);
    gy_vec_free(&f->outcomes);
    gy_known_free(&f->known);
}
