/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rule after. Nodes of one loop are joined iteration by iteration, others with all iterations of the other node. For
 * the latter it is enough to ask, per lane, for the last of the other node's ops in it: limits are kept per node, so
 * that two loops of n iterations cost n times the lanes, not n times n.
 */
#include "base/error.h"
#include "schedule/check/check.h"

static uint32_t op_of(const gy_check *k, uint32_t node, uint32_t iteration)
{
    return k->task_op[k->task[k->task_first[node] + iteration]];
}

static gantry_status fail(const gy_check *k, uint32_t op, uint32_t earlier)
{
    return gy_breach(k->err, "after", "ops", op,
                     "%s comes after %s in the graph, and nothing orders the two; add a dependency",
                     gy_label_op(k->s, op).at, gy_label_op(k->s, earlier).at);
}

static gantry_status check_one(const gy_check *k, uint32_t op, uint32_t earlier)
{
    gy_stamp who = { earlier, k->now.start };
    return gy_clocks_before(&k->clocks, who) && earlier != op ? GANTRY_OK : fail(k, op, earlier);
}

/* Per lane, how many of its ops must have ended when all of `node` has: ticks of start 0. Where they begin in `limit`.
 */
static gantry_status limits_of(gy_check *k, uint32_t node, size_t *at)
{
    uint64_t found;
    if (gy_map_get(&k->after.of_node, node, &found)) {
        *at = found;
        return GANTRY_OK;
    }
    size_t first = k->after.limit.count, lanes = k->s->lanes.count;
    if (!gy_vec_add(&k->after.limit, lanes) || !gy_map_put(&k->after.of_node, node, first))
        return gy_fail_nomem(k->err);
    uint32_t *limit = k->after.limit.at + first;
    for (size_t i = 0; i < lanes; i++)
        limit[i] = 0;
    for (uint32_t it = 0; it < gy_iterations(k, node); it++) {
        uint32_t op = op_of(k, node, it), lane = k->s->op_lane.at[k->s->ops.at[op].lane];
        uint32_t tick = gy_clocks_tick(&k->clocks, (gy_stamp){ op, 0 });
        limit[lane] = tick > limit[lane] ? tick : limit[lane];
    }
    *at = first;
    return GANTRY_OK;
}

static gantry_status check_all(gy_check *k, uint32_t op, uint32_t node)
{
    size_t at;
    gantry_status status = limits_of(k, node, &at);
    bool held = true;
    for (size_t lane = 0; !status && lane < k->s->lanes.count; lane++) {
        uint32_t limit = k->after.limit.at[at + lane];
        held = held && (limit == 0 ||
                        gy_clocks_count(&k->clocks, (uint32_t)lane) >= limit + k->now.start * k->clocks.lane_ops[lane]);
    }
    for (uint32_t it = 0; !status && !held && it < gy_iterations(k, node); it++)
        status = check_one(k, op, op_of(k, node, it));
    return status;
}

gantry_status gy_check_after(gy_check *k, uint32_t op)
{
    const gy_op *o = gy_check_op(k, op);
    const gy_node *node = &k->graph->nodes.at[o->node];
    gantry_status status = GANTRY_OK;
    for (uint32_t i = 0; !status && i < node->afters; i++) {
        uint32_t other = k->graph->after.at[node->after + i];
        uint32_t loop = k->graph->nodes.at[other].loop;
        if (loop != GY_NONE && loop == node->loop)
            status = check_one(k, op, op_of(k, other, o->iteration));
        else if (gy_iterations(k, other) == 1)
            status = check_one(k, op, op_of(k, other, 0));
        else
            status = check_all(k, op, other);
    }
    return status;
}
