/* SPDX-License-Identifier: Apache-2.0 */
/* The second walk: one op per task, with the copies, fills and collectives that it needs before it. */
#include "scheduler/lower/lower.h"

#include "scheduler/lower/lowering.h"

#include "base/error.h"
#include "scheduler/plan/planning.h"

static bool is_reduction(uint8_t mode)
{
    return mode >= GANTRY_SUM;
}

bool gy_lower_is_second(const gy_lower *l, uint32_t task, uint32_t k)
{
    return is_reduction(gy_flow_access_of(l->p->graph, l->p->flow, l->p->flow->task[task].access + k)->mode);
}

/* A device in the memory where an input is bound reads it where it is. */
static bool reads_input(const gy_lower *l, const gy_access *a, uint32_t value, uint32_t memory)
{
    const gy_plan *p = l->p;
    uint32_t input = l->input[p->flow->value[value].buffer];
    if (a->mode != GANTRY_READ || p->flow->value[value].generation != 0 || input == GY_NONE ||
        p->draft.instance.at[input].memory != memory)
        return false;
    int64_t last = a->first;
    for (int64_t row = a->first; row < a->last; row = last)
        if (!gy_holders_have(gy_lower_holders(l, value, row, &last), l->input[value]))
            return false;
    return true;
}

static uint32_t area_of(const gy_lower *l, uint32_t task, uint32_t execution, uint32_t k)
{
    const gy_plan *p = l->p;
    if (!execution)
        return l->area_of[p->flow->task[task].access + k];
    return l->area_of[l->replica_area[p->placed.replica_first[task] + execution - 1] + k];
}

/* Decides the instance of access k of an execution, and brings what it reads. */
static gantry_status prepare(gy_lower *l, uint32_t task, uint32_t execution, uint32_t k, uint32_t *instance,
                             gantry_error *err)
{
    const gy_plan *p = l->p;
    size_t i = p->flow->task[task].access + k;
    uint32_t value = p->flow->access[i].value;
    const gy_access *a = gy_flow_access_of(p->graph, p->flow, i);
    if (is_reduction(a->mode))
        return gy_lower_contribute(l, task, k, instance, err);
    GY_TRY(gy_lower_know(l, value, err));
    GY_TRY(gy_lower_settle(l, value, a->first, a->last, err));
    if (reads_input(l, a, value, gy_lower_memory_of(l, task, execution, k))) {
        *instance = l->input[value];
        return GANTRY_OK;
    }
    GY_TRY(gy_lower_area(l, area_of(l, task, execution, k), instance, err));
    if (a->mode != GANTRY_WRITE)
        GY_TRY(gy_lower_bring(l, value, a->first, a->last, *instance, err));
    return GANTRY_OK;
}

static gy_op_kind op_kind(const gy_node *n)
{
    switch ((gy_node_kind)n->kind) {
    case GY_NODE_HOST:
        return GY_OP_HOST;
    case GY_NODE_COPY:
        return GY_OP_COPY;
    case GY_NODE_FILL:
        return GY_OP_FILL;
    case GY_NODE_COLLECTIVE:
        return GY_OP_COLLECTIVE;
    case GY_NODE_KERNEL:
    case GY_NODE_LAUNCH:
    case GY_NODE_WORK:
        break;
    }
    return GY_OP_LAUNCH;
}

/* A replica takes as long as its task (replicas.c). */
static gy_draft_op task_op(const gy_lower *l, uint32_t task, uint32_t execution)
{
    const gy_plan *p = l->p;
    const gy_task *t = &p->flow->task[task];
    gy_op_kind kind = op_kind(gy_plan_node(p, task));
    gy_draft_op d = { .device = p->placed.device[task], .end = p->placed.finish[task] };
    d.replicated = gy_plan_executions(p, task) > 1;
    if (execution)
        d.device = gy_plan_replica_device(p, task, execution);
    d.lane = kind == GY_OP_COPY ? GY_LANE_COPY : kind == GY_OP_COLLECTIVE ? GY_LANE_COLLECTIVE : GY_LANE_COMPUTE;
    d.op = (gy_op){ .kind = (uint8_t)kind, .node = t->node, .iteration = t->iteration, .repeat = execution > 0 };
    d.op.duration = p->placed.finish[task] - p->placed.start[task];
    d.op.provenance = p->cost.provenance[(size_t)t->node * p->devices + d.device];
    if (d.lane == GY_LANE_COMPUTE)
        d.op.spare = (uint16_t)gy_plan_spare(p, t->node, d.device);
    return d;
}

static gantry_status describe_team(gy_lower *l, uint32_t task, gy_draft_op *d, gantry_error *err)
{
    gy_plan *p = l->p;
    const gy_team *team = gy_plan_team(p, task);
    if (!team)
        return GANTRY_OK;
    const gy_node_extra *x = gy_plan_extra(p, p->flow->task[task].node);
    d->op.collective = (uint8_t)x->collective;
    d->op.reduce = (uint8_t)x->op;
    d->op.ins = x->ins;
    d->op.algorithm = team->algorithm;
    d->op.provenance = team->provenance;
    d->rank = (uint32_t)p->rank_device.count;
    d->ranks = team->ranks;
    for (uint32_t i = 0; i < team->ranks; i++)
        if (!gy_vec_push(&p->rank_device, team->device[i]))
            return gy_fail_nomem(err);
    return GANTRY_OK;
}

/* `after` adds order that data do not give. */
static gantry_status add_after(gy_lower *l, uint32_t task, gantry_error *err)
{
    const gy_plan *p = l->p;
    const gy_node *n = gy_plan_node(p, task);
    gantry_status status = GANTRY_OK;
    if (!n->afters)
        return GANTRY_OK;
    for (uint32_t i = 0; i < n->afters; i++)
        l->stamp[p->graph->after.at[n->after + i]] = task + 1;
    for (const gy_dep *d = gy_deps_begin(p->flow, task); d < gy_deps_end(p->flow, task) && !status; d++)
        if (d->kinds & GY_DEP_ORDER && l->stamp[p->flow->task[d->from].node] == task + 1)
            status = gy_lower_edge(l, l->draft_of[d->from], GY_WHY_ORDER, err);
    return status;
}

static gantry_status use_accesses(gy_lower *l, uint32_t task, const uint32_t *chosen, gantry_error *err)
{
    const gy_plan *p = l->p;
    const gy_node *n = gy_plan_node(p, task);
    bool team = gy_plan_team(p, task) != NULL;
    gantry_status status = GANTRY_OK;
    for (uint32_t k = 0; k < n->accesses && !status; k++) {
        const gy_access *a = gy_flow_access_of(p->graph, p->flow, p->flow->task[task].access + k);
        uint32_t rank = team ? gy_access_rank(gy_plan_extra(p, p->flow->task[task].node), k) : 0;
        status = gy_lower_use(l, chosen[k], a->mode, rank, a->first, a->last, err);
    }
    return status;
}

/* Rows that the task wrote are held where it and its replicas wrote them, nowhere else; contributions to accumulators
 * nowhere yet. */
static gantry_status hold_writes(gy_lower *l, uint32_t task, gantry_error *err)
{
    const gy_plan *p = l->p;
    uint32_t count = gy_plan_node(p, task)->accesses, executions = gy_plan_executions(p, task);
    gantry_status status = GANTRY_OK;
    for (uint32_t k = 0; k < count && !status; k++) {
        size_t i = p->flow->task[task].access + k;
        const gy_access *a = gy_flow_access_of(p->graph, p->flow, i);
        if (a->mode == GANTRY_READ || p->draft.instance.at[l->chosen.at[k]].role == GY_ROLE_ACCUMULATOR)
            continue;
        for (uint32_t e = 0; e < executions; e++)
            l->made.at[e] = (gy_holder){ l->chosen.at[e * count + k], l->draft_of[task] + e };
        status = gy_lower_hold(l, p->flow->access[i].value, a->first, a->last, l->made.at, executions, err);
    }
    return status;
}

static gantry_status prepare_all(gy_lower *l, uint32_t task, gantry_error *err)
{
    uint32_t count = gy_plan_node(l->p, task)->accesses, executions = gy_plan_executions(l->p, task);
    l->chosen.count = l->made.count = 0;
    if (!gy_vec_add(&l->chosen, (size_t)count * executions) || !gy_vec_add(&l->made, executions))
        return gy_fail_nomem(err);
    for (uint32_t e = 0; e < executions; e++)
        for (int second = 0; second < 2; second++)
            for (uint32_t k = 0; k < count; k++)
                if (gy_lower_is_second(l, task, k) == second)
                    GY_TRY(prepare(l, task, e, k, &l->chosen.at[e * count + k], err));
    return GANTRY_OK;
}

/* The ops of a task are next to each other in the draft: what any of them reads has been brought before the first. */
static gantry_status execute(gy_lower *l, uint32_t task, uint32_t execution, gantry_error *err)
{
    gy_draft_op d = task_op(l, task, execution);
    uint32_t id;
    GY_TRY(describe_team(l, task, &d, err));
    GY_TRY(gy_lower_op(l, &d, &id, err));
    if (!execution)
        l->draft_of[task] = id;
    size_t first = (size_t)execution * gy_plan_node(l->p, task)->accesses;
    GY_TRY(use_accesses(l, task, gy_vec_from(&l->chosen, first), err));
    return add_after(l, task, err);
}

static gantry_status lower_task(gy_lower *l, uint32_t task, gantry_error *err)
{
    GY_TRY(prepare_all(l, task, err));
    for (uint32_t e = 0; e < gy_plan_executions(l->p, task); e++)
        GY_TRY(execute(l, task, e, err));
    GY_TRY(hold_writes(l, task, err));
    return gy_boundary_after(l, task, err);
}

/* ---- the pass ---- */

static gantry_status find_reductions(gy_lower *l, gantry_error *err)
{
    const gy_plan *p = l->p;
    bool any = false;
    for (size_t i = 0; i < p->flow->accesses && !any; i++)
        any = is_reduction(gy_flow_access_of(p->graph, p->flow, i)->mode);
    if (!any)
        return GANTRY_OK;
    l->reduced = gy_calloc((size_t)p->flow->values + 1, 1);
    l->epoch_of = gy_calloc(p->flow->accesses + 1, sizeof *l->epoch_of);
    if (!l->reduced || !l->epoch_of)
        return gy_fail_nomem(err);
    for (size_t i = 0; i < p->flow->accesses; i++)
        if (is_reduction(gy_flow_access_of(p->graph, p->flow, i)->mode))
            l->reduced[p->flow->access[i].value] = 1;
    return GANTRY_OK;
}

static gy_ticks end_of_tasks(const gy_plan *p)
{
    gy_ticks end = 0;
    for (uint32_t t = 0; t < p->flow->tasks; t++)
        end = p->placed.finish[t] > end ? p->placed.finish[t] : end;
    return end;
}

static gantry_status begin(gy_lower *l, gantry_error *err)
{
    const gy_plan *p = l->p;
    size_t values = (size_t)p->flow->values + 1, buffers = p->graph->buffers.count + 1;
    l->open = gy_calloc(values, sizeof *l->open);
    l->home = gy_calloc(values, sizeof *l->home);
    l->final = gy_calloc(values, sizeof *l->final);
    l->holds = gy_calloc(values, sizeof *l->holds);
    l->known = gy_calloc(values, 1);
    l->version = gy_calloc(values, sizeof *l->version);
    l->draft_of = gy_calloc((size_t)p->flow->tasks + 1, sizeof *l->draft_of);
    l->input = gy_calloc(buffers, sizeof *l->input);
    l->output = gy_calloc(buffers, sizeof *l->output);
    l->stamp = gy_calloc(p->graph->nodes.count + 1, sizeof *l->stamp);
    l->sent = gy_calloc(p->machine->memories, sizeof *l->sent);
    l->fetched = gy_calloc(p->machine->memories, sizeof *l->fetched);
    if (!l->open || !l->home || !l->final || !l->holds || !l->known || !l->version || !l->draft_of || !l->input ||
        !l->output || !l->stamp || !l->sent || !l->fetched)
        return gy_fail_nomem(err);
    for (size_t b = 0; b < buffers; b++)
        l->input[b] = l->output[b] = GY_NONE;
    l->end_of_tasks = end_of_tasks(p);
    GY_TRY(find_reductions(l, err));
    return gy_boundary_begin(l, err);
}

static void free_maps(gy_imap **map, uint32_t count)
{
    for (uint32_t i = 0; map && i < count; i++)
        if (map[i])
            gy_imap_free(map[i]);
    gy_free(map);
}

static void end(gy_lower *l)
{
    uint32_t values = l->p->flow->values;
    for (uint32_t v = 0; l->known && l->holds && v < values; v++)
        if (l->known[v])
            gy_imap_free(&l->holds[v]);
    for (size_t i = 0; i < l->epoch.count; i++) {
        gy_vec_free(&l->epoch.at[i].member);
        gy_vec_free(&l->epoch.at[i].reader);
    }
    free_maps(l->open, values);
    free_maps(l->home, values);
    free_maps(l->final, values);
    gy_hazards_free(l);
    gy_vec_free(&l->touch);
    gy_vec_free(&l->area);
    gy_vec_free(&l->epoch);
    gy_vec_free(&l->finals);
    gy_vec_free(&l->chosen);
    gy_vec_free(&l->made);
    gy_free(l->area_of);
    gy_free(l->reduced);
    gy_free(l->epoch_of);
    gy_free(l->holds);
    gy_free(l->known);
    gy_free(l->version);
    gy_free(l->draft_of);
    gy_map_free(&l->arrays);
    gy_free(l->input);
    gy_free(l->output);
    gy_free(l->stamp);
    gy_free(l->sent);
    gy_free(l->fetched);
}

/* Room for an op a task, and an instance and a copy an area: about what it will be, so that little grows step by step.
 */
static gantry_status reserve(gy_lower *l, gantry_error *err)
{
    gy_plan *p = l->p;
    size_t areas = l->area.count;
    bool done = gy_vec_reserve(&p->draft.instance, areas + p->graph->buffers.count) &&
                gy_vec_reserve(&l->hazards, areas) && gy_vec_reserve(&p->draft.op, p->flow->tasks + areas) &&
                gy_vec_reserve(&p->draft.use, p->flow->accesses + 2 * areas) &&
                gy_vec_reserve(&p->draft.edges, p->flow->accesses + areas);
    return done ? GANTRY_OK : gy_fail_nomem(err);
}

gantry_status gy_plan_lower(gy_plan *p, gantry_error *err)
{
    gy_lower l = { .p = p };
    p->passed_makers = p->turns = false;
    gantry_status status = begin(&l, err);
    if (!status)
        status = gy_lower_regions(&l, err);
    if (!status)
        status = reserve(&l, err);
    for (uint32_t i = 0; i < p->flow->tasks && !status; i++) {
        status = gy_planning_check(p->planning, err);
        status = status ? status : lower_task(&l, p->placed.order[i], err);
    }
    if (!status)
        status = gy_boundary_end(&l, err);
    end(&l);
    return status;
}
