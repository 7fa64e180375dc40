/* SPDX-License-Identifier: Apache-2.0 */
/* One start: clocks and status words, then its submission as streams or the launch of its graph. */
#include "backends/cuda/submit/submit.h"

#include "backends/cuda/resident/resident.h"
#include "backends/cuda/stream/gates.h"
#include "backends/cuda/stream/ranges.h"
#include "backends/cuda/times/times.h"
#include "base/clock.h"
#include "base/error.h"
#include <string.h>

static gantry_status clear_words(gy_cuda *h, gantry_error *err)
{
    gantry_status status = GANTRY_OK;
    for (uint32_t i = 0; i < h->devices && status == GANTRY_OK; i++) {
        gy_cuda_device *d = &h->device[i];
        size_t words = (size_t)h->turns * d->fetched;
        if (d->host_status)
            memset(d->host_status, 0, (size_t)h->turns * d->launches * sizeof *d->host_status);
        if (!d->status)
            continue;
        status = gy_cuda_use(h, i, err);
        CUresult code = status ? CUDA_SUCCESS : h->d.cuMemsetD32Async(d->status, 0, words, d->auxiliary.stream);
        code = status == GANTRY_OK && code == CUDA_SUCCESS ? gy_cuda_settle(h, d->auxiliary) : code;
        if (code != CUDA_SUCCESS)
            status = gy_cuda_fail(h, code, i, "clearing status words", err);
    }
    h->dirty_words = status != GANTRY_OK;
    return status;
}

/* Records the base event of the device. Where times of ops are recorded the event is waited for, since only then its
 * time by the host's clock is known; twice, as an idle GPU takes longer at first. */
static gantry_status set_base(gy_cuda *h, uint32_t device, gantry_error *err)
{
    gy_cuda_device *d = &h->device[device];
    gy_queue queue = device == h->end_stream.device ? h->end_stream : d->auxiliary;
    CUresult code = h->clock ? gy_cuda_settle(h, queue) : CUDA_SUCCESS;
    GY_TRY(gy_cuda_use(h, device, err));
    code = code ? code : h->d.cuEventRecord(d->base, queue.stream);
    code = code == CUDA_SUCCESS && h->clock ? gy_cuda_settle(h, queue) : code;
    d->base_ns = gy_now_ns();
    return code == CUDA_SUCCESS ? GANTRY_OK : gy_cuda_fail(h, code, device, "recording an event", err);
}

/* Begins anew while nothing runs: failures are forgotten, and times of events count from here. */
static gantry_status begin_anew(gy_cuda *h, bool by_events, gantry_error *err)
{
    atomic_store(&h->failed.op, GY_NONE);
    gantry_status status = h->dirty_words ? clear_words(h, err) : GANTRY_OK;
    for (uint32_t i = 0; i < h->devices && status == GANTRY_OK && by_events; i++)
        status = h->device[i].base && i != h->end_stream.device ? set_base(h, i, err) : GANTRY_OK;
    return status || !by_events ? status : set_base(h, h->end_stream.device, err);
}

/* The start begins now. Events are needed for its times where the host's clock does not tell how long it takes: others
 * are in flight, it comes behind what a caller has queued, or nobody may watch its end. */
static gantry_status begin_turn(gy_cuda *h, gy_cuda_turn *t, bool behind, gantry_error *err)
{
    bool first = h->ended == h->begun, alone = first && h->turns == 1 && !h->clock && !behind;
    bool by_events = !alone || h->ends_unseen;
    t->called_ns = alone ? gy_now_ns() : 0;
    t->end = by_events ? t->timed_end : t->plain_end;
    GY_TRY(first ? begin_anew(h, by_events, err) : GANTRY_OK);
    t->begin_ns = !by_events ? t->called_ns : first ? h->device[h->end_stream.device].base_ns : gy_now_ns();
    return GANTRY_OK;
}

static gantry_status replay_stream(gy_cuda *h, uint64_t start, bool behind, gantry_error *err)
{
    uint32_t turn = gy_job_turn(h->job, start);
    gy_submit x = { .h = h, .start = start, .turn = turn, .callbacks = &h->turn[turn].callbacks, .err = err };
    x.after_caller = behind;
    gy_cupti_enter(h, false);
    gantry_status status = gy_submit_start(&x);
    gy_cupti_leave(h);
    return status;
}

/* Graphs of GPUs that nothing is in flight on, and that no stream of a caller is ahead of, need not wait for the end
 * stream: such an event between GPUs takes as long as an edge. */
static gantry_status replay_graphs(gy_cuda *h, uint32_t turn, bool behind, gantry_error *err)
{
    bool alone = h->ended == h->begun && !behind;
    gantry_status status = GANTRY_OK;
    for (uint32_t i = 0; i < h->devices && status == GANTRY_OK; i++)
        status = gy_gates_begins(h, i) ? gy_order_await_others(h, gy_gates_origin(h, i), err) : GANTRY_OK;
    return status ? status : gy_gates_launch(h, turn, alone, err);
}

static gantry_status replay_graph(gy_cuda *h, uint64_t start, bool behind, gantry_error *err)
{
    uint32_t turn = gy_job_turn(h->job, start);
    if (gy_gates_on(h))
        return replay_graphs(h, turn, behind, err);
    gantry_status status = gy_order_await_others(h, h->end_stream, err);
    status = status ? status : gy_cuda_use(h, h->end_stream.device, err);
    CUresult code = status ? CUDA_SUCCESS : h->d.cuGraphLaunch(h->turn[turn].exec, h->end_stream.stream);
    return code == CUDA_SUCCESS ? status : gy_cuda_fail(h, code, h->end_stream.device, "launching a graph", err);
}

/* Not beside resident kernels, while it is tried which is faster. */
static bool as_graph(const gy_cuda *h)
{
    return h->graphs && !gy_resident_on(h);
}

bool gy_cuda_by_gates(const gy_cuda *h)
{
    return as_graph(h) && gy_gates_on(h);
}

/* Copies to or from the mirrors (`kind`) in the order of the caller's stream. */
static gantry_status mirror_by_stream(gy_cuda *h, uint32_t turn, gy_callback_kind kind, gantry_error *err)
{
    gy_submit x = { .h = h, .turn = turn, .callbacks = &h->turn[turn].callbacks, .op = GY_NONE, .err = err };
    return h->turn[turn].mirrors && h->turn[turn].by_stream
               ? gy_submit_callback(&x, h->end_stream, (gy_callback){ .kind = kind })
               : GANTRY_OK;
}

/* Comes after `stream` and before what comes on it next, unless it is NULL. `behind`: it waits for the end stream. */
static gantry_status replay(gy_cuda *h, uint64_t start, const CUstream *stream, bool behind, gantry_error *err)
{
    uint32_t turn = gy_job_turn(h->job, start);
    gy_cuda_turn *t = &h->turn[turn];
    gy_queue caller = { 0 };
    gantry_status status = stream ? gy_cuda_after_caller(h, *stream, &caller, err) : GANTRY_OK;
    t->by_stream = stream != NULL;
    gy_callbacks_reset(&t->callbacks);
    for (uint32_t i = 0; i < h->turns && !t->by_stream; i++)
        if (i == turn || gy_resident_takes_turns(h))
            gy_cuda_mirrors_in(h, i);
    status = status ? status : mirror_by_stream(h, turn, GY_CALLBACK_MIRROR_IN, err);
    if (status == GANTRY_OK)
        status = as_graph(h) ? replay_graph(h, start, behind, err) : replay_stream(h, start, behind, err);
    status = status ? status : mirror_by_stream(h, turn, GY_CALLBACK_MIRROR_OUT, err);
    status = status ? status : gy_cuda_use(h, h->end_stream.device, err);
    t->apart = gy_submit_ends_apart(h, behind);
    CUstream last = t->apart ? h->resident->gpu[h->end_stream.device].queue.stream : h->end_stream.stream;
    CUresult code = status ? CUDA_SUCCESS : h->d.cuEventRecord(t->end, last);
    if (code != CUDA_SUCCESS)
        status = gy_cuda_fail(h, code, h->end_stream.device, "recording the end of a start", err);
    return status || !stream ? status : gy_cuda_before_caller(h, caller, t->end, err);
}

/* A part of this start may wait for what was not submitted. Earlier ones end by themselves. */
static void release_waiters(gy_cuda *h)
{
    if ((!h->counted && !gy_cuda_by_gates(h)) || gy_cuda_lost(h))
        return;
    gy_cuda_drain(h);
    gy_cuda_release(h);
}

/* Its ops and its program find what it is bound to. */
static gantry_status make_ready(gy_cuda *h, uint32_t turn, gantry_error *err)
{
    bool changed = false;
    gantry_status status = gy_cuda_bind(h, turn, &changed, err);
    if (changed) {
        gy_cuda_ops_point(h, turn);
        gy_graph_free(h, turn); /* it has the old addresses */
        gy_resident_stale(h, turn);
        status = status ? status : gy_cuda_batches_point(h, turn, err);
    }
    return status ? status : gy_replay_prepare(h, turn, err);
}

static gantry_status make_all_ready(gy_cuda *h, uint32_t turn, gantry_error *err)
{
    GY_TRY(make_ready(h, turn, err));
    for (uint32_t t = 0; t < h->turns && gy_resident_may_take_turns(h); t++)
        GY_TRY(t == turn ? GANTRY_OK : make_ready(h, t, err));
    return gy_resident_series_choose(h, gy_cuda_ops_vary(h), err);
}

static gantry_status submit(gy_cuda *h, uint64_t start, const CUstream *stream, gantry_error *err)
{
    uint32_t turn = gy_job_turn(h->job, start);
    gy_cuda_turn *t = &h->turn[turn];
    bool lands = false;
    gantry_status status = make_all_ready(h, turn, err);
    status = status || !as_graph(h) || t->exec ? status : gy_graph_make(h, turn, err);
    status = status ? status : begin_turn(h, t, stream != NULL, err);
    status = status ? status : gy_land_bring(h, &lands, err);
    if (status)
        return status;
    gy_cupti_begin(h);
    status = replay(h, start, stream, stream || lands, err);
    if (status) {
        gy_nccl_end_ranks(h, err);
        gy_resident_end(h, true);
        release_waiters(h);
        gy_cuda_settle_all(h);
        return status;
    }
    if (gy_resident_on(h))
        gy_resident_begun(h);
    t->start = start;
    h->begun = start;
    return GANTRY_OK;
}

gantry_status gy_cuda_begin(gy_cuda *h, uint64_t start, const CUstream *stream, gantry_error *err)
{
    if (h->broken.status)
        return gy_fail(err, h->broken.status, NULL, "the run is over since an earlier failure: %s", h->broken.text);
    if (h->job->network)
        gy_network_ask(h->job->network, gy_cuda_tell, h);
    gy_cuda_enter(h);
    gantry_status status = gy_nccl_enter(h, err);
    gy_replay_settle(h);
    if (status == GANTRY_OK) {
        gy_order_enter(h, h->counted || gy_nccl_on(h) || gy_resident_on(h) || gy_gates_on(h));
        gy_range_start(h->ranges, start);
        status = submit(h, start, stream, err);
        gy_range_end(h->ranges);
        gy_order_leave(h, status ? NULL : h->turn[gy_job_turn(h->job, start)].end);
    }
    gy_cuda_leave(h);
    return status;
}
