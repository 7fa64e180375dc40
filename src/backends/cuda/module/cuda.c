/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the back end: opening, starting, closing. */
#include "backends/cuda/module/module.h"
#include "backends/cuda/state/state.h"

#include "base/clock.h"
#include "base/error.h"
#include <string.h>

/* ---- opening ---- */

static bool make_arrays(gy_cuda *h)
{
    const gantry_schedule *s = h->job->schedule;
    h->devices = s->machine->devices;
    h->memories = s->machine->memories;
    h->lanes = (uint32_t)s->lanes.count;
    h->turns = h->job->turns;
    h->device = gy_arena_calloc(&h->arena, h->devices, sizeof *h->device);
    h->memory = gy_arena_calloc(&h->arena, h->memories, sizeof *h->memory);
    h->lane = gy_arena_calloc(&h->arena, h->lanes + 1, sizeof *h->lane);
    h->op = gy_arena_calloc(&h->arena, s->ops.count + 1, sizeof *h->op);
    h->handle = gy_arena_calloc(&h->arena, h->job->graph->kernels.count * h->devices + 1, sizeof *h->handle);
    h->turn = gy_arena_calloc(&h->arena, h->turns, sizeof *h->turn);
    h->time = h->job->record ? gy_arena_calloc(&h->arena, s->ops.count + 1, sizeof *h->time) : NULL;
    h->aside = gy_arena_calloc(&h->arena, h->devices + 1, sizeof *h->aside);
    h->behind = gy_arena_calloc(&h->arena, h->devices + 1, sizeof *h->behind);
    bool room = h->aside && h->behind && h->device && h->memory && h->lane && h->op && h->handle && h->turn &&
                (h->time || !h->job->record);
    size_t buffers = h->job->graph->buffers.count + 1;
    for (uint32_t i = 0; room && i < h->turns; i++) {
        h->turn[i].input = gy_arena_calloc(&h->arena, buffers, sizeof *h->turn[i].input);
        h->turn[i].output = gy_arena_calloc(&h->arena, buffers, sizeof *h->turn[i].output);
        room = h->turn[i].input && h->turn[i].output;
    }
    return room;
}

/* Events of two GPUs have no time between them, so where ops are recorded each GPU has a base. */
static bool has_base(const gy_cuda *h, uint32_t device)
{
    const gy_cuda_device *d = &h->device[device];
    return d->gpu && d->used && (h->job->record || device == h->tail.device);
}

static gantry_status make_clocks(gy_cuda *h, gantry_error *err)
{
    const gantry_schedule *s = h->job->schedule;
    gantry_status status = GANTRY_OK;
    for (uint32_t i = 0; i < h->devices && status == GANTRY_OK; i++) {
        status = has_base(h, i) ? gy_cuda_event_new(h, &h->device[i].base, i, true, err) : GANTRY_OK;
    }
    for (uint32_t t = 0; t < h->turns && status == GANTRY_OK; t++) {
        status = gy_cuda_event_new(h, &h->turn[t].end, h->tail.device, true, err);
    }
    if (status || !h->job->record) {
        return status;
    }
    h->clock = gy_arena_calloc(&h->arena, 2 * h->turns * s->ops.count + 1, sizeof *h->clock);
    if (!h->clock) {
        return gy_fail_nomem(err);
    }
    for (uint32_t i = 0; i < h->turns * s->ops.count && status == GANTRY_OK; i++) {
        uint32_t turn = i / (uint32_t)s->ops.count, op = i % (uint32_t)s->ops.count;
        uint32_t device = h->lane[s->op_lane.at[s->ops.at[op].lane]].queue.device;
        status = gy_cuda_event_new(h, gy_cuda_clock(h, turn, op, 0), device, true, err);
        status = status ? status : gy_cuda_event_new(h, gy_cuda_clock(h, turn, op, 1), device, true, err);
    }
    return status;
}

static gantry_status make_all(gy_cuda *h, gantry_error *err)
{
    gy_cuda_memory_owners(h);
    gantry_status status = gy_cupti_open(h, err);
    status = status ? status : gy_cuda_devices_make(h, err);
    status = status ? status : gy_cuda_ops_make(h, err);
    status = status ? status : gy_cuda_peers_make(h, err);
    status = status ? status : gy_combine_make(h, err);
    status = status ? status : gy_nccl_open(h, err);
    status = status ? status : gy_cuda_mirrors_make(h, err);
    if (status == GANTRY_OK) {
        gy_cuda_ops_stage(h);
        status = gy_cuda_memory_make(h, err);
    }
    for (uint32_t i = 0; i < h->job->schedule->ops.count && status == GANTRY_OK; i++) {
        status = gy_fill_prepare(h, i, err);
    }
    status = status ? status : make_clocks(h, err);
    if (status == GANTRY_OK) {
        gy_nccl_make(h);
    }
    return status;
}

static void free_clocks(gy_cuda *h)
{
    size_t clocks = h->clock ? 2 * h->turns * h->job->schedule->ops.count : 0;
    for (size_t i = 0; i < clocks; i++) {
        if (h->clock[i]) {
            h->d.cuEventDestroy(h->clock[i]);
        }
    }
    for (uint32_t t = 0; h->turn && t < h->turns; t++) {
        if (h->turn[t].end) {
            h->d.cuEventDestroy(h->turn[t].end);
        }
        gy_graph_free(h, t);
        gy_notes_free(&h->turn[t].notes);
        gy_notes_free(&h->turn[t].exec_notes);
    }
    for (uint32_t i = 0; h->device && i < h->devices; i++) {
        if (h->device[i].base) {
            h->d.cuEventDestroy(h->device[i].base);
        }
    }
}

static bool is_quiet(gy_cuda *h, const gy_queue *queue)
{
    bool made = queue->stream && h->device[queue->device].mark[GY_CUDA_MARKS - 1]; /* else nothing was queued */
    return gy_cuda_lost(h) || !made || gy_cuda_settle(h, *queue) == CUDA_SUCCESS;
}

/* What a failed submission has queued is over before anybody hears of it, or anything that it uses is freed. */
static void settle_all(gy_cuda *h)
{
    bool quiet = is_quiet(h, &h->tail);
    for (uint32_t i = 0; i < h->lanes; i++) {
        quiet = is_quiet(h, &h->lane[i].queue) && quiet;
    }
    for (uint32_t i = 0; i < h->devices; i++) {
        quiet = is_quiet(h, &h->device[i].side) && quiet;
    }
    h->stuck = h->stuck || !quiet;
}

/* Everything that was made, in the opposite order; fine for what is half made. */
static void free_all(gy_cuda *h)
{
    if (h->device && h->turn) {
        gy_cuda_enter(h);
        settle_all(h);
        gy_crew_free(h);
        gy_cuda_unbind(h);
        gy_nccl_part(h);
        free_clocks(h);
        gy_combine_free(h);
        gy_nccl_free(h);
        gy_cupti_close(h);
        gy_cuda_ops_free(h);
        gy_cuda_mirrors_free(h);
        gy_cuda_memory_free(h);
        gy_cuda_devices_free(h);
        gy_cuda_leave(h);
    }
    gy_ranges_free(h->ranges);
    gy_driver_close(&h->d);
    gy_arena_free(&h->arena);
    pthread_mutex_destroy(&h->breaking);
    gy_free(h);
}

static gantry_status cuda_open(void **state, const gy_job *job, gantry_error *err)
{
    int devices;
    gy_cuda *h = gy_calloc(1, sizeof *h);
    if (!h) {
        return gy_fail_nomem(err);
    }
    h->job = job;
    atomic_init(&h->failed.op, GY_NONE);
    pthread_mutex_init(&h->breaking, NULL);
    gantry_status status = gy_driver_start(&h->d, &devices, err);
    if (status) {
        pthread_mutex_destroy(&h->breaking);
        gy_free(h);
        return status;
    }
    if (!make_arrays(h)) {
        free_all(h);
        return gy_fail_nomem(err);
    }
    gy_cuda_enter(h);
    status = make_all(h, err);
    gy_cuda_leave(h);
    gy_replay_begin(h);
    status = status ? status : gy_crew_make(h, err);
    h->ranges = status ? NULL : gy_ranges_new(job->schedule);
    if (status) {
        free_all(h);
        return status;
    }
    *state = h;
    return GANTRY_OK;
}

static bool cuda_close(void *state)
{
    gy_cuda *h = state;
    gy_cuda_enter(h);
    bool idle = gy_cuda_lost(h) || gy_cuda_idle(h);
    gy_cuda_leave(h);
    if (idle) {
        free_all(h);
    }
    return idle;
}

/* ---- contents and bindings ---- */

#define LEAST_CHUNK (UINT64_C(64) << 10)

/* What is in the chunk, or comes into it. */
static gantry_status move_chunk(gy_cuda *h, gy_place device, uint64_t bytes, bool in, gantry_error *err)
{
    gy_queue queue = h->device[device.device].side;
    gantry_status status = gy_cuda_use(h, queue.device, err);
    if (status) {
        return status;
    }
    CUresult code = in ? h->d.cuMemcpyHtoDAsync(device.at, h->chunk, bytes, queue.stream)
                       : h->d.cuMemcpyDtoHAsync(h->chunk, device.at, bytes, queue.stream);
    code = code == CUDA_SUCCESS ? gy_cuda_settle(h, queue) : code;
    return code == CUDA_SUCCESS
               ? GANTRY_OK
               : gy_cuda_fail(h, code, device.device,
                              in ? "copying what a state or constant begins with" : "reading a state", err);
}

/* Kept, as page-locking costs more than moving most states; and made larger a few times at most. */
static gantry_status reserve_chunk(gy_cuda *h, uint64_t least, gantry_error *err)
{
    uint64_t bytes = LEAST_CHUNK;
    if (h->chunk_bytes >= least) {
        return GANTRY_OK;
    }
    while (bytes < least) {
        bytes *= 2;
    }
    if (h->chunk) {
        h->d.cuMemFreeHost(h->chunk);
    }
    h->chunk_bytes = 0;
    gantry_status status = gy_cuda_pinned(h, (void **)&h->chunk, bytes, err);
    h->chunk_bytes = status ? 0 : bytes;
    return status;
}

static gantry_status move_rows(gy_cuda *h, gy_place device, char *rows, uint64_t bytes, bool in, gantry_error *err)
{
    uint64_t most = bytes < GY_CUDA_CHUNK ? bytes : GY_CUDA_CHUNK;
    gantry_status status = reserve_chunk(h, most, err);
    for (uint64_t done = 0; done < bytes && status == GANTRY_OK; done += most) {
        uint64_t count = bytes - done < most ? bytes - done : most;
        if (in) {
            memcpy(h->chunk, rows + done, count);
        }
        status = move_chunk(h, gy_place_at(device, done), count, in, err);
        if (!in && status == GANTRY_OK) {
            memcpy(rows + done, h->chunk, count);
        }
    }
    return status;
}

/* While no start is in flight. */
static gantry_status move_instance(gy_cuda *h, uint32_t instance, char *rows, bool in, gantry_error *err)
{
    const gy_instance *i = &h->job->schedule->instances.at[instance];
    gy_use whole = { .instance = instance, .first = i->first, .last = i->last };
    uint64_t bytes = gy_use_bytes(h->job->schedule, &whole);
    gy_place place = gy_cuda_place(h, &whole, 0);
    if (h->broken.status) {
        return gy_fail(err, h->broken.status, NULL, "%s", h->broken.text);
    }
    if (bytes == 0) {
        return GANTRY_OK;
    }
    if (place.device == GY_NONE) {
        memcpy(in ? place.host : rows, in ? rows : place.host, bytes);
        return GANTRY_OK;
    }
    gy_cuda_enter(h);
    gantry_status status = move_rows(h, place, rows, bytes, in, err);
    gy_cuda_leave(h);
    return status;
}

static gantry_status cuda_put(void *state, uint32_t instance, const void *rows, gantry_error *err)
{
    return move_instance(state, instance, (char *)(uintptr_t)rows, true, err); /* reads them */
}

static gantry_status cuda_get(void *state, uint32_t instance, void *rows, gantry_error *err)
{
    return move_instance(state, instance, rows, false, err);
}

/* Graphs have the old arguments. */
static void drop_graphs(gy_cuda *h)
{
    gy_cuda_enter(h);
    for (uint32_t t = 0; t < h->turns; t++) {
        gy_graph_free(h, t);
    }
    gy_cuda_leave(h);
    gy_replay_changed(h);
}

/* Whether a captured launch depends on the iteration: by a scalar, or as a function of the program that may ask. The
 * CPU looks when it comes to it. */
static bool launch_varies(const gy_cuda *h, size_t id)
{
    const gantry_graph *g = h->job->graph;
    const gy_op *op = &h->job->schedule->ops.at[id];
    if (!h->op[id].call || !h->device[gy_op_device(h->job->schedule, op, 0)].gpu) {
        return false;
    }
    const gy_node *n = &g->nodes.at[op->node];
    bool varies = n->loop != GY_NONE && n->kernel == GY_NONE;
    for (uint32_t i = n->scalar; i < n->scalar + n->scalars && n->loop != GY_NONE; i++) {
        varies = varies || g->scalar.at[i].expr;
    }
    return varies;
}

static gantry_status cuda_advance(void *state, int64_t first, gantry_error *err)
{
    gy_cuda *h = state;
    const gantry_schedule *s = h->job->schedule;
    gantry_status status = GANTRY_OK;
    bool changes = false;
    for (size_t i = 0; i < s->ops.count; i++) {
        const gy_op *op = &s->ops.at[i];
        changes = changes || launch_varies(h, i);
        bool loops = h->op[i].call && h->job->graph->nodes.at[op->node].loop != GY_NONE;
        for (uint32_t t = 0; loops && t < h->turns && status == GANTRY_OK; t++) {
            gantry_launch *l = &h->op[i].call[t].launch;
            l->iteration = first + op->iteration;
            status = gy_launch_iterate(h->job->graph, op->node, l, err);
        }
    }
    if (changes) {
        drop_graphs(h);
    }
    return status;
}

/* Pointers are looked at when their turn comes; scalars are part of graphs. */
static gantry_status cuda_rebind(void *state, gantry_error *err)
{
    (void)err;
    gy_cuda *h = state;
    gy_cuda_ops_scalars(h);
    drop_graphs(h);
    return GANTRY_OK;
}

/* ---- starts ---- */

static gantry_status clear_words(gy_cuda *h, gantry_error *err)
{
    gantry_status status = GANTRY_OK;
    for (uint32_t i = 0; i < h->devices && status == GANTRY_OK; i++) {
        gy_cuda_device *d = &h->device[i];
        if (!d->status) {
            continue;
        }
        memset(d->told, 0, h->turns * d->launches * sizeof *d->told);
        status = gy_cuda_use(h, i, err);
        CUresult code =
            status ? CUDA_SUCCESS : h->d.cuMemsetD32Async(d->status, 0, h->turns * d->launches, d->side.stream);
        code = status == GANTRY_OK && code == CUDA_SUCCESS ? gy_cuda_settle(h, d->side) : code;
        if (code != CUDA_SUCCESS) {
            status = gy_cuda_fail(h, code, i, "clearing status words", err);
        }
    }
    h->dirty_words = status != GANTRY_OK;
    return status;
}

/* Where times of ops are recorded the event is waited for, since only then its time by our clock is known; twice, as a
 * GPU that did nothing takes longer at first. */
static gantry_status set_base(gy_cuda *h, uint32_t device, gantry_error *err)
{
    gy_cuda_device *d = &h->device[device];
    gy_queue queue = device == h->tail.device ? h->tail : d->side;
    CUresult code = h->clock ? gy_cuda_settle(h, queue) : CUDA_SUCCESS;
    gantry_status status = gy_cuda_use(h, device, err);
    if (status) {
        return status;
    }
    code = code ? code : h->d.cuEventRecord(d->base, queue.stream);
    code = code == CUDA_SUCCESS && h->clock ? gy_cuda_settle(h, queue) : code;
    d->base_ns = gy_now_ns();
    return code == CUDA_SUCCESS ? GANTRY_OK : gy_cuda_fail(h, code, device, "recording an event", err);
}

/* Nothing runs: failures are forgotten, and times count from here. */
static gantry_status begin_anew(gy_cuda *h, gantry_error *err)
{
    atomic_store(&h->failed.op, GY_NONE);
    gantry_status status = h->dirty_words ? clear_words(h, err) : GANTRY_OK;
    for (uint32_t i = 0; i < h->devices && status == GANTRY_OK; i++) {
        status = h->device[i].base && i != h->tail.device ? set_base(h, i, err) : GANTRY_OK;
    }
    return status ? status : set_base(h, h->tail.device, err);
}

static gantry_status replay_stream(gy_cuda *h, uint64_t start, bool behind, gantry_error *err)
{
    uint32_t turn = gy_job_turn(h->job, start);
    gy_submit x = { .h = h, .start = start, .turn = turn, .notes = &h->turn[turn].notes, .err = err };
    x.behind = behind;
    gy_cupti_enter(h, false);
    gantry_status status = gy_submit_start(&x);
    gy_cupti_leave(h);
    return status;
}

static gantry_status replay_graph(gy_cuda *h, uint64_t start, gantry_error *err)
{
    uint32_t turn = gy_job_turn(h->job, start);
    gantry_status status = gy_nccl_await_others(h, h->tail, err);
    status = status ? status : gy_cuda_use(h, h->tail.device, err);
    CUresult code = status ? CUDA_SUCCESS : h->d.cuGraphLaunch(h->turn[turn].exec, h->tail.stream);
    return code == CUDA_SUCCESS ? status : gy_cuda_fail(h, code, h->tail.device, "launching a graph", err);
}

/* `kind`: GY_NOTE_BRING or GY_NOTE_TAKE, in the order of the program's stream. */
static gantry_status mirror_by_stream(gy_cuda *h, uint32_t turn, gy_note_kind kind, gantry_error *err)
{
    gy_submit x = { .h = h, .turn = turn, .notes = &h->turn[turn].notes, .op = GY_NONE, .err = err };
    return h->turn[turn].mirrors && h->turn[turn].by_stream ? gy_submit_note(&x, h->tail, (gy_note){ .kind = kind })
                                                            : GANTRY_OK;
}

/* Behind `stream` and before what comes on it, unless it is NULL. */
static gantry_status replay(gy_cuda *h, uint64_t start, const CUstream *stream, gantry_error *err)
{
    uint32_t turn = gy_job_turn(h->job, start);
    gy_cuda_turn *t = &h->turn[turn];
    gy_queue caller = { 0 };
    gantry_status status = stream ? gy_cuda_follow(h, *stream, &caller, err) : GANTRY_OK;
    t->by_stream = stream != NULL;
    gy_notes_reset(&t->notes);
    if (!t->by_stream) {
        gy_cuda_mirrors_bring(h, turn);
    }
    status = status ? status : mirror_by_stream(h, turn, GY_NOTE_BRING, err);
    if (status == GANTRY_OK) {
        status = h->graphs ? replay_graph(h, start, err) : replay_stream(h, start, stream != NULL, err);
    }
    status = status ? status : mirror_by_stream(h, turn, GY_NOTE_TAKE, err);
    status = status ? status : gy_cuda_use(h, h->tail.device, err);
    CUresult code = status ? CUDA_SUCCESS : h->d.cuEventRecord(t->end, h->tail.stream);
    if (code != CUDA_SUCCESS) {
        status = gy_cuda_fail(h, code, h->tail.device, "recording the end of a start", err);
    }
    return status || !stream ? status : gy_cuda_lead(h, caller, t->end, err);
}

static gantry_status submit(gy_cuda *h, uint64_t start, const CUstream *stream, gantry_error *err)
{
    uint32_t turn = gy_job_turn(h->job, start);
    gy_cuda_turn *t = &h->turn[turn];
    gantry_status status = gy_cuda_bind(h, turn, err);
    gy_replay_choose(h);
    status = status || !h->graphs || t->exec ? status : gy_graph_make(h, turn, err);
    status = status || h->ended != h->begun ? status : begin_anew(h, err);
    if (status) {
        return status;
    }
    t->begin_ns = h->ended == h->begun ? h->device[h->tail.device].base_ns : gy_now_ns();
    gy_cupti_begin(h);
    status = replay(h, start, stream, err);
    if (status) {
        settle_all(h);
        return status;
    }
    t->start = start;
    h->begun = start;
    return GANTRY_OK;
}

static gantry_status begin(gy_cuda *h, uint64_t start, const CUstream *stream, gantry_error *err)
{
    if (h->broken.status) {
        return gy_fail(err, h->broken.status, NULL, "the run is over since an earlier failure: %s", h->broken.text);
    }
    gy_cuda_enter(h);
    gantry_status status = gy_nccl_enter(h, err);
    if (status == GANTRY_OK) {
        gy_range_start(h->ranges, start);
        status = submit(h, start, stream, err);
        gy_range_end(h->ranges);
        gy_nccl_leave(h, status ? NULL : h->turn[gy_job_turn(h->job, start)].end);
    }
    gy_cuda_leave(h);
    return status;
}

static gantry_status cuda_begin(void *state, uint64_t start, gantry_error *err)
{
    return begin(state, start, NULL, err);
}

static gantry_status cuda_begin_on(void *state, uint64_t start, void *stream, gantry_error *err)
{
    CUstream on = stream;
    return begin(state, start, &on, err);
}

static gantry_status cuda_locate(void *state, uint32_t memory, const void *at, uint64_t bytes, gantry_error *err)
{
    gy_cuda *h = state;
    gy_cuda_enter(h);
    gantry_status status = gy_cuda_locate(h, memory, at, bytes, err);
    gy_cuda_leave(h);
    return status;
}

static gantry_status cuda_finish(void *state, uint64_t start, int64_t *elapsed_ns, gantry_error *err)
{
    gy_cuda *h = state;
    gy_cuda_enter(h);
    gantry_status status = gy_cuda_finish(h, start, elapsed_ns, err);
    gy_cuda_leave(h);
    return status;
}

static bool cuda_idle(void *state)
{
    gy_cuda *h = state;
    gy_cuda_enter(h);
    bool idle = gy_cuda_lost(h) || gy_cuda_idle(h);
    gy_cuda_leave(h);
    return idle;
}

static const gy_op_time *cuda_times(void *state)
{
    const gy_cuda *h = state;
    return h->time;
}

static const char *cuda_replay(void *state)
{
    return gy_nccl_replay(state);
}

const gy_backend gy_backend_cuda = {
    .name = "cuda",
    .summary = "NVIDIA GPUs",
    .replay_of = cuda_replay,
    .executes = true,
    .overlaps = true,
    .gpu_kernels = true,
    .usable = gy_cuda_usable,
    .open = cuda_open,
    .close = cuda_close,
    .put = cuda_put,
    .get = cuda_get,
    .advance = cuda_advance,
    .locate = cuda_locate,
    .rebind = cuda_rebind,
    .begin = cuda_begin,
    .begin_on = cuda_begin_on,
    .finish = cuda_finish,
    .idle = cuda_idle,
    .times = cuda_times,
};
