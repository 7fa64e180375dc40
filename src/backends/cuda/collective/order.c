/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/collective/order.h"

#include "base/error.h"
#include "base/memory.h"
#include <pthread.h>
#include <string.h>

/* ---- runs of one process ---- */

/*
 * Two runs whose kernels start in another order on one GPU than on the next would wait for each other forever, and what
 * is half launched must not meet the launches of another. So one start at a time submits such work in this process,
 * under this lock, and such work on a GPU waits for all that other runs that have some have submitted for that GPU
 * before: the order is the same on every GPU. This is the one piece of state that does not belong to a run; the list
 * holds runs from their first start until they are closed.
 *
 * NCCL in other parts of the program, and in other programs, on the same GPUs is not covered.
 */
static pthread_mutex_t order = PTHREAD_MUTEX_INITIALIZER;
static gy_peer_order *runs;

gantry_status gy_order_add(gy_cuda *h, uint32_t device, gantry_error *err)
{
    if (!h->order) {
        gy_peer_order *o = gy_arena_calloc(&h->arena, 1, sizeof *o);
        if (!o)
            return gy_fail_nomem(err);
        o->h = h;
        o->waits = gy_arena_calloc(&h->arena, h->devices, sizeof *o->waits);
        o->last = gy_arena_alloc(&h->arena, h->devices * sizeof *o->last);
        o->kernel = gy_arena_calloc(&h->arena, h->devices, sizeof *o->kernel);
        if (!o->waits || !o->last || !o->kernel)
            return gy_fail_nomem(err);
        for (uint32_t i = 0; i < h->devices; i++)
            o->last[i] = GY_NONE;
        h->order = o;
    }
    h->order->waits[device] = 1;
    return GANTRY_OK;
}

static bool shares_gpu(const gy_peer_order *a, const gy_peer_order *b)
{
    for (uint32_t i = 0; i < a->h->devices; i++)
        for (uint32_t k = 0; a->waits[i] && k < b->h->devices; k++)
            if (b->waits[k] && a->h->device[i].id == b->h->device[k].id)
                return true;
    return false;
}

void gy_order_kernel(gy_cuda *h, uint32_t device, CUevent end)
{
    pthread_mutex_lock(&order);
    if (h->order)
        h->order->kernel[device] = end;
    pthread_mutex_unlock(&order);
}

/* Phases of one graph use the memory of one of them; the host waits for the end of each. */
static bool follow_each_other(const gy_cuda *a, const gy_cuda *b)
{
    const void *x = a->job->beside ? a->job->beside : a, *y = b->job->beside ? b->job->beside : b;
    return x == y;
}

static gantry_status await(gy_cuda *h, gy_queue queue, CUevent end, gantry_error *err)
{
    CUresult code = end ? h->d.cuStreamWaitEvent(queue.stream, end, 0) : CUDA_SUCCESS;
    return code == CUDA_SUCCESS ? GANTRY_OK : gy_cuda_fail(h, code, queue.device, "waiting for another run", err);
}

gantry_status gy_order_await_others(gy_cuda *h, gy_queue queue, gantry_error *err)
{
    if (!h->order || !h->order->locked)
        return GANTRY_OK;
    for (gy_peer_order *other = runs; other; other = other->next) {
        if (other == h->order || !other->end || !shares_gpu(other, h->order) || follow_each_other(other->h, h))
            continue;
        GY_TRY(gy_cuda_use(h, queue.device, err));
        GY_TRY(await(h, queue, other->end, err));
        for (uint32_t i = 0; i < other->h->devices; i++)
            GY_TRY(await(h, queue, other->kernel[i], err));
    }
    return GANTRY_OK;
}

void gy_order_unlist(gy_cuda *h)
{
    pthread_mutex_lock(&order);
    gy_peer_order **link = &runs;
    while (*link && *link != h->order)
        link = &(*link)->next;
    if (*link)
        *link = (*link)->next;
    pthread_mutex_unlock(&order);
}

void gy_order_enter(gy_cuda *h, bool waits)
{
    gy_peer_order *o = h->order;
    bool listed = false;
    if (!o || !waits)
        return;
    pthread_mutex_lock(&order);
    for (gy_peer_order *run = runs; run; run = run->next)
        listed = listed || run == o;
    if (!listed) {
        o->next = runs;
        runs = o;
    }
    o->locked = true;
}

void gy_order_leave(gy_cuda *h, CUevent end)
{
    gy_peer_order *o = h->order;
    if (o && o->locked) {
        o->end = end ? end : o->end;
        o->locked = false;
        pthread_mutex_unlock(&order);
    }
}

/* ---- ties ---- */

static bool same_lanes(const gantry_schedule *s, const gy_op *a, const gy_op *b)
{
    return a->lanes == b->lanes &&
           memcmp(&s->op_lane.at[a->lane], &s->op_lane.at[b->lane], a->lanes * sizeof *s->op_lane.at) == 0;
}

/* Others wait for the op, or for one of its batch, whose kernels meet by counters: they meet when they end, so that all
 * of it is done where one of its lanes is. */
static bool ends_by_itself(const gy_cuda *h, uint32_t op)
{
    bool awaited = h->op[op].event != GY_NONE;
    for (uint32_t i = op + 1; i < h->job->schedule->ops.count && h->op[i].called; i++)
        awaited = awaited || h->op[i].event != GY_NONE;
    return gy_cuda_op_meets(&h->op[op]) && awaited;
}

/* `last`: per lane, the last op before this one. */
static void tie_op(gy_cuda *h, uint32_t op, bool (*are)(const gy_cuda *h, uint32_t op), const uint32_t *last)
{
    const gantry_schedule *s = h->job->schedule;
    const gy_op *o = &s->ops.at[op];
    uint32_t before = last[s->op_lane.at[o->lane]];
    bool tied = before != GY_NONE && are(h, op) && are(h, before) && same_lanes(s, o, &s->ops.at[before]);
    tied = tied && !ends_by_itself(h, before);
    for (uint32_t i = 0; i < o->lanes; i++)
        tied = tied && last[s->op_lane.at[o->lane + i]] == before;
    if (tied)
        h->op[op].tied[0] = h->op[before].tied[1] = true;
}

gantry_status gy_order_tie(gy_cuda *h, bool (*are)(const gy_cuda *h, uint32_t op), gantry_error *err)
{
    const gantry_schedule *s = h->job->schedule;
    uint32_t *last = gy_alloc((s->lanes.count + 1) * sizeof *last);
    if (!last)
        return gy_fail_nomem(err);
    for (uint32_t i = 0; i < s->lanes.count; i++)
        last[i] = GY_NONE;
    for (uint32_t op = 0; op < s->ops.count; op++)
        if (are(h, op))
            h->op[op].tied[0] = h->op[op].tied[1] = false;
    for (uint32_t op = 0; op < s->ops.count; op++) {
        const gy_op *o = &s->ops.at[op];
        if (o->lanes && !h->op[op].called)
            tie_op(h, op, are, last);
        for (uint32_t i = 0; i < o->lanes && !h->op[op].called; i++)
            last[s->op_lane.at[o->lane + i]] = op;
    }
    for (uint32_t op = 1; op < s->ops.count; op++)
        if (s->ops.at[op].kind == GY_OP_COLLECTIVE && h->op[op].called && are(h, op))
            h->op[op].tied[1] = h->op[op - 1].tied[1];
    gy_free(last);
    return GANTRY_OK;
}

bool gy_order_tied(const gy_submit *x, bool after)
{
    const gy_cuda_op *op = &x->h->op[x->op];
    return !x->untied && (op->nccl || op->counted) && op->tied[after];
}

/* ---- one op ---- */

/* The lowest device that is the same GPU. */
static uint32_t gpu_of(const gy_cuda *h, uint32_t device)
{
    uint32_t i = 0;
    while (!h->device[i].gpu || h->device[i].id != h->device[device].id)
        i++;
    return i;
}

/* Each lane of a tied op begins by itself, and so does each of one whose kernels meet. */
gantry_status gy_order_lanes(gy_submit *x)
{
    const gantry_schedule *s = x->h->job->schedule;
    const gy_op *op = &s->ops.at[x->op];
    gantry_status status = GANTRY_OK;
    uint32_t *last = x->h->order->last;
    for (uint32_t r = 0; r < op->lanes && status == GANTRY_OK; r++) {
        uint32_t gpu = gpu_of(x->h, gy_op_device(s, op, r)), lane = s->op_lane.at[op->lane + r];
        gy_queue queue =
            gy_order_tied(x, false) || gy_cuda_op_meets(&x->h->op[x->op]) ? x->h->lane[lane].queue : x->first_lane;
        if (last[gpu] != GY_NONE && last[gpu] != lane)
            status = gy_submit_order(x, x->h->lane[last[gpu]].queue, queue);
        last[gpu] = lane;
    }
    return status;
}

gantry_status gy_order_join(gy_submit *x, bool before)
{
    gantry_status status = GANTRY_OK;
    uint32_t lanes = x->h->job->schedule->ops.at[x->op].lanes;
    for (uint32_t r = 1; r < lanes && status == GANTRY_OK && !gy_order_tied(x, !before); r++) {
        gy_queue lane = gy_submit_lane(x, r);
        status = before ? gy_submit_order(x, x->first_lane, lane) : gy_submit_order(x, lane, x->first_lane);
    }
    return status;
}
