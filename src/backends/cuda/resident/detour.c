/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waits between GPUs that do not reach each other's memory. Whoever writes a counter stores into the memory of who
 * reads it, so there is none between such two: these waits make a *detour* by events of streams, and all others have
 * counters as ever.
 *
 * Where a worker takes part, the start is cut (cut.c) between the two ops: the kernel ends ahead of the cut that has
 * the op which is waited for, the kernel begins behind it that has the op which waits, and between the two is an event.
 * Streams that carry one of the two out take the place of its kernel. Cuts are as few as there can be: an op that waits
 * has one ahead of it unless there is one already behind what it waits for (the least number of points that hit all of
 * some intervals). From start to start nothing is cut: a start in flight behind another one waits for all of that.
 *
 * All that an event stands for was given to the GPUs before it and has lower positions than what it holds up, or is of
 * an earlier start, so nobody waits for ever (docs/design/cuda.md, "Cuts").
 */
#include "backends/cuda/resident/resident.h"

#include "base/error.h"
#include "base/memory.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- which ones ---- */

static uint32_t device_of(const gy_cuda *h, uint32_t lane)
{
    return h->lane[lane].queue.device;
}

bool gy_resident_takes_detour(const gy_cuda *h, const gy_counter *c)
{
    return !gy_cuda_reaches(h, device_of(h, c->from), device_of(h, c->to));
}

static int by_waiter(const void *a, const void *b)
{
    const gy_resident_detour *x = a, *y = b;
    return x->to != y->to ? (x->to < y->to ? -1 : 1) : x->from != y->from ? (x->from < y->from ? -1 : 1) : 0;
}

gantry_status gy_resident_find_detours(gy_cuda *h, gantry_error *err)
{
    const gy_counters *all = gy_job_counters(h->job);
    gy_resident *r = h->resident;
    for (size_t id = 0; id < all->at.count; id++) {
        const gy_counter *c = &all->at.at[id];
        if (gy_cuda_peers_enable(h, device_of(h, c->from), device_of(h, c->to)))
            continue;
        for (uint32_t i = 0; i < c->waits; i++) {
            const gy_counter_wait *w = &all->wait.at[c->wait + i];
            uint32_t from = all->signal.at[c->signal + w->value - 1];
            gy_resident_detour detour = { from, w->op, c->from, c->to, w->distance };
            if (!gy_vec_push(&r->detours, detour))
                return gy_fail_nomem(err);
        }
    }
    if (r->detours.count)
        qsort(r->detours.at, r->detours.count, sizeof *r->detours.at, by_waiter);
    return GANTRY_OK;
}

bool gy_resident_awaits_detour(const gy_cuda *h, uint32_t op)
{
    const gy_resident *r = h->resident;
    size_t low = 0, high = r->detours.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (r->detours.at[middle].to < op)
            low = middle + 1;
        else
            high = middle;
    }
    while (low < r->detours.count && r->detours.at[low].to == op && r->detours.at[low].distance > 0)
        low++;
    return low < r->detours.count && r->detours.at[low].to == op;
}

/* ---- where events carry them ---- */

typedef struct cutter {
    gy_cuda *h;
    const uint8_t *by_workers;
    uint32_t *head;   /* per op: the op at whose submission it begins, if a stream has it */
    uint32_t *behind; /* per op: a cut has to be at this op or later, up to the op; 0: none has to be */
    uint32_t *next;   /* per op, and behind the last: the first cut from it on */
} cutter;

/* One call carries a batch out, and one kernel some copies: at the first of them. */
static void find_heads(const cutter *c)
{
    const gy_cuda *h = c->h;
    uint32_t ops = (uint32_t)h->job->schedule->ops.count;
    for (uint32_t i = 0; i < ops; i++)
        c->head[i] = h->op[i].called && !c->by_workers[i] && i > 0 ? c->head[i - 1] : i;
    for (uint32_t i = 0; i < ops; i++)
        for (uint32_t k = i; h->op[i].by_kernel && !c->by_workers[i] && k != GY_NONE; k = h->op[k].carries)
            c->head[k] = i;
}

/* An event between two streams needs no cut. */
static bool needs_cut(const cutter *c, const gy_resident_detour *x)
{
    return x->distance == 0 && (c->by_workers[x->from] || c->by_workers[x->to]);
}

static void find_places(const cutter *c)
{
    gy_resident *r = c->h->resident;
    uint32_t ops = (uint32_t)c->h->job->schedule->ops.count, last = 0;
    for (size_t i = 0; i < r->detours.count; i++) {
        const gy_resident_detour *x = &r->detours.at[i];
        uint32_t *behind = &c->behind[c->head[x->to]];
        if (needs_cut(c, x) && x->from >= *behind)
            *behind = x->from + 1;
    }
    r->segments = 1;
    for (uint32_t i = 0; i < ops; i++) {
        r->cut[i] = r->cut[i] == GY_CUT_AHEAD ? GY_CUT_NOWHERE : r->cut[i];
        last = r->cut[i] == GY_CUT_HERE ? i : last;
        if (last < c->behind[i])
            r->cut[last = i] = GY_CUT_AHEAD;
        r->segments += gy_resident_ends_ahead(r, i);
    }
    c->next[ops] = ops;
    for (uint32_t i = ops; i-- > 0;)
        c->next[i] = gy_resident_ends_ahead(r, i) ? i : c->next[i + 1];
}

static int by_place(const void *a, const void *b)
{
    const gy_resident_passage *x = a, *y = b;
    return x->at != y->at       ? (x->at < y->at ? -1 : 1)
           : x->from != y->from ? (x->from < y->from ? -1 : 1)
           : x->to != y->to     ? (x->to < y->to ? -1 : 1)
                                : 0;
}

/* In order, each once. */
static void sort(gy_resident_passages *all)
{
    size_t kept = 0;
    if (all->count)
        qsort(all->at, all->count, sizeof *all->at, by_place);
    for (size_t i = 0; i < all->count; i++)
        if (i == 0 || by_place(&all->at[i], &all->at[kept - 1]) != 0)
            all->at[kept++] = all->at[i];
    all->count = kept;
}

/* The stream that carries the op out in that lane. */
static uint32_t stream_of(const cutter *c, uint32_t op, uint32_t lane)
{
    return c->by_workers[op] ? c->h->lanes + device_of(c->h, lane) : lane;
}

/* The first cut behind an op is that whose event waits for the least. The host waits for starts that no more can be in
 * flight behind. */
static bool find_passages(const cutter *c)
{
    gy_resident *r = c->h->resident;
    bool room = true;
    r->passages.count = r->credits.count = 0;
    for (size_t i = 0; i < r->detours.count && room; i++) {
        const gy_resident_detour *x = &r->detours.at[i];
        gy_resident_passage p = { needs_cut(c, x) ? c->next[x->from + 1] : c->head[x->to],
                                  stream_of(c, x->from, x->from_lane), stream_of(c, x->to, x->to_lane) };
        gy_resident_passage credit = { x->distance, GY_NONE, p.to };
        if (x->distance == 0)
            room = gy_vec_push(&r->passages, p);
        else if (x->distance < c->h->turns)
            room = gy_vec_push(&r->credits, credit);
    }
    sort(&r->passages);
    sort(&r->credits);
    return room;
}

gantry_status gy_resident_cut_detours(gy_cuda *h, const uint8_t *by_workers, gantry_error *err)
{
    size_t ops = h->job->schedule->ops.count;
    if (!h->resident->detours.count)
        return GANTRY_OK;
    uint32_t *room = gy_calloc(3 * ops + 1, sizeof *room);
    const cutter c = { h, by_workers, room, room ? room + ops : NULL, room ? room + 2 * ops : NULL };
    bool done = room != NULL;
    if (done) {
        find_heads(&c);
        find_places(&c);
        done = find_passages(&c);
    }
    gy_free(room);
    return done ? GANTRY_OK : gy_fail_nomem(err);
}

/* ---- a start ---- */

static gy_queue queue_of(const gy_cuda *h, uint32_t stream)
{
    return stream < h->lanes ? h->lane[stream].queue : h->resident->gpu[stream - h->lanes].queue;
}

gantry_status gy_resident_follow_starts(gy_submit *x)
{
    const gy_cuda *h = x->h;
    const gy_resident *r = h->resident;
    gantry_status status = GANTRY_OK;
    for (size_t i = 0; i < r->credits.count && status == GANTRY_OK; i++) {
        const gy_resident_passage *p = &r->credits.at[i];
        if (p->at >= x->start)
            continue;
        const gy_cuda_turn *t = &h->turn[gy_job_turn(h->job, x->start - p->at)];
        if (t->start == x->start - p->at) /* else it failed, and nothing of it is under way */
            status = gy_submit_await(x, queue_of(h, p->to), t->end);
    }
    return status;
}

/* Ahead of op x->op. */
static gantry_status pass(gy_submit *x)
{
    const gy_resident *r = x->h->resident;
    gantry_status status = GANTRY_OK;
    for (; status == GANTRY_OK && x->passage < r->passages.count && r->passages.at[x->passage].at == x->op;
         x->passage++) {
        const gy_resident_passage *p = &r->passages.at[x->passage];
        status = gy_submit_order(x, queue_of(x->h, p->from), queue_of(x->h, p->to));
    }
    if (status || r->cut[x->op] != GY_CUT_AHEAD)
        return status;
    x->segment++;
    return gy_resident_launch(x);
}

gantry_status gy_resident_pass(gy_submit *x, uint32_t op)
{
    const gy_resident *r = x->h->resident;
    gantry_status status = GANTRY_OK;
    while (status == GANTRY_OK && x->passage < r->passages.count && r->passages.at[x->passage].at <= op) {
        x->op = r->passages.at[x->passage].at;
        status = gy_job_canceled(x->h->job) ? gy_cuda_op_cut(x->h, x->op, x->err) : pass(x);
    }
    return status;
}

/* ---- reports ---- */

/* Of devices a < b. */
static bool detour_between(const gy_cuda *h, uint32_t a, uint32_t b)
{
    const gy_counters *all = gy_job_counters(h->job);
    bool any = false, apart = !gy_cuda_reaches(h, a, b);
    for (size_t i = 0; i < all->at.count && apart && !any; i++) {
        uint32_t from = device_of(h, all->at.at[i].from), to = device_of(h, all->at.at[i].to);
        any = (from == a && to == b) || (from == b && to == a);
    }
    return any;
}

/* How many pairs of devices have some; the first are pair[0] and pair[1]. */
static uint32_t count_pairs(const gy_cuda *h, uint32_t pair[2])
{
    uint32_t pairs = 0;
    for (uint32_t a = 0; a < h->devices; a++) {
        for (uint32_t b = a + 1; b < h->devices; b++) {
            if (!detour_between(h, a, b))
                continue;
            if (pairs++ == 0) {
                pair[0] = a;
                pair[1] = b;
            }
        }
    }
    return pairs;
}

static const char *remedy(void)
{
    return gy_driver_switch("GANTRY_CUDA_PEERS", "off")
               ? "unset GANTRY_CUDA_PEERS"
               : "\"gantry doctor\" says why; or plan for GPUs that do (--devices, --machine)";
}

const char *gy_resident_unreached(gy_cuda *h)
{
    static const char apart[] = "GPUs that wait for each other do not reach each other's memory";
    const gy_counters *all = gy_job_counters(h->job);
    const gy_device *device = h->job->schedule->machine->device;
    uint32_t pair[2];
    for (size_t i = 0; i < all->at.count; i++)
        gy_cuda_peers_enable(h, device_of(h, all->at.at[i].from), device_of(h, all->at.at[i].to));
    if (!count_pairs(h, pair))
        return NULL;
    const char *text = gy_arena_printf(&h->arena, "%s (\"%.40s\" that of \"%.40s\"): %s", apart, device[pair[0]].id,
                                       device[pair[1]].id, remedy());
    return text ? text : apart;
}

void gy_resident_tell_detours(gy_cuda *h, char *to, size_t size)
{
    const gy_device *device = h->job->schedule->machine->device;
    uint32_t pair[2], pairs = h->resident->detours.count ? count_pairs(h, pair) : 0;
    char more[32] = "";
    size_t at = strlen(to);
    if (pairs > 1)
        snprintf(more, sizeof more, ", and %u pair%s more,", pairs - 1, pairs == 2 ? "" : "s");
    if (pairs)
        snprintf(
            to + at, size - at,
            "; \"%.40s\" and \"%.40s\"%s wait for each other by events, as they do not reach each other's memory: %s",
            device[pair[0]].id, device[pair[1]].id, more, remedy());
}
