/* SPDX-License-Identifier: Apache-2.0 */
/* Everything that is prepared once for every op: launches with their arguments, pieces of collectives, images of fills,
 * and the events that it waits for. */
#include "backends/cuda/submit/submit.h"

#include "backends/cuda/collective/ahead.h"
#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/usercode/usercode.h"
#include "base/error.h"
#include "graph/nest.h"
#include "kernel/word.h"
#include "schedule/exchange/exchange.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- launches ---- */

static const gantry_kernel *manifest_of(const gy_cuda *h, const gy_node *node)
{
    return node->kernel == GY_NONE ? NULL : h->job->graph->kernels.at[node->kernel].manifest;
}

/* The kernel of the node if it has code of the user for this device that is launched here, else NULL. */
static const gy_kernel *user_kernel(const gy_cuda *h, const gy_node *node, uint32_t device)
{
    const gy_kernel *kernel = node->kernel == GY_NONE ? NULL : &h->job->graph->kernels.at[node->kernel];
    bool here = kernel && kernel->code && h->device[device].gpu && !gy_kernel_code_launches(kernel->code);
    return here ? kernel : NULL;
}

/* The code by which the program launches the kernel itself on this device; NULL: there is none. */
static const gy_kernel_program *launcher_of(const gy_cuda *h, const gy_node *node, uint32_t device)
{
    const gy_kernel *kernel = node->kernel == GY_NONE ? NULL : &h->job->graph->kernels.at[node->kernel];
    bool own = kernel && h->device[device].gpu && gy_kernel_code_launches(kernel->code);
    return own ? kernel->code->program : NULL;
}

static gantry_status open_user(gy_cuda *h, const gy_kernel *kernel, uint32_t device, void **handle, gantry_error *err)
{
    const gy_cuda_device *on = &h->device[device];
    gy_user_kernel *opened = NULL;
    gantry_status status = gy_cuda_use(h, device, err);
    status = status
                 ? status
                 : gy_user_kernel_open(&opened, &h->d, on->id, on->ordinal, h->job->graph, kernel, h->job->said, err);
    *handle = opened;
    return status;
}

/* The handle that the manifest of the program opens. */
static gantry_status open_own(gy_cuda *h, const gantry_kernel *manifest, uint32_t device, void **handle,
                              gantry_error *err)
{
    bool gpu = h->device[device].gpu;
    gantry_status status = gpu && manifest->open ? gy_cuda_use(h, device, err) : GANTRY_OK;
    if (status || !manifest->open)
        return status;
    status = manifest->open(handle, gpu ? h->device[device].ordinal : -1);
    gy_cuda_forget(h); /* it may have made another context current */
    return status ? gy_fail(err, GANTRY_E_DEVICE, NULL, "%s", gantry_status_text(status)) : GANTRY_OK;
}

static gantry_status open_handle(gy_cuda *h, const gy_cuda_kernel *kernel, uint32_t device, void **handle,
                                 gantry_error *err)
{
    gantry_status status = gy_cuda_use(h, device, err);
    status = status || !kernel->open ? status : kernel->open(handle, kernel, &h->d, err);
    h->current = GY_NONE; /* a library may have made another context current */
    return status;
}

/* Finds the handle of the kernel on the device, which all its launches share; opens it the first time. */
static gantry_status find_handle(gy_cuda *h, const gy_node *node, uint32_t device, void **handle, gantry_error *err)
{
    const gantry_kernel *manifest = manifest_of(h, node);
    gantry_error why = { 0 };
    *handle = NULL;
    if (!manifest)
        return GANTRY_OK;
    void **slot = &h->handle[node->kernel * h->devices + device];
    const gy_kernel *user = user_kernel(h, node, device);
    bool own = !h->device[device].gpu || launcher_of(h, node, device);
    gantry_status status = *slot  ? GANTRY_OK
                           : user ? open_user(h, user, device, slot, &why)
                           : own  ? open_own(h, manifest, device, slot, &why)
                                  : open_handle(h, h->library[node->kernel], device, slot, &why);
    if (status) {
        *slot = NULL;
        gy_graph_fail(h->job->graph, node->origin, err, status,
                      "kernel \"%s\" of node \"%s\" could not be opened on device \"%s\": %s", manifest->name, node->id,
                      h->job->schedule->machine->device[device].id, why.text);
        if (err) {
            err->native = why.native;
            err->device = (int32_t)device;
        }
        return status;
    }
    *handle = *slot;
    return GANTRY_OK;
}

const gy_cuda_kernel *gy_cuda_kernel_of(const gy_cuda *h, const gy_op *op, uint32_t device)
{
    const gy_node *node = &h->job->graph->nodes.at[op->node];
    bool own = user_kernel(h, node, device) || launcher_of(h, node, device);
    return own || node->kernel == GY_NONE || !h->device[device].gpu ? NULL : h->library[node->kernel];
}

static gantry_status find_function(gy_cuda *h, gy_cuda_call *call, const gy_op *op, uint32_t device, gantry_error *err)
{
    const gy_node *node = &h->job->graph->nodes.at[op->node];
    if (user_kernel(h, node, device)) {
        struct gy_user_call *made = NULL;
        gantry_error why = { 0 };
        gantry_status status = gy_user_call_make(&made, &h->arena, call->launch.handle, &call->launch, &why);
        call->function = gy_user_launch;
        call->launch.user = made;
        return status ? gy_graph_fail(h->job->graph, node->origin, err, status, "node \"%s\" on device \"%s\": %s",
                                      node->id, h->job->schedule->machine->device[device].id, why.text)
                      : GANTRY_OK;
    }
    const gy_cuda_kernel *kernel = gy_cuda_kernel_of(h, op, device);
    const gy_kernel_program *launcher = launcher_of(h, node, device);
    call->kernel = kernel;
    call->function = kernel ? kernel->launch : launcher ? launcher->launch : h->job->function[op->node].call;
    call->launch.user = kernel ? NULL : launcher ? launcher->user : h->job->function[op->node].user;
    return GANTRY_OK;
}

/* Finds how much scratch the launch is given. */
static gantry_status prepare(gy_cuda *h, gantry_launch *l, const gy_op *op, uint32_t device, gantry_error *err)
{
    const gy_cuda_kernel *kernel = gy_cuda_kernel_of(h, op, device);
    const gy_node *node = &h->job->graph->nodes.at[op->node];
    gantry_error why = { 0 };
    l->scratch_bytes = (uint64_t)node->scratch;
    gantry_status status = kernel && kernel->prepare ? gy_cuda_use(h, device, &why) : GANTRY_OK;
    if (kernel && kernel->prepare && status == GANTRY_OK) {
        status = kernel->prepare(l, &l->scratch_bytes, &why);
        if (kernel->loads)
            gy_cuda_forget(h); /* a library may have made another context current */
    }
    if (status) {
        gy_graph_fail(h->job->graph, node->origin, err, status, "node \"%s\" cannot run on device \"%s\": %s", node->id,
                      h->job->schedule->machine->device[device].id, why.text);
        if (err) {
            err->native = why.native;
            err->device = (int32_t)device;
        }
    }
    return status;
}

static gantry_status describe(gy_cuda *h, gy_cuda_call *call, uint32_t id, gantry_error *err)
{
    const gantry_graph *g = h->job->graph;
    const gy_op *op = &h->job->schedule->ops.at[id];
    const gy_node *node = &g->nodes.at[op->node];
    uint32_t device = gy_op_device(h->job->schedule, op, 0);
    gantry_arg *args = gy_arena_calloc(&h->arena, gy_launch_args(g, op->node) + 1, sizeof *args);
    call->arg = gy_arena_calloc(&h->arena, op->uses + 1, sizeof *call->arg);
    if (!args || !call->arg)
        return gy_fail_nomem(err);
    gantry_launch *l = &call->launch;
    gantry_status status = gy_launch_describe(g, op->node, op->iteration, l, args, err);
    status = status ? status : find_handle(h, node, device, &l->handle, err);
    if (status || (status = find_function(h, call, op, device, err)))
        return status;
    l->struct_size = sizeof *l;
    l->node = node->id;
    l->iteration = op->iteration;
    l->device = (int32_t)device;
    if (!h->device[device].gpu)
        gy_job_lend_threads(h->job, l, device);
    l->device_ordinal = h->device[device].gpu ? h->device[device].ordinal : -1;
    l->stream = h->device[device].gpu ? gy_cuda_lane_of(h, id, 0)->queue.stream : NULL;
    for (uint32_t k = 0; k < op->uses; k++)
        call->arg[k] = gy_launch_arg_of(g, op->node, args, k);
    for (uint32_t i = node->scalar; i < node->scalar + node->scalars; i++) {
        gy_cuda_dynamic entry = { .arg = &args[g->scalar.at[i].arg], .scalar = i };
        if (g->scalar.at[i].dynamic && !gy_vec_push(&h->dynamic, entry))
            return gy_fail_nomem(err);
    }
    return prepare(h, l, op, device, err);
}

static gantry_status make_call(gy_cuda *h, uint32_t id, gantry_error *err)
{
    gy_cuda_lane *lane = gy_cuda_lane_of(h, id, 0);
    h->op[id].call = gy_arena_calloc(&h->arena, h->turns, sizeof *h->op[id].call);
    gantry_status status = h->op[id].call ? GANTRY_OK : gy_fail_nomem(err);
    for (uint32_t t = 0; t < h->turns && status == GANTRY_OK; t++) {
        status = describe(h, &h->op[id].call[t], id, err);
        uint64_t scratch = h->op[id].call[t].launch.scratch_bytes;
        lane->scratch_bytes = scratch > lane->scratch_bytes ? scratch : lane->scratch_bytes;
    }
    return status;
}

void gy_cuda_ops_scalars(gy_cuda *h)
{
    for (size_t i = 0; i < h->dynamic.count; i++)
        gy_launch_set_scalar(h->dynamic.at[i].arg, h->job->scalar[h->dynamic.at[i].scalar]);
}

/* True if a captured launch depends on the iteration: by a scalar, or since it is a function of the program that may
 * ask. Host functions read the iteration when they run. */
static bool launch_varies(const gy_cuda *h, size_t id)
{
    const gantry_graph *g = h->job->graph;
    const gy_op *op = &h->job->schedule->ops.at[id];
    if (!h->op[id].call || !h->device[gy_op_device(h->job->schedule, op, 0)].gpu)
        return false;
    const gy_node *n = &g->nodes.at[op->node];
    bool varies = n->loop != GY_NONE && n->kernel == GY_NONE;
    for (uint32_t i = n->scalar; i < n->scalar + n->scalars && n->loop != GY_NONE; i++)
        varies = varies || g->scalar.at[i].expr;
    return varies;
}

bool gy_cuda_ops_vary(const gy_cuda *h)
{
    bool varies = false;
    for (size_t i = 0; h->job->graph->phase && i < h->job->schedule->ops.count && !varies; i++)
        varies = launch_varies(h, i);
    return varies;
}

gantry_status gy_cuda_ops_advance(gy_cuda *h, int64_t first, bool *changed, gantry_error *err)
{
    const gantry_schedule *s = h->job->schedule;
    gantry_status status = GANTRY_OK;
    *changed = false;
    for (size_t i = 0; i < s->ops.count; i++) {
        const gy_op *op = &s->ops.at[i];
        *changed = *changed || launch_varies(h, i);
        bool loops = h->op[i].call && h->job->graph->nodes.at[op->node].loop != GY_NONE;
        for (uint32_t t = 0; loops && t < h->turns && status == GANTRY_OK; t++) {
            gantry_launch *l = &h->op[i].call[t].launch;
            l->iteration = first * gy_node_turns(h->job->graph, &h->job->graph->nodes.at[op->node]) + op->iteration;
            status = gy_launch_iterate(h->job->graph, op->node, l, err);
        }
    }
    return status;
}

/* ---- waits ---- */

static void await_event(gy_cuda *h, uint32_t op)
{
    if (h->op[op].event != GY_NONE)
        return;
    h->op[op].event = h->events;
    h->events += gy_ahead_events(h, op);
}

/* The number of waits of all ops, and of each. Every op that another waits for gets an event, of as many starts as
 * rows of the sync table reach back. */
static uint32_t count_waits(gy_cuda *h)
{
    const gantry_schedule *s = h->job->schedule;
    uint32_t rows = 0;
    h->ring = 1;
    for (uint32_t i = 0; h->ahead && i < h->ahead->first[s->ops.count]; i++)
        await_event(h, h->ahead->row[i].from);
    for (uint32_t i = 0; h->ahead && i < h->ahead->behinds; i++, rows++) {
        await_event(h, h->ahead->behind[i].from);
        h->op[h->ahead->behind[i].to].waits++;
    }
    for (size_t i = 0; i < s->sync.count; i++) {
        const gy_sync *row = &s->sync.at[i];
        if (row->carrier != GY_CARRIER_LANE) {
            h->op[row->to].waits++;
            await_event(h, row->from);
            h->ring = row->distance + 1 > h->ring ? row->distance + 1 : h->ring;
            rows++;
        }
    }
    return rows;
}

/* The rows of the sync table, by the op that waits. */
static void sort_waits(gy_cuda *h)
{
    const gantry_schedule *s = h->job->schedule;
    uint32_t at = 0;
    for (size_t i = 0; i < s->ops.count; i++) {
        h->op[i].wait = at;
        at += h->op[i].waits;
        h->op[i].waits = 0;
    }
    for (size_t i = 0; i < s->sync.count; i++) {
        const gy_sync *row = &s->sync.at[i];
        gy_cuda_op *to = &h->op[row->to];
        if (row->carrier != GY_CARRIER_LANE)
            h->wait[to->wait + to->waits++] = (gy_cuda_wait){ row->from, row->distance };
    }
    for (uint32_t i = 0; h->ahead && i < h->ahead->behinds; i++) {
        gy_cuda_op *to = &h->op[h->ahead->behind[i].to];
        h->wait[to->wait + to->waits++] = (gy_cuda_wait){ .from = h->ahead->behind[i].from };
    }
}

static gantry_status make_waits_of_all(gy_cuda *h, gantry_error *err)
{
    GY_TRY(gy_ahead_make(h, err));
    uint32_t waits = count_waits(h);
    h->wait = gy_arena_calloc(&h->arena, waits + 1, sizeof *h->wait);
    h->event = gy_arena_calloc(&h->arena, (size_t)h->events * h->ring + 1, sizeof *h->event);
    if (!h->wait || !h->event)
        return gy_fail_nomem(err);
    sort_waits(h);
    return GANTRY_OK;
}

/* The waits of this rank's steps; its starts do not overlap. */
static gantry_status make_waits_of_part(gy_cuda *h, gantry_error *err)
{
    h->ring = 1;
    h->wait = gy_arena_calloc(&h->arena, h->part.wait.count + 1, sizeof *h->wait);
    for (size_t i = 0; h->wait && i < h->part.wait.count; i++) {
        uint32_t from = h->part.step.at[h->part.wait.at[i]].op;
        h->wait[i].from = from;
        await_event(h, from);
    }
    for (size_t i = 0; i < h->part.step.count; i++) {
        gy_cuda_op *op = &h->op[h->part.step.at[i].op];
        op->wait = h->part.step.at[i].wait;
        op->waits = h->part.step.at[i].waits;
    }
    h->event = gy_arena_calloc(&h->arena, (size_t)h->events + 1, sizeof *h->event);
    return h->wait && h->event ? GANTRY_OK : gy_fail_nomem(err);
}

static gantry_status make_waits(gy_cuda *h, gantry_error *err)
{
    return h->step ? make_waits_of_part(h, err) : make_waits_of_all(h, err);
}

/* Creates the events on the devices of the lanes that record them. */
static gantry_status make_events(gy_cuda *h, gantry_error *err)
{
    const gantry_schedule *s = h->job->schedule;
    gantry_status status = GANTRY_OK;
    for (uint32_t i = 0; i < s->ops.count; i++) {
        uint32_t lanes = h->op[i].event == GY_NONE ? 0 : gy_ahead_events(h, i);
        for (uint32_t k = 0; k < lanes * h->ring && status == GANTRY_OK; k++)
            status = gy_cuda_event_new(h, &h->event[h->op[i].event * h->ring + k],
                                       gy_cuda_lane_of(h, i, k / h->ring)->queue.device, false, err);
    }
    return status;
}

/* ---- all ---- */

/* Bytes that the op has to stage. It is not known yet which arrays of the caller are page-locked, so small ones count.
 */
static uint64_t stage_of(const gy_cuda *h, uint32_t id)
{
    const gantry_schedule *s = h->job->schedule;
    const gy_op *op = &s->ops.at[id];
    if (!gy_cuda_here(h, id))
        return gy_cross_stage(h, id);
    if (op->kind == GY_OP_COLLECTIVE)
        return gy_collective_stage(h, id);
    if (gy_op_calls(op) || op->kind == GY_OP_FILL)
        return 0;
    uint64_t most = 0;
    for (uint32_t k = 0; k < op->uses / 2; k++) {
        const gy_use *from = &s->use.at[op->use + k], *to = &s->use.at[op->use + op->uses / 2 + k];
        uint64_t need = gy_copy_stage(h, gy_cuda_location(h, to, 0), gy_cuda_location(h, from, 0), gy_use_bytes(s, to));
        most = need > most ? need : most;
    }
    return most;
}

/* Does its status word lie in memory of the GPU? The library's kernels say so, code of users has none, and a function
 * of the program may do with its word what it likes. */
static bool is_fetched(const gy_cuda *h, uint32_t id)
{
    const gy_op *op = &h->job->schedule->ops.at[id];
    uint32_t device = gy_op_device(h->job->schedule, op, 0);
    const gy_cuda_kernel *kernel = gy_cuda_kernel_of(h, op, device);
    bool by_user = user_kernel(h, &h->job->graph->nodes.at[op->node], device) != NULL;
    bool keeps = kernel && kernel->keeps_word && kernel->keeps_word(h->op[id].call->launch.handle);
    return h->device[device].gpu && !by_user && (!kernel || keeps);
}

/* Words that are fetched come first, so that one copy has them all. */
static void number_words(gy_cuda *h)
{
    const gantry_schedule *s = h->job->schedule;
    for (int pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < s->ops.count; i++) {
            bool fetched = h->op[i].call && is_fetched(h, i);
            gy_cuda_device *d = &h->device[gy_op_device(s, &s->ops.at[i], 0)];
            if (!h->op[i].call || fetched != (pass == 0))
                continue;
            h->op[i].word = d->launches++;
            d->fetched += fetched;
        }
}

static gantry_status make_op(gy_cuda *h, uint32_t id, gantry_error *err)
{
    const gy_op *op = &h->job->schedule->ops.at[id];
    if (!gy_cuda_here(h, id))
        return gy_cross_op_make(h, id, err);
    if (gy_op_calls(op))
        return make_call(h, id, err);
    if (op->kind == GY_OP_COLLECTIVE)
        return gy_exchange_make(&h->op[id].exchange, &h->arena, h->job->schedule, h->job->graph, id, err);
    return GANTRY_OK;
}

/* ---- compiling ahead ---- */

/* Adds the kernel of a launch unless it is among them. False: out of memory. */
static bool want(gy_user_wants *wants, bool *seen, const gy_cuda *h, const gantry_schedule *s, const gantry_graph *g,
                 uint32_t op)
{
    CUdevice id;
    uint32_t device = gy_op_device(s, &s->ops.at[op], 0), kernel = g->nodes.at[s->ops.at[op].node].kernel;
    const gy_kernel *of = kernel == GY_NONE ? NULL : &g->kernels.at[kernel];
    if (!of || !of->code || gy_kernel_code_launches(of->code) || !s->machine->device[device].gpu ||
        seen[kernel * h->devices + device])
        return true;
    seen[kernel * h->devices + device] = true;
    return h->d.cuDeviceGet(&id, gy_device_ordinal(s->machine, device)) != CUDA_SUCCESS ||
           gy_vec_push(wants, ((gy_user_wanted){ of, id }));
}

/* The machine is that of the run. */
static void want_all(gy_user_wants *wants, const gy_cuda *h, const gantry_schedule *s, const gantry_graph *g)
{
    bool *seen = gy_calloc(g->kernels.count * h->devices + 1, sizeof *seen), room = seen;
    for (uint32_t i = 0; i < s->ops.count && room; i++)
        if (s->ops.at[i].kind == GY_OP_LAUNCH && (s != h->job->schedule || gy_cuda_here(h, i)))
            room = want(wants, seen, h, s, g, i);
    gy_free(seen);
}

/* Code of users and of formulas, before its kernels are opened one after another. The first phase has that of all
 * compiled, which otherwise would wait for one another. */
struct gy_user_ahead *gy_cuda_compile_begin(gy_cuda *h)
{
    const gy_job *job = h->job;
    const gantry_schedule *whole = job->whole && !job->beside && !job->network ? job->whole->schedule : NULL;
    gy_user_wants wants = { 0 };
    want_all(&wants, h, job->schedule, job->graph);
    for (size_t i = 0; whole && i < whole->phases.count; i++) {
        const gantry_schedule *s = whole->phases.at[i].schedule;
        if (s != job->schedule)
            want_all(&wants, h, s, s->graph);
    }
    struct gy_user_ahead *ahead = gy_user_kernels_begin(&wants, &h->d, job->graph->folder, job->said);
    gy_vec_free(&wants);
    return ahead;
}

gantry_status gy_cuda_ops_make(gy_cuda *h, gantry_error *err)
{
    const gantry_schedule *s = h->job->schedule;
    gantry_status status = GANTRY_OK;
    for (size_t i = 0; i < s->ops.count; i++)
        h->op[i].event = GY_NONE;
    for (uint32_t i = 0; i < s->ops.count && status == GANTRY_OK; i++)
        status = make_op(h, i, err);
    if (status == GANTRY_OK)
        number_words(h);
    status = status ? status : make_waits(h, err);
    return status ? status : make_events(h, err);
}

/* Called when memory is there and peer access is known. */
void gy_cuda_ops_stage(gy_cuda *h)
{
    for (uint32_t i = 0; i < h->job->schedule->ops.count; i++) {
        gy_cuda_lane *lane = gy_cuda_lane_of(h, i, 0);
        uint64_t need = stage_of(h, i);
        lane->stage_bytes = need > lane->stage_bytes ? need : lane->stage_bytes;
    }
}

/* GPUs reach page-locked memory by the host's address. */
static int32_t *word_of(const gy_cuda_device *d, uint32_t word, uint32_t turn)
{
    CUdeviceptr fetched = d->status + (turn * d->fetched + word) * sizeof(int32_t);
    return word < d->fetched ? (int32_t *)(uintptr_t)fetched : d->host_status + turn * d->launches + word;
}

/* Sets the addresses of status word and scratch, which never change, and those of instances, which bindings may change.
 */
void gy_cuda_ops_point(gy_cuda *h, uint32_t turn)
{
    const gantry_schedule *s = h->job->schedule;
    for (uint32_t i = 0; i < s->ops.count; i++) {
        const gy_op *op = &s->ops.at[i];
        if (!h->op[i].call)
            continue;
        gy_cuda_call *call = &h->op[i].call[turn];
        gy_cuda_device *device = &h->device[gy_op_device(h->job->schedule, op, 0)];
        gantry_launch *l = &call->launch;
        l->status = device->gpu ? word_of(device, h->op[i].word, turn) : &call->word;
        l->scratch = l->scratch_bytes ? (void *)(uintptr_t)gy_cuda_lane_of(h, i, 0)->scratch : NULL;
        for (uint32_t k = 0; k < op->uses; k++)
            if (call->arg[k])
                call->arg[k]->data = gy_location_pointer(gy_cuda_location(h, &s->use.at[op->use + k], turn));
    }
}

/* Also where the context cannot be made current, for a part of each is the host's. */
static void close_handles(gy_cuda *h)
{
    size_t kernels = h->job->graph->kernels.count;
    for (size_t i = 0; h->handle && i < kernels * h->devices; i++) {
        const gy_kernel *kernel = &h->job->graph->kernels.at[i / h->devices];
        uint32_t device = (uint32_t)(i % h->devices);
        if (!h->handle[i])
            continue;
        if (h->device[device].gpu)
            gy_cuda_use(h, device, NULL);
        if (!h->device[device].gpu || gy_kernel_code_launches(kernel->code)) {
            if (kernel->manifest->close)
                kernel->manifest->close(h->handle[i]);
        } else if (kernel->code)
            gy_user_kernel_close(h->handle[i]);
        else
            h->library[i / h->devices]->close(h->handle[i]);
    }
}

void gy_cuda_ops_free(gy_cuda *h)
{
    close_handles(h);
    for (size_t i = 0; h->event && i < (size_t)h->events * h->ring; i++)
        if (h->event[i])
            h->d.cuEventDestroy(h->event[i]);
    for (uint32_t i = 0; h->op && i < h->job->schedule->ops.count; i++)
        gy_fill_free(h, i);
    gy_vec_free(&h->dynamic);
}

/* The words of the function of the op on its last launch, which failed; NULL: it has none. */
static const char *why_of(const gy_cuda *h, uint32_t id, uint32_t device)
{
    const gy_op *op = &h->job->schedule->ops.at[id];
    const gy_cuda_kernel *kernel = gy_cuda_kernel_of(h, op, device);
    const void *handle = h->op[id].call->launch.handle;
    if (user_kernel(h, &h->job->graph->nodes.at[op->node], device))
        return ((const gy_user_kernel *)handle)->why.text;
    return kernel && kernel->why ? kernel->why(handle) : NULL;
}

gantry_status gy_cuda_op_fail(const gy_cuda *h, uint32_t id, gantry_status status, int32_t word, gantry_error *err)
{
    const gantry_schedule *s = h->job->schedule;
    const gy_op *op = &s->ops.at[id];
    const gy_node *node = &h->job->graph->nodes.at[op->node];
    uint32_t device = gy_op_device(h->job->schedule, op, 0);
    char what[240], iteration[40] = "";
    const char *why = status ? why_of(h, id, device) : NULL;
    if (status)
        snprintf(what, sizeof what, "its function returned %s (%d)", gantry_status_name(status), (int)status);
    else
        gy_launch_word(manifest_of(h, node), &h->op[id].call->launch, word, what, sizeof what);
    if (node->loop != GY_NONE)
        snprintf(iteration, sizeof iteration, " in iteration %" PRId64, h->op[id].call->launch.iteration);
    gy_graph_fail(h->job->graph, node->origin, err, GANTRY_E_KERNEL, "node \"%s\" failed on device \"%s\"%s: %s",
                  node->id, s->machine->device[device].id, iteration, why ? why : what);
    if (err) {
        err->device = (int32_t)device;
        err->native = status ? 0 : word;
    }
    return GANTRY_E_KERNEL;
}
