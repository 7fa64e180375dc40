/* SPDX-License-Identifier: Apache-2.0 */
#include "build.h"

gantry_schedule *build_schedule(gantry_graph *graph, int devices)
{
    gantry_schedule *s = gy_schedule_alloc();
    ck_assert_ptr_nonnull(s);
    MUST(gantry_graph_check(graph, MUST_ERR));
    MUST(gantry_machine_virtual(&s->machine, devices, MUST_ERR));
    s->graph = gy_graph_ref(graph);
    s->graph_name = "hand";
    s->policy = "by hand";
    for (uint32_t v = 0; v < graph->flow->values; v++)
        ck_assert(gy_vec_push(&s->values, gy_schedule_value_of(graph, graph->flow, v)));
    for (uint32_t m = 0; m < s->machine->memories; m++)
        ck_assert(gy_vec_push(&s->slab, UINT64_C(0)));
    for (uint32_t n = 0; n < graph->nodes.count; n++)
        ck_assert(gy_vec_push(&s->node_ids, graph->nodes.at[n].id));
    for (int d = 0; d < devices; d++)
        build_lane(s, (uint32_t)d, GY_LANE_COMPUTE);
    return s;
}

uint32_t build_lane(gantry_schedule *s, uint32_t device, gy_lane_kind kind)
{
    ck_assert(gy_vec_push(&s->lanes, ((gy_lane){ device, (uint8_t)kind, false })));
    return (uint32_t)s->lanes.count - 1;
}

static uint64_t span(const gantry_schedule *s, uint32_t value, int64_t first, int64_t last)
{
    return (uint64_t)gy_buffer_span(&s->graph->buffers.at[s->values.at[value].buffer], first, last);
}

static uint32_t push_instance(gantry_schedule *s, gy_instance i)
{
    ck_assert(gy_vec_push(&s->instances, i));
    return (uint32_t)s->instances.count - 1;
}

uint32_t build_instance(gantry_schedule *s, uint32_t value, uint32_t memory, int64_t first, int64_t last)
{
    gy_instance i = { .value = value, .memory = memory, .space = GY_SPACE_SLAB, .first = first, .last = last };
    i.offset = s->slab.at[memory];
    i.bytes = span(s, value, first, last);
    s->slab.at[memory] += (i.bytes + 255) / 256 * 256;
    return push_instance(s, i);
}

static uint32_t external(gantry_schedule *s, uint32_t buffer, gy_space space)
{
    int64_t rows = s->graph->buffers.at[buffer].rows;
    gy_instance i = { .value = buffer, .space = (uint8_t)space, .role = GY_ROLE_EXTERNAL, .last = rows };
    i.bytes = span(s, buffer, 0, rows);
    return push_instance(s, i);
}

uint32_t build_input(gantry_schedule *s, uint32_t buffer)
{
    return external(s, buffer, GY_SPACE_INPUT);
}
uint32_t build_output(gantry_schedule *s, uint32_t buffer)
{
    return external(s, buffer, GY_SPACE_OUTPUT);
}

uint32_t build_persist(gantry_schedule *s, uint32_t buffer, uint32_t memory)
{
    uint32_t i = build_instance(s, buffer, memory, 0, s->graph->buffers.at[buffer].rows);
    s->instances.at[i].role = GY_ROLE_PERSIST;
    return i;
}

uint32_t build_accumulator(gantry_schedule *s, uint32_t buffer, uint32_t memory, gantry_access op)
{
    uint32_t i = build_instance(s, buffer, memory, 0, s->graph->buffers.at[buffer].rows);
    s->instances.at[i].role = GY_ROLE_ACCUMULATOR;
    s->instances.at[i].op = (uint8_t)op;
    return i;
}

static uint32_t push_op(gantry_schedule *s, gy_op op, uint32_t lane, uint32_t lanes)
{
    op.use = (uint32_t)s->use.count;
    op.lane = (uint32_t)s->op_lane.count;
    op.lanes = lanes;
    for (uint32_t i = 0; i < lanes; i++)
        ck_assert(gy_vec_push(&s->op_lane, lane + i));
    ck_assert(gy_vec_push(&s->ops, op));
    return (uint32_t)s->ops.count - 1;
}

uint32_t build_op(gantry_schedule *s, gy_op_kind kind, uint32_t node, uint32_t lane)
{
    return push_op(s, (gy_op){ .kind = (uint8_t)kind, .node = node }, lane, 1);
}

void build_use(gantry_schedule *s, uint32_t instance, gantry_access mode, int64_t first, int64_t last)
{
    gy_op *op = gy_vec_last(&s->ops);
    ck_assert(gy_vec_push(&s->use, ((gy_use){ instance, (uint8_t)mode, 0, first, last })));
    op->uses++;
    op->ins += op->kind == GY_OP_COLLECTIVE && mode == GANTRY_READ;
}

void build_use_all(gantry_schedule *s, uint32_t instance, gantry_access mode)
{
    build_use(s, instance, mode, s->instances.at[instance].first, s->instances.at[instance].last);
}

uint32_t build_copy(gantry_schedule *s, uint32_t lane, uint32_t from, uint32_t to)
{
    uint32_t op = build_op(s, GY_OP_COPY, GY_NONE, lane);
    const gy_instance *i = &s->instances.at[to];
    build_use(s, from, GANTRY_READ, i->first, i->last);
    build_use(s, to, GANTRY_WRITE, s->instances.at[to].first, s->instances.at[to].last);
    return op;
}

uint32_t build_collective(gantry_schedule *s, gantry_collective kind, gantry_access reduce, uint32_t node,
                          uint32_t lanes)
{
    gy_op op = { .kind = GY_OP_COLLECTIVE, .collective = (uint8_t)kind, .reduce = (uint8_t)reduce, .node = node };
    return push_op(s, op, 0, lanes);
}

void build_event(gantry_schedule *s, uint32_t from, uint32_t to, uint32_t distance)
{
    gy_sync row = { from, to, distance, GY_CARRIER_EVENT, GY_WHY_DATA, (uint32_t)s->sync.count };
    ck_assert(gy_vec_push(&s->sync, row));
}

gantry_status run_once(gantry_run *run, gantry_error *err)
{
    uint64_t ticket;
    gantry_status status = gantry_run_start(run, &ticket, err);
    return status ? status : gantry_run_wait(run, ticket, err);
}
