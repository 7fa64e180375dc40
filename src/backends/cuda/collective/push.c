/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counted collectives whose GPUs send what they give, and meet once (kernels/push). Each lane reads and writes its own
 * memory alone, beside slots, so it needs no word from others but that they have begun. Two things must not depend on
 * more than that:
 *
 * - Ops of other GPUs that touch bytes of the collective in its lanes' memories: such an op may be ordered by a lane of
 *   the collective on its own GPU, which says nothing of what another lane has still to do. So there are none (`far`).
 * - Starts: the next one begins when this one has ended, so no order comes from an earlier start by way of other GPUs.
 */
#include "backends/cuda/collective/counted.h"

#include "backends/cuda/stream/own_kernel.h"
#include "base/error.h"
#include <stdlib.h>

/* MOST: bytes of an op. EXTRA: where so many more of them than as two_shot cross the links of a GPU, a second meeting
 * is the faster way (an all_reduce among four H200s: 1.1 us slower with 96 KiB more, 1.1 us faster with 384 KiB). */
#define MOST  (UINT64_C(1) << 20)
#define EXTRA (UINT64_C(256) << 10)

static const gy_own_kernel own = { GY_CUDA_PUSH, "what sends contributions" };

static const gy_op *op_of(const gy_cuda *h, uint32_t op)
{
    return &h->job->schedule->ops.at[op];
}

void gy_push_free(gy_cuda *h)
{
    gy_own_kernel_close(h, &own, h->push);
}

static gantry_status open_all(gy_cuda *h, gantry_error *err)
{
    h->push = gy_arena_calloc(&h->arena, h->devices, sizeof *h->push);
    if (!h->push)
        return gy_fail_nomem(err);
    for (uint32_t op = 0; op < h->job->schedule->ops.count; op++)
        for (uint32_t i = 0; h->op[op].counted && i < op_of(h, op)->lanes; i++)
            GY_TRY(gy_own_kernel_open(h, &own, h->push, gy_op_device(h->job->schedule, op_of(h, op), i), err));
    return GANTRY_OK;
}

/* ---- what is touched from another GPU ---- */

static gy_far_bytes bytes_of(const gy_cuda *h, const gy_use *u)
{
    const gantry_schedule *s = h->job->schedule;
    const gy_instance *in = &s->instances.at[u->instance];
    uint64_t first = in->offset + gy_instance_offset(s, in, u->first);
    return (gy_far_bytes){ in->memory, in->space, first, first + gy_use_bytes(s, u) };
}

static bool find_far(const gy_cuda *h, gy_far_list *far)
{
    const gantry_schedule *s = h->job->schedule;
    bool ok = true;
    for (uint32_t id = 0; id < s->ops.count; id++) {
        const gy_op *op = op_of(h, id);
        for (uint32_t u = op->use; u < op->use + op->uses && ok; u++) {
            uint32_t device = gy_cuda_location(h, &s->use.at[u], 0).device;
            uint32_t lane = device == GY_NONE ? 0 : gy_cuda_lane_on(h, id, device);
            if (lane == GY_NONE || (lane && !gy_cuda_op_meets(&h->op[id])))
                ok = gy_vec_push(far, bytes_of(h, &s->use.at[u]));
        }
    }
    return ok;
}

static int by_place(const void *a, const void *b)
{
    const gy_far_bytes *x = a, *y = b;
    return x->memory != y->memory ? (x->memory < y->memory ? -1 : 1)
           : x->space != y->space ? (x->space < y->space ? -1 : 1)
           : x->first != y->first ? (x->first < y->first ? -1 : 1)
                                  : 0;
}

static bool same_space(const gy_far_bytes *a, const gy_far_bytes *b)
{
    return a->memory == b->memory && a->space == b->space;
}

/* In the order of their places, and those that overlap or touch each other as one. */
static void join(gy_far_list *far)
{
    size_t kept = 0;
    if (far->count)
        qsort(far->at, far->count, sizeof *far->at, by_place);
    for (size_t i = 0; i < far->count; i++) {
        gy_far_bytes *last = kept ? &far->at[kept - 1] : NULL;
        if (!last || !same_space(last, &far->at[i]) || last->last < far->at[i].first)
            far->at[kept++] = far->at[i];
        else if (last->last < far->at[i].last)
            last->last = far->at[i].last;
    }
    far->count = kept;
}

/* Finds the last range that begins ahead of the end of these bytes: none of the others can overlap them, unless it
 * does. */
static bool overlaps(const gy_far_list *far, gy_far_bytes b)
{
    gy_far_bytes end = b;
    size_t low = 0, high = far->count;
    end.first = b.last;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (by_place(&far->at[middle], &end) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 && same_space(&far->at[low - 1], &b) && b.first < far->at[low - 1].last;
}

static bool is_far(const gy_cuda *h, uint32_t id, const gy_far_list *far)
{
    const gantry_schedule *s = h->job->schedule;
    bool touched = false;
    for (uint32_t op = id; op == id || (op < s->ops.count && h->op[op].called); op++)
        for (uint32_t u = op_of(h, op)->use; u < op_of(h, op)->use + op_of(h, op)->uses && !touched; u++)
            touched = overlaps(far, bytes_of(h, &s->use.at[u]));
    return touched;
}

/* ---- which ones ---- */

/* Every end is of a lane's GPU, and each of these gives once at most, and takes once at most. */
static bool can_send(const gy_cuda *h, uint32_t id, const gy_exchange_piece *piece)
{
    uint32_t seen[2] = { 0, 0 };
    bool can = piece->bytes <= MOST && piece->sources <= GY_MEETING_PEERS + 1;
    for (uint32_t k = 0; k < piece->sources + piece->targets && can; k++) {
        bool takes = k >= piece->sources;
        uint32_t end = takes ? piece->target + k - piece->sources : piece->source + k;
        uint32_t lane = gy_cuda_lane_on(h, id, gy_collective_end(h, id, 0, end, 0).device);
        can = lane != GY_NONE && !(seen[takes] >> lane & 1);
        seen[takes] |= can ? UINT32_C(1) << lane : 0;
    }
    return can;
}

static bool is_live(const gy_exchange_piece *piece)
{
    return piece->bytes && piece->targets;
}

typedef struct size {
    uint64_t bytes, extra, most; /* most: of a piece */
    uint32_t parts;
    bool moves;
} size;

static bool find_size(const gy_cuda *h, uint32_t id, size *z)
{
    const gy_exchange *exchange = gy_collective_exchange(h, id);
    uint64_t ranks = op_of(h, id)->lanes;
    bool can = true;
    *z = (size){ .parts = 0 };
    for (uint32_t i = 0; i < exchange->pieces && can; i++) {
        const gy_exchange_piece *piece = &exchange->piece[i];
        if (!is_live(piece))
            continue;
        bool moves = piece->sources == 1, to_all = !moves && piece->targets > 1;
        can = (z->parts == 0 || moves == z->moves) && can_send(h, id, piece);
        z->moves = moves;
        z->parts++;
        z->bytes += piece->bytes;
        z->extra += to_all ? piece->bytes * (ranks - 1) * (ranks - 2) / ranks : 0;
        z->most = piece->bytes > z->most ? piece->bytes : z->most;
    }
    return can && z->parts && z->parts <= GY_PUSH_PARTS && z->bytes <= MOST;
}

static gantry_arg arg_of(const gy_cuda *h, uint32_t id, bool moves)
{
    const gy_exchange *exchange = gy_collective_exchange(h, id);
    return gy_combine_arg(moves ? GANTRY_WRITE : exchange->reduce, moves ? GANTRY_U8 : exchange->dtype, 0, 0);
}

/* For how many blocks all of its GPUs have room. */
static uint32_t room_of(const gy_cuda *h, uint32_t id, bool moves)
{
    uint32_t least = UINT32_MAX;
    for (uint32_t i = 0; i < op_of(h, id)->lanes; i++) {
        uint32_t device = gy_op_device(h->job->schedule, op_of(h, id), i), room = 0;
        gantry_arg arg = arg_of(h, id, moves);
        gantry_launch l = { .struct_size = sizeof l, .args = 1, .arg = &arg, .arg_size = sizeof arg };
        l.handle = h->push[device];
        if (l.handle && gy_cuda_use((gy_cuda *)(uintptr_t)h, device, NULL) == GANTRY_OK)
            room = gy_cuda_kernel_find(GY_CUDA_PUSH)->room(&l);
        least = room < least ? room : least;
    }
    return least;
}

/* A line for each thread, if there is room. */
static bool find_blocks(const gy_cuda *h, uint32_t id, const size *z, gy_counted_op *to)
{
    uint64_t lines = (z->most + GY_PUSH_LINE - 1) / GY_PUSH_LINE;
    uint64_t wanted = (lines + 255) / 256, each = room_of(h, id, z->moves) / z->parts;
    to->columns = (uint32_t)(wanted < each ? wanted : each);
    to->parts = z->parts;
    if (!to->columns)
        return false;
    uint64_t bytes = (lines + to->columns - 1) / to->columns * GY_PUSH_LINE;
    gy_counted *c = h->counted;
    c->slot_bytes = bytes > c->slot_bytes ? (uint32_t)bytes : c->slot_bytes;
    c->slot_blocks = to->columns * to->parts > c->slot_blocks ? to->columns * to->parts : c->slot_blocks;
    return true;
}

static bool fits(const gy_cuda *h, uint32_t id, const gy_far_list *far, gy_counted_op *to)
{
    size z;
    if (!find_size(h, id, &z) || is_far(h, id, far))
        return false;
    to->moves = z.moves;
    return z.extra <= EXTRA && find_blocks(h, id, &z, to);
}

gantry_status gy_push_find(gy_cuda *h, gantry_error *err)
{
    gy_far_list far = { 0 };
    if (!gy_cuda_kernel_find(GY_CUDA_PUSH) || h->job->schedule->in_flight > 1 ||
        gy_driver_switch("GANTRY_CUDA_MEETINGS", "two"))
        return GANTRY_OK;
    GY_TRY(open_all(h, err));
    bool ok = find_far(h, &far);
    join(&far);
    for (uint32_t op = 0; op < h->job->schedule->ops.count && ok; op++) {
        gy_counted_op to = h->counted->op[op];
        bool first = h->op[op].counted && !h->op[op].called;
        h->op[op].pushed = first ? fits(h, op, &far, &to) : h->op[op].counted && h->op[op - 1].pushed;
        if (first && h->op[op].pushed)
            h->counted->op[op] = to;
        h->counted->once += h->op[op].pushed;
    }
    gy_vec_free(&far);
    return ok ? GANTRY_OK : gy_fail_nomem(err);
}

/* ---- one lane ---- */

static uint32_t peer_of(uint32_t lane, uint32_t me)
{
    return lane < me ? lane : lane - 1;
}

static gy_push_part part_of(const gy_submit *x, const gy_exchange_piece *piece, uint32_t me)
{
    const gy_counted_op *c = &x->h->counted->op[x->op];
    const gy_exchange *exchange = gy_collective_exchange(x->h, x->op);
    size_t element = c->moves ? 1 : gantry_dtype_size(exchange->dtype);
    gy_push_part p = { .n = (uint32_t)(piece->bytes / element), .sources = (uint16_t)piece->sources };
    for (uint32_t k = 0; k < piece->sources; k++) {
        gy_location at = gy_collective_end(x->h, x->op, x->turn, piece->source + k, 0);
        uint32_t lane = gy_cuda_lane_on(x->h, x->op, at.device);
        p.order[k] = lane == me ? GY_PUSH_SELF : (uint8_t)peer_of(lane, me);
        p.source = lane == me ? at.at : p.source;
    }
    for (uint32_t k = 0; k < piece->targets; k++) {
        gy_location at = gy_collective_end(x->h, x->op, x->turn, piece->target + k, 0);
        uint32_t lane = gy_cuda_lane_on(x->h, x->op, at.device);
        if (lane == me)
            p.target = at.at;
        else
            p.takers |= (uint16_t)(1U << peer_of(lane, me));
    }
    return p;
}

static void add_parts(const gy_submit *x, uint32_t me, gy_cuda_push *to)
{
    const gy_exchange *exchange = gy_collective_exchange(x->h, x->op);
    uint32_t parts = 0;
    for (uint32_t i = 0; i < exchange->pieces; i++)
        if (is_live(&exchange->piece[i]))
            to->part[parts++] = part_of(x, &exchange->piece[i], me);
}

gantry_status gy_push_lane(gy_submit *x, gy_queue lane, uint32_t me, const gy_cuda_meeting *meeting)
{
    gy_cuda *h = x->h;
    const gy_counted *c = h->counted;
    uint32_t device = lane.device;
    gy_cuda_push push = { .columns = meeting->columns, .parts = meeting->parts };
    push.with.slot_bytes = c->slot_bytes;
    push.with.peers = meeting->with.peers;
    for (uint32_t i = 0; i < op_of(h, x->op)->lanes; i++) {
        uint32_t other = gy_op_device(h->job->schedule, op_of(h, x->op), i);
        if (i == me)
            continue;
        push.with.peer[peer_of(i, me)] = (gy_push_peer){ .counters = meeting->with.peer[peer_of(i, me)],
                                                         .to = gy_counted_slots(h, other, device),
                                                         .from = gy_counted_slots(h, device, other) };
    }
    add_parts(x, me, &push);
    GY_TRY(gy_cuda_use(h, device, x->err));
    gantry_arg arg = arg_of(h, x->op, c->op[x->op].moves);
    gantry_launch l = {
        .struct_size = sizeof l, .device = (int32_t)device, .args = 1, .arg = &arg, .arg_size = sizeof arg
    };
    l.device_ordinal = h->device[device].ordinal;
    l.stream = lane.stream;
    l.user = &push;
    l.handle = h->push[device];
    return gy_combine_launch(x, GY_CUDA_PUSH, &l, "combine or move its share");
}
