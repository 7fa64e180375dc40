/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rule after. Nodes of one loop are joined iteration by iteration, others with all iterations of the other node. For
 * the latter it is enough to ask, per lane, for the last of the other node's ops in it: limits are kept per node, so
 * that two loops of n iterations cost n times the lanes, not n times n; and only for lanes in which the node ran, so
 * that n nodes do not take memory for all lanes each.
 */
#include "base/error.h"
#include "graph/nest.h"
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

/* The limit of the lane among those from `first` on; NULL: out of memory. */
static gy_lane_limit *limit_of(gy_check *k, size_t first, uint32_t lane)
{
    size_t *at = &k->after.of_lane[lane], count = k->after.limit.count;
    if (*at >= first && *at < count && k->after.limit.at[*at].lane == lane)
        return &k->after.limit.at[*at];
    *at = count;
    return gy_vec_push(&k->after.limit, ((gy_lane_limit){ lane, 0 })) ? &k->after.limit.at[count] : NULL;
}

/* Per lane in which `node` ran, how many of its ops must have ended when all of the node has: ticks of start 0. A limit
 * of lane GY_NONE ends them. */
static bool add_limits(gy_check *k, uint32_t node)
{
    size_t first = k->after.limit.count;
    if (!k->after.of_lane && !(k->after.of_lane = gy_calloc(k->s->lanes.count + 1, sizeof *k->after.of_lane)))
        return false;
    for (uint32_t it = 0; it < gy_iterations(k, node); it++) {
        uint32_t op = op_of(k, node, it), tick = gy_clocks_tick(&k->clocks, (gy_stamp){ op, 0 });
        gy_lane_limit *limit = limit_of(k, first, k->s->op_lane.at[k->s->ops.at[op].lane]);
        if (!limit)
            return false;
        limit->tick = tick > limit->tick ? tick : limit->tick;
    }
    return gy_vec_push(&k->after.limit, ((gy_lane_limit){ .lane = GY_NONE })) &&
           gy_map_put(&k->after.of_node, node, first);
}

static gantry_status check_all(gy_check *k, uint32_t op, uint32_t node)
{
    uint64_t first = k->after.limit.count;
    gantry_status status = GANTRY_OK;
    bool held = true;
    if (!gy_map_get(&k->after.of_node, node, &first) && !add_limits(k, node))
        return gy_fail_nomem(k->err);
    for (const gy_lane_limit *l = k->after.limit.at + first; l->lane != GY_NONE && held; l++)
        held = gy_clocks_count(&k->clocks, l->lane) >= l->tick + k->now.start * k->clocks.lane_ops[l->lane];
    for (uint32_t it = 0; !status && !held && it < gy_iterations(k, node); it++)
        status = check_one(k, op, op_of(k, node, it));
    return status;
}

/* All iterations of the other node within the iteration of the loops that both are in. */
static gantry_status check_same_loop(gy_check *k, uint32_t op, uint32_t other)
{
    const gy_op *o = gy_check_op(k, op);
    const gy_node *nodes = k->graph->nodes.at;
    int64_t first, last;
    gy_node_partners(k->graph, &nodes[o->node], &nodes[other], o->iteration, &first, &last);
    for (int64_t it = first; it < last; it++)
        GY_TRY(check_one(k, op, op_of(k, other, (uint32_t)it)));
    return GANTRY_OK;
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
            status = check_same_loop(k, op, other);
        else if (gy_iterations(k, other) == 1)
            status = check_one(k, op, op_of(k, other, 0));
        else
            status = check_all(k, op, other);
    }
    return status;
}
