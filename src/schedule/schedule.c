/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a schedule, and what is read off it directly. */
#include "schedule/schedule.h"

#include "base/error.h"
#include <string.h>

gantry_schedule *gy_schedule_alloc(void)
{
    gantry_schedule *s = gy_calloc(1, sizeof *s);
    if (s) {
        s->refs = 1;
        s->unroll = 1;
        s->in_flight = 1;
        s->without = -1;
        s->graph_name = s->policy = "";
    }
    return s;
}

uint32_t gy_buffer_home(const gantry_machine *machine, const gy_buffer *buffer)
{
    if (!buffer->external)
        return 0;
    uint32_t memory = gy_machine_find_memory(machine, buffer->external);
    uint32_t device = memory == GY_MACHINE_NONE ? gy_machine_find_device(machine, buffer->external) : 0;
    if (memory != GY_MACHINE_NONE)
        return memory;
    return device == GY_MACHINE_NONE ? GY_NONE : machine->device[device].memory;
}

bool gy_buffer_is_at(const gantry_machine *machine, const gy_buffer *buffer, uint32_t memory)
{
    bool found = memory == gy_buffer_home(machine, buffer);
    for (uint32_t i = 0; i < machine->memories && !buffer->external; i++)
        found = found || machine->memory[i].arrays == memory;
    return found;
}

gy_schedule_value gy_schedule_value_of(const gantry_graph *graph, const gy_flow *flow, uint32_t value)
{
    const gy_buffer *b = gy_value_buffer(graph, flow, value);
    gy_schedule_value v = { .name = b->name,
                            .buffer = flow->value[value].buffer,
                            .generation = flow->value[value].generation,
                            .rows = b->rows,
                            .row_bytes = b->row_bytes,
                            .offset = b->tile_offset,
                            .axes = b->tiles[0] ? b->rank : 0 };
    memcpy(v.tiles, b->tiles, sizeof v.tiles);
    return v;
}

/* A schedule is never changed once it is made, and may be shared between threads: only its owners are counted. */
gantry_schedule *gy_schedule_ref(const gantry_schedule *schedule)
{
    gantry_schedule *s = (gantry_schedule *)(uintptr_t)schedule;
    if (s)
        __atomic_add_fetch(&s->refs, 1, __ATOMIC_RELAXED);
    return s;
}

static void free_arrays(gantry_schedule *s)
{
    gy_vec_free(&s->params);
    gy_vec_free(&s->bounds);
    gy_vec_free(&s->values);
    gy_vec_free(&s->instances);
    gy_vec_free(&s->lanes);
    gy_vec_free(&s->ops);
    gy_vec_free(&s->use);
    gy_vec_free(&s->op_lane);
    gy_vec_free(&s->sync);
    gy_vec_free(&s->counters.at);
    gy_vec_free(&s->counters.signal);
    gy_vec_free(&s->counters.wait);
    gy_vec_free(&s->node_ids);
    gy_vec_free(&s->node_op);
    gy_vec_free(&s->slab);
    gy_vec_free(&s->window);
    gy_vec_free(&s->tried);
    gy_vec_free(&s->load);
    for (size_t i = 0; i < s->phases.count; i++)
        gantry_schedule_free(s->phases.at[i].schedule);
    gy_vec_free(&s->phases);
}

void gantry_schedule_free(gantry_schedule *s)
{
    if (!s || __atomic_sub_fetch(&s->refs, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    free_arrays(s);
    gantry_graph_free(s->graph);
    gantry_machine_free(s->machine);
    gy_arena_free(&s->arena);
    gy_free(s);
}

uint64_t gy_instance_offset(const gantry_schedule *s, const gy_instance *instance, int64_t row)
{
    const gy_schedule_value *v = &s->values.at[instance->value];
    if (v->offset)
        return (uint64_t)(v->offset[row] - v->offset[instance->first]);
    return (uint64_t)(row - instance->first) * (uint64_t)v->row_bytes;
}

uint64_t gy_instance_window(const gantry_schedule *s, const gy_instance *in)
{
    if (in->space == GY_SPACE_STAGING)
        return s->staging_window;
    return in->space == GY_SPACE_SLAB && s->window.count ? s->window.at[in->memory] : 0;
}

uint64_t gy_instance_room(const gantry_schedule *s, const gy_instance *in)
{
    if (in->space == GY_SPACE_STAGING)
        return s->staging;
    return in->space == GY_SPACE_SLAB ? s->slab.at[in->memory] : 0;
}

uint64_t gy_instance_address(const gantry_schedule *s, const gy_instance *in, uint64_t start)
{
    uint64_t window = s->in_flight > 1 ? gy_instance_window(s, in) : 0;
    bool moves = window && in->offset >= gy_instance_room(s, in) - window * s->in_flight;
    return moves ? in->offset + start % s->in_flight * window : in->offset;
}

gantry_status gy_schedule_index(gantry_schedule *s, gantry_error *err)
{
    size_t nodes = s->node_ids.count;
    s->node_op.count = 0;
    if (!gy_vec_add(&s->node_op, nodes))
        return gy_fail_nomem(err);
    for (size_t i = 0; i < nodes; i++)
        s->node_op.at[i] = GY_NONE;
    for (size_t i = 0; i < s->ops.count; i++) {
        const gy_op *op = &s->ops.at[i];
        if (op->node < nodes && op->iteration == 0 && s->node_op.at[op->node] == GY_NONE)
            s->node_op.at[op->node] = (uint32_t)i;
    }
    return GANTRY_OK;
}

static const gy_op *op_of_node(const gantry_schedule *s, uint32_t node)
{
    if (s->node_op.count > node)
        return s->node_op.at[node] == GY_NONE ? NULL : &s->ops.at[s->node_op.at[node]];
    for (size_t i = 0; i < s->ops.count; i++)
        if (s->ops.at[i].node == node && s->ops.at[i].iteration == 0)
            return &s->ops.at[i];
    return NULL;
}

int gantry_schedule_device_of(const gantry_schedule *s, gantry_node node)
{
    bool ours = s && (!s->graph || gy_graph_gave(s->graph, node.graph));
    s = ours ? gy_schedule_of_node(s, node.id) : NULL;
    const gy_op *op = s && node.id != GY_NONE ? op_of_node(s, node.id) : NULL;
    return op ? (int)gy_op_device(s, op, 0) : -1;
}

uint64_t gantry_schedule_peak_bytes(const gantry_schedule *s, size_t memory)
{
    if (!s || memory >= s->slab.count)
        return 0;
    return s->slab.at[memory] + (memory == 0 ? s->staging : 0);
}

const gantry_machine *gantry_schedule_machine(const gantry_schedule *s)
{
    return s ? s->machine : NULL;
}

const char *gantry_schedule_policy(const gantry_schedule *s)
{
    return s ? s->policy : NULL;
}

bool gy_op_by_engine(const gantry_schedule *s, uint32_t op)
{
    const gy_op *o = &s->ops.at[op];
    if (s->lanes.at[s->op_lane.at[o->lane]].kind != GY_LANE_COPY || o->uses < 2)
        return false;
    const gy_use *from = &s->use.at[o->use], *to = &s->use.at[o->use + 1];
    const gy_route *r =
        gy_machine_route(s->machine, s->instances.at[from->instance].memory, s->instances.at[to->instance].memory);
    return gy_use_bytes(s, from) > (uint64_t)r->kernel_bytes;
}
