/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/devices/fewer.h"

#include "base/error.h"
#include "schedule/relocate.h"
#include "scheduler/balance/balance.h"
#include "scheduler/bound/bound.h"
#include "scheduler/cost/cost.h"
#include "scheduler/devices/wishes.h"
#include "scheduler/pipeline/pipeline.h"
#include "scheduler/plan/metadata.h"
#include "scheduler/policies/policy.h"
#include "scheduler/search/better.h"
#include "sim/sim.h"
#include <stdio.h>

/* Tasks times the square of the devices, which is about what policies take for all counts: of larger graphs half of the
 * devices, a quarter and so on are tried, while that helps. */
#define ALL_COUNTS_UP_TO 128000
#define HALVES_ANYWAY    2
/* Tasks: what policies found for a count is searched on, for every count that may win, or for so many of the best. */
#define ALL_SEARCHED_UP_TO 128
#define FEW_SEARCHED_UP_TO 10000 /* larger ones are placed by the default policy alone */
#define TWO_SEARCHED_UP_TO 2000
#define HOPELESS           4 /* rounds of a search seldom gain one part of so many */

typedef struct count {
    uint32_t devices;
    gy_ticks made; /* the makespan that policies reached; GY_TICKS_MAX: none, or it has been searched on */
} count;

typedef struct fewer {
    gantry_graph *graph;
    const gantry_machine *machine;
    const gy_options *options;
    gantry_schedule *best;
    gy_ticks least;         /* the least makespan of all that were found */
    GY_VEC(gy_tried) tried; /* a row for each plan */
    GY_VEC(count) counts;   /* that were planned by policies */
} fewer;

static const char name_of_rows[] = "fewer";

/* Of graphs with phases the nodes of one iteration are counted. */
static uint32_t size_of(const fewer *x)
{
    uint32_t tasks = x->graph->flow ? x->graph->flow->tasks : 0, nodes = (uint32_t)x->graph->nodes.count;
    return tasks > nodes ? tasks : nodes;
}

/* ---- what no schedule on so few devices can beat ---- */

/* Graphs that are divided, or cut for a machine, have no bound before they are planned. */
static bool has_bound(const fewer *x)
{
    bool phases = false;
    for (size_t i = 0; i < x->graph->loops.count; i++)
        phases = phases || x->graph->loops.at[i].unrolled < x->graph->loops.at[i].count;
    return x->graph->flow && !phases && x->best->phases.count == 0 && !gy_graph_has_auto(x->graph);
}

static gantry_status find_bound(gy_bound *bound, gantry_graph *graph, const gantry_machine *machine, gantry_error *err)
{
    gy_plan p;
    gantry_status status = gy_plan_init(&p, graph, machine, gy_policy_at(0), NULL, err);
    if (status)
        return status;
    status = gy_plan_capacity(&p, NULL, err);
    if (!status)
        status = gy_plan_prepare(&p, err);
    if (!status)
        status = gy_plan_bound(&p, err);
    *bound = p.bound;
    gy_plan_free(&p);
    return status;
}

/* ---- planning for some of the devices ---- */

/* Is it for another reason than that the graph cannot be planned for so few devices? */
static bool is_serious(gantry_status status)
{
    return status == GANTRY_E_NOMEM || status == GANTRY_E_SCHEDULE;
}

/* As a schedule of the whole machine, on which its parts may meet other bounds: those that `best` has, where it is of
 * the same graph. */
static gantry_status finish(gantry_schedule *s, const gantry_schedule *best, gantry_error *err)
{
    gy_bound bound = { .time = best->bound, .by = best->bound_by, .bytes = (int64_t)best->bytes_needed };
    for (size_t i = 0; i < s->phases.count; i++)
        GY_TRY(finish(s->phases.at[i].schedule, best, err));
    if (s->phases.count)
        return gy_schedule_phases_sum(s, err);
    if (s->graph != best->graph)
        GY_TRY(find_bound(&bound, s->graph, s->machine, err));
    s->bound = bound.time;
    s->bound_by = bound.by;
    s->bytes_needed = (uint64_t)bound.bytes;
    return gy_sim_run(s, err);
}

/* Takes the schedule of some of the devices. */
static gantry_status offer(fewer *x, gantry_schedule *s, uint32_t devices, gantry_error *err)
{
    gantry_status status = gy_schedule_relocate(s, x->machine, err);
    if (!status)
        status = finish(s, x->best, err);
    if (!status)
        status = gy_plan_verify(s, s->graph, err);
    gy_tried row = { .policy = name_of_rows, .devices = devices, .makespan = s->makespan };
    if (!status && !gy_vec_push(&x->tried, row))
        status = gy_fail_nomem(err);
    if (!status && gy_is_preferred(s, x->best, x->least)) {
        gantry_schedule *other = x->best;
        x->best = s;
        s = other;
    }
    if (!status && row.makespan < x->least)
        x->least = row.makespan;
    gantry_schedule_free(s);
    return status;
}

/* *made: its makespan; GY_TICKS_MAX: there is none, or it cannot be better. */
static gantry_status plan_part(fewer *x, const gantry_machine *part, uint32_t devices, int32_t effort, gy_ticks *made,
                               gantry_error *err)
{
    gantry_error inner = { 0 };
    gantry_schedule *s = NULL;
    gy_bound bound = { 0 };
    gy_options o = *x->options;
    o.effort = effort;
    gantry_status status = has_bound(x) ? find_bound(&bound, x->graph, part, &inner) : GANTRY_OK;
    if (!status && bound.time < x->least)
        status = gy_balance_run(&s, x->graph, part, &o, &inner);
    *made = s ? s->makespan : GY_TICKS_MAX;
    if (s)
        return offer(x, s, devices, err);
    if (is_serious(status) && err)
        *err = inner;
    return is_serious(status) ? status : GANTRY_OK;
}

/* With the first devices, in their order. Without the others there may be no route. */
static gantry_status plan_count(fewer *x, uint32_t devices, int32_t effort, gy_ticks *made, gantry_error *err)
{
    char text[16];
    gantry_machine *part = NULL;
    *made = GY_TICKS_MAX;
    snprintf(text, sizeof text, "%u", devices);
    gantry_status status = gantry_machine_select(&part, x->machine, text, NULL);
    if (status)
        return status == GANTRY_E_NOMEM ? gy_fail_nomem(err) : GANTRY_OK;
    if (gy_wishes_hold(x->graph, x->machine, part))
        status = plan_part(x, part, devices, effort, made, err);
    gantry_machine_free(part);
    return status;
}

/* ---- which counts ---- */

static gantry_status try_count(fewer *x, uint32_t devices, gantry_error *err)
{
    count c = { .devices = devices };
    GY_TRY(plan_count(x, devices, size_of(x) <= FEW_SEARCHED_UP_TO, &c.made, err));
    return gy_vec_push(&x->counts, c) ? GANTRY_OK : gy_fail_nomem(err);
}

/* Few first: what they reach tells soon that others need not be looked at. */
static gantry_status try_all(fewer *x, uint32_t devices, gantry_error *err)
{
    for (uint32_t k = 1; k < devices; k++)
        GY_TRY(try_count(x, k, err));
    return GANTRY_OK;
}

static uint32_t half_of(uint32_t devices)
{
    uint32_t power = 1;
    while (power * 2 < devices)
        power *= 2;
    return power;
}

static gantry_status try_halves(fewer *x, uint32_t devices, gantry_error *err)
{
    bool better = true;
    for (int i = 0; devices > 1 && (better || i < HALVES_ANYWAY); i++) {
        const gantry_schedule *before = x->best;
        devices = half_of(devices);
        GY_TRY(try_count(x, devices, err));
        better = x->best != before;
    }
    return GANTRY_OK;
}

static gantry_status try_counts(fewer *x, uint32_t devices, gantry_error *err)
{
    uint64_t work = (uint64_t)size_of(x) * devices * devices;
    return work <= ALL_COUNTS_UP_TO ? try_all(x, devices, err) : try_halves(x, devices, err);
}

/* ---- searching on ---- */

static bool is_small(const fewer *x)
{
    return size_of(x) <= ALL_SEARCHED_UP_TO && !x->best->phases.count;
}

static uint32_t searches(const fewer *x)
{
    if (x->options->effort < 2 || size_of(x) > FEW_SEARCHED_UP_TO)
        return 0;
    return is_small(x) ? UINT32_MAX : size_of(x) <= TWO_SEARCHED_UP_TO ? 2 : 1;
}

/* Policies that reach the same makespan have, as a rule, placed alike, and a search would begin where one began. In
 * small graphs it is cheap, and may end elsewhere. */
static void strike_out(fewer *x, gy_ticks made)
{
    for (size_t i = 0; i < x->counts.count && !is_small(x); i++)
        if (x->counts.at[i].made == made)
            x->counts.at[i].made = GY_TICKS_MAX;
}

/* The search on all devices began at the best of its policies. */
static void strike_out_begun(fewer *x)
{
    gy_ticks made = GY_TICKS_MAX;
    for (size_t i = 0; i < x->tried.count; i++) {
        const gy_tried *t = &x->tried.at[i];
        if (!t->skipped && !t->evaluations && !t->devices && t->makespan < made)
            made = t->makespan;
    }
    strike_out(x, made);
}

/* The count with the least makespan, of equals the lowest; NULL: none is left that may win. */
static count *most_promising(fewer *x)
{
    count *best = NULL;
    for (size_t i = 0; i < x->counts.count; i++)
        if (!best || x->counts.at[i].made < best->made)
            best = &x->counts.at[i];
    gy_ticks after = gy_machine_after_start(x->machine, x->least);
    bool hopes = best && best->made < GY_TICKS_MAX && best->made <= x->least + after / HOPELESS;
    return hopes ? best : NULL;
}

static gantry_status search_counts(fewer *x, gantry_error *err)
{
    gy_ticks made;
    count *c;
    strike_out_begun(x);
    for (uint32_t left = searches(x); left > 0 && (c = most_promising(x)); left--) {
        strike_out(x, c->made);
        c->made = GY_TICKS_MAX;
        GY_TRY(plan_count(x, c->devices, x->options->effort, &made, err));
    }
    return GANTRY_OK;
}

/* The rows of the report: what was tried on all devices, then on fewer. They are the first schedule's to begin with. */
static void move_rows(fewer *x, gantry_schedule *s, bool back)
{
    if (back) {
        gy_vec_free(&s->tried);
        s->tried.at = x->tried.at;
        s->tried.count = x->tried.count;
        s->tried.capacity = x->tried.capacity;
        return;
    }
    x->tried.at = s->tried.at;
    x->tried.count = s->tried.count;
    x->tried.capacity = s->tried.capacity;
    s->tried.at = NULL;
    s->tried.count = s->tried.capacity = 0;
}

/* A policy that was named decides alone, and a proof is of all devices. Measured paces are of devices by number. */
static bool may_leave_idle(const gy_options *o, const gantry_machine *m)
{
    return !o->policy && o->effort > 0 && !o->optimal && o->objective == GY_OBJECTIVE_MAKESPAN && !m->pace &&
           !o->max_memory;
}

/* The schedule that was chosen may be longer by as much as counts as equal. */
static gy_ticks least_of(const fewer *x)
{
    gy_ticks least = x->best->makespan;
    for (size_t i = 0; i < x->tried.count; i++)
        if (!x->tried.at[i].skipped && x->tried.at[i].makespan > 0 && x->tried.at[i].makespan < least)
            least = x->tried.at[i].makespan;
    return least;
}

gantry_status gy_fewer_run(gantry_schedule **schedule, gantry_graph *graph, const gantry_machine *machine,
                           const gy_options *options, gantry_error *err)
{
    fewer x = { .graph = graph, .machine = machine, .options = options };
    uint32_t devices = gy_machine_counted(machine);
    GY_TRY(gy_balance_run(&x.best, graph, machine, options, err));
    gantry_status status = GANTRY_OK;
    move_rows(&x, x.best, false);
    x.least = least_of(&x);
    if (devices > 1 && may_leave_idle(options, machine))
        status = try_counts(&x, devices, err);
    if (!status)
        status = search_counts(&x, err);
    gy_vec_free(&x.counts);
    x.best->effort = options->effort;
    move_rows(&x, x.best, true);
    if (status)
        gantry_schedule_free(x.best);
    else
        *schedule = x.best;
    return status;
}
