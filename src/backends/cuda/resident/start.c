/* SPDX-License-Identifier: Apache-2.0 */
/* A start: the kernels of all GPUs, and the counters for ops that streams carry out. */
#include "backends/cuda/resident/resident.h"

#include "backends/cuda/collective/collective.h"
#include "base/error.h"

static gantry_status launch_on(gy_submit *x, uint32_t device)
{
    gy_cuda *h = x->h;
    gy_resident_gpu *g = &h->resident->gpu[device];
    const gy_resident_turn *t = &g->turn[x->turn];
    gy_resident_segment segment = t->segment.at[x->segment];
    bool ring = gy_resident_takes_turns(h);
    CUdeviceptr worker = ring ? g->ring.at : t->at + segment.first * sizeof(gy_resident_worker);
    uint64_t epoch = h->resident->epoch;
    gy_resident_series series = gy_resident_series_on(h, device);
    series.turn = ring ? x->turn : 0;
    if (!segment.workers)
        return GANTRY_OK;
    GY_TRY(gy_order_await_others(h, g->queue, x->err));
    GY_TRY(gy_cuda_use(h, device, x->err));
    CUresult code =
        h->d.cuLaunchCooperativeKernel(g->code->function, segment.workers, 1, 1, GY_RESIDENT_THREADS, 1, 1,
                                       g->code->shared, g->queue.stream, (void *[]){ &worker, &epoch, &series });
    code = code ? code : h->d.cuEventRecord(g->end, g->queue.stream);
    return gy_submit_check(x, code, g->queue, "launching the resident kernel");
}

/* The kernels come before the ops of streams: one that waits for a counter may stand in the way of what is given to its
 * GPU after it. */
gantry_status gy_resident_launch(gy_submit *x)
{
    gantry_status status = GANTRY_OK;
    x->h->resident->begun = true;
    for (uint32_t i = 0; i < x->h->devices && status == GANTRY_OK; i++)
        status = x->h->resident->gpu[i].workers ? launch_on(x, i) : GANTRY_OK;
    return status;
}

gantry_status gy_resident_probe(gy_cuda *h, gantry_error *err)
{
    gy_resident *r = h->resident;
    gy_submit x = { .h = h, .op = GY_NONE, .err = err };
    gantry_status status = GANTRY_OK;
    r->series.starts = 0;
    for (uint32_t i = 0; i < h->devices && status == GANTRY_OK; i++)
        status = r->gpu[i].workers ? launch_on(&x, i) : GANTRY_OK;
    r->series = gy_resident_alone;
    for (uint32_t i = 0; i < h->devices && status == GANTRY_OK; i++) {
        CUresult code = r->gpu[i].workers ? gy_cuda_settle(h, r->gpu[i].queue) : CUDA_SUCCESS;
        if (code != CUDA_SUCCESS)
            status = gy_cuda_fail(h, code, i, "launching the resident kernel", err);
    }
    return status;
}

void gy_resident_begun(gy_cuda *h)
{
    gy_resident *r = h->resident;
    r->first = r->epoch;
    r->counts = true;
    r->epoch += r->series.starts;
}

static uint64_t value_of(const gy_cuda *h, const gy_resident_edge *e)
{
    return (h->resident->epoch - e->distance) * h->resident->signals_of[e->counter] + e->value;
}

/* Counters lie in the memory of the reader's GPU, which another lane's need not reach. */
gantry_status gy_resident_stream_await(gy_submit *x)
{
    gy_cuda *h = x->h;
    const gy_resident *r = h->resident;
    for (uint32_t i = r->waits.first[x->op]; i < r->waits.first[x->op + 1]; i++) {
        const gy_resident_edge *e = &r->waits.at[i];
        gy_queue queue = h->lane[gy_resident_lanes_of(h, e->counter).to].queue;
        if (r->epoch < e->distance)
            continue;
        GY_TRY(gy_cuda_use(h, queue.device, x->err));
        CUresult code =
            h->d.wait_value(queue.stream, gy_resident_counter(h, e->counter), value_of(h, e), CU_STREAM_WAIT_VALUE_GEQ);
        GY_TRY(gy_submit_check(x, code, queue, "waiting for a counter"));
    }
    return GANTRY_OK;
}

/* The driver puts a fence for the whole system ahead of such a write. */
gantry_status gy_resident_stream_signal(gy_submit *x)
{
    gy_cuda *h = x->h;
    const gy_resident *r = h->resident;
    for (uint32_t i = r->signals.first[x->op]; i < r->signals.first[x->op + 1]; i++) {
        const gy_resident_edge *e = &r->signals.at[i];
        gy_queue queue = h->lane[gy_resident_lanes_of(h, e->counter).from].queue;
        GY_TRY(gy_cuda_use(h, queue.device, x->err));
        CUresult code = h->d.write_value(queue.stream, gy_resident_counter(h, e->counter), value_of(h, e),
                                         CU_STREAM_WRITE_VALUE_DEFAULT);
        GY_TRY(gy_submit_check(x, code, queue, "writing a counter"));
    }
    return GANTRY_OK;
}
