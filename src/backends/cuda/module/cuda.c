/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the back end: opening, starting, closing. */
#include "backends/cuda/module/module.h"

#include "backends/cuda/collective/order.h"
#include "backends/cuda/resident/resident.h"
#include "backends/cuda/stream/gates.h"
#include "backends/cuda/stream/ranges.h"
#include "backends/cuda/submit/submit.h"
#include "backends/cuda/times/times.h"
#include "backends/cuda/usercode/usercode.h"
#include "base/error.h"

/* ---- opening ---- */

/* Each kernel is looked for once, and not for each op that launches it. */
static bool find_library(gy_cuda *h)
{
    const gantry_graph *g = h->job->graph;
    h->library = gy_arena_calloc(&h->arena, g->kernels.count + 1, sizeof *h->library);
    for (size_t i = 0; h->library && i < g->kernels.count; i++)
        h->library[i] = g->kernels.at[i].manifest ? gy_cuda_kernel_find(g->kernels.at[i].manifest->name) : NULL;
    return h->library != NULL;
}

static bool make_arrays(gy_cuda *h)
{
    const gantry_schedule *s = h->job->schedule;
    h->devices = s->machine->devices;
    h->memories = s->machine->memories;
    h->lanes = (uint32_t)s->lanes.count + (h->job->network != NULL);
    h->turns = h->job->turns;
    h->device = gy_arena_calloc(&h->arena, h->devices, sizeof *h->device);
    h->memory = gy_arena_calloc(&h->arena, h->memories, sizeof *h->memory);
    h->lane = gy_arena_calloc(&h->arena, h->lanes + 1, sizeof *h->lane);
    h->op = gy_arena_calloc(&h->arena, s->ops.count + 1, sizeof *h->op);
    h->handle = gy_arena_calloc(&h->arena, h->job->graph->kernels.count * h->devices + 1, sizeof *h->handle);
    h->turn = gy_arena_calloc(&h->arena, h->turns, sizeof *h->turn);
    h->time = h->job->record ? gy_arena_calloc(&h->arena, s->ops.count + 1, sizeof *h->time) : NULL;
    h->forked = gy_arena_calloc(&h->arena, h->devices + 1, sizeof *h->forked);
    h->auxiliary_last = gy_arena_calloc(&h->arena, h->devices + 1, sizeof *h->auxiliary_last);
    bool room = h->forked && h->auxiliary_last && h->device && h->memory && h->lane && h->op && h->handle && h->turn &&
                (h->time || !h->job->record) && find_library(h);
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
    return d->gpu && d->used && (h->job->record || device == h->end_stream.device);
}

static gantry_status make_clocks(gy_cuda *h, gantry_error *err)
{
    const gantry_schedule *s = h->job->schedule;
    gantry_status status = GANTRY_OK;
    for (uint32_t i = 0; i < h->devices && status == GANTRY_OK; i++)
        status = has_base(h, i) ? gy_cuda_event_new(h, &h->device[i].base, i, true, err) : GANTRY_OK;
    for (uint32_t t = 0; t < h->turns && status == GANTRY_OK; t++) {
        status = gy_cuda_event_new(h, &h->turn[t].timed_end, h->end_stream.device, true, err);
        status = status ? status : gy_cuda_event_new(h, &h->turn[t].plain_end, h->end_stream.device, false, err);
        h->turn[t].end = h->turn[t].timed_end;
    }
    h->ends_unseen = true; /* of the first start nothing is known */
    if (status || !h->job->record)
        return status;
    h->clock = gy_arena_calloc(&h->arena, 2 * (size_t)h->turns * s->ops.count + 1, sizeof *h->clock);
    if (!h->clock)
        return gy_fail_nomem(err);
    for (uint32_t i = 0; i < h->turns * s->ops.count && status == GANTRY_OK; i++) {
        uint32_t turn = i / (uint32_t)s->ops.count, op = i % (uint32_t)s->ops.count;
        uint32_t device = gy_cuda_lane_of(h, op, 0)->queue.device;
        status = gy_cuda_event_new(h, gy_cuda_clock(h, turn, op, 0), device, true, err);
        status = status ? status : gy_cuda_event_new(h, gy_cuda_clock(h, turn, op, 1), device, true, err);
    }
    return status;
}

static gantry_status make_all(gy_cuda *h, gantry_error *err)
{
    gy_cuda_memory_owners(h);
    gantry_status status = h->job->network ? gy_cross_make(h, err) : GANTRY_OK;
    status = status ? status : gy_cupti_open(h, err);
    struct gy_user_ahead *ahead = status ? NULL : gy_cuda_compile_begin(h);
    status = status ? status : gy_cuda_devices_make(h, err);
    gy_user_kernels_end(ahead);
    status = status ? status : gy_cuda_ops_make(h, err);
    status = status ? status : gy_cuda_peers_make(h, err);
    status = status || h->step ? status : gy_carry_make(h, err);
    status = status ? status : gy_combine_make(h, err);
    status = status ? status : gy_when_make(h, err);
    status = status ? status : gy_fill_open(h, err);
    status = status ? status : h->step ? gy_nccl_open_ranks(h, err) : gy_nccl_open(h, err);
    status = status ? status : gy_cuda_mirrors_make(h, err);
    if (status == GANTRY_OK) {
        gy_cuda_ops_stage(h);
        status = gy_cuda_memory_make(h, err);
    }
    status = status ? status : gy_cuda_batches_make(h, err);
    status = status ? status : gy_counted_make(h, err);
    status = status ? status : gy_gates_make(h, err);
    for (uint32_t i = 0; i < h->devices && status == GANTRY_OK && gy_gates_on(h); i++)
        status = gy_gates_begins(h, i) ? gy_order_add(h, i, err) : GANTRY_OK;
    struct gy_warm *warm = status ? NULL : gy_warm_begin(h);
    for (uint32_t i = 0; i < h->job->schedule->ops.count && status == GANTRY_OK; i++)
        status = gy_fill_prepare(h, i, err);
    status = status ? status : make_clocks(h, err);
    if (status == GANTRY_OK && !h->step && h->job->schedule->replay == GY_REPLAY_DEVICE)
        status = gy_resident_make(h, err);
    gy_warm_end(warm, h->devices);
    if (status == GANTRY_OK && !h->step)
        gy_nccl_connect(h);
    return status;
}

static void free_clocks(gy_cuda *h)
{
    size_t clocks = h->clock ? 2 * (size_t)h->turns * h->job->schedule->ops.count : 0;
    for (size_t i = 0; i < clocks; i++)
        if (h->clock[i])
            h->d.cuEventDestroy(h->clock[i]);
    for (uint32_t t = 0; h->turn && t < h->turns; t++) {
        if (h->turn[t].timed_end)
            h->d.cuEventDestroy(h->turn[t].timed_end);
        if (h->turn[t].plain_end)
            h->d.cuEventDestroy(h->turn[t].plain_end);
        gy_graph_free(h, t);
        gy_callbacks_free(&h->turn[t].callbacks);
        gy_callbacks_free(&h->turn[t].exec_callbacks);
    }
    for (uint32_t i = 0; h->device && i < h->devices; i++)
        if (h->device[i].base)
            h->d.cuEventDestroy(h->device[i].base);
}

/* Everything that was made, in the opposite order; fine for what is half made. */
static void free_all(gy_cuda *h)
{
    if (h->job->network)
        gy_network_ask_no_more(h->job->network, h);
    if (h->device && h->turn) {
        gy_cuda_enter(h);
        gy_resident_end(h, true); /* the end of a start may be known from its kernels alone */
        gy_cuda_settle_all(h);
        gy_submitters_free(h);
        gy_cuda_unbind(h);
        gy_order_unlist(h);
        free_clocks(h);
        gy_when_free(h);
        gy_combine_free(h);
        gy_fill_close(h);
        gy_nccl_free(h);
        gy_cupti_close(h);
        gy_resident_free(h);
        gy_counted_free(h);
        gy_gates_free(h);
        gy_cuda_batches_free(h);
        gy_cuda_ops_free(h);
        gy_cuda_mirrors_free(h);
        gy_land_free(h);
        gy_cuda_memory_free(h);
        gy_cuda_devices_free(h);
        gy_cuda_leave(h);
    }
    gy_cross_free(h);
    gy_ranges_free(h->ranges);
    gy_driver_close(&h->d);
    gy_arena_free(&h->arena);
    pthread_mutex_destroy(&h->broken_lock);
    gy_free(h);
}

static gantry_status cuda_open(void **state, const gy_job *job, gantry_error *err)
{
    int devices;
    gy_cuda *h = gy_calloc(1, sizeof *h);
    if (!h)
        return gy_fail_nomem(err);
    h->job = job;
    atomic_init(&h->failed.op, GY_NONE);
    atomic_init(&h->at, GY_NONE);
    pthread_mutex_init(&h->broken_lock, NULL);
    gantry_status status = gy_driver_start(&h->d, &devices, err);
    if (status) {
        pthread_mutex_destroy(&h->broken_lock);
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
    status = status ? status : gy_submitters_make(h, err);
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
    if (idle)
        free_all(h);
    return idle;
}

/* ---- contents and bindings ---- */

static gantry_status cuda_put(void *state, uint32_t instance, const void *rows, gantry_error *err)
{
    return gy_cross_contents(state, instance, (char *)(uintptr_t)rows, true, err); /* reads them */
}

static gantry_status cuda_make(void *state, uint32_t instance, bool *made, gantry_error *err)
{
    return gy_cuda_contents_make(state, instance, made, err);
}

static gantry_status cuda_get(void *state, uint32_t instance, void *rows, gantry_error *err)
{
    return gy_cross_contents(state, instance, rows, false, err);
}

static gantry_status cuda_land(void *state, uint32_t instance, const void *rows, gantry_error *err)
{
    return gy_land(state, instance, rows, err);
}

static gantry_status cuda_pinned(void *state, void **to, uint64_t bytes, gantry_error *err)
{
    gy_cuda *h = state;
    gy_cuda_enter(h);
    gantry_status status = gy_cuda_pinned(h, to, bytes, err);
    gy_cuda_leave(h);
    return status;
}

/* Something may be on its way from there. */
static void cuda_unpin(void *state, void *at)
{
    gy_cuda *h = state;
    gy_cuda_enter(h);
    gy_land_settle(h);
    if (gy_cuda_use(h, h->first_gpu, NULL) == GANTRY_OK)
        h->d.cuMemFreeHost(at);
    gy_cuda_leave(h);
}

static gantry_status cuda_share(void *state, void *bytes, uint64_t count, gantry_error *err)
{
    const gy_cuda *h = state;
    return gy_network_share(h->job->network, bytes, count, err);
}

/* Captured launches have the old arguments. */
static void drop_graphs(gy_cuda *h)
{
    gy_cuda_enter(h);
    gy_replay_changed(h);
    gy_cuda_leave(h);
}

static gantry_status cuda_advance(void *state, int64_t first, gantry_error *err)
{
    bool changed;
    gantry_status status = gy_cuda_ops_advance(state, first, &changed, err);
    if (changed)
        drop_graphs(state);
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

static gantry_status cuda_begin(void *state, uint64_t start, gantry_error *err)
{
    return gy_cuda_begin(state, start, NULL, err);
}

static gantry_status cuda_begin_on(void *state, uint64_t start, void *stream, gantry_error *err)
{
    CUstream on = stream;
    return gy_cuda_begin(state, start, &on, err);
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

static gantry_status cuda_series(void *state, uint64_t start, const gy_series *series, uint64_t *done,
                                 int64_t *elapsed_ns, gantry_error *err)
{
    gy_cuda *h = state;
    gy_resident_series_want(h, series);
    gantry_status status = cuda_begin(h, start, err);
    bool alone = h->turns > 1 && !gy_resident_takes_turns(h); /* others can begin before it ends */
    status = status || alone ? status : cuda_finish(h, start, elapsed_ns, err);
    uint64_t starts = gy_resident_series_end(h);
    *done = alone ? 0 : starts;
    return status;
}

static gantry_status cuda_turn_to(void *state, gy_lead way, bool for_good, gantry_error *err)
{
    return gy_ways_turn_to(state, way, for_good, err);
}

static int64_t cuda_turn_ns(void *state)
{
    return gy_ways_turn_ns(state);
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
    gy_cuda *h = state;
    const char *replay = gy_nccl_replay(h);
    replay = gy_resident_on(h) ? replay : gy_gates_replay(h, replay);
    return gy_resident_replay(h, gy_counted_replay(h, replay));
}

const gy_backend gy_backend_cuda = {
    .name = "cuda",
    .summary = "NVIDIA GPUs",
    .replay_of = cuda_replay,
    .executes = true,
    .overlaps = true,
    .ranks = true,
    .steady = true,
    .gpu_kernels = true,
    .usable = gy_cuda_usable,
    .open = cuda_open,
    .close = cuda_close,
    .put = cuda_put,
    .make = cuda_make,
    .get = cuda_get,
    .land = cuda_land,
    .pinned = cuda_pinned,
    .unpin = cuda_unpin,
    .advance = cuda_advance,
    .share = cuda_share,
    .locate = cuda_locate,
    .rebind = cuda_rebind,
    .begin = cuda_begin,
    .begin_on = cuda_begin_on,
    .finish = cuda_finish,
    .series = cuda_series,
    .turn_to = cuda_turn_to,
    .turn_ns = cuda_turn_ns,
    .idle = cuda_idle,
    .times = cuda_times,
};
