/* SPDX-License-Identifier: Apache-2.0 */
/* Rule batch: whatever a batch waits for, its first op waits for, and its nodes are alike, or its copies have the same
 * ends, and are a GPU's or of a network, or its collectives are of one kind, algorithm and type. That none of its ops
 * touches what another writes, or comes after another, is left to the walk, where none of them is ordered behind
 * another. */
#include "base/error.h"
#include "graph/alike.h"
#include "schedule/check/check.h"

static uint32_t memory_of(const gy_check *k, uint32_t index, uint32_t use)
{
    return k->s->instances.at[k->s->use.at[gy_check_op(k, index)->use + use].instance].memory;
}

static gantry_status check_ends(const gy_check *k, uint32_t first, uint32_t index)
{
    bool gpu = k->s->machine->device[gy_op_device(k->s, gy_check_op(k, first), 0)].gpu;
    bool message = gy_machine_route(k->s->machine, memory_of(k, first, 0), memory_of(k, first, 1))->network;
    bool same = memory_of(k, first, 0) == memory_of(k, index, 0) && memory_of(k, first, 1) == memory_of(k, index, 1);
    if ((gpu || message) && same)
        return GANTRY_OK;
    return gy_breach(
        k->err, "batch", "ops", index,
        "%s is in the batch of %s; copies of a batch are between the same two memories, and in a lane of a "
        "GPU or over a network",
        gy_label_op(k->s, index).at, gy_label_op(k->s, first).at);
}

static gantry_dtype dtype_of(const gy_check *k, const gy_op *op)
{
    const gy_instance *in = &k->s->instances.at[k->s->use.at[op->use].instance];
    return k->graph->buffers.at[k->graph->flow->value[in->value].buffer].dtype;
}

static gantry_status check_teams(const gy_check *k, uint32_t first, uint32_t index)
{
    const gy_op *a = gy_check_op(k, first), *b = gy_check_op(k, index);
    bool same = a->collective == b->collective && a->reduce == b->reduce && a->algorithm == b->algorithm;
    if (same && !a->repeat && !b->repeat && (!a->uses || !b->uses || dtype_of(k, a) == dtype_of(k, b)))
        return GANTRY_OK;
    return gy_breach(k->err, "batch", "ops", index,
                     "%s is in the batch of %s; collectives of a batch are of one kind, reduction, algorithm and "
                     "element type, and repeat nothing",
                     gy_label_op(k->s, index).at, gy_label_op(k->s, first).at);
}

static gantry_status check_alike(const gy_check *k, uint32_t first, uint32_t index)
{
    const gy_op *a = gy_check_op(k, first), *b = gy_check_op(k, index);
    if (!a->repeat && !b->repeat && gy_nodes_are_alike(k->graph, a->node, b->node))
        return GANTRY_OK;
    return gy_breach(
        k->err, "batch", "ops", index,
        "%s is in the batch of %s; a batch is of nodes that call one kernel with equal scalars, on rows of "
        "equal shapes, and repeats nothing",
        gy_label_op(k->s, index).at, gy_label_op(k->s, first).at);
}

static gantry_status check_row(const gy_check *k, size_t index)
{
    const gy_sync *row = &k->s->sync.at[index];
    if (!gy_check_op(k, row->to)->joined)
        return GANTRY_OK;
    return gy_breach(k->err, "batch", "sync", index,
                     "row %zu lets %s wait, which is inside of a batch; the first op of a batch waits for all of it",
                     index, gy_label_op(k->s, row->to).at);
}

static gantry_status check_member(const gy_check *k, uint32_t first, uint32_t index)
{
    const gy_op *op = gy_check_op(k, first);
    return gy_op_is_copy(op)              ? check_ends(k, first, index)
           : op->kind == GY_OP_COLLECTIVE ? check_teams(k, first, index)
                                          : check_alike(k, first, index);
}

gantry_status gy_check_batches(gy_check *k)
{
    for (uint32_t i = 0; i < k->s->ops.count; i++)
        for (uint32_t member = i + 1; member < i + gy_check_op(k, i)->batch; member++)
            GY_TRY(check_member(k, i, member));
    for (size_t i = 0; i < k->s->sync.count; i++)
        GY_TRY(check_row(k, i));
    return GANTRY_OK;
}
