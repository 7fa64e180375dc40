/* SPDX-License-Identifier: Apache-2.0 */
/* Rule node: every task once, as an op of its kind, with the task's accesses; and any number of repeats behind it, for
 * tasks that can be repeated. What a repeat reads and leaves is looked at in the walk, as for the task's own op. */
#include "base/error.h"
#include "graph/repeat.h"
#include "schedule/check/check.h"

static const uint8_t kind_of_node[] = {
    [GY_NODE_KERNEL] = GY_OP_LAUNCH, [GY_NODE_LAUNCH] = GY_OP_LAUNCH, [GY_NODE_HOST] = GY_OP_HOST,
    [GY_NODE_COPY] = GY_OP_COPY,     [GY_NODE_FILL] = GY_OP_FILL,     [GY_NODE_COLLECTIVE] = GY_OP_COLLECTIVE,
    [GY_NODE_WORK] = GY_OP_LAUNCH,
};

/* Tasks by node and iteration (counting sort). */
static gantry_status sort_tasks(gy_check *k)
{
    const gy_flow *f = k->flow;
    size_t nodes = k->graph->nodes.count;
    k->task_first = gy_calloc(nodes + 1, sizeof *k->task_first);
    k->task = gy_calloc(f->tasks + 1u, sizeof *k->task);
    k->task_op = gy_calloc(f->tasks + 1u, sizeof *k->task_op);
    if (!k->task_first || !k->task || !k->task_op)
        return gy_fail_nomem(k->err);
    for (uint32_t t = 0; t < f->tasks; t++) {
        k->task_first[f->task[t].node + 1]++;
        k->task_op[t] = GY_NONE;
    }
    for (size_t n = 0; n < nodes; n++)
        k->task_first[n + 1] += k->task_first[n];
    for (uint32_t t = 0; t < f->tasks; t++)
        k->task[k->task_first[f->task[t].node] + f->task[t].iteration] = t;
    return GANTRY_OK;
}

static gantry_status check_use(const gy_check *k, uint32_t index, uint32_t i, size_t flow_access)
{
    const gy_use *u = &k->s->use.at[gy_check_op(k, index)->use + i];
    const gy_access *a = gy_flow_access_of(k->graph, k->flow, flow_access);
    uint32_t value = k->flow->access[flow_access].value, seen = gy_use_instance(k, u)->value;
    if (u->mode == a->mode && seen == value && u->first == a->first && u->last == a->last)
        return GANTRY_OK;
    gy_label mine = gy_label_rows(k->s, seen, u->first, u->last),
             theirs = gy_label_rows(k->s, value, a->first, a->last);
    return gy_breach(k->err, "node", "ops", index, "use %u of %s is %s %s; access %u of the node is %s %s", i,
                     gy_label_op(k->s, index).at, gy_word(&gy_access_words, u->mode), mine.at, i,
                     gy_word(&gy_access_words, a->mode), theirs.at);
}

static gantry_status check_kind(const gy_check *k, uint32_t index)
{
    const gy_op *op = gy_check_op(k, index);
    const gy_node *node = &k->graph->nodes.at[op->node];
    if (op->kind != kind_of_node[node->kind]) {
        return gy_breach(k->err, "node", "ops", index, "%s is a %s; the node is carried out by a %s",
                         gy_label_op(k->s, index).at, gy_word(&gy_op_words, op->kind),
                         gy_word(&gy_op_words, kind_of_node[node->kind]));
    }
    if (op->uses != node->accesses) {
        return gy_breach(k->err, "node", "ops", index, "%s has %u uses; the node has %u accesses",
                         gy_label_op(k->s, index).at, op->uses, node->accesses);
    }
    const gy_node_extra *extra = gy_node_extra_of(k->graph, op->node);
    if (op->kind == GY_OP_COLLECTIVE &&
        (op->collective != extra->collective || op->reduce != extra->op || op->ins != extra->ins)) {
        return gy_breach(k->err, "node", "ops", index,
                         "%s is %s of %u reads, reduction %s; the node is %s of %u, reduction %s",
                         gy_label_op(k->s, index).at, gy_word(&gy_collective_words, op->collective), op->ins,
                         gy_word(&gy_reduction_words, op->reduce), gy_word(&gy_collective_words, extra->collective),
                         extra->ins, gy_word(&gy_reduction_words, extra->op));
    }
    return GANTRY_OK;
}

static gantry_status check_task(gy_check *k, uint32_t index)
{
    const gy_op *op = gy_check_op(k, index);
    if (op->iteration >= gy_iterations(k, op->node)) {
        return gy_breach(k->err, "node", "ops", index, "%s is iteration %u; the node has %u",
                         gy_label_op(k->s, index).at, op->iteration, gy_iterations(k, op->node));
    }
    uint32_t task = gy_task_of(k, op);
    if (op->repeat && (k->task_op[task] == GY_NONE || !gy_node_repeats(k->graph, op->node))) {
        return gy_breach(k->err, "node", "ops", index, "%s repeats %s", gy_label_op(k->s, index).at,
                         k->task_op[task] == GY_NONE ? "a task that no op before it carries out"
                                                     : "a node that may leave something else the second time");
    }
    if (!op->repeat && k->task_op[task] != GY_NONE) {
        return gy_breach(k->err, "node", "ops", index, "%s is there twice: also as op %u", gy_label_op(k->s, index).at,
                         k->task_op[task]);
    }
    k->task_op[task] = op->repeat ? k->task_op[task] : index;
    GY_TRY(check_kind(k, index));
    for (uint32_t i = 0; i < op->uses; i++)
        GY_TRY(check_use(k, index, i, (size_t)k->flow->task[task].access + i));
    return GANTRY_OK;
}

gantry_status gy_check_tasks(gy_check *k)
{
    gantry_status status = sort_tasks(k);
    for (uint32_t i = 0; !status && i < k->s->ops.count; i++)
        if (gy_check_op(k, i)->node != GY_NONE)
            status = check_task(k, i);
    for (uint32_t t = 0; !status && t < k->flow->tasks; t++) {
        if (k->task_op[t] == GY_NONE) {
            const gy_task *task = &k->flow->task[t];
            status = gy_breach(k->err, "node", "nodes", task->node,
                               "node \"%s\" (iteration %u) has no op; every task is there "
                               "once",
                               k->graph->nodes.at[task->node].id, task->iteration);
        }
    }
    return status;
}
