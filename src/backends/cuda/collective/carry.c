/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small copies between GPUs, within one, and between one and page-locked memory of the host, which its kernels reach:
 * the kernel of collectives makes them (combine.c) where that is faster than the driver's copies, as the machine says
 * of the route. Copies of one moment that follow each other in a lane, with the same ends, are one launch: the first
 * *carries* the others. It then waits for what they wait for, so all of that must come before it in the order of
 * positions, and end before it begins as far as that is predicted. What waits for a carried copy waits for its own
 * event, as before.
 *
 * A batch of the schedule is carried out so whatever its copies take one by one. A copy with the host is left to the
 * copy engines while the GPU is full: they go on beside what computes, and a kernel would wait for its last blocks.
 */
#include "backends/cuda/collective/share.h"

#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/stream/gates.h"
#include "base/error.h"
#include <stdlib.h>
#include <string.h>

enum { MOST_PARTS = GY_CUDA_PARTS < GY_CUDA_ENDS / 2 ? GY_CUDA_PARTS : GY_CUDA_ENDS / 2 };
_Static_assert((int)MOST_PARTS >= (int)GY_COPIES_AT_ONCE, "predictions count on so many by one launch");

/* How long a kernel may wait for a GPU that is full: what a copy engine takes to begin. */
#define PATIENCE_US 16

/* ---- when GPUs are full ---- */

/* A launch that leaves nothing of its device, by device and beginning; `until`: the last end of those up to it. */
typedef struct filling {
    uint32_t device;
    gy_ticks from, until;
} filling;

typedef struct filling_list {
    filling *at;
    size_t count;
} filling_list;

static int by_beginning(const void *a, const void *b)
{
    const filling *x = a, *y = b;
    if (x->device != y->device)
        return x->device < y->device ? -1 : 1;
    return (x->from > y->from) - (x->from < y->from);
}

/* As predicted. false: out of memory. */
static bool list_fillings(gy_cuda *h, filling_list *list)
{
    const gantry_schedule *s = h->job->schedule;
    list->at = gy_arena_alloc(&h->arena, (s->ops.count + 1) * sizeof *list->at);
    for (uint32_t i = 0; list->at && i < s->ops.count; i++) {
        const gy_op *op = &s->ops.at[i];
        if (op->kind == GY_OP_LAUNCH && !op->spare)
            list->at[list->count++] = (filling){ gy_op_device(s, op, 0), op->start, op->end };
    }
    if (list->count)
        qsort(list->at, list->count, sizeof *list->at, by_beginning);
    for (size_t i = 1; i < list->count; i++) {
        filling *last = &list->at[i - 1], *x = &list->at[i];
        x->until = last->device == x->device && last->until > x->until ? last->until : x->until;
    }
    return list->at;
}

/* Until when launches that have begun by then keep the device full. */
static gy_ticks full_until(const filling_list *list, uint32_t device, gy_ticks then)
{
    filling key = { .device = device, .from = then };
    size_t low = 0, high = list->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (by_beginning(&list->at[middle], &key) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low && list->at[low - 1].device == device ? list->at[low - 1].until : 0;
}

/* ---- launches that copy ---- */

/* A launch, as far as ops have been gone through. */
typedef struct carrier {
    uint32_t first, last; /* ops; first: GY_NONE: none */
    uint32_t from, to, parts;
    uint64_t bytes;
} carrier;

static bool in_batch(const gy_op *op)
{
    return op->batch || op->joined;
}

static uint32_t memory_of(const gy_cuda *h, const gy_op *op, uint32_t k)
{
    const gantry_schedule *s = h->job->schedule;
    return s->instances.at[s->use.at[op->use + k].instance].memory;
}

static bool with_host(const carrier *c)
{
    return c->from == GY_NONE || c->to == GY_NONE;
}

/* Copies of up to so many bytes: as the machine says, or "kernels:65536", or "engines" for none. */
static uint64_t most_bytes(const gy_cuda *h, const gy_op *op, const carrier *c, const filling_list *fillings)
{
    static const char prefix[] = "kernels:";
    const char *wanted = getenv("GANTRY_CUDA_COPIES");
    const gantry_machine *m = h->job->schedule->machine;
    if (wanted && strncmp(wanted, prefix, sizeof prefix - 1) == 0)
        return strtoull(wanted + sizeof prefix - 1, NULL, 10);
    if (gy_driver_switch("GANTRY_CUDA_COPIES", "engines"))
        return 0;
    if (in_batch(op))
        return UINT64_MAX;
    if (with_host(c) && full_until(fillings, gy_op_device(h->job->schedule, op, 0), op->start) >
                            op->start + gy_ticks_from_us(PATIENCE_US))
        return 0;
    return (uint64_t)gy_machine_route(m, memory_of(h, op, 0), memory_of(h, op, op->uses / 2))->kernel_bytes;
}

static gy_location end_of(const gy_cuda *h, const gy_op *op, uint32_t k, uint32_t turn)
{
    return gy_cuda_location(h, &h->job->schedule->use.at[op->use + k], turn);
}

/* Can a kernel in the lane of the op reach both ends? */
static bool reaches(const gy_cuda *h, const gy_op *op, const carrier *c)
{
    uint32_t lane = gy_op_device(h->job->schedule, op, 0);
    if (with_host(c))
        return c->from != c->to && h->device[lane].gpu &&
               gy_cuda_same_gpu(h, c->from == GY_NONE ? c->to : c->from, lane);
    return gy_cuda_reaches(h, c->to, c->from);
}

/* Describes the launch of this copy alone; false: no kernel can make it. */
static bool describe(const gy_cuda *h, uint32_t id, carrier *c)
{
    const gantry_schedule *s = h->job->schedule;
    const gy_op *op = &s->ops.at[id];
    uint32_t pairs = op->uses / 2;
    if (!gy_op_is_copy(op) || pairs == 0 || gy_op_has_flag(op))
        return false;
    *c = (carrier){ id, id, end_of(h, op, 0, 0).device, end_of(h, op, pairs, 0).device, pairs, 0 };
    if (!reaches(h, op, c))
        return false;
    for (uint32_t k = 0; k < pairs; k++) {
        c->bytes += gy_use_bytes(s, &s->use.at[op->use + pairs + k]);
        if (end_of(h, op, k, 0).device != c->from || end_of(h, op, pairs + k, 0).device != c->to)
            return false;
    }
    return pairs <= MOST_PARTS;
}

static bool waits_only_for_earlier(const gy_cuda *h, uint32_t id, uint32_t first)
{
    const gy_op *ops = h->job->schedule->ops.at;
    bool all = true;
    for (uint32_t i = h->op[id].wait; i < h->op[id].wait + h->op[id].waits && all; i++) {
        gy_cuda_wait row = h->wait[i];
        all = row.distance > 0 || (row.from < first && ops[row.from].end <= ops[first].start);
    }
    return all;
}

/* Copies within a GPU may read what the one ahead in the lane wrote, which no wait tells; those of a batch do not. */
static bool joins(const gy_cuda *h, const carrier *c, const carrier *next, uint64_t most)
{
    const gy_op *op = &h->job->schedule->ops.at[next->first];
    bool chained = !op->joined && next->from != GY_NONE && next->from == next->to;
    return !op->batch && !chained && c->first != GY_NONE && c->from == next->from && c->to == next->to &&
           c->parts + next->parts <= MOST_PARTS && c->bytes + next->bytes <= most &&
           waits_only_for_earlier(h, next->first, c->first);
}

static void add(gy_cuda *h, carrier *c, const carrier *next, uint64_t most)
{
    if (joins(h, c, next, most)) {
        h->op[c->last].carries = next->first;
        h->op[next->first].carried = true;
        c->last = next->first;
        c->parts += next->parts;
        c->bytes += next->bytes;
    } else {
        h->op[next->first].by_kernel = true;
        *c = *next;
    }
}

/* Any other op of the lane ends what a launch may carry. */
gantry_status gy_carry_make(gy_cuda *h, gantry_error *err)
{
    const gantry_schedule *s = h->job->schedule;
    bool has_kernel = gy_cuda_kernel_find(GY_CUDA_COMBINE) != NULL;
    carrier *of = gy_arena_calloc(&h->arena, h->lanes + 1, sizeof *of);
    filling_list fillings = { 0 };
    if (!of || !list_fillings(h, &fillings))
        return gy_fail_nomem(err);
    for (uint32_t i = 0; i < h->lanes; i++)
        of[i].first = GY_NONE;
    for (uint32_t id = 0; id < s->ops.count; id++) {
        const gy_op *op = &s->ops.at[id];
        carrier next;
        h->op[id].carries = GY_NONE;
        uint64_t most = has_kernel && describe(h, id, &next) ? most_bytes(h, op, &next, &fillings) : 0;
        if (most && next.bytes <= most) {
            add(h, &of[s->op_lane.at[op->lane]], &next, most);
            continue;
        }
        for (uint32_t i = 0; i < op->lanes; i++)
            of[s->op_lane.at[op->lane + i]].first = GY_NONE;
    }
    return GANTRY_OK;
}

/* ---- submitted ---- */

static CUdeviceptr address_of(gy_location end)
{
    return end.device == GY_NONE ? (CUdeviceptr)(uintptr_t)end.host : end.at;
}

/* A part that a kernel makes becomes two arguments. What it cannot reach is copied by itself: memory that the caller
 * bound and that could not be page-locked. */
static gantry_status add_pair(gantry_arg *arg, int32_t *args, gy_submit *x, const gy_use *from_use,
                              const gy_use *to_use)
{
    uint64_t bytes = gy_use_bytes(x->h->job->schedule, to_use);
    gy_location from = gy_cuda_location(x->h, from_use, x->turn), to = gy_cuda_location(x->h, to_use, x->turn);
    if ((from.device == GY_NONE && !from.pinned) || (to.device == GY_NONE && !to.pinned)) {
        GY_TRY(gy_submit_copy(x, to, from, bytes));
        return gy_submit_join(x); /* they share the stage */
    }
    if (bytes == 0)
        return GANTRY_OK;
    arg[(*args)++] = gy_combine_arg(GANTRY_READ, GANTRY_U8, address_of(from), bytes);
    arg[(*args)++] = gy_combine_arg(GANTRY_WRITE, GANTRY_U8, address_of(to), bytes);
    return GANTRY_OK;
}

/* The pairs of one copy. */
static gantry_status add_pairs(gantry_arg *arg, int32_t *args, gy_submit *x, uint32_t id)
{
    const gantry_schedule *s = x->h->job->schedule;
    const gy_op *op = &s->ops.at[id];
    uint32_t pairs = op->uses / 2;
    for (uint32_t k = 0; k < pairs; k++)
        GY_TRY(add_pair(arg, args, x, &s->use.at[op->use + k], &s->use.at[op->use + pairs + k]));
    return GANTRY_OK;
}

gantry_status gy_carry_submit(gy_submit *x)
{
    gantry_arg arg[2 * MOST_PARTS];
    gy_cuda *h = x->h;
    uint32_t device = x->first_lane.device;
    gantry_launch l = { .struct_size = sizeof l, .device = (int32_t)device, .arg = arg, .arg_size = sizeof *arg };
    for (uint32_t id = x->op; id != GY_NONE; id = h->op[id].carries)
        GY_TRY(add_pairs(arg, &l.args, x, id));
    if (l.args == 0)
        return GANTRY_OK;
    if (gy_gates_copies(x, arg, l.args))
        return gy_gates_copy(x, arg, l.args);
    GY_TRY(gy_cuda_use(h, device, x->err));
    l.device_ordinal = h->device[device].ordinal;
    l.stream = x->first_lane.stream;
    l.handle = h->combine[device];
    return gy_combine_launch(x, GY_CUDA_COMBINE, &l, "copy");
}
