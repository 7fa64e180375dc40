/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/host/ops.h"

#include "base/error.h"
#include "base/memory.h"
#include "graph/nest.h"
#include "kernel/word.h"
#include "run/fill.h"
#include "run/number.h"
#include "run/reduce.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const gy_buffer *buffer_of(const gy_job *job, const gy_instance *instance)
{
    return &job->graph->buffers.at[job->schedule->values.at[instance->value].buffer];
}

static char *use_at(const gy_host_ops *ops, const gy_use *use, uint32_t turn)
{
    const gantry_schedule *s = ops->job->schedule;
    const gy_instance *instance = &s->instances.at[use->instance];
    char *base = gy_host_instance_at(ops->memory, ops->job, instance, turn);
    return base ? base + gy_instance_offset(s, instance, use->first) : NULL;
}

void gy_host_ops_point(gy_host_ops *ops, uint32_t use, void *at)
{
    ops->at[use] = at;
    if (ops->arg[use])
        ops->arg[use]->data = at;
}

void gy_host_ops_turn(gy_host_ops *ops, uint32_t id, uint64_t start)
{
    const gantry_schedule *s = ops->job->schedule;
    const gy_op *op = &s->ops.at[id];
    uint32_t turn = gy_job_turn(ops->job, start);
    for (uint32_t use = op->use; ops->job->turns > 1 && use < op->use + op->uses; use++)
        gy_host_ops_point(ops, use, use_at(ops, &s->use.at[use], turn));
}

void gy_host_ops_rebind(gy_host_ops *ops)
{
    const gantry_schedule *s = ops->job->schedule;
    for (size_t i = 0; i < ops->external.count; i++) {
        uint32_t use = ops->external.at[i];
        gy_host_ops_point(ops, use, use_at(ops, &s->use.at[use], 0));
    }
    for (size_t i = 0; i < ops->dynamic.count; i++)
        gy_launch_set_scalar(ops->dynamic.at[i].arg, ops->job->scalar[ops->dynamic.at[i].scalar]);
}

gantry_status gy_host_ops_advance(gy_host_ops *ops, int64_t first, gantry_error *err)
{
    const gantry_schedule *s = ops->job->schedule;
    gantry_status status = GANTRY_OK;
    for (size_t i = 0; i < s->ops.count && !status; i++) {
        gy_call *call = ops->call[i];
        if (!call || ops->job->graph->nodes.at[s->ops.at[i].node].loop == GY_NONE)
            continue;
        const gantry_graph *g = ops->job->graph;
        call->launch.iteration = first * gy_node_turns(g, &g->nodes.at[s->ops.at[i].node]) + s->ops.at[i].iteration;
        status = gy_launch_iterate(ops->job->graph, s->ops.at[i].node, &call->launch, err);
    }
    return status;
}

/* One handle per kernel and device. */
static gantry_status open_kernel(gy_host_ops *ops, const gy_node *node, uint32_t device, void **handle,
                                 gantry_error *err)
{
    const gantry_graph *g = ops->job->graph;
    const gantry_kernel *manifest = node->kernel == GY_NONE ? NULL : g->kernels.at[node->kernel].manifest;
    *handle = NULL;
    if (!manifest || !manifest->open)
        return GANTRY_OK;
    void **slot = &ops->handle[node->kernel * ops->job->schedule->machine->devices + device];
    if (!*slot) {
        gantry_status status = manifest->open(slot, -1);
        if (status) {
            *slot = NULL;
            return gy_graph_fail(g, node->origin, err, GANTRY_E_DEVICE,
                                 "kernel \"%s\" of node \"%s\" could not be opened on device \"%s\": %s",
                                 manifest->name, node->id, ops->job->schedule->machine->device[device].id,
                                 gantry_status_text(status));
        }
    }
    *handle = *slot;
    return GANTRY_OK;
}

static bool note_dynamic(gy_host_ops *ops, const gy_node *node, gantry_arg *args)
{
    for (uint32_t i = node->scalar; i < node->scalar + node->scalars; i++) {
        const gy_scalar *scalar = &ops->job->graph->scalar.at[i];
        gy_dynamic entry = { .arg = &args[scalar->arg], .scalar = i };
        if (scalar->dynamic && !gy_vec_push(&ops->dynamic, entry))
            return false;
    }
    return true;
}

static gantry_status make_call(gy_host_ops *ops, uint32_t id, gantry_error *err)
{
    const gantry_schedule *s = ops->job->schedule;
    const gantry_graph *g = ops->job->graph;
    const gy_op *op = &s->ops.at[id];
    const gy_node *node = &g->nodes.at[op->node];
    uint32_t device = gy_op_device(s, op, 0);
    gy_call *call = gy_arena_calloc(&ops->arena, 1, sizeof *call);
    gantry_arg *args = gy_arena_calloc(&ops->arena, gy_launch_args(g, op->node) + 1, sizeof *args);
    if (!call || !args)
        return gy_fail_nomem(err);
    gantry_launch *l = &call->launch;
    gantry_status status = gy_launch_describe(g, op->node, op->iteration, l, args, err);
    if (status || (status = open_kernel(ops, node, device, &l->handle, err)))
        return status;
    call->function = ops->job->function[op->node].call;
    l->struct_size = sizeof *l;
    l->user = ops->job->function[op->node].user;
    l->node = node->id;
    l->iteration = op->iteration;
    l->device = (int32_t)device;
    l->device_ordinal = -1;
    l->stream = NULL;
    l->status = &ops->status_word[device];
    gy_job_lend_threads(ops->job, l, device);
    l->scratch_bytes = (uint64_t)node->scratch;
    l->scratch = node->scratch ? ops->scratch[device] : NULL;
    for (uint32_t k = 0; k < op->uses; k++)
        ops->arg[op->use + k] = gy_launch_arg_of(g, op->node, args, k);
    ops->call[id] = call;
    return note_dynamic(ops, node, args) ? GANTRY_OK : gy_fail_nomem(err);
}

/* One block per device serves all its ops: they run one after the other. */
static gantry_status make_scratch(gy_host_ops *ops, gantry_error *err)
{
    const gantry_schedule *s = ops->job->schedule;
    for (size_t i = 0; i < s->ops.count; i++) {
        const gy_op *op = &s->ops.at[i];
        int64_t want = gy_op_calls(op) ? ops->job->graph->nodes.at[op->node].scratch : 0;
        uintptr_t *most = (uintptr_t *)&ops->scratch[gy_op_device(s, op, 0)]; /* sizes first, addresses after */
        *most = want > 0 && (uintptr_t)want > *most ? (uintptr_t)want : *most;
    }
    for (uint32_t d = 0; d < s->machine->devices; d++) {
        size_t bytes = (size_t)(uintptr_t)ops->scratch[d];
        char *block = bytes ? gy_arena_alloc(&ops->arena, bytes + GY_HOST_ALIGN) : NULL;
        if (bytes && !block)
            return gy_fail_nomem(err);
        ops->scratch[d] = block ? block + (GY_HOST_ALIGN - (uintptr_t)block % GY_HOST_ALIGN) % GY_HOST_ALIGN : NULL;
    }
    return GANTRY_OK;
}

static gantry_status make_op(gy_host_ops *ops, uint32_t id, gantry_error *err)
{
    const gy_op *op = &ops->job->schedule->ops.at[id];
    if (op->node != GY_NONE && ops->job->graph->nodes.at[op->node].has_when)
        ops->flag[id] = op->use + op->uses;
    if (gy_op_calls(op))
        return make_call(ops, id, err);
    if (op->kind == GY_OP_COLLECTIVE)
        return gy_host_collective_make(&ops->collective[id], &ops->arena, ops->job->schedule, ops->job->graph, id, err);
    return GANTRY_OK;
}

static gantry_status make_ops(gy_host_ops *ops, gantry_error *err)
{
    const gantry_schedule *s = ops->job->schedule;
    gantry_status status = make_scratch(ops, err);
    for (uint32_t i = 0; status == GANTRY_OK && i < s->ops.count; i++)
        status = make_op(ops, i, err);
    for (uint32_t u = 0; status == GANTRY_OK && u < s->use.count; u++) {
        uint8_t space = s->instances.at[s->use.at[u].instance].space;
        bool external = space == GY_SPACE_INPUT || space == GY_SPACE_OUTPUT;
        if (external && !gy_vec_push(&ops->external, u))
            status = gy_fail_nomem(err);
        else if (!external)
            gy_host_ops_point(ops, u, use_at(ops, &s->use.at[u], 0));
    }
    return status;
}

gantry_status gy_host_ops_make(gy_host_ops *ops, const gy_job *job, const gy_host_memory *memory, gantry_error *err)
{
    const gantry_schedule *s = job->schedule;
    uint32_t devices = s->machine->devices;
    *ops = (gy_host_ops){ .job = job, .memory = memory };
    ops->at = gy_calloc(s->use.count, sizeof *ops->at);
    ops->arg = gy_calloc(s->use.count, sizeof *ops->arg);
    ops->call = gy_calloc(s->ops.count, sizeof *ops->call);
    ops->flag = gy_calloc(s->ops.count, sizeof *ops->flag);
    ops->collective = gy_calloc(s->ops.count, sizeof *ops->collective);
    ops->handle = gy_calloc(job->graph->kernels.count * devices, sizeof *ops->handle);
    ops->status_word = gy_calloc(devices, sizeof *ops->status_word);
    ops->scratch = gy_calloc(devices, sizeof *ops->scratch);
    bool room = ops->at && ops->arg && ops->call && ops->flag && ops->collective && ops->handle && ops->status_word &&
                ops->scratch;
    gantry_status status = room ? make_ops(ops, err) : gy_fail_nomem(err);
    if (status)
        gy_host_ops_free(ops);
    return status;
}

static void close_kernels(gy_host_ops *ops)
{
    size_t devices = ops->job->schedule->machine->devices;
    for (size_t i = 0; ops->handle && i < ops->job->graph->kernels.count * devices; i++) {
        const gantry_kernel *manifest = ops->job->graph->kernels.at[i / devices].manifest;
        if (ops->handle[i] && manifest->close)
            manifest->close(ops->handle[i]);
    }
}

void gy_host_ops_free(gy_host_ops *ops)
{
    if (!ops->job)
        return;
    close_kernels(ops);
    gy_free(ops->at);
    gy_free(ops->arg);
    gy_free(ops->call);
    gy_free(ops->flag);
    gy_free(ops->collective);
    gy_free(ops->handle);
    gy_free(ops->status_word);
    gy_free(ops->scratch);
    gy_vec_free(&ops->external);
    gy_vec_free(&ops->dynamic);
    gy_arena_free(&ops->arena);
    *ops = (gy_host_ops){ 0 };
}

static void fill_use(const gy_host_ops *ops, const gy_op *op, uint32_t use)
{
    const gantry_schedule *s = ops->job->schedule;
    const gantry_graph *g = ops->job->graph;
    const gy_use *u = &s->use.at[use];
    const gy_instance *instance = &s->instances.at[u->instance];
    const gy_buffer *b = buffer_of(ops->job, instance);
    if (op->node == GY_NONE) {
        uint64_t elements = gy_use_bytes(s, u) / gantry_dtype_size(b->dtype);
        gy_fill_identity(ops->at[use], b->dtype, (gantry_access)(op->reduce ? op->reduce : instance->op), elements);
        return;
    }
    gy_fill_rows(ops->at[use], b, &gy_node_extra_of(g, op->node)->fill, u->first, u->last);
}

/* Reads first, then as many writes. */
static void copy_uses(const gy_host_ops *ops, const gy_op *op)
{
    const gantry_schedule *s = ops->job->schedule;
    uint32_t pairs = op->uses / 2;
    for (uint32_t k = 0; k < pairs; k++) {
        uint32_t from = op->use + k, to = op->use + pairs + k;
        size_t bytes = gy_use_bytes(s, &s->use.at[to]);
        if (bytes) /* an empty array may be bound to no memory */
            memmove(ops->at[to], ops->at[from], bytes);
    }
}

bool gy_host_ops_wanted(const gy_host_ops *ops, uint32_t id)
{
    if (!ops->flag[id])
        return true;
    const gantry_schedule *s = ops->job->schedule;
    uint32_t use = ops->flag[id] - 1;
    const gy_buffer *b = buffer_of(ops->job, &s->instances.at[s->use.at[use].instance]);
    return gy_element_load(ops->at[use], b->dtype, 0) != 0;
}

bool gy_host_ops_execute(const gy_host_ops *ops, uint32_t id, gy_op_failure *failure)
{
    gy_call *call = ops->call[id];
    if (!gy_host_ops_wanted(ops, id))
        return true;
    if (call) {
        *call->launch.status = 0;
        failure->status = gy_job_call(ops->job, id, call->function, &call->launch);
        failure->word = *call->launch.status;
        return failure->status == GANTRY_OK && failure->word == 0;
    }
    const gy_op *op = &ops->job->schedule->ops.at[id];
    if (op->kind == GY_OP_COLLECTIVE)
        gy_host_collective_execute(ops->collective[id], ops->at + op->use);
    else if (op->kind == GY_OP_FILL)
        for (uint32_t k = 0; k < op->uses - gy_op_has_flag(op); k++)
            fill_use(ops, op, op->use + k);
    else
        copy_uses(ops, op);
    return true;
}

gantry_status gy_host_ops_fail(const gy_host_ops *ops, uint32_t id, gy_op_failure failure, gantry_error *err)
{
    const gantry_schedule *s = ops->job->schedule;
    const gy_op *op = &s->ops.at[id];
    const gy_node *node = &ops->job->graph->nodes.at[op->node];
    uint32_t device = gy_op_device(s, op, 0);
    char what[240];
    if (failure.status) {
        const char *name = gantry_status_name(failure.status);
        snprintf(what, sizeof what, "its function returned %s (%d)%s", name, (int)failure.status,
                 strncmp(name, "GANTRY_", 7) == 0 ? "" : "; it returns GANTRY_OK, 0, where all is well");
    } else {
        gy_launch_word(node->kernel == GY_NONE ? NULL : ops->job->graph->kernels.at[node->kernel].manifest,
                       &ops->call[id]->launch, failure.word, what, sizeof what);
    }
    char iteration[40] = "";
    if (node->loop != GY_NONE)
        snprintf(iteration, sizeof iteration, " in iteration %" PRId64, ops->call[id]->launch.iteration);
    gy_graph_fail(ops->job->graph, node->origin, err, GANTRY_E_KERNEL, "node \"%s\" failed on device \"%s\"%s: %s",
                  node->id, s->machine->device[device].id, iteration, what);
    if (err) {
        err->device = (int32_t)device;
        err->native = failure.status ? 0 : failure.word;
    }
    return GANTRY_E_KERNEL;
}
