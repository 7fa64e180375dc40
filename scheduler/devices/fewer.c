/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/devices/fewer.h"

#include "base/error.h"
#include "base/thread.h"
#include "schedule/relocate.h"
#include "scheduler/balance/balance.h"
#include "scheduler/bound/bound.h"
#include "scheduler/cost/cost.h"
#include "scheduler/devices/parts.h"
#include "scheduler/devices/wishes.h"
#include "scheduler/pipeline/pipeline.h"
#include "scheduler/search/better.h"
#include "scheduler/search/portfolio.h"
#include "sim/sim.h"
#include <stdio.h>

/* Tasks times the square of the devices, which is about what policies take for all counts: of larger graphs half of the
 * devices, a quarter and so on are tried, while that helps. */
#define ALL_COUNTS_UP_TO 128000
#define HALVES_ANYWAY    2
/* Tasks: what policies found for a count is searched on, for every count that may win, or for so many of the best. */
#define ALL_SEARCHED_UP_TO 128
#define MOST_SEARCHED      8       /* counts of many, and then each makespan once */
#define FEW_SEARCHED_UP_TO 10000   /* larger ones are placed as without effort */
#define ALL_POLICIES_UP_TO 2500000 /* dependencies times devices; larger ones by the policies for any size */
#define TWO_SEARCHED_UP_TO 2000
#define THREADS_FROM       24 /* smaller ones are planned before a thread has begun */
#define HOPELESS           4  /* rounds of a search seldom gain one part of so many */

typedef struct reached {
    uint32_t devices;
    gy_ticks made;        /* the makespan that policies reached; GY_TICKS_MAX: none, or it has been searched on */
    gy_known_plans known; /* plans on so many devices that were carried through */
} reached;

typedef struct fewer {
    gantry_graph *graph;
    const gantry_machine *machine;
    const gy_options *options;
    gantry_schedule *best;
    gy_ticks least;         /* the least makespan of all that were found */
    GY_VEC(gy_tried) tried; /* a row for each plan */
    GY_VEC(reached) counts; /* that were planned by policies */
    uint32_t threads;       /* plans that are made side by side */
    bool bounded;           /* the graph has a bound before it is planned */
} fewer;

static const char name_of_rows[] = "fewer";

/* Of graphs with phases the nodes of one iteration are counted. */
static uint32_t size_of(const fewer *x)
{
    uint32_t tasks = x->graph->flow ? x->graph->flow->tasks : 0, nodes = (uint32_t)x->graph->nodes.count;
    return tasks > nodes ? tasks : nodes;
}

/* A policy looks at each dependency on each device, and what it places is lowered and simulated with a copy for each.
 */
static bool is_wide(const fewer *x)
{
    const gy_flow *flow = x->graph->flow;
    return flow && flow->deps > ALL_POLICIES_UP_TO / x->machine->devices;
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
    gy_bound bound = { .time = best->bound,
                       .by = best->bound_by,
                       .bytes = (int64_t)best->bytes_needed,
                       .without = best->bound_without,
                       .without_by = best->bound_without_by };
    for (size_t i = 0; i < s->phases.count; i++)
        GY_TRY(finish(s->phases.at[i].schedule, best, err));
    if (s->phases.count)
        return gy_schedule_phases_sum(s, err);
    if (s->graph != best->graph)
        GY_TRY(gy_pipeline_bound(&bound, s->graph, s->machine, NULL, err));
    gy_bound_tell(s, &bound);
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

/* Rounds of a search seldom gain so much. */
static bool has_hope(const fewer *x, gy_ticks made)
{
    return made <= x->least + gy_machine_after_start(x->machine, x->least) / HOPELESS;
}

/* The limits of memories that are of the part; false: a name means another memory there. */
static bool limit_memory(const fewer *x, gy_fewer_part *p)
{
    const char *limits = x->options->max_memory;
    if (!limits)
        return true;
    bool same = gy_capacity_select(&p->limits, limits, x->machine, p->machine);
    p->options.max_memory = p->limits.at;
    return same;
}

/* With the first devices, in their order. Without the others there may be no route. */
static gantry_status set_up(const fewer *x, gy_fewer_part *p, gantry_error *err)
{
    char text[16];
    p->graph = x->graph;
    p->known.graph = x->graph;
    p->made = GY_TICKS_MAX;
    p->limit = x->bounded ? x->least : GY_TICKS_MAX;
    if (p->hope && !has_hope(x, p->hope))
        return GANTRY_OK;
    snprintf(text, sizeof text, "%u", p->devices);
    gantry_status status = gantry_machine_select(&p->machine, x->machine, text, NULL);
    if (status)
        return status == GANTRY_E_NOMEM ? gy_fail_nomem(err) : GANTRY_OK;
    bool same = limit_memory(x, p);
    if (!same || !gy_wishes_hold(x->graph, x->machine, p->machine))
        gy_fewer_free(p);
    return p->limits.failed ? gy_fail_nomem(err) : GANTRY_OK;
}

/* Others that were planned at the same time may have been better: it ends as if it had been planned after them. */
static gantry_status take(fewer *x, gy_fewer_part *p, gantry_error *err)
{
    const gantry_schedule *before = x->best;
    if (!p->machine || (p->hope && !has_hope(x, p->hope)) || (x->bounded && p->bound.time >= x->least))
        return GANTRY_OK;
    if (is_serious(p->status) && err)
        *err = p->why;
    if (!p->schedule)
        return is_serious(p->status) ? p->status : GANTRY_OK;
    gantry_schedule *s = p->schedule;
    p->schedule = NULL;
    p->made = s->makespan;
    GY_TRY(offer(x, s, p->devices, err));
    p->better = x->best != before;
    return GANTRY_OK;
}

/* Plans as many at a time as there are processors, and takes what they made in their order. */
static gantry_status plan_parts(fewer *x, gy_fewer_part *part, uint32_t count, gantry_error *err)
{
    gantry_status status = GANTRY_OK;
    for (uint32_t i = 0, wave; i < count && !status; i += wave) {
        wave = count - i < x->threads ? count - i : x->threads;
        for (uint32_t k = i; k < i + wave && !status; k++)
            status = set_up(x, &part[k], err);
        if (!status)
            gy_fewer_plan(&part[i], wave);
        for (uint32_t k = i; k < i + wave; k++) {
            if (!status)
                status = take(x, &part[k], err);
            gy_fewer_free(&part[k]);
        }
    }
    return status;
}

/* ---- which counts ---- */

static gy_fewer_part part_of(const fewer *x, uint32_t devices, int32_t effort)
{
    gy_fewer_part p = { .devices = devices, .options = *x->options };
    p.options.effort = effort;
    p.options.any_size = is_wide(x);
    return p;
}

static void forget_known(gy_fewer_part *part, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        gy_known_free(&part[i].known);
}

/* By all policies; of large graphs, and without effort, by few. */
static int32_t effort_of_policies(const fewer *x)
{
    return x->options->effort > 0 && size_of(x) <= FEW_SEARCHED_UP_TO;
}

/* Plans by policies, and notes what they reached. */
static gantry_status try_parts(fewer *x, gy_fewer_part *part, uint32_t count, gantry_error *err)
{
    GY_TRY(plan_parts(x, part, count, err));
    for (uint32_t i = 0; i < count; i++)
        if (!gy_vec_push(&x->counts, ((reached){ part[i].devices, part[i].made, part[i].known })))
            return gy_fail_nomem(err);
        else
            part[i].known = (gy_known_plans){ 0 };
    return GANTRY_OK;
}

/* Few first: what they reach tells soon that others need not be looked at. Of more devices than there are tasks, some
 * have nothing to do. */
static gantry_status try_all(fewer *x, uint32_t devices, gantry_error *err)
{
    devices = size_of(x) < devices ? size_of(x) + 1 : devices;
    gy_fewer_part *part = gy_calloc(devices, sizeof *part);
    if (!part)
        return gy_fail_nomem(err);
    for (uint32_t k = 1; k < devices; k++)
        part[k - 1] = part_of(x, k, effort_of_policies(x));
    gantry_status status = try_parts(x, part, devices - 1, err);
    forget_known(part, devices - 1);
    gy_free(part);
    return status;
}

static uint32_t half_of(uint32_t devices)
{
    uint32_t power = 1;
    while (power * 2 < devices)
        power *= 2;
    return power;
}

/* Without effort those two alone: more effort, which goes on from what is better there, would leave others out. */
static gantry_status try_halves(fewer *x, uint32_t devices, gantry_error *err)
{
    gy_fewer_part part[HALVES_ANYWAY] = { { 0 } };
    for (uint32_t most = HALVES_ANYWAY, count; devices > 1; most = 1) {
        for (count = 0; count < most && devices > 1; count++)
            part[count] = part_of(x, devices = half_of(devices), effort_of_policies(x));
        gantry_status status = try_parts(x, part, count, err);
        forget_known(part, count);
        if (status)
            return status;
        if (!part[count - 1].better || x->options->effort == 0)
            break;
    }
    return GANTRY_OK;
}

static gantry_status try_counts(fewer *x, uint32_t devices, gantry_error *err)
{
    uint64_t work = (uint64_t)size_of(x) * devices * devices;
    return work <= ALL_COUNTS_UP_TO && x->options->effort > 0 ? try_all(x, devices, err) : try_halves(x, devices, err);
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
    return is_small(x) ? MOST_SEARCHED : size_of(x) <= TWO_SEARCHED_UP_TO ? 2 : 1;
}

/* Policies that reach the same makespan have, as a rule, placed alike, and a search would begin where one began. In
 * small graphs on few devices it is cheap, and may end elsewhere. */
static void strike_out(fewer *x, gy_ticks made)
{
    bool all = is_small(x) && x->counts.count <= MOST_SEARCHED;
    for (size_t i = 0; i < x->counts.count && !all; i++)
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
static reached *most_promising(fewer *x)
{
    reached *best = NULL;
    for (size_t i = 0; i < x->counts.count; i++)
        if (!best || x->counts.at[i].made < best->made)
            best = &x->counts.at[i];
    return best && best->made < GY_TICKS_MAX && has_hope(x, best->made) ? best : NULL;
}

static gantry_status search_counts(fewer *x, gantry_error *err)
{
    uint32_t wanted = 0;
    reached *c;
    gy_fewer_part *part = gy_calloc(x->counts.count + 1, sizeof *part);
    if (!part)
        return gy_fail_nomem(err);
    strike_out_begun(x);
    for (uint32_t left = searches(x); left > 0 && (c = most_promising(x)); left--) {
        part[wanted] = part_of(x, c->devices, x->options->effort);
        part[wanted].known = c->known;
        part[wanted++].hope = c->made;
        c->known = (gy_known_plans){ 0 };
        strike_out(x, c->made);
        c->made = GY_TICKS_MAX;
    }
    gantry_status status = plan_parts(x, part, wanted, err);
    forget_known(part, wanted);
    gy_free(part);
    return status;
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
    return !o->policy && !o->optimal && o->objective == GY_OBJECTIVE_MAKESPAN && !m->pace;
}

/* Without effort: as on all devices. */
static bool is_good_enough(const fewer *x)
{
    return x->options->effort == 0 && (gy_is_near_bound(x->best) || gy_portfolio_is_placed(x->graph));
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

/* Small graphs are planned before a thread has begun, and of large ones there is no room for several plans. */
static uint32_t threads_for(const fewer *x)
{
    bool few = size_of(x)<THREADS_FROM, many = size_of(x)> FEW_SEARCHED_UP_TO;
    return few || many ? 1 : gy_thread_processors();
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
    x.bounded = has_bound(&x);
    x.threads = threads_for(&x);
    if (devices > 1 && may_leave_idle(options, machine) && !is_good_enough(&x))
        status = try_counts(&x, devices, err);
    if (!status)
        status = search_counts(&x, err);
    for (size_t i = 0; i < x.counts.count; i++)
        gy_known_free(&x.counts.at[i].known);
    gy_vec_free(&x.counts);
    x.best->effort = options->effort;
    move_rows(&x, x.best, true);
    if (status)
        gantry_schedule_free(x.best);
    else
        *schedule = x.best;
    return status;
}
