/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/balance/guided.h"

#include "base/error.h"
#include "scheduler/balance/balance.h"
#include "scheduler/cost/cost.h"
#include "scheduler/objective/objective.h"
#include "scheduler/pipeline/pipeline.h"
#include "sim/sim.h"
#include <string.h>

#define PACE_MOST 1e6

/* Sums over ops, in ticks. */
typedef struct sums {
    double took, modelled;
} sums;

typedef struct guided {
    const gantry_schedule *s; /* at hand */
    gantry_graph *base;       /* its graph before it was cut */
    const gy_ticks *took;
    gy_splits splits;
    uint32_t devices;
    sums *of_group;          /* groups x devices */
    sums *of_device;         /* per device */
    gantry_machine *machine; /* with the paces */
    gy_plan plan;            /* costs of the graph at hand, as the schedule's machine has them */
} guided;

static bool is_work(const guided *g, const gy_op *op)
{
    uint32_t lane = g->s->op_lane.at[op->lane];
    return op->node != GY_NONE && op->lanes == 1 && !op->joined && g->s->lanes.at[lane].kind == GY_LANE_COMPUTE;
}

/* A batch is as the schedule says it: its op is no measure of the node alone. */
static gy_ticks modelled_time(const guided *g, const gy_op *op)
{
    return op->batch ? op->duration : gy_plan_time(&g->plan, op->node, gy_op_device(g->s, op, 0));
}

/* ---- paces ---- */

static void add(sums *to, gy_ticks took, gy_ticks modelled)
{
    to->took += (double)took;
    to->modelled += (double)modelled;
}

static void sum_ops(guided *g)
{
    for (size_t i = 0; i < g->s->ops.count; i++) {
        const gy_op *op = &g->s->ops.at[i];
        if (!is_work(g, op))
            continue;
        uint32_t device = gy_op_device(g->s, op, 0), group = g->splits.owner[op->node];
        gy_ticks modelled = modelled_time(g, op);
        if (modelled <= 0 || modelled >= GY_TICKS_MAX)
            continue;
        add(&g->of_device[device], g->took[i], modelled);
        if (group != GY_NONE)
            add(&g->of_group[(size_t)group * g->devices + device], g->took[i], modelled);
    }
}

static double pace_of(const guided *g, uint32_t node, uint32_t device)
{
    uint32_t group = g->splits.owner[node];
    const sums *s = group == GY_NONE ? NULL : &g->of_group[(size_t)group * g->devices + device];
    s = s && s->modelled > 0 ? s : &g->of_device[device];
    double pace = s->modelled > 0 && s->took > 0 ? s->took / s->modelled : 1;
    return pace < 1 / PACE_MOST ? 1 / PACE_MOST : pace > PACE_MOST ? PACE_MOST : pace;
}

/* The schedule's machine, with the paces on top of those that it may have already. */
static gantry_status make_machine(guided *g, gantry_error *err)
{
    const gantry_machine *old = g->s->machine;
    size_t nodes = g->base->nodes.count;
    char *text;
    size_t length;
    gantry_status status = gantry_machine_json(old, &text, &length, err);
    if (status)
        return status;
    status = gantry_machine_parse(&g->machine, text, length, "machine of the schedule", err);
    gy_free(text);
    if (status)
        return status;
    double *pace = gy_arena_alloc(&g->machine->arena, (nodes * g->devices + 1) * sizeof *pace);
    if (!pace)
        return gy_fail_nomem(err);
    for (uint32_t n = 0; n < nodes; n++)
        for (uint32_t d = 0; d < g->devices; d++) {
            size_t i = (size_t)n * g->devices + d;
            pace[i] = pace_of(g, n, d) * (old->pace && n < old->paces ? old->pace[i] : 1);
        }
    g->machine->pace = pace;
    g->machine->paces = (uint32_t)nodes;
    return GANTRY_OK;
}

static gantry_status measure(guided *g, const gy_options *o, gantry_error *err)
{
    gantry_status status = gy_splits_make(&g->splits, g->base, g->s->machine, o, err);
    if (!status)
        status = gy_plan_init(&g->plan, g->s->graph, g->s->machine, NULL, NULL, err);
    if (!status)
        status = gy_plan_cost(&g->plan, err);
    g->of_group = gy_calloc((size_t)(g->splits.groups + 1) * g->devices, sizeof *g->of_group);
    g->of_device = gy_calloc((size_t)g->devices + 1, sizeof *g->of_device);
    if (!status && (!g->of_group || !g->of_device))
        status = gy_fail_nomem(err);
    if (status)
        return status;
    sum_ops(g);
    return make_machine(g, err);
}

/* ---- what it would bring, and cost ---- */

/* The schedule at hand, each op as long as its pace says. */
static gantry_status simulate(const guided *g, gy_ticks *makespan, gantry_error *err)
{
    gantry_schedule copy = *g->s;
    copy.ops.at = gy_alloc((g->s->ops.count + 1) * sizeof *copy.ops.at);
    if (!copy.ops.at)
        return gy_fail_nomem(err);
    memcpy(copy.ops.at, g->s->ops.at, g->s->ops.count * sizeof *copy.ops.at);
    for (size_t i = 0; i < copy.ops.count; i++) {
        gy_op *op = &copy.ops.at[i];
        if (!is_work(g, op))
            continue;
        op->duration =
            gy_ticks_from_us(gy_ticks_to_us(modelled_time(g, op)) * pace_of(g, op->node, gy_op_device(g->s, op, 0)));
    }
    gantry_status status = gy_sim_run(&copy, err);
    if (!status)
        *makespan = copy.makespan;
    gy_free(copy.ops.at);
    return status;
}

static bool is_state(const gantry_schedule *s, const gy_instance *in)
{
    return in->role == GY_ROLE_PERSIST && s->graph->buffers.at[in->value].cls == GANTRY_STATE;
}

/* Rows of a state that the memory has in the schedule. */
static int64_t rows_there(const gantry_schedule *s, const gy_instance *in)
{
    int64_t rows = 0;
    for (size_t i = 0; i < s->instances.count; i++) {
        const gy_instance *other = &s->instances.at[i];
        if (!is_state(s, other) || other->value != in->value || other->memory != in->memory)
            continue;
        int64_t first = other->first > in->first ? other->first : in->first;
        int64_t last = other->last < in->last ? other->last : in->last;
        rows += first < last ? last - first : 0;
    }
    return rows;
}

static void cost_hand_over(const guided *g, const gantry_schedule *next, gy_guided *result)
{
    const gantry_machine *m = g->s->machine;
    for (size_t i = 0; i < g->s->instances.count; i++) {
        const gy_instance *in = &g->s->instances.at[i];
        if (!is_state(g->s, in))
            continue;
        result->handed += in->bytes;
        if (in->memory)
            result->hand_over += gy_route_time(m, gy_machine_route(m, in->memory, 0), (int64_t)in->bytes);
    }
    for (size_t i = 0; i < next->instances.count; i++) {
        const gy_instance *in = &next->instances.at[i];
        if (in->role != GY_ROLE_PERSIST)
            continue;
        if (in->memory)
            result->hand_over += gy_route_time(m, gy_machine_route(m, 0, in->memory), (int64_t)in->bytes);
        int64_t rows = in->last - in->first, stay = is_state(next, in) ? rows_there(g->s, in) : rows;
        result->moved += rows > stay ? in->bytes / (uint64_t)rows * (uint64_t)(rows - stay) : 0;
    }
}

/* ---- the new schedule ---- */

static bool same_bounds(const gantry_graph *a, const gantry_graph *b)
{
    for (size_t i = 0; i < a->buffers.count; i++) {
        const gy_buffer *x = &a->buffers.at[i], *y = &b->buffers.at[i];
        if (x->split_auto && memcmp(x->part_first, y->part_first, ((size_t)x->parts + 1) * sizeof *x->part_first) != 0)
            return false;
    }
    return true;
}

static gantry_status cut_again(guided *g, gantry_schedule **next, const gy_options *o, gy_guided *result,
                               gantry_error *err)
{
    gantry_graph *cut;
    gantry_schedule *made = NULL;
    gantry_status status = simulate(g, &result->now, err);
    if (!status)
        status = gy_balance_cut(&cut, g->base, g->machine, o, GY_BALANCE_DYNAMIC, err);
    if (status)
        return status;
    result->then = result->now;
    if (!same_bounds(cut, g->s->graph))
        status = gy_objective_run(&made, cut, g->machine, o, err);
    gantry_graph_free(cut);
    if (status || !made)
        return status;
    made->balance = "guided";
    result->then = made->makespan;
    cost_hand_over(g, made, result);
    *next = made;
    return GANTRY_OK;
}

gantry_status gy_guided_schedule(gantry_schedule **next, const gantry_schedule *at_hand, const gy_ticks *took,
                                 const gy_options *options, gy_guided *result, gantry_error *err)
{
    gantry_status status = GANTRY_OK;
    guided g = { .s = at_hand, .took = took, .devices = at_hand->machine->devices };
    g.base = at_hand->graph->base ? at_hand->graph->base : at_hand->graph;
    *next = NULL;
    *result = (gy_guided){ 0 };
    if (at_hand->phases.count && gy_graph_has_auto(g.base))
        status = gy_fail(
            err, GANTRY_E_UNSUPPORTED, NULL,
            "the schedule of \"%s\" has phases, whose parts are not cut anew by what was measured; balance them "
            "by another method than \"guided\", or unroll its loops",
            at_hand->graph_name);
    if (!status && gy_graph_has_auto(g.base))
        status = measure(&g, options, err);
    if (!status && g.machine)
        status = cut_again(&g, next, options, result, err);
    if (g.plan.graph)
        gy_plan_free(&g.plan);
    gy_splits_free(&g.splits);
    gantry_machine_free(g.machine);
    gy_free(g.of_group);
    gy_free(g.of_device);
    return status;
}
