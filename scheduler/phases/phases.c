/* SPDX-License-Identifier: Apache-2.0 */
/* A graph that is not unrolled wholly: each of its phases is scheduled like a graph of its own (graph/phase.h). */
#include "scheduler/phases/phases.h"

#include "base/error.h"
#include "graph/derive/phase.h"
#include "schedule/check/verify.h"
#include "scheduler/objective/objective.h"
#include "scheduler/plan/metadata.h"

typedef struct phases {
    gy_phases list;
    gantry_graph **graph; /* one a phase; those made */
    gantry_schedule *whole;
    const gy_options *options;
} phases;

static void free_phases(phases *p)
{
    for (size_t i = 0; p->graph && i < p->list.count; i++)
        gantry_graph_free(p->graph[i]);
    gy_free((void *)p->graph);
    gy_vec_free(&p->list);
    gantry_schedule_free(p->whole);
}

/* Time of the copies to devices before the first start and back after the last, one after the other. */
static gy_ticks hand_over(const gantry_schedule *s)
{
    const gy_phase_context *x = s->graph->phase;
    gy_ticks sum = 0;
    for (size_t i = 0; i < s->instances.count; i++) {
        const gy_instance *in = &s->instances.at[i];
        if (in->role != GY_ROLE_PERSIST || in->memory == 0 || in->bytes == 0)
            continue;
        const gy_route *there = gy_machine_route(s->machine, 0, in->memory);
        const gy_route *back = gy_machine_route(s->machine, in->memory, 0);
        if (!x->defined[in->value] || x->defineds[in->value] > 0)
            sum += gy_route_time(s->machine, there, (int64_t)in->bytes);
        if (x->kept[in->value])
            sum += gy_route_time(s->machine, back, (int64_t)in->bytes);
    }
    return sum;
}

/* Bounds of automatic splits are those of all phases. */
static gantry_status make_whole(phases *p, const gantry_graph *graph, const gantry_machine *machine, gantry_error *err)
{
    gantry_schedule *s = p->whole = gy_schedule_alloc();
    if (!s)
        return gy_fail_nomem(err);
    GY_TRY(gy_schedule_describe(s, graph, machine, p->options, err));
    for (size_t i = 0; i < graph->buffers.count; i++)
        if (graph->buffers.at[i].split_auto && !gy_plan_add_bounds(s, &graph->buffers.at[i]))
            return gy_fail_nomem(err);
    return GANTRY_OK;
}

/* The policy of the phase that takes longest. */
static void name_policy(gantry_schedule *s)
{
    gy_ticks longest = -1;
    for (size_t i = 0; i < s->phases.count; i++) {
        const gy_schedule_phase *phase = &s->phases.at[i];
        double time = (double)phase->schedule->makespan * (double)phase->phase.starts;
        if (time > (double)longest) {
            longest = time < (double)GY_TICKS_MAX ? (gy_ticks)time : GY_TICKS_MAX;
            s->policy = phase->schedule->policy;
        }
    }
}

static gantry_status add_part(phases *p, size_t i, const gantry_machine *machine, gantry_error *err)
{
    gy_schedule_phase phase = { .phase = p->list.at[i] };
    gy_options options = *p->options;
    options.part = true;
    GY_TRY(gy_objective_run(&phase.schedule, p->graph[i], machine, &options, err));
    phase.hand_over = hand_over(phase.schedule);
    if (!gy_vec_push(&p->whole->phases, phase)) {
        gantry_schedule_free(phase.schedule);
        return gy_fail_nomem(err);
    }
    return GANTRY_OK;
}

static gantry_status refuse_period(const gantry_graph *graph, const gy_phases *list, gantry_error *err)
{
    size_t i = 0;
    while (list->at[i].loop == GY_NONE)
        i++;
    const gy_node *n = &graph->nodes.at[list->at[i].first_node];
    if (graph->loops.at[list->at[i].loop].until != GY_NONE)
        return gy_graph_fail(graph, n->origin, err, GANTRY_E_UNSUPPORTED,
                             "objective \"period\": the repeat of node \"%s\" ends by `until`, which is looked at "
                             "between iterations, so starts cannot overlap; use objective \"makespan\", or a repeat "
                             "without `until`",
                             n->id);
    return gy_graph_fail(graph, n->origin, err, GANTRY_E_UNSUPPORTED,
                         "objective \"period\": the repeat of node \"%s\" is not unrolled wholly, so starts cannot "
                         "overlap; use objective \"makespan\", or repeat less often within one start",
                         n->id);
}

static gantry_status run(phases *p, gantry_graph *graph, const gantry_machine *machine, gantry_error *err)
{
    size_t count = p->list.count;
    if (p->options->objective == GY_OBJECTIVE_PERIOD)
        return refuse_period(graph, &p->list, err);
    gantry_graph **made = gy_calloc(count, sizeof *made);
    if (!made)
        return gy_fail_nomem(err);
    gantry_status status = gy_phases_derive(made, graph, p->list.at, count, err);
    if (status) {
        gy_free((void *)made);
        return status;
    }
    p->graph = made;
    status = make_whole(p, graph, machine, err);
    for (size_t i = 0; i < count && !status; i++)
        status = add_part(p, i, machine, err);
    if (status)
        return status;
    name_policy(p->whole);
    status = gy_schedule_phases_sum(p->whole, err);
    return status ? status : gy_schedule_verify(p->whole, graph, err);
}

/* The phases of another schedule of the graph are taken as they are. */
static gantry_status find_list(phases *p, const gantry_graph *graph, gantry_error *err)
{
    const gantry_schedule *like = p->options->like;
    if (!like || like->graph_hash != graph->hash || like->phases.count == 0)
        return gy_phases_plan(&p->list, graph, p->options->unroll, err);
    for (size_t i = 0; i < like->phases.count; i++)
        if (!gy_vec_push(&p->list, like->phases.at[i].phase))
            return gy_fail_nomem(err);
    return GANTRY_OK;
}

/* Data goes from phase to phase through host memory, so no buffer may be external. */
static gantry_status refuse_external(const gantry_graph *g, gantry_error *err)
{
    for (size_t i = 0; i < g->buffers.count; i++)
        if (g->buffers.at[i].external)
            return gy_graph_fail(g, g->buffers.at[i].origin, err, GANTRY_E_UNSUPPORTED,
                                 "buffer \"%s\" is external, which a graph with `until`, or with a loop too long to "
                                 "unroll, cannot have; bind it in host memory, or make one iteration a start",
                                 g->buffers.at[i].name);
    return GANTRY_OK;
}

gantry_status gy_phases_run(gantry_schedule **schedule, gantry_graph *graph, const gantry_machine *machine,
                            const gy_options *options, gantry_error *err)
{
    phases p = { .options = options };
    gantry_status status = graph->loops.count ? find_list(&p, graph, err) : GANTRY_OK;
    if (!status && p.list.count == 0) {
        free_phases(&p);
        return gy_objective_run(schedule, graph, machine, options, err);
    }
    status = status ? status : refuse_external(graph, err);
    status = status ? status : run(&p, graph, machine, err);
    if (!status) {
        *schedule = p.whole;
        p.whole = NULL;
    }
    free_phases(&p);
    return status;
}
