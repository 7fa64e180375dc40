/* SPDX-License-Identifier: Apache-2.0 */
#include "support/hand.h"

#include <check.h>
#include <string.h>

gantry_schedule *hand_new(const char *machine_json)
{
    gantry_error err = { 0 };
    gantry_schedule *s = gy_schedule_alloc();
    ck_assert_ptr_nonnull(s);
    gantry_status status = gantry_machine_parse(&s->machine, machine_json, strlen(machine_json), "hand", &err);
    ck_assert_msg(status == GANTRY_OK, "%s: %s", err.where, err.text);
    s->graph_name = "hand";
    s->policy = "by hand";
    for (uint32_t i = 0; i < s->machine->memories; i++)
        ck_assert(gy_vec_push(&s->slab, UINT64_C(0)));
    return s;
}

uint32_t hand_lane(gantry_schedule *s, uint32_t device, gy_lane_kind kind)
{
    ck_assert(gy_vec_push(&s->lanes, ((gy_lane){ device, (uint8_t)kind, false })));
    return (uint32_t)s->lanes.count - 1;
}

uint32_t hand_value(gantry_schedule *s, const char *name, int64_t rows, int64_t row_bytes)
{
    gy_schedule_value value = { .name = gy_arena_strdup(&s->arena, name),
                                .buffer = (uint32_t)s->values.count,
                                .rows = rows,
                                .row_bytes = row_bytes };
    ck_assert_ptr_nonnull(value.name);
    ck_assert(gy_vec_push(&s->values, value));
    return (uint32_t)s->values.count - 1;
}

uint32_t hand_instance(gantry_schedule *s, uint32_t value, uint32_t memory, int64_t first, int64_t last)
{
    uint64_t bytes = (uint64_t)((last - first) * s->values.at[value].row_bytes);
    gy_instance instance = { .value = value,
                             .memory = memory,
                             .space = GY_SPACE_SLAB,
                             .role = GY_ROLE_DATA,
                             .first = first,
                             .last = last,
                             .offset = s->slab.at[memory],
                             .bytes = bytes };
    s->slab.at[memory] += (bytes + 255) / 256 * 256;
    ck_assert(gy_vec_push(&s->instances, instance));
    return (uint32_t)s->instances.count - 1;
}

static uint32_t push_op(gantry_schedule *s, gy_op op, uint32_t lanes, const uint32_t *lane)
{
    op.use = (uint32_t)s->use.count;
    op.lane = (uint32_t)s->op_lane.count;
    op.lanes = lanes;
    for (uint32_t i = 0; i < lanes; i++)
        ck_assert(gy_vec_push(&s->op_lane, lane[i]));
    ck_assert(gy_vec_push(&s->ops, op));
    return (uint32_t)s->ops.count - 1;
}

uint32_t hand_launch(gantry_schedule *s, const char *id, uint32_t lane, double us)
{
    const char *name = gy_arena_strdup(&s->arena, id);
    ck_assert(name && gy_vec_push(&s->node_ids, name));
    gy_op op = { .kind = GY_OP_LAUNCH, .node = (uint32_t)s->node_ids.count - 1, .duration = gy_ticks_from_us(us) };
    return push_op(s, op, 1, &lane);
}

void hand_use(gantry_schedule *s, uint32_t instance, gantry_access mode)
{
    const gy_instance *i = &s->instances.at[instance];
    ck_assert(gy_vec_push(&s->use, ((gy_use){ instance, (uint8_t)mode, 0, i->first, i->last })));
    s->ops.at[s->ops.count - 1].uses++;
}

uint32_t hand_copy(gantry_schedule *s, uint32_t lane, uint32_t from, uint32_t to)
{
    const gy_instance *i = &s->instances.at[to];
    const gy_route *route = gy_machine_route(s->machine, s->instances.at[from].memory, i->memory);
    gy_op op = { .kind = GY_OP_COPY, .node = GY_NONE, .duration = gy_route_time(s->machine, route, (int64_t)i->bytes) };
    uint32_t result = push_op(s, op, 1, &lane);
    ck_assert(gy_vec_push(&s->use, ((gy_use){ from, GANTRY_READ, 0, i->first, i->last })));
    ck_assert(gy_vec_push(&s->use, ((gy_use){ to, GANTRY_WRITE, 0, i->first, i->last })));
    s->ops.at[result].uses = 2;
    return result;
}

uint32_t hand_move(gantry_schedule *s, uint32_t lane, uint32_t from_memory, uint32_t to_memory, int64_t bytes)
{
    uint32_t value = hand_value(s, "x", bytes, 1);
    uint32_t from = hand_instance(s, value, from_memory, 0, bytes);
    return hand_copy(s, lane, from, hand_instance(s, value, to_memory, 0, bytes));
}

uint32_t hand_collective(gantry_schedule *s, gantry_collective kind, uint32_t lanes, const uint32_t *lane, double us)
{
    gy_op op = {
        .kind = GY_OP_COLLECTIVE, .collective = (uint8_t)kind, .node = GY_NONE, .duration = gy_ticks_from_us(us)
    };
    return push_op(s, op, lanes, lane);
}

void hand_sync(gantry_schedule *s, uint32_t from, uint32_t to, uint32_t distance, gy_carrier carrier, gy_reason reason)
{
    gy_sync row = { from, to, distance, (uint8_t)carrier, (uint8_t)reason, (uint32_t)s->sync.count };
    ck_assert(gy_vec_push(&s->sync, row));
}

void hand_wait(gantry_schedule *s, uint32_t from, uint32_t to)
{
    hand_sync(s, from, to, 0, GY_CARRIER_EVENT, GY_WHY_DATA);
}
