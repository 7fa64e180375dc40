/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule/stretches/stretches.h"

#include "base/error.h"
#include "base/memory.h"
#include "kernel/registry.h"
#include <string.h>

bool gy_stretches_known(const gantry_schedule *s)
{
    return !s->machine->workers && gy_machine_knows_workers(s->machine);
}

static const gy_device *device_of(const gantry_schedule *s, uint32_t op)
{
    return &s->machine->device[gy_op_device(s, &s->ops.at[op], 0)];
}

/* The duration of a launched op beside workers. */
static gy_ticks beside(const gy_device *d, gy_ticks duration)
{
    gy_ticks more = gy_ticks_repeated(duration, d->workers.beside);
    return more < GY_TICKS_MAX ? more / GY_ALONE : more;
}

/* Of an op without what a launch takes to ask the flag of its node: workers ask in passing. */
static gy_ticks unasked(const gantry_schedule *s, const gy_op *op)
{
    bool asks = s->graph && gy_op_is_conditional(s, op);
    gy_ticks when = asks ? gy_device_when(s->machine, gy_op_device(s, op, 0), true) : 0;
    return op->duration > when ? op->duration - when : 0;
}

static gy_ticks by_workers(const gantry_schedule *s, const gy_op *op, const gy_device *d)
{
    const gy_node *n = op->kind == GY_OP_LAUNCH && s->graph ? &s->graph->nodes.at[op->node] : NULL;
    gy_ticks launched = unasked(s, op);
    if (!n || !gy_node_is_formula(s->graph, n))
        return gy_worker_time(d, launched);
    return gy_worker_formula_time(d, gy_node_dtype(s->graph, n), gy_formula_work(s->graph, n), launched);
}

gy_stretch_costs gy_stretch_costs_of(const gantry_schedule *s, uint32_t id)
{
    const gy_op *op = &s->ops.at[id];
    const gy_device *d = device_of(s, id);
    bool computes = d->gpu && !gy_op_is_copy(op);
    gy_ticks each = op->joined ? 0 : s->machine->submit;
    gy_ticks launched = computes ? beside(d, op->duration) : op->duration;
    return (gy_stretch_costs){ by_workers(s, op, d), launched > each ? launched : each };
}

gy_ticks gy_stretch_switch(const gantry_schedule *s, uint32_t op)
{
    return device_of(s, op)->workers.change;
}

static bool may_copy(const gantry_schedule *s, const gy_op *op)
{
    bool host = false, small = true;
    for (uint32_t k = 0; k < op->uses; k++) {
        const gy_use *use = &s->use.at[op->use + k];
        host = host || s->machine->memory[s->instances.at[use->instance].memory].host;
        small = small && gy_use_bytes(s, use) <= GY_STRETCH_HOST_BYTES;
    }
    return !host || small;
}

bool gy_stretch_cuts(const gantry_schedule *s, uint32_t op)
{
    return s->ops.at[op].kind == GY_OP_COLLECTIVE && s->ops.at[op].algorithm == GY_ALGORITHM_NCCL;
}

bool gy_stretch_may(const gantry_schedule *s, uint32_t id)
{
    const gy_op *op = &s->ops.at[id];
    bool gpu = true;
    for (uint32_t k = 0; k < op->lanes; k++)
        gpu = gpu && s->machine->device[gy_op_device(s, op, k)].gpu;
    if (!gpu || op->kind == GY_OP_HOST)
        return false;
    if (gy_op_is_copy(op))
        return may_copy(s, op);
    if (op->kind != GY_OP_LAUNCH || !s->graph)
        return op->kind != GY_OP_LAUNCH && !gy_stretch_cuts(s, id);
    uint32_t kernel = s->graph->nodes.at[op->node].kernel;
    return kernel != GY_NONE && gy_kernel_for_workers(&s->graph->kernels.at[kernel]);
}

/* ---- the cut: side 1 is launched ---- */

static bool add_edge(gy_cut_edges *edges, const gantry_schedule *s, uint32_t a, uint32_t b)
{
    gy_ticks x = gy_stretch_switch(s, a), y = gy_stretch_switch(s, b);
    return gy_vec_push(edges, ((gy_cut_edge){ a, b, x > y ? x : y, false }));
}

/* Ops that follow each other in a lane, once for each lane. */
static bool add_lanes(gy_cut_edges *edges, const gantry_schedule *s)
{
    uint32_t *last = gy_calloc(s->lanes.count + 1, sizeof *last);
    bool done = last != NULL;
    for (size_t i = 0; i < s->lanes.count && done; i++)
        last[i] = GY_NONE;
    for (uint32_t i = 0; i < s->ops.count && done; i++) {
        const gy_op *op = &s->ops.at[i];
        for (uint32_t k = 0; k < op->lanes && done; k++) {
            uint32_t *before = &last[s->op_lane.at[op->lane + k]];
            done = *before == GY_NONE || add_edge(edges, s, *before, i);
            *before = i;
        }
    }
    gy_free(last);
    return done;
}

static bool add_rows(gy_cut_edges *edges, const gantry_schedule *s)
{
    bool done = true;
    for (size_t i = 0; i < s->sync.count && done; i++) {
        const gy_sync *row = &s->sync.at[i];
        done = row->distance > 0 || row->carrier == GY_CARRIER_LANE || add_edge(edges, s, row->from, row->to);
    }
    return done;
}

/* Nodes behind those of the ops, one for each device and each segment but the first. False: out of memory. */
static bool add_segments(gy_cut_edges *edges, const gantry_schedule *s, const uint8_t *cut, int64_t *costs,
                         uint32_t *nodes)
{
    uint32_t *of = gy_calloc(s->machine->devices + (size_t)1, sizeof *of); /* 0: none yet */
    bool done = of != NULL, first = true;
    for (uint32_t i = 0; i < s->ops.count && done; i++) {
        if (cut ? cut[i] : gy_stretch_cuts(s, i)) {
            memset(of, 0, s->machine->devices * sizeof *of);
            first = false;
        }
        for (uint32_t k = 0; k < s->ops.at[i].lanes && !first && done; k++) {
            uint32_t *node = &of[gy_op_device(s, &s->ops.at[i], k)];
            if (!*node) {
                costs[*nodes] = -gy_ticks_from_us(GY_STRETCH_CUT_US);
                *node = (*nodes)++;
            }
            done = gy_vec_push(edges, ((gy_cut_edge){ *node, i, GY_TICKS_MAX, true }));
        }
    }
    gy_free(of);
    return done;
}

bool gy_stretches_work(const gantry_schedule *s, const uint8_t *ops)
{
    bool any = false;
    for (size_t i = 0; i < s->ops.count && !any; i++)
        any = ops[i] && !gy_op_is_copy(&s->ops.at[i]);
    return any;
}

gantry_status gy_stretches_choose(const gantry_schedule *s, const uint8_t *can, const uint8_t *cut, uint8_t *has,
                                  gantry_error *err)
{
    uint32_t ops = (uint32_t)s->ops.count;
    uint32_t nodes = ops;
    size_t most = ops + s->op_lane.count + 1;
    gy_cut_edges edges = { 0 };
    int64_t *costs = gy_calloc(most, sizeof *costs);
    uint8_t *side = gy_calloc(most, 1);
    bool done =
        costs && side && add_lanes(&edges, s) && add_rows(&edges, s) && add_segments(&edges, s, cut, costs, &nodes);
    for (uint32_t i = 0; i < ops && done; i++) {
        gy_stretch_costs c = gy_stretch_costs_of(s, i);
        costs[i] = can[i] ? c.launched - c.workers : -GY_TICKS_MAX;
    }
    done = done && gy_cut_least(nodes, costs, &edges, side);
    for (uint32_t i = 0; i < ops && done; i++)
        has[i] = !side[i];
    gy_vec_free(&edges);
    gy_free(costs);
    gy_free(side);
    return done ? GANTRY_OK : gy_fail_nomem(err);
}
