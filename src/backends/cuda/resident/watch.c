/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts that fail. If a part of a start was not given to the GPUs, or does not come to its end, workers and streams
 * wait for counters that nobody writes. Then the host raises all counters: streams go on, and workers that see one pass
 * over the rest of their packets. What still runs may signal in the meantime, so counters are raised until all is
 * quiet.
 */
#include "backends/cuda/resident/resident.h"

#include "base/clock.h"
#include "base/error.h"
#include <string.h>

#define LOOK_NS   INT64_C(50000000)
#define LET_GO_NS INT64_C(500000000) /* a worker ends by then, unless its call is a long one */

static void raise_counters(gy_cuda *h)
{
    for (uint32_t i = 0; i < h->devices; i++) {
        const gy_resident_gpu *g = &h->resident->gpu[i];
        uint64_t bytes = (uint64_t)g->counters * GY_COUNTER_BYTES;
        if (g->used && bytes && gy_cuda_use(h, i, NULL) == GANTRY_OK &&
            h->d.cuMemcpyHtoDAsync(g->block, g->host + (g->bytes - g->progress_at), bytes, g->aside.stream) ==
                CUDA_SUCCESS)
            gy_cuda_settle(h, g->aside);
    }
}

CUresult gy_resident_ask(const gy_cuda *h, const gy_cuda_turn *t)
{
    CUresult code = h->d.cuEventQuery(t->end);
    for (uint32_t i = 0; t->apart && i < h->devices && code == CUDA_SUCCESS; i++)
        if (h->resident->gpu[i].workers)
            code = h->d.cuEventQuery(h->resident->gpu[i].end);
    return code;
}

/* Starts that were given to the GPUs as a whole end by themselves. */
static void await_whole_starts(gy_cuda *h)
{
    gy_waited waited = gy_waited_begin();
    const gy_cuda_turn *t = &h->turn[gy_job_turn(h->job, h->begun ? h->begun : 1)];
    for (unsigned polls = 0; h->begun > h->ended && gy_resident_ask(h, t) == CUDA_ERROR_NOT_READY; polls++) {
        if (gy_waited_look(&waited) > gy_cuda_patience(h))
            return;
        gy_cuda_rest(polls);
    }
}

/* Gives a queue the rest of the time in which workers are let go. */
static void quieten(gy_cuda *h, gy_queue queue, gy_waited *waited)
{
    int64_t gone = gy_waited_look(waited);
    if (gone < LET_GO_NS)
        gy_cuda_quieten_for(h, queue, raise_counters, LET_GO_NS - gone);
}

void gy_resident_let_go(gy_cuda *h)
{
    gy_waited waited = gy_waited_begin();
    if (!h->resident->begun || gy_cuda_lost(h))
        return;
    raise_counters(h);
    for (uint32_t i = 0; i < h->devices; i++)
        quieten(h, h->resident->gpu[i].queue, &waited);
    for (uint32_t i = 0; i < h->lanes; i++)
        quieten(h, h->lane[i].queue, &waited);
}

void gy_resident_end(gy_cuda *h, bool whole)
{
    if (!gy_resident_on(h) || !h->resident->begun || gy_cuda_lost(h))
        return;
    if (whole)
        await_whole_starts(h);
    for (uint32_t i = 0; i < h->devices; i++)
        gy_cuda_quieten(h, h->resident->gpu[i].queue, raise_counters);
    gy_cuda_quieten_all(h, raise_counters);
    gy_resident_clear(h, NULL);
}

gantry_status gy_resident_clear(gy_cuda *h, gantry_error *err)
{
    gy_resident *r = h->resident;
    for (uint32_t i = 0; i < h->devices; i++) {
        gy_resident_gpu *g = &r->gpu[i];
        if (!g->used)
            continue;
        GY_TRY(gy_cuda_use(h, i, err));
        CUresult code = h->d.cuMemsetD8Async(g->block, 0, g->bytes, g->queue.stream);
        code = code ? code : gy_cuda_settle(h, g->queue);
        if (code != CUDA_SUCCESS)
            return gy_cuda_fail(h, code, i, "clearing counters", err);
    }
    *r->told = 0;
    r->epoch = 0;
    r->begun = false;
    return GANTRY_OK;
}

/* ---- progress ---- */

/* Fetches progress, and returns if it has changed. */
static bool fetch(gy_cuda *h, uint32_t device)
{
    gy_resident_gpu *g = &h->resident->gpu[device];
    uint64_t *seen = (uint64_t *)(void *)g->host, before = 0, now = 0;
    for (uint32_t i = 0; i < g->workers; i++)
        before = before * 31 + seen[i];
    if (gy_cuda_use(h, device, NULL) ||
        h->d.cuMemcpyDtoHAsync(seen, g->block + g->progress_at, g->workers * sizeof *seen, g->aside.stream) !=
            CUDA_SUCCESS ||
        gy_cuda_settle(h, g->aside) != CUDA_SUCCESS)
        return false;
    for (uint32_t i = 0; i < g->workers; i++)
        now = now * 31 + seen[i];
    return now != before;
}

/* A worker with an older epoch is behind the others. */
static void find_first(const gy_resident_gpu *g, uint64_t *first)
{
    const uint64_t *seen = (const uint64_t *)(const void *)g->host;
    for (uint32_t i = 0; i < g->workers; i++)
        if (seen[i] && (uint32_t)seen[i] != GY_RESIDENT_ENDED && seen[i] < *first)
            *first = seen[i];
}

bool gy_resident_look(gy_cuda *h, uint32_t *op)
{
    gy_resident *r = h->resident;
    bool moved = false;
    uint64_t first = UINT64_MAX;
    if (gy_now_ns() - r->looked_ns < LOOK_NS)
        return false;
    r->looked_ns = gy_now_ns();
    for (uint32_t i = 0; i < h->devices; i++) {
        if (!r->gpu[i].used || !r->gpu[i].workers)
            continue;
        moved = fetch(h, i) || moved;
        find_first(&r->gpu[i], &first);
    }
    *op = first == UINT64_MAX ? GY_NONE : (uint32_t)first - 1;
    r->seen_epoch = (uint32_t)(first >> 32);
    return moved;
}
