/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Why a node is where it is. Placing is deterministic, so nothing is kept for this: the policy runs again, and all
 * devices are looked at when it comes to the task. Where that does not end as in the schedule (it was found by search,
 * or with other options), the placement of the schedule is followed instead.
 */
#include "scheduler/explain/explain.h"
#include "scheduler/policies/policy.h"
#include "scheduler/search/candidate.h"
#include "scheduler/search/search.h"

#include "base/error.h"
#include "scheduler/cost/cost.h"
#include "scheduler/pipeline/pipeline.h"

typedef struct explain {
    const gantry_schedule *s;
    uint32_t node, op; /* op: GY_NONE if the node never runs */
    gy_text text;
} explain;

static uint32_t first_op(const gantry_schedule *s, uint32_t node)
{
    for (uint32_t i = 0; i < s->ops.count; i++)
        if (s->ops.at[i].node == node && s->ops.at[i].iteration == 0)
            return i;
    return GY_NONE;
}

static uint32_t first_task(const gy_flow *f, uint32_t node)
{
    for (uint32_t t = 0; t < f->tasks; t++)
        if (f->task[t].node == node && f->task[t].iteration == 0)
            return t;
    return GY_NONE;
}

static uint32_t device_of(const gantry_schedule *s, uint32_t op)
{
    return gy_op_device(s, &s->ops.at[op], 0);
}

static void add_flag(explain *x)
{
    const gy_node *n = &x->s->graph->nodes.at[x->node];
    gy_text_add(&x->text, "it runs when ");
    gy_access_text(&x->text, x->s->graph, &x->s->graph->access.at[n->access + gy_node_regions(n)]);
    gy_ticks asking = gy_device_when(x->s->machine, device_of(x->s, x->op), false);
    gy_text_printf(&x->text, " is not 0, else it takes %.3f us; placed and timed as if it always did\n",
                   gy_ticks_to_us(asking));
}

static void add_head(explain *x)
{
    const gantry_schedule *s = x->s;
    const char *id = s->node_ids.at[x->node];
    if (x->op == GY_NONE) {
        gy_text_printf(&x->text, "node \"%s\" never runs: its loop has no iterations\n", id);
        return;
    }
    const gy_op *op = &s->ops.at[x->op];
    bool loop = s->graph && s->graph->nodes.at[x->node].loop != GY_NONE;
    gy_text_printf(&x->text, "node \"%s\"%s on %s, from %.3f us to %.3f us; placed by %s\n", id,
                   loop ? " (iteration 0)" : "", s->machine->device[device_of(s, x->op)].id, gy_ticks_to_us(op->start),
                   gy_ticks_to_us(op->end), s->policy);
    if (s->graph && s->graph->nodes.at[x->node].has_when)
        add_flag(x);
}

static gantry_status place(gy_plan *p, gantry_error *err)
{
    GY_TRY(gy_plan_capacity(p, NULL, err));
    return gy_plan_to_place(p, err);
}

/* Places as `policy` does; *same: the node is where the schedule has it, and has been explained. */
static gantry_status try_policy(explain *x, const gy_policy *policy, const gy_candidate *c, bool *same,
                                gantry_error *err)
{
    gy_plan p;
    gy_attempt attempt = GY_ATTEMPT_INIT;
    attempt.candidate = c;
    attempt.watch = first_task(x->s->graph->flow, x->node);
    GY_TRY(gy_plan_init(&p, x->s->graph, x->s->machine, policy, &attempt, err));
    gantry_status status = place(&p, err);
    *same = !status && (c || p.placed.device[attempt.watch] == device_of(x->s, x->op));
    if (*same)
        gy_explain_place(&x->text, &p, attempt.watch);
    gy_plan_free(&p);
    return status;
}

static gantry_status follow_schedule(explain *x, gantry_error *err)
{
    gy_candidate c;
    bool same;
    gantry_status status = gy_fail_nomem(err);
    if (gy_candidate_init(&c, x->s->graph->flow->tasks) && gy_candidate_from_schedule(&c, x->s, x->s->graph->flow))
        status = try_policy(x, &gy_policy_replay, &c, &same, err);
    gy_candidate_free(&c);
    return status;
}

static gantry_status explain_placement(explain *x, gantry_error *err)
{
    const gy_policy *policy;
    bool same = false;
    if (!x->s->graph) {
        gy_text_add(&x->text, "\nthe schedule was read from a file without its graph: attach the graph to see inputs, "
                              "costs and candidates\n");
        return GANTRY_OK;
    }
    if (!gy_policy_find(&policy, x->s->policy, NULL)) {
        gantry_status status = try_policy(x, policy, NULL, &same, NULL);
        if (status == GANTRY_E_NOMEM)
            return gy_fail_nomem(err);
    }
    return same ? GANTRY_OK : follow_schedule(x, err);
}

gantry_status gantry_schedule_explain(const gantry_schedule *s, gantry_node node, char **text, size_t *length,
                                      gantry_error *err)
{
    GY_TRY(gy_need(s, "schedule", __func__, err));
    GY_NEED(text, err);
    if (s->graph && !gy_graph_gave(s->graph, node.graph))
        return gy_fail(err, GANTRY_E_INVALID, NULL, GY_OTHER_GRAPH, "node", node.id, node.graph, s->graph->name,
                       s->graph->number);
    if (node.id >= s->node_ids.count)
        return gy_fail(err, GANTRY_E_INVALID, NULL, "no node %u; the graph has %zu", node.id, s->node_ids.count);
    const gantry_schedule *part = gy_schedule_of_node(s, node.id);
    if (part && part != s)
        return gantry_schedule_explain(part, node, text, length, err);
    explain x = { .s = s, .node = node.id, .op = first_op(s, node.id) };
    gantry_status status = GANTRY_OK;
    add_head(&x);
    if (x.op != GY_NONE) {
        status = explain_placement(&x, err);
        gy_explain_collectives(&x.text, s, x.op);
        gy_explain_room(&x.text, s, x.op);
        gy_explain_waits(&x.text, s, x.op);
        gy_explain_counters(&x.text, s, x.op);
        status = status ? status : gy_explain_stretch(&x.text, s, x.op, err);
        status = status ? status : gy_explain_graphs(&x.text, s, err);
    }
    char *made = status ? NULL : gy_text_take(&x.text, length);
    gy_text_free(&x.text);
    if (!made)
        return status ? status : gy_fail_nomem(err);
    *text = made;
    return GANTRY_OK;
}
