/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rings: a series of starts that can be in flight together (docs/design/counters.md). Such starts take the turns one
 * after the other, and each turn has a program, with addresses of its own. In a ring, each worker has its packets of
 * turn 0, of turn 1, ... one behind the other, so that it goes from start to start without being told of turns.
 */
#include "backends/cuda/resident/resident.h"

#include "base/error.h"
#include <string.h>

/* As it was written for the GPU. */
static const gy_resident_worker *worker_of(const gy_resident_gpu *g, uint32_t turn, uint32_t worker)
{
    return (const gy_resident_worker *)(const void *)g->turn[turn].host + worker;
}

static bool alike_on(const gy_resident_gpu *g, uint32_t turn, uint32_t other)
{
    uint32_t workers = g->turn[turn].segment.at[0].workers;
    bool alike = g->turn[other].segment.at[0].workers == workers;
    for (uint32_t i = 0; i < workers && alike; i++) {
        const gy_resident_worker *a = worker_of(g, turn, i), *b = worker_of(g, other, i);
        alike = a->packets == b->packets && a->meet == b->meet && a->index == b->index && a->workers == b->workers;
    }
    return alike;
}

bool gy_resident_turns_alike(const gy_cuda *h)
{
    const gy_resident *r = h->resident;
    bool alike = r->segments == 1;
    for (uint32_t i = 0; i < h->devices; i++)
        for (uint32_t t = 1; r->gpu[i].workers && t < h->turns && alike; t++)
            alike = alike_on(&r->gpu[i], 0, t);
    return alike;
}

/* No more than the programs of all turns. */
static gantry_status make_room(gy_cuda *h, uint32_t device, gantry_error *err)
{
    gy_resident_gpu *g = &h->resident->gpu[device];
    uint64_t bytes = 0;
    for (uint32_t t = 0; t < h->turns; t++)
        bytes += g->turn[t].room;
    if (bytes <= g->ring.room)
        return GANTRY_OK;
    GY_TRY(gy_cuda_use(h, device, err));
    gy_resident_ring_free(h, device);
    GY_TRY(gy_cuda_allocate(h, &g->ring.at, device, bytes, "the program of a series", err));
    GY_TRY(gy_cuda_pinned(h, (void **)&g->ring.host, bytes, err));
    g->ring.room = bytes;
    return GANTRY_OK;
}

/* Helpers of a lane have the same packets. */
static bool shares_packets(const gy_resident_gpu *g, uint32_t worker)
{
    const gy_resident_worker *w = worker_of(g, 0, worker);
    return worker > 0 && w[-1].packet == w->packet && w[-1].packets == w->packets;
}

/* Its packets of all turns come at `at`. */
static void add_worker(const gy_cuda *h, gy_resident_gpu *g, uint32_t worker, uint64_t *at)
{
    gy_resident_worker *to = (gy_resident_worker *)(void *)g->ring.host + worker;
    *to = *worker_of(g, 0, worker);
    to->ring = to->packets * h->turns;
    to->packet = (const gy_resident_packet *)(uintptr_t)(g->ring.at + *at);
    if (shares_packets(g, worker)) {
        to->packet = to[-1].packet;
        return;
    }
    for (uint32_t t = 0; t < h->turns; t++) {
        uint64_t from = (uint64_t)(uintptr_t)worker_of(g, t, worker)->packet - g->turn[t].at;
        memcpy(g->ring.host + *at, g->turn[t].host + from, to->packets * sizeof *to->packet);
        *at += to->packets * sizeof *to->packet;
    }
}

static gantry_status make(gy_cuda *h, uint32_t device, gantry_error *err)
{
    gy_resident_gpu *g = &h->resident->gpu[device];
    uint64_t at = gy_resident_table_bytes(g);
    GY_TRY(make_room(h, device, err));
    for (uint32_t i = 0; i < g->turn[0].segment.at[0].workers; i++)
        add_worker(h, g, i, &at);
    GY_TRY(gy_cuda_use(h, device, err));
    CUresult code = h->d.cuMemcpyHtoDAsync(g->ring.at, g->ring.host, at, g->queue.stream);
    g->ring.made = code == CUDA_SUCCESS;
    return g->ring.made ? GANTRY_OK : gy_cuda_fail(h, code, device, "uploading the program of a series", err);
}

gantry_status gy_resident_ring_make(gy_cuda *h, gantry_error *err)
{
    for (uint32_t i = 0; i < h->devices; i++)
        if (h->resident->gpu[i].workers && !h->resident->gpu[i].ring.made)
            GY_TRY(make(h, i, err));
    return GANTRY_OK;
}

void gy_resident_ring_free(gy_cuda *h, uint32_t device)
{
    gy_resident_ring *ring = &h->resident->gpu[device].ring;
    if (ring->at)
        h->d.cuMemFree(ring->at);
    if (ring->host)
        h->d.cuMemFreeHost(ring->host);
    *ring = (gy_resident_ring){ 0 };
}
