/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/collective/counted.h"

#include "backends/cuda/collective/ahead.h"
#include "backends/cuda/stream/gates.h"
#include "base/error.h"
#include "kernels/resident/counters.h"
#include <stdio.h>
#include <string.h>

static const gy_op *op_of(const gy_cuda *h, uint32_t op)
{
    return &h->job->schedule->ops.at[op];
}

/* ---- which ones ---- */

/* Each lane is on a GPU of its own that combines, and all of these reach each other. */
static bool lanes_can(const gy_cuda *h, const gy_op *op)
{
    bool can = op->lanes > 1 && op->lanes <= GY_MEETING_PEERS + 1;
    for (uint32_t i = 0; i < op->lanes && can; i++) {
        uint32_t device = gy_op_device(h->job->schedule, op, i);
        can = h->device[device].gpu && h->combine[device];
        for (uint32_t k = 0; k < i && can; k++) {
            uint32_t other = gy_op_device(h->job->schedule, op, k);
            can = !gy_cuda_same_gpu(h, device, other) && gy_cuda_reaches(h, device, other);
        }
    }
    return can;
}

static bool may_be(const gy_cuda *h, uint32_t id)
{
    const gy_op *op = op_of(h, id);
    const gy_exchange *exchange = h->op[id].exchange ? gy_collective_exchange(h, id) : NULL;
    return op->kind == GY_OP_COLLECTIVE && op->algorithm == GY_ALGORITHM_COUNTERS && exchange && !exchange->staged &&
           exchange->rounds < 2 && exchange->bytes && lanes_can(h, op);
}

/* Those that are pushed are not: each meets by itself, and so does who comes before it when it ends. */
static bool may_tie(const gy_cuda *h, uint32_t op)
{
    return h->op[op].counted && !h->op[op].pushed;
}

/* All of a batch goes by its first. */
static gantry_status tie(gy_cuda *h, gantry_error *err)
{
    for (uint32_t op = 1; op < h->job->schedule->ops.count; op++)
        if (op_of(h, op)->kind == GY_OP_COLLECTIVE && h->op[op].called)
            h->op[op].counted = h->op[op - 1].counted;
    for (uint32_t op = 0; op < h->job->schedule->ops.count; op++)
        if (h->op[op].pushed)
            h->op[op].tied[0] = h->op[op].tied[1] = false;
    return gy_order_tie(h, may_tie, err);
}

/* Not beside resident kernels, which leave no room and wait for each other in another order, and not where a kernel
 * ends, or is stopped, before the one that it waits for is launched, or where a GPU has less room than it says. */
static bool can_meet(const gy_cuda *h)
{
    const gy_cuda_kernel *kernel = gy_cuda_kernel_find(GY_CUDA_COMBINE);
    bool stopped = gy_driver_blocks() || gy_driver_has_part() || gy_driver_debugged(&h->d);
    return kernel && kernel->room && h->ahead && !h->job->apart && !stopped;
}

gantry_status gy_counted_find(gy_cuda *h, gantry_error *err)
{
    if (!can_meet(h))
        return GANTRY_OK;
    for (uint32_t op = 0; op < h->job->schedule->ops.count; op++)
        h->op[op].counted = !h->op[op].called && may_be(h, op);
    return tie(h, err);
}

/* ---- whether their shares fit ---- */

static uint32_t room_on(const gy_cuda *h, uint32_t id, uint32_t device)
{
    const gy_exchange *exchange = gy_collective_exchange(h, id);
    bool moves = h->op[id].share->sources == 1;
    gantry_arg arg = gy_combine_arg(moves ? GANTRY_WRITE : exchange->reduce, moves ? GANTRY_U8 : exchange->dtype, 0, 0);
    gantry_launch l = { .struct_size = sizeof l, .args = 1, .arg = &arg, .arg_size = sizeof arg };
    l.handle = h->combine[device];
    return gy_cuda_use((gy_cuda *)(uintptr_t)h, device, NULL) ? 0 : gy_cuda_kernel_find(GY_CUDA_COMBINE)->room(&l);
}

/* One launch has all shares of the device: so many, with so many ends. */
static bool fits_device(const gy_cuda *h, uint32_t id, uint32_t device, gy_counted_op *to)
{
    uint32_t parts = 0, ends = 0;
    for (uint32_t i = 0; i < h->op[id].shares; i++) {
        const gy_share *s = &h->op[id].share[i];
        parts += s->device == device;
        ends += s->device == device ? s->sources + s->targets : 0;
    }
    to->parts = parts > to->parts ? parts : to->parts;
    return parts <= GY_CUDA_PARTS && ends <= GY_CUDA_ENDS;
}

static bool has_lane(const gy_cuda *h, uint32_t id, uint32_t device)
{
    bool has = false;
    for (uint32_t i = 0; i < op_of(h, id)->lanes; i++)
        has = has || gy_op_device(h->job->schedule, op_of(h, id), i) == device;
    return has;
}

/* Blocks of 256 threads, of which each combines 16 bytes at a time. */
enum { BLOCK_BYTES = 4096 };

static bool fits(const gy_cuda *h, uint32_t id, gy_counted_op *to)
{
    const gy_op *op = op_of(h, id);
    uint64_t most = 0, room = UINT64_MAX;
    bool fit = h->op[id].shares > 0;
    *to = (gy_counted_op){ .parts = 1 };
    for (uint32_t i = 0; i < h->op[id].shares && fit; i++) {
        const gy_share *s = &h->op[id].share[i];
        bool alike = (s->sources > 1) == (h->op[id].share->sources > 1);
        fit = s->way == GY_SHARE_KERNEL && s->round == 0 && alike && has_lane(h, id, s->device);
        most = s->bytes > most ? s->bytes : most;
    }
    for (uint32_t i = 0; i < op->lanes && fit; i++) {
        uint32_t device = gy_op_device(h->job->schedule, op, i);
        uint64_t places = room_on(h, id, device);
        room = places < room ? places : room;
        fit = fits_device(h, id, device, to);
    }
    uint64_t wanted = (most + BLOCK_BYTES - 1) / BLOCK_BYTES, each = room / to->parts;
    to->columns = (uint32_t)(wanted < each ? wanted : each);
    return fit && to->columns > 0;
}

static gantry_status make_state(gy_cuda *h, gantry_error *err)
{
    gy_counted *c = gy_arena_calloc(&h->arena, 1, sizeof *c);
    if (!c)
        return gy_fail_nomem(err);
    c->op = gy_arena_calloc(&h->arena, h->job->schedule->ops.count + 1, sizeof *c->op);
    c->gpu = gy_arena_calloc(&h->arena, h->devices, sizeof *c->gpu);
    h->counted = c;
    return c->op && c->gpu ? GANTRY_OK : gy_fail_nomem(err);
}

static gantry_status add_lanes(gy_cuda *h, uint32_t op, gantry_error *err)
{
    gantry_status status = GANTRY_OK;
    for (uint32_t i = 0; i < op_of(h, op)->lanes && status == GANTRY_OK; i++)
        status = gy_order_add(h, gy_op_device(h->job->schedule, op_of(h, op), i), err);
    return status;
}

gantry_status gy_counted_fit(gy_cuda *h, gantry_error *err)
{
    const gantry_schedule *s = h->job->schedule;
    bool any = false;
    for (uint32_t op = 0; op < s->ops.count; op++)
        any = any || h->op[op].counted;
    if (!any)
        return GANTRY_OK;
    GY_TRY(make_state(h, err));
    for (uint32_t op = 0; op < s->ops.count; op++)
        h->op[op].counted = h->op[op].counted && !h->op[op].called && fits(h, op, &h->counted->op[op]);
    GY_TRY(tie(h, err));
    GY_TRY(gy_push_find(h, err));
    GY_TRY(tie(h, err));
    for (uint32_t op = 0; op < s->ops.count; op++)
        GY_TRY(h->op[op].counted ? add_lanes(h, op, err) : GANTRY_OK);
    for (uint32_t op = 0; op < s->ops.count; op++)
        h->counted->count += h->op[op].counted;
    h->counted = h->counted->count ? h->counted : NULL;
    return GANTRY_OK;
}

static bool is_met(const gy_cuda *h, uint32_t op)
{
    return h->op[op].nccl && h->op[op].met;
}

/* Those of NCCL whose lanes can begin and end by themselves. */
static gantry_status find_nccl(gy_cuda *h, gantry_error *err)
{
    bool may = can_meet(h) && h->nccl, any = false;
    for (uint32_t op = 0; op < h->job->schedule->ops.count && may; op++) {
        h->op[op].met = h->op[op].nccl && lanes_can(h, op_of(h, op));
        if (h->op[op].met && !h->counted)
            GY_TRY(make_state(h, err));
        GY_TRY(h->op[op].met ? add_lanes(h, op, err) : GANTRY_OK);
        any = any || h->op[op].met;
    }
    return any ? gy_order_tie(h, is_met, err) : GANTRY_OK;
}

const char *gy_counted_replay(gy_cuda *h, const char *replay)
{
    gy_counted *c = h->counted;
    if (!c || !c->count)
        return replay;
    snprintf(c->text, sizeof c->text, "%s; %u collectives meet by counters, %u of them once", replay, c->count,
             c->once);
    return c->text;
}

/* ---- counters ---- */

enum { OF_A_PAIR = GY_MEETING_BLOCKS * GY_MEETING_STEP };

static uint64_t counter_bytes(const gy_cuda *h)
{
    return (uint64_t)h->devices * OF_A_PAIR;
}

static uint64_t slots_begin(const gy_cuda *h)
{
    return counter_bytes(h) + (uint64_t)h->devices * GY_MEETING_BLOCKS * sizeof(uint64_t);
}

/* Two for each block. */
static uint64_t slots_bytes(const gy_cuda *h)
{
    return UINT64_C(2) * h->counted->slot_blocks * h->counted->slot_bytes;
}

CUdeviceptr gy_counted_slots(const gy_cuda *h, uint32_t to, uint32_t from)
{
    return h->counted->gpu[to].block + slots_begin(h) + from * slots_bytes(h);
}

static uint64_t all_bytes(const gy_cuda *h)
{
    return slots_begin(h) + h->devices * slots_bytes(h);
}

static bool waits_on(const gy_cuda *h, uint32_t device)
{
    return h->order && h->order->waits[device] && h->counted->gpu[device].block;
}

static gantry_status clear(gy_cuda *h, uint32_t device, gantry_error *err)
{
    gy_counted_gpu *g = &h->counted->gpu[device];
    GY_TRY(gy_cuda_use(h, device, err));
    CUresult code = h->d.cuMemsetD8Async(g->block, 0, all_bytes(h), g->aside.stream);
    code = code ? code : gy_cuda_settle(h, g->aside);
    return code == CUDA_SUCCESS ? GANTRY_OK : gy_cuda_fail(h, code, device, "clearing counters", err);
}

static gantry_status make_gpu(gy_cuda *h, uint32_t device, gantry_error *err)
{
    gy_counted_gpu *g = &h->counted->gpu[device];
    void *raised = NULL, *seen = NULL;
    GY_TRY(gy_cuda_queue_new(h, &g->aside, device, true, err));
    GY_TRY(gy_cuda_allocate(h, &g->block, device, all_bytes(h), "counters of its collectives", err));
    GY_TRY(gy_cuda_pinned(h, &raised, counter_bytes(h), err));
    g->raised = raised;
    GY_TRY(gy_cuda_pinned(h, &seen, 2 * h->devices * sizeof *g->seen, err));
    g->seen = seen;
    memset(g->raised, (int)(GY_COUNTER_STOP & 0xFF), counter_bytes(h));
    return clear(h, device, err);
}

gantry_status gy_counted_make(gy_cuda *h, gantry_error *err)
{
    GY_TRY(find_nccl(h, err));
    for (uint32_t i = 0; h->counted && h->order && i < h->devices; i++)
        GY_TRY(h->order->waits[i] ? make_gpu(h, i, err) : GANTRY_OK);
    return GANTRY_OK;
}

void gy_counted_free(gy_cuda *h)
{
    gy_push_free(h);
    for (uint32_t i = 0; h->counted && h->counted->gpu && i < h->devices; i++) {
        gy_counted_gpu *g = &h->counted->gpu[i];
        if ((!g->aside.stream && !g->block) || gy_cuda_use(h, i, NULL))
            continue;
        if (g->raised)
            h->d.cuMemFreeHost(g->raised);
        if (g->seen)
            h->d.cuMemFreeHost(g->seen);
        if (g->block)
            h->d.cuMemFree(g->block);
        if (g->aside.stream)
            h->d.cuStreamDestroy(g->aside.stream);
    }
}

/* ---- a start that failed ---- */

/* True if kernels ahead of the op meet, if NCCL carries it out: behind another of NCCL that it follows in all lanes
 * they need not, unless there is something else that it comes after. */
static bool comes(const gy_cuda *h, uint32_t op)
{
    const uint32_t *ahead = &h->ahead->first[op];
    return !h->op[op].tied[0] || h->op[op].waits || ahead[1] > ahead[0];
}

/* How often the two meet in it: when it begins, and when it ends if no op is tied to it; once if it is pushed. */
static uint32_t meet_in(const gy_cuda *h, uint32_t op, uint32_t a, uint32_t b)
{
    const gy_cuda_op *o = &h->op[op];
    if (!gy_cuda_op_meets(o) || o->called || !has_lane(h, op, a) || !has_lane(h, op, b))
        return 0;
    uint32_t first = o->counted || comes(h, op), last = !o->tied[1] && !o->pushed;
    return first + last;
}

/* The op in which the two met for the n-th time, counted from 1; GY_NONE: in none. */
static uint32_t op_of_meeting(const gy_cuda *h, uint32_t a, uint32_t b, uint64_t n)
{
    uint64_t each = 0;
    for (uint32_t op = 0; op < h->job->schedule->ops.count; op++)
        each += meet_in(h, op, a, b);
    uint64_t left = each && n ? (n - 1) % each : 0;
    for (uint32_t op = 0; op < h->job->schedule->ops.count && each && n; op++) {
        uint32_t here = meet_in(h, op, a, b);
        if (left < here)
            return op;
        left -= here;
    }
    return GY_NONE;
}

/* Of the first block for each peer: what it has heard, and how often it has said that it has come. */
static bool fetch(gy_cuda *h, uint32_t device)
{
    const gy_counted_gpu *g = &h->counted->gpu[device];
    CUresult code = gy_cuda_use(h, device, NULL) ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
    for (uint32_t i = 0; i < h->devices && code == CUDA_SUCCESS; i++) {
        CUdeviceptr met = g->block + counter_bytes(h) + (uint64_t)i * GY_MEETING_BLOCKS * sizeof(uint64_t);
        code = h->d.cuMemcpyDtoHAsync(&g->seen[2 * i], g->block + (uint64_t)i * OF_A_PAIR, sizeof(uint64_t),
                                      g->aside.stream);
        code = code ? code : h->d.cuMemcpyDtoHAsync(&g->seen[2 * i + 1], met, sizeof(uint64_t), g->aside.stream);
    }
    return code == CUDA_SUCCESS && gy_cuda_settle(h, g->aside) == CUDA_SUCCESS;
}

/* An op in which a GPU waits for another one: that has said so often that it has come, and so often is awaited. */
typedef struct still {
    uint32_t op, device, peer; /* op: GY_NONE, none waits */
    uint64_t heard, met;
} still;

static void see_gpu(gy_cuda *h, uint32_t device, still *first)
{
    if (!waits_on(h, device) || !fetch(h, device))
        return;
    for (uint32_t k = 0; k < h->devices; k++) {
        uint64_t heard = h->counted->gpu[device].seen[2 * k], met = h->counted->gpu[device].seen[2 * k + 1];
        uint32_t op = heard < met ? op_of_meeting(h, device, k, met) : GY_NONE;
        if (op < first->op)
            *first = (still){ op, device, k, heard, met };
    }
}

uint32_t gy_counted_tell(gy_cuda *h, char *to, size_t size)
{
    const gantry_schedule *s = h->job->schedule;
    size_t at = strlen(to);
    still first = { .op = GY_NONE };
    for (uint32_t i = 0; h->counted && i < h->devices; i++)
        see_gpu(h, i, &first);
    if (first.op == GY_NONE)
        return GY_NONE;
    gy_text name = { 0 };
    gy_op_text(&name, s, first.op);
    snprintf(to + at, size - at, "; op %u, \"%.60s\": %.30s waits for %.30s: its counter is %llu, and %llu is awaited",
             first.op, name.failed || !name.length ? "?" : name.at, s->machine->device[first.device].id,
             s->machine->device[first.peer].id, (unsigned long long)first.heard, (unsigned long long)first.met);
    gy_text_free(&name);
    return first.op;
}

void gy_counted_raise(gy_cuda *h)
{
    for (uint32_t i = 0; h->counted && i < h->devices; i++) {
        const gy_counted_gpu *g = &h->counted->gpu[i];
        if (waits_on(h, i) && gy_cuda_use(h, i, NULL) == GANTRY_OK &&
            h->d.cuMemcpyHtoDAsync(g->block, g->raised, counter_bytes(h), g->aside.stream) == CUDA_SUCCESS)
            gy_cuda_settle(h, g->aside);
    }
}

/* Streams of all GPUs are quiet before the first counter is cleared, so nothing of the start is still to be stored, and
 * all count from 0 again. What it has left in slots cannot be taken for something of the next one: a block loads from
 * slot m % 2 only when it has heard m, which its peer tells behind all that it stores there for meeting m, and it loads
 * no more than that. */
void gy_counted_clear(gy_cuda *h)
{
    for (uint32_t i = 0; h->counted && i < h->devices; i++)
        if (waits_on(h, i))
            clear(h, i, NULL);
}

/* ---- one op ---- */

/* The counters by which lane r of the op meets the others. */
static void meeting_of(const gy_submit *x, uint32_t r, gy_cuda_meeting *m)
{
    const gy_cuda *h = x->h;
    const gy_op *op = op_of(h, x->op);
    uint32_t me = gy_op_device(h->job->schedule, op, r);
    CUdeviceptr mine = h->counted->gpu[me].block;
    m->columns = h->counted->op[x->op].columns;
    m->parts = h->counted->op[x->op].parts;
    m->with.peers = 0;
    m->with.begins = 1;
    m->with.ends = !gy_order_tied(x, true);
    for (uint32_t i = 0; i < op->lanes; i++) {
        uint32_t other = gy_op_device(h->job->schedule, op, i);
        if (i == r)
            continue;
        m->with.peer[m->with.peers++] = (gy_combine_peer){
            .hear = mine + (uint64_t)other * OF_A_PAIR,
            .tell = h->counted->gpu[other].block + (uint64_t)me * OF_A_PAIR,
            .met = mine + counter_bytes(h) + (uint64_t)other * GY_MEETING_BLOCKS * sizeof(uint64_t),
        };
    }
}

static gantry_status await_others(gy_submit *x, uint32_t r)
{
    bool first = !x->capture && !gy_order_tied(x, false);
    return first ? gy_order_await_others(x->h, gy_submit_lane(x, r), x->err) : GANTRY_OK;
}

static gantry_status meet_alone(gy_submit *x)
{
    gantry_status status = GANTRY_OK;
    for (uint32_t r = 0; r < op_of(x->h, x->op)->lanes && status == GANTRY_OK; r++) {
        gy_cuda_meeting m;
        meeting_of(x, r, &m);
        m.columns = m.parts = 1;
        m.with.ends = 0;
        status = gy_combine_nothing(x, gy_submit_lane(x, r), &m);
    }
    return status;
}

gantry_status gy_counted_come(gy_submit *x)
{
    for (uint32_t r = 0; r < op_of(x->h, x->op)->lanes; r++)
        GY_TRY(await_others(x, r));
    return comes(x->h, x->op) ? meet_alone(x) : GANTRY_OK;
}

gantry_status gy_counted_leave(gy_submit *x)
{
    return gy_order_tied(x, true) ? GANTRY_OK : meet_alone(x);
}

/* The shares of each lane's GPU are combined in that lane. */
gantry_status gy_counted_submit(gy_submit *x)
{
    gy_cuda_meeting m;
    GY_TRY(gy_order_lanes(x));
    for (uint32_t r = 0; r < op_of(x->h, x->op)->lanes; r++) {
        GY_TRY(await_others(x, r));
        meeting_of(x, r, &m);
        gy_queue lane = gy_submit_lane(x, r);
        GY_TRY(gy_gates_meet(x, lane));
        GY_TRY(x->h->op[x->op].pushed ? gy_push_lane(x, lane, r, &m) : gy_combine_lane(x, lane, &m));
        GY_TRY(gy_gates_met(x, lane));
    }
    return GANTRY_OK;
}
