/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The counter that stands still in a start that does not come to its end. Whatever a wait is for comes before it in the
 * order of starts and positions (docs/design/counters.md), so of all that wait the first is told: who else waits does
 * so for it, or for what comes behind it.
 */
#include "backends/cuda/resident/resident.h"

#include "base/error.h"
#include <stdio.h>
#include <string.h>

/* The first wait that was found, of a worker or a stream, and the counter as it is. */
typedef struct stuck {
    uint64_t epoch, seen, awaited;
    uint32_t op, counter, value; /* value: of the signal among those of a start; counter: GY_NONE: none was found */
} stuck;

/* ---- what there is to see ---- */

/* Behind progress and the counters as they are raised. */
static const uint64_t *seen_counter(const gy_cuda *h, uint32_t counter)
{
    const gy_resident_gpu *g = &h->resident->gpu[gy_resident_counter_device(h, counter)];
    uint64_t at = g->bytes - g->progress_at + (uint64_t)g->counters * GY_COUNTER_BYTES;
    return (const uint64_t *)(const void *)(g->host + at + (uint64_t)h->resident->number[counter] * GY_COUNTER_BYTES);
}

static bool fetch_counters(gy_cuda *h)
{
    bool done = true;
    for (uint32_t i = 0; i < h->devices && done; i++) {
        gy_resident_gpu *g = &h->resident->gpu[i];
        uint64_t bytes = (uint64_t)g->counters * GY_COUNTER_BYTES;
        char *to = g->host + (g->bytes - g->progress_at) + bytes;
        if (g->used)
            done = gy_cuda_use(h, i, NULL) == GANTRY_OK &&
                   h->d.cuMemcpyDtoHAsync(to, g->block, bytes, g->aside.stream) == CUDA_SUCCESS &&
                   gy_cuda_settle(h, g->aside) == CUDA_SUCCESS;
    }
    return done;
}

/* The counter at an address of the GPU; GY_NONE: none is. */
static uint32_t counter_at(const gy_cuda *h, uint64_t address)
{
    uint32_t counters = gy_resident_counters(h), i = 0;
    while (i < counters && gy_resident_counter(h, i) != address)
        i++;
    return i < counters ? i : GY_NONE;
}

/* ---- waits ---- */

/* The op of that epoch waits until the counter is value, of so many signals a start, `distance` starts before. */
static void see_wait(const gy_cuda *h, stuck *first, uint64_t epoch, const gy_resident_edge *e, uint64_t signals)
{
    stuck s = { .epoch = epoch, .op = e->op, .counter = e->counter, .value = e->value };
    if (e->counter == GY_NONE || epoch < e->distance)
        return;
    s.awaited = (epoch - e->distance) * signals + e->value;
    s.seen = *seen_counter(h, e->counter);
    bool earlier = first->counter == GY_NONE || epoch < first->epoch || (epoch == first->epoch && e->op < first->op);
    if (s.seen < s.awaited && earlier)
        *first = s;
}

/* A worker tells the op that it has begun, of which it may carry out several packets: those of an entry of the table.
 */
static void see_worker(const gy_cuda *h, uint32_t device, uint32_t turn, uint32_t entry, stuck *first)
{
    const gy_resident_gpu *g = &h->resident->gpu[device];
    const gy_resident_turn *t = &g->turn[turn];
    const gy_resident_worker *w = (const gy_resident_worker *)(const void *)t->host + entry;
    uint64_t worker = ((uint64_t)(uintptr_t)w->progress - (g->block + g->progress_at)) / sizeof *w->progress;
    const gy_resident_packet *p =
        (const gy_resident_packet *)(const void *)(t->host + ((uint64_t)(uintptr_t)w->packet - t->at));
    uint64_t told = ((const uint64_t *)(const void *)g->host)[worker];
    int32_t since = (int32_t)((uint32_t)(told >> 32) - (uint32_t)h->resident->first);
    uint64_t epoch = h->resident->first + (uint64_t)(int64_t)since;
    if (!told || (uint32_t)told == GY_RESIDENT_ENDED)
        return;
    for (uint32_t k = 0; k < w->packets; k++) {
        const gy_resident_wait *wait = (const gy_resident_wait *)(const void *)p[k].word;
        for (uint32_t i = 0; i < p[k].waits && p[k].op == (uint32_t)told - 1; i++) {
            gy_resident_edge e = { p[k].op, counter_at(h, wait[i].counter), wait[i].value, wait[i].distance };
            see_wait(h, first, epoch, &e, wait[i].signals);
        }
    }
}

/* Of the oldest start that has not ended; streams are in no series. */
static void see_streams(const gy_cuda *h, stuck *first)
{
    const gy_resident *r = h->resident;
    uint64_t epoch = r->epoch - (h->begun - h->ended);
    for (uint32_t k = 0; k < r->lefts && h->begun - h->ended <= r->epoch; k++)
        for (uint32_t i = r->waits.first[r->left[k]]; i < r->waits.first[r->left[k] + 1]; i++)
            see_wait(h, first, epoch, &r->waits.at[i], r->signals_of[r->waits.at[i].counter]);
}

/* ---- words ---- */

/* The index of the lane's first worker among those of its GPU. */
static uint32_t worker_of(const gy_cuda *h, uint32_t lane)
{
    uint32_t before = 0;
    for (uint32_t i = 0; i < lane; i++)
        if (h->resident->lane[i].resident && h->lane[i].queue.device == h->lane[lane].queue.device)
            before += h->resident->lane[i].workers;
    return before;
}

static int print_lane(const gy_cuda *h, char *to, size_t size, uint32_t lane, bool worker)
{
    const gantry_schedule *s = h->job->schedule;
    const char *device = s->machine->device[s->lanes.at[lane].device].id;
    return worker ? snprintf(to, size, "lane %u of \"%.30s\" (worker %u)", lane, device, worker_of(h, lane))
                  : snprintf(to, size, "lane %u of \"%.30s\" (stream)", lane, device);
}

/* The op that brings the counter to that value; GY_NONE: the schedule has none. */
static uint32_t signaller_of(const gy_cuda *h, const stuck *s)
{
    const gy_resident_edges *all = &h->resident->signals;
    uint32_t ops = (uint32_t)h->job->schedule->ops.count, i = all->first[0];
    while (i < all->first[ops] && (all->at[i].counter != s->counter || all->at[i].value != s->value))
        i++;
    return i < all->first[ops] ? all->at[i].op : GY_NONE;
}

static int print_op(const gy_cuda *h, char *to, size_t size, const char *format, uint32_t op)
{
    gy_text name = { 0 };
    gy_op_text(&name, h->job->schedule, op);
    int length = snprintf(to, size, format, op, name.failed || !name.length ? "?" : name.at);
    gy_text_free(&name);
    return length;
}

static size_t behind(size_t at, int length, size_t size)
{
    size_t to = at + (size_t)(length < 0 ? 0 : length);
    return to < size ? to : size - 1;
}

static void print_stuck(const gy_cuda *h, const stuck *s, uint32_t op, char *to, size_t size)
{
    const gy_resident *r = h->resident;
    gy_resident_lanes lane = gy_resident_lanes_of(h, s->counter);
    uint32_t by = signaller_of(h, s);
    bool own = s->counter < gy_job_counters(h->job)->at.count, reads = r->has[s->op];
    bool writes = by != GY_NONE ? r->has[by] : r->lane[lane.from].resident > 0;
    size_t at = behind(0, snprintf(to, size, "; "), size);
    if (s->op != op)
        at = behind(at, print_op(h, to + at, size - at, "op %u, \"%.40s\": ", s->op), size);
    at = behind(at, print_lane(h, to + at, size - at, lane.to, reads), size);
    at = own ? behind(at, snprintf(to + at, size - at, " waits for counter %u from ", s->counter), size)
             : behind(at, snprintf(to + at, size - at, " waits for "), size);
    at = behind(at, print_lane(h, to + at, size - at, lane.from, writes), size);
    if (by != GY_NONE)
        at = behind(at, print_op(h, to + at, size - at, ", op %u, \"%.40s\"", by), size);
    snprintf(to + at, size - at, ": it is %llu, and %llu is awaited", (unsigned long long)s->seen,
             (unsigned long long)s->awaited);
}

/* Of the table of workers. */
static uint32_t entries_of(const gy_cuda *h, uint32_t device, uint32_t turn)
{
    const gy_resident_gpu *g = &h->resident->gpu[device];
    bool has = g->turn && g->turn[turn].segment.count;
    const gy_resident_segment *last = has ? gy_vec_last(&g->turn[turn].segment) : NULL;
    return last ? last->first + last->workers : 0;
}

void gy_resident_tell(gy_cuda *h, uint32_t turn, uint32_t op, char *to, size_t size)
{
    stuck first = { .counter = GY_NONE };
    size_t at = strlen(to);
    if (!fetch_counters(h))
        return;
    for (uint32_t i = 0; i < h->devices; i++)
        for (uint32_t w = 0; w < entries_of(h, i, turn); w++)
            see_worker(h, i, turn, w, &first);
    see_streams(h, &first);
    if (first.counter != GY_NONE)
        print_stuck(h, &first, op, to + at, size - at);
    else if (op < h->job->schedule->ops.count)
        snprintf(to + at, size - at, "; it waits for no counter");
}
