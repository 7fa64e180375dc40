/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/stream/gates_state.h"

#include "backends/cuda/memory/memory.h"
#include "backends/cuda/stream/own_kernel.h"
#include "base/error.h"
#include "kernels/resident/counters.h"
#include <stdio.h>
#include <string.h>

#define BYTES ((uint64_t)GY_GATES_MOST * GY_GATE_STEP) /* of the words of a GPU */

static const gy_own_kernel own = { GY_CUDA_GATE, "what lets graphs wait for each other" };

bool gy_gates_begins(const gy_cuda *h, uint32_t device)
{
    return is_on(h) ? h->gates->gpu[device].used : device == h->end_stream.device;
}

gy_queue gy_gates_origin(const gy_cuda *h, uint32_t device)
{
    return is_on(h) ? h->gates->gpu[gpu_of(h, device)].origin : h->end_stream;
}

bool gy_gates_on(const gy_cuda *h)
{
    return is_on(h);
}

void gy_gates_leave(gy_cuda *h, const gantry_error *why)
{
    h->gates->on = false;
    snprintf(h->gates->why, sizeof h->gates->why, "%s", why->text);
}

/* ---- whether ---- */

static bool has_when(const gy_cuda *h)
{
    bool any = false;
    for (uint32_t i = 0; i < h->job->schedule->ops.count && !any; i++)
        any = h->op[i].when != NULL;
    return any;
}

/* A row by which an op waits for the op `from` of the same start. `behind`: the device of the lane that waits; `ahead`:
 * that of the lane of `from` which it waits for. */
typedef struct row_ends {
    uint32_t from, ahead, behind;
} row_ends;

static row_ends ends_of_row(const gy_cuda *h, uint32_t op, uint32_t from)
{
    uint32_t behind = gy_cuda_lane_of(h, op, gy_cuda_lane_after(h, op, from))->queue.device;
    uint32_t ahead = gy_cuda_lane_of(h, from, gy_cuda_lane_ahead(h, from, behind))->queue.device;
    return (row_ends){ from, ahead, behind };
}

bool gy_gates_crosses(const gy_cuda *h, uint32_t op, uint32_t from)
{
    row_ends row = ends_of_row(h, op, from);
    return !gy_cuda_same_gpu(h, row.ahead, row.behind);
}

/* Row i of the op: those of the sync table, then those of a collective whose lanes meet. False: there is none; a row
 * from an earlier start is from no op. */
static bool row_of(const gy_cuda *h, uint32_t op, uint32_t i, row_ends *row)
{
    const gy_cuda_ahead *a = gy_cuda_op_meets(&h->op[op]) ? h->ahead : NULL;
    if (i < h->op[op].waits) {
        gy_cuda_wait w = h->wait[h->op[op].wait + i];
        *row = w.distance ? (row_ends){ GY_NONE, 0, 0 } : ends_of_row(h, op, w.from);
        return true;
    }
    i -= h->op[op].waits;
    if (!a || i >= a->first[op + 1] - a->first[op])
        return false;
    gy_ahead_row more = a->row[a->first[op] + i];
    row->from = more.from;
    row->behind = gy_cuda_lane_of(h, op, more.lane)->queue.device;
    row->ahead = gy_cuda_lane_of(h, more.from, gy_cuda_lane_ahead(h, more.from, row->behind))->queue.device;
    return true;
}

/* A GPU cannot set words of one that it does not reach. Rows of the sync table may lead between GPUs that copy nothing.
 */
static bool reaches_all(gy_cuda *h)
{
    row_ends row;
    for (uint32_t op = 0; op < h->job->schedule->ops.count; op++)
        for (uint32_t i = 0; row_of(h, op, i, &row); i++)
            if (row.from != GY_NONE && !gy_cuda_peers_enable(h, row.ahead, row.behind))
                return false;
    return true;
}

/* Ops that are carried out by kernels of others which wait for their peers, or as conditional nodes, are left to one
 * graph; and so is all where a kernel would end, or be stopped, before the one that it waits for is launched. */
static const char *obstacle(const gy_cuda *h)
{
    if (h->nccl)
        return "NCCL carries out collectives";
    if (h->step)
        return "several processes carry it out";
    if (h->job->record || h->job->apart)
        return h->job->record ? "times of ops are recorded" : "ops are carried out one at a time";
    if (has_when(h))
        return "a node has a `when`";
    if (!h->d.conditions)
        return "the driver is older than CUDA 12.3";
    if (!gy_cuda_kernel_find(GY_CUDA_GATE))
        return "Gantry was built without nvcc";
    return gy_driver_blocks()          ? "CUDA_LAUNCH_BLOCKING is set"
           : gy_driver_debugged(&h->d) ? "a debugger stops kernels"
                                       : NULL;
}

/* The schedule decides unless the user does. */
static gantry_status choose(gy_cuda *h, gy_gates *to, bool *each, gantry_error *err)
{
    const gantry_schedule *s = h->job->schedule;
    if (!to->forced)
        GY_TRY(gy_gates_predict(s, &to->times, err));
    *each = false;
    if (!to->forced && !to->times.rows)
        return GANTRY_OK; /* nothing to choose */
    const char *why = obstacle(h);
    why = why || to->forced ? why : gy_gates_obstacle(s);
    *each = !why && (to->forced || gy_gates_pay(&to->times));
    if (*each && !reaches_all(h)) {
        *each = false;
        why = "a GPU waits for one that does not reach it";
    }
    snprintf(to->why, sizeof to->why, "%s", why ? why : "");
    return GANTRY_OK;
}

/* By GANTRY_CUDA_GRAPHS, and otherwise where what it costs is known. */
static bool is_asked(const gy_cuda *h, bool *forced)
{
    gy_replay replay = h->job->schedule->replay;
    *forced = gy_driver_switch("GANTRY_CUDA_GRAPHS", "gpu");
    if (replay == GY_REPLAY_DEVICE || gy_driver_switch("GANTRY_CUDA_GRAPHS", "one"))
        return false;
    return *forced || (replay != GY_REPLAY_STREAM && gy_gates_known(h->job->schedule->machine));
}

const char *gy_gates_replay(gy_cuda *h, const char *replay)
{
    gy_gates *g = h->gates;
    if (!g || !h->graphs || (!g->on && !g->why[0] && !g->times.rows))
        return replay;
    double share = g->times.one ? (double)g->times.each / (double)g->times.one : 1;
    if (g->on && g->forced)
        snprintf(g->text, sizeof g->text, "%s, one for each GPU", replay);
    else if (g->on)
        snprintf(g->text, sizeof g->text, "%s, one for each GPU, predicted at %.3f of one for all", replay, share);
    else if (g->why[0])
        snprintf(g->text, sizeof g->text, "%s; one for all GPUs: %s", replay, g->why);
    else
        snprintf(g->text, sizeof g->text, "%s; one for all GPUs, as one for each is predicted at %.3f of it", replay,
                 share);
    return g->text;
}

/* Finds the GPUs with streams. */
static bool find_gpus(const gy_cuda *h, gy_gates *to)
{
    uint32_t count = 0;
    to->gpu[gpu_of(h, h->end_stream.device)].used = true;
    for (uint32_t i = 0; i < h->lanes; i++)
        if (h->lane[i].used)
            to->gpu[gpu_of(h, h->lane[i].queue.device)].used = true;
    for (uint32_t i = 0; i < h->devices; i++)
        count += to->gpu[i].used;
    return count > 1;
}

static gantry_status clear(gy_cuda *h, uint32_t device, gantry_error *err)
{
    const gates_gpu *g = &h->gates->gpu[device];
    GY_TRY(gy_cuda_use(h, device, err));
    CUresult code = h->d.cuMemsetD8Async(g->block, 0, BYTES, g->aside.stream);
    code = code ? code : gy_cuda_settle(h, g->aside);
    return code == CUDA_SUCCESS ? GANTRY_OK : gy_cuda_fail(h, code, device, "clearing words that graphs wait for", err);
}

static gantry_status make_gpu(gy_cuda *h, uint32_t device, gantry_error *err)
{
    gates_gpu *g = &h->gates->gpu[device];
    bool ends = gy_cuda_same_gpu(h, device, h->end_stream.device);
    g->origin = ends ? h->end_stream : h->device[device].auxiliary;
    GY_TRY(gy_cuda_queue_new(h, &g->aside, device, true, err));
    GY_TRY(gy_cuda_event_new(h, &g->ended, device, false, err));
    GY_TRY(gy_cuda_allocate(h, &g->block, device, BYTES, "words that its graphs wait for", err));
    return clear(h, device, err);
}

/* The op is waited for on that GPU: by an event, or by a word. */
static void await_on(gates_op *op, uint32_t gpu, bool crosses)
{
    op->within = op->within || !crosses;
    if (!crosses)
        return;
    op->to = !op->told || op->to == gpu ? gpu : GY_NONE;
    op->told = true;
}

/* Goes through the rows of an op: the GPU that it is on, if one leads to it from another GPU. */
static uint32_t waiting_gpu(gy_cuda *h, uint32_t op)
{
    gates_op *all = h->gates->op;
    bool waits = false;
    row_ends row;
    for (uint32_t i = 0; row_of(h, op, i, &row); i++) {
        if (row.from == GY_NONE)
            continue;
        uint32_t from = gpu_of(h, row.ahead), to = gpu_of(h, row.behind);
        waits = waits || (from != to && to == all[op].gpu);
        await_on(&all[row.from], to, from != to);
    }
    return waits ? all[op].gpu : GY_NONE;
}

/* The op behind each op in its first lane. `last` is free yet: per lane, the op that was found last. */
static void find_next(gy_cuda *h)
{
    const gantry_schedule *s = h->job->schedule;
    for (size_t i = s->ops.count; i-- > 0;) {
        const gy_op *op = &s->ops.at[i];
        h->gates->next[i] = h->gates->last[first_lane_of(h, (uint32_t)i)];
        for (uint32_t k = 0; k < op->lanes; k++)
            h->gates->last[s->op_lane.at[op->lane + k]] = (uint32_t)i;
    }
    for (uint32_t i = 0; i < h->lanes; i++)
        h->gates->last[i] = GY_NONE;
}

static gantry_status find_waiters(gy_cuda *h, gantry_error *err)
{
    size_t ops = h->job->schedule->ops.count;
    gy_gate_waiters *w = &h->gates->waiters;
    uint32_t *gpu = gy_arena_calloc(&h->arena, ops + 1, sizeof *gpu);
    w->op = gy_arena_calloc(&h->arena, ops + 1, sizeof *w->op);
    w->first = gy_arena_calloc(&h->arena, h->devices + 1, sizeof *w->first);
    h->gates->op = gy_arena_calloc(&h->arena, ops + 1, sizeof *h->gates->op);
    h->gates->awaited = gy_arena_calloc(&h->arena, ops + 1, sizeof *h->gates->awaited);
    h->gates->next = gy_arena_calloc(&h->arena, ops + 1, sizeof *h->gates->next);
    if (!gpu || !w->op || !w->first || !h->gates->op || !h->gates->awaited || !h->gates->next)
        return gy_fail_nomem(err);
    gy_gate_awaited(h->gates->awaited, h->job->schedule);
    find_next(h);
    for (uint32_t i = 0; i < ops; i++) {
        h->gates->op[i].gpu = gpu_of(h, gy_cuda_lane_of(h, i, 0)->queue.device);
        h->gates->op[i].to = GY_NONE;
    }
    for (uint32_t i = 0; i < ops; i++)
        gpu[i] = waiting_gpu(h, i);
    gy_gate_waiters_fill(w, gpu, ops, h->devices);
    return GANTRY_OK;
}

/* Finds the functions of the kernel on the device; false: there is no code for such a GPU. */
static gantry_status open_kernel(gy_cuda *h, uint32_t device, bool *found, gantry_error *err)
{
    gy_gates *to = h->gates;
    *found = false;
    GY_TRY(gy_own_kernel_open(h, &own, to->handle, device, err));
    if (!to->handle[device])
        return GANTRY_OK;
    *found = true;
    for (int i = 0; i <= GY_GATE_COPIES; i++) {
        to->gpu[device].function[i] = to->kernel->function(to->handle[device], i);
        *found = *found && to->gpu[device].function[i];
    }
    return GANTRY_OK;
}

static gantry_status make(gy_cuda *h, gantry_error *err)
{
    gy_gates *to = h->gates;
    to->kernel = gy_cuda_kernel_find(GY_CUDA_GATE);
    size_t pairs = (size_t)h->job->schedule->ops.count * h->devices;
    to->handle = gy_arena_calloc(&h->arena, h->devices, sizeof *to->handle);
    to->number = gy_arena_calloc(&h->arena, pairs + 1, sizeof *to->number);
    to->asked = gy_arena_calloc(&h->arena, pairs + 1, 1);
    to->passed = gy_arena_calloc(&h->arena, h->lanes + 1, sizeof *to->passed);
    to->last = gy_arena_calloc(&h->arena, h->lanes + 1, sizeof *to->last);
    for (uint32_t t = 0; t < h->turns; t++)
        if (!(h->turn[t].beside = gy_arena_calloc(&h->arena, h->devices, sizeof *h->turn[t].beside)))
            return gy_fail_nomem(err);
    if (!to->handle || !to->number || !to->asked || !to->passed || !to->last)
        return gy_fail_nomem(err);
    for (uint32_t i = 0; i < h->lanes; i++)
        to->last[i] = GY_NONE;
    GY_TRY(find_waiters(h, err));
    void *seen = NULL;
    GY_TRY(gy_cuda_pinned(h, &seen, (uint64_t)GATES_SEEN * GY_GATE_STEP, err));
    to->seen = seen;
    to->on = true;
    for (uint32_t i = 0; i < h->devices; i++) {
        if (!to->gpu[i].used)
            continue;
        bool found;
        GY_TRY(open_kernel(h, i, &found, err));
        GY_TRY(make_gpu(h, i, err));
        to->on = to->on && found;
    }
    if (!to->on)
        snprintf(to->why, sizeof to->why, "gates were compiled for no GPU like one of these");
    return GANTRY_OK;
}

gantry_status gy_gates_make(gy_cuda *h, gantry_error *err)
{
    bool forced, each;
    if (!is_asked(h, &forced))
        return GANTRY_OK;
    gy_gates *made = gy_arena_calloc(&h->arena, 1, sizeof *made);
    if (!made || !(made->gpu = gy_arena_calloc(&h->arena, h->devices, sizeof *made->gpu)))
        return gy_fail_nomem(err);
    if (!find_gpus(h, made))
        return GANTRY_OK;
    made->forced = forced;
    GY_TRY(choose(h, made, &each, err));
    h->gates = made;
    return each ? make(h, err) : GANTRY_OK;
}

static void free_gpu(gy_cuda *h, uint32_t device)
{
    gates_gpu *g = &h->gates->gpu[device];
    gy_vec_free(&g->before.node);
    gy_vec_free(&g->ops);
    gy_vec_free(&g->who);
    gy_vec_free(&g->gate.node);
    if (!g->used || gy_cuda_use(h, device, NULL))
        return;
    if (g->block)
        h->d.cuMemFree(g->block);
    if (g->ended)
        h->d.cuEventDestroy(g->ended);
    if (g->aside.stream)
        h->d.cuStreamDestroy(g->aside.stream);
}

void gy_gates_free(gy_cuda *h)
{
    if (!h->gates)
        return;
    if (h->gates->seen)
        h->d.cuMemFreeHost(h->gates->seen);
    for (uint32_t i = 0; i < h->devices; i++)
        free_gpu(h, i);
    gy_vec_free(&h->gates->end.node);
    gy_vec_free(&h->gates->front.node);
    gy_own_kernel_close(h, &own, h->gates->handle);
}

/* ---- a start ---- */

/* The GPU of the end stream, whose graph is launched there. Its event is that of the beginning, those of others of the
 * ends of their graphs. */
static uint32_t last_gpu(const gy_cuda *h)
{
    return gpu_of(h, h->end_stream.device);
}

static CUresult launch(gy_cuda *h, uint32_t turn, uint32_t device, bool alone)
{
    const gates_gpu *g = &h->gates->gpu[device];
    const gy_cuda_turn *t = &h->turn[turn];
    if (device == last_gpu(h))
        return h->d.cuGraphLaunch(t->exec, h->end_stream.stream);
    CUevent begun = h->gates->gpu[last_gpu(h)].ended;
    CUresult code = alone ? CUDA_SUCCESS : h->d.cuStreamWaitEvent(g->origin.stream, begun, 0);
    code = code ? code : h->d.cuGraphLaunch(t->beside[device], g->origin.stream);
    return code ? code : h->d.cuEventRecord(g->ended, g->origin.stream);
}

static gantry_status fork_start(gy_cuda *h, gantry_error *err)
{
    GY_TRY(gy_cuda_use(h, h->end_stream.device, err));
    CUresult code = h->d.cuEventRecord(h->gates->gpu[last_gpu(h)].ended, h->end_stream.stream);
    return code == CUDA_SUCCESS ? GANTRY_OK : gy_cuda_fail(h, code, h->end_stream.device, "recording an event", err);
}

static gantry_status join_start(gy_cuda *h, gantry_error *err)
{
    CUresult code = CUDA_SUCCESS;
    GY_TRY(gy_cuda_use(h, h->end_stream.device, err));
    for (uint32_t i = 0; i < h->devices && code == CUDA_SUCCESS; i++)
        if (h->gates->gpu[i].used && i != last_gpu(h))
            code = h->d.cuStreamWaitEvent(h->end_stream.stream, h->gates->gpu[i].ended, 0);
    return code == CUDA_SUCCESS ? GANTRY_OK : gy_cuda_fail(h, code, h->end_stream.device, "joining graphs", err);
}

gantry_status gy_gates_launch(gy_cuda *h, uint32_t turn, bool alone, gantry_error *err)
{
    GY_TRY(alone ? GANTRY_OK : fork_start(h, err));
    for (uint32_t i = 0; i < h->devices; i++) {
        if (!h->gates->gpu[i].used)
            continue;
        GY_TRY(gy_cuda_use(h, i, err));
        CUresult code = launch(h, turn, i, alone);
        if (code != CUDA_SUCCESS)
            return gy_cuda_fail(h, code, i, "launching the graph of a GPU", err);
    }
    return join_start(h, err);
}

void gy_gates_raise(gy_cuda *h)
{
    for (uint32_t i = 0; i < h->devices; i++) {
        const gates_gpu *g = &h->gates->gpu[i];
        if (g->used && gy_cuda_use(h, i, NULL) == GANTRY_OK &&
            h->d.cuMemsetD8Async(g->block, GY_COUNTER_STOP & 0xFF, BYTES, g->aside.stream) == CUDA_SUCCESS)
            gy_cuda_settle(h, g->aside);
    }
}

void gy_gates_clear(gy_cuda *h)
{
    for (uint32_t i = 0; i < h->devices; i++)
        if (h->gates->gpu[i].used)
            clear(h, i, NULL);
}
