/* SPDX-License-Identifier: Apache-2.0 */
/* Rules place, route and capacity: does the machine have what the schedule uses, where it uses it? */
#include "base/error.h"
#include "graph/nest.h"
#include "schedule/check/check.h"
#include <stdio.h>
#include <string.h>

static const char *memory_id(const gantry_schedule *s, uint32_t memory)
{
    return s->machine->memory[memory].id;
}

static gantry_status check_memories(const gy_check *k, uint32_t index)
{
    const gy_op *op = gy_check_op(k, index);
    bool near = false; /* copies: one end is enough, but a flag is read where the device is */
    for (uint32_t i = 0; i < op->uses; i++) {
        const gy_use *u = &k->s->use.at[op->use + i];
        const gy_device *d = &k->s->machine->device[gy_op_device(k->s, op, u->rank)];
        uint32_t memory = gy_use_instance(k, u)->memory;
        near = near || memory == d->memory;
        if (memory != d->memory && (!gy_op_is_copy(op) || i > 1 || (i == 1 && !near))) {
            return gy_breach(k->err, "place", "ops", index,
                             "%s runs on device %s of memory %s; instance %u of its use %u is in "
                             "memory %s",
                             gy_label_op(k->s, index).at, d->id, memory_id(k->s, d->memory), u->instance, i,
                             memory_id(k->s, memory));
        }
    }
    return GANTRY_OK;
}

/* Refuses a device that there is no code for the node on. */
static gantry_status check_able(const gy_check *k, uint32_t index, const gy_device *d)
{
    const gy_op *op = gy_check_op(k, index);
    const gy_node *node = &k->graph->nodes.at[op->node];
    if (op->kind == GY_OP_HOST && d->gpu) {
        return gy_breach(k->err, "place", "ops", index, "%s is a host call and is on device %s, which is no CPU",
                         gy_label_op(k->s, index).at, d->id);
    }
    if (node->kernel == GY_NONE)
        return GANTRY_OK;
    const gantry_kernel *kernel = k->graph->kernels.at[node->kernel].manifest;
    uint32_t never = d->gpu ? GANTRY_KERNEL_NO_GPU : GANTRY_KERNEL_NO_CPU;
    if (kernel->flags & never) {
        return gy_breach(k->err, "place", "ops", index, "%s is on device %s; kernel \"%s\" has no version for a %s",
                         gy_label_op(k->s, index).at, d->id, kernel->name, d->gpu ? "GPU" : "CPU");
    }
    return GANTRY_OK;
}

static bool look_up_devices(void *context, const char *name, int64_t *integer, double *real, bool *is_real)
{
    const gantry_machine *m = context;
    *integer = gy_machine_workers(m);
    *real = (double)*integer;
    *is_real = false;
    return strcmp(name, "devices") == 0;
}

/* `on` is the id of a device, else a kind, else an expression that gives an index. */
static gantry_status check_on(const gy_check *k, uint32_t index, uint32_t device, const gy_rank_place *extra)
{
    const gantry_machine *m = k->s->machine;
    const gy_device *d = &m->device[device];
    int64_t wanted = extra->on ? gy_machine_find_device(m, extra->on) : GY_MACHINE_NONE;
    bool kind = false;
    for (uint32_t i = 0; extra->on && wanted == GY_MACHINE_NONE && i < m->devices; i++)
        kind = kind || strcmp(m->device[i].kind, extra->on) == 0;
    if (wanted == GY_MACHINE_NONE && !kind && extra->on_expr) {
        void *machine = (void *)(uintptr_t)m;
        gantry_status status =
            gy_expr_integer(extra->on_expr, look_up_devices, machine, &wanted, GANTRY_E_SCHEDULE, NULL, k->err);
        if (status)
            return status;
    }
    bool anywhere = !extra->on && !extra->on_expr;
    if (anywhere || wanted == device || (kind && strcmp(d->kind, extra->on) == 0))
        return GANTRY_OK;
    gy_label op = gy_label_op(k->s, index);
    if (extra->on) {
        return gy_breach(k->err, "place", "ops", index, "%s is on device %s of kind %s; the node says on \"%s\"", op.at,
                         d->id, d->kind, extra->on);
    }
    return gy_breach(k->err, "place", "ops", index, "%s is on device %u; the node says on device %lld", op.at, device,
                     (long long)wanted);
}

/* A list of places: one for each rank of a collective. */
static gantry_status check_on_ranks(const gy_check *k, uint32_t index)
{
    const gy_op *op = gy_check_op(k, index);
    const gy_node_extra *extra = gy_node_extra_of(k->graph, op->node);
    for (uint32_t i = 0; i < op->lanes && i < extra->rank_on.count; i++)
        GY_TRY(check_on(k, index, gy_op_device(k->s, op, i), &extra->rank_on.at[i]));
    return GANTRY_OK;
}

/* `with` and `apart` join equal iterations of one loop, else all iterations of both. */
static gantry_status check_partner(const gy_check *k, uint32_t index, uint32_t partner, bool with)
{
    const gy_op *op = gy_check_op(k, index);
    const gy_node *nodes = k->graph->nodes.at;
    int64_t first = 0, last = gy_iterations(k, partner);
    if (nodes[partner].loop != GY_NONE && nodes[partner].loop == nodes[op->node].loop)
        gy_node_partners(k->graph, &nodes[op->node], &nodes[partner], op->iteration, &first, &last);
    for (int64_t it = first; it < last; it++) {
        uint32_t other = k->task_op[k->task[k->task_first[partner] + (size_t)it]];
        const gy_op *partners = gy_check_op(k, other);
        uint32_t mine = gy_op_device(k->s, op, 0), theirs = gy_op_device(k->s, partners, 0);
        if ((mine == theirs) != with && other != index && partners->lanes == 1) {
            return gy_breach(k->err, "place", "ops", index, "%s is on device %s, %s on %s; the graph wants them %s",
                             gy_label_op(k->s, index).at, k->s->machine->device[mine].id, gy_label_op(k->s, other).at,
                             k->s->machine->device[theirs].id, with ? "together" : "apart");
        }
    }
    return GANTRY_OK;
}

static gantry_status check_partners(const gy_check *k, uint32_t index)
{
    const gy_node_extra *extra = gy_node_extra_of(k->graph, gy_check_op(k, index)->node);
    for (size_t i = 0; i < extra->with.count; i++)
        GY_TRY(check_partner(k, index, extra->with.at[i], true));
    for (size_t i = 0; i < extra->apart.count; i++)
        GY_TRY(check_partner(k, index, extra->apart.at[i], false));
    return GANTRY_OK;
}

/* Devices of other kinds may round otherwise, so what they leave is not the same. */
static gantry_status check_repeat(const gy_check *k, uint32_t index)
{
    const gy_op *op = gy_check_op(k, index);
    uint32_t own = k->task_op[gy_task_of(k, op)];
    const gy_device *here = &k->s->machine->device[gy_op_device(k->s, op, 0)];
    const gy_device *there = &k->s->machine->device[gy_op_device(k->s, gy_check_op(k, own), 0)];
    if (!op->repeat || strcmp(here->kind, there->kind) == 0)
        return GANTRY_OK;
    return gy_breach(
        k->err, "place", "ops", index,
        "%s is on device %s of kind %s and repeats %s on %s of kind %s; a task is repeated on devices of one "
        "kind only",
        gy_label_op(k->s, index).at, here->id, here->kind, gy_label_op(k->s, own).at, there->id, there->kind);
}

static gantry_status check_place(const gy_check *k, uint32_t index)
{
    const gy_op *op = gy_check_op(k, index);
    gantry_status status = check_memories(k, index);
    /* A collective of several ranks has no one place: its instances say where each rank is, and `on` may. */
    if (!status && op->node != GY_NONE && op->lanes == 1) {
        uint32_t device = gy_op_device(k->s, op, 0);
        status = check_able(k, index, &k->s->machine->device[device]);
        const gy_node_extra *extra = gy_node_extra_of(k->graph, op->node);
        if (!status)
            status = check_on(k, index, device, &(gy_rank_place){ extra->on, extra->on_expr });
        if (!status)
            status = check_partners(k, index);
        if (!status)
            status = check_repeat(k, index);
    }
    return status || op->node == GY_NONE ? status : check_on_ranks(k, index);
}

static gantry_status check_route(const gy_check *k, uint32_t index)
{
    const gy_op *op = gy_check_op(k, index);
    if (!gy_op_is_copy(op))
        return GANTRY_OK;
    uint32_t from = gy_use_instance(k, &k->s->use.at[op->use])->memory,
             to = gy_use_instance(k, &k->s->use.at[op->use + 1])->memory;
    if (gy_machine_route(k->s->machine, from, to)->kind == GY_ROUTE_DIRECT)
        return GANTRY_OK;
    return gy_breach(k->err, "route", "ops", index,
                     "%s goes from memory %s to memory %s, which have no direct route; go through "
                     "another memory",
                     gy_label_op(k->s, index).at, memory_id(k->s, from), memory_id(k->s, to));
}

static gantry_status check_capacity(const gy_check *k, uint32_t memory)
{
    const gy_memory *m = &k->s->machine->memory[memory];
    uint64_t used = gantry_schedule_peak_bytes(k->s, memory),
             room = m->capacity > m->reserved ? m->capacity - m->reserved : 0;
    if (used <= room)
        return GANTRY_OK;
    return gy_breach(k->err, "capacity", "slabs", memory,
                     "memory %s needs %llu bytes and has %llu (%llu less %llu reserved)", m->id,
                     (unsigned long long)used, (unsigned long long)room, (unsigned long long)m->capacity,
                     (unsigned long long)m->reserved);
}

/* In the part that all starts share, or in the window of the first start: not across the border, nor beyond. */
static gantry_status check_window(const gy_check *k, size_t index)
{
    const gy_instance *in = &k->s->instances.at[index];
    uint64_t window = gy_instance_window(k->s, in);
    uint64_t border = gy_instance_room(k->s, in) - window * k->s->in_flight, end = in->offset + in->bytes;
    bool moves = in->offset >= border, persists = in->role == GY_ROLE_PERSIST;
    if (!window || !in->bytes || (moves ? !persists && end <= border + window : end <= border))
        return GANTRY_OK;
    gy_label rows = gy_label_rows(k->s, in->value, in->first, in->last);
    if (moves && persists) {
        return gy_breach(
            k->err, "capacity", "instances", index,
            "instance %zu (%s) persists at byte %llu of memory %s, where the windows of %u starts begin at "
            "%llu; what persists has one address",
            index, rows.at, (unsigned long long)in->offset, memory_id(k->s, in->memory), k->s->in_flight,
            (unsigned long long)border);
    }
    return gy_breach(
        k->err, "capacity", "instances", index,
        "instance %zu (%s) is at bytes %llu to %llu of memory %s, where the window of the first of %u starts "
        "is %llu to %llu",
        index, rows.at, (unsigned long long)in->offset, (unsigned long long)end, memory_id(k->s, in->memory),
        k->s->in_flight, (unsigned long long)border, (unsigned long long)(border + window));
}

static gantry_status check_extent(const gy_check *k, size_t index)
{
    const gy_instance *in = &k->s->instances.at[index];
    bool slab = in->space == GY_SPACE_SLAB;
    uint64_t room = gy_instance_room(k->s, in);
    if (!slab && in->space != GY_SPACE_STAGING)
        return GANTRY_OK;
    if (in->offset <= room && in->bytes <= room - in->offset)
        return check_window(k, index);
    return gy_breach(k->err, "capacity", "instances", index,
                     "instance %zu (%s) is at bytes %llu to %llu of the %s of memory %s, "
                     "which has %llu",
                     index, gy_label_rows(k->s, in->value, in->first, in->last).at, (unsigned long long)in->offset,
                     (unsigned long long)(in->offset + in->bytes), gy_word(&gy_space_words, in->space),
                     memory_id(k->s, in->memory), (unsigned long long)room);
}

gantry_status gy_check_places(gy_check *k)
{
    for (uint32_t i = 0; i < k->s->ops.count; i++)
        GY_TRY(check_place(k, i));
    for (uint32_t i = 0; i < k->s->ops.count; i++)
        GY_TRY(check_route(k, i));
    for (size_t i = 0; i < k->s->instances.count; i++)
        GY_TRY(check_extent(k, i));
    for (uint32_t i = 0; i < k->s->machine->memories; i++)
        GY_TRY(check_capacity(k, i));
    return GANTRY_OK;
}
