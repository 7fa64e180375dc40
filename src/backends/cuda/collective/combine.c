/* SPDX-License-Identifier: Apache-2.0 */
/* Shares of collectives that kernels carry out, in memory of peers too. The order and the arithmetic are those of the
 * host. */
#include "backends/cuda/collective/share.h"

#include "backends/cuda/stream/own_kernel.h"
#include "base/error.h"

/* ---- prepared at open ---- */

static const gy_own_kernel own = { GY_CUDA_COMBINE, "what combines contributions" };

enum { COPIES = 1, COMBINES };

static gantry_status open_on(gy_cuda *h, uint32_t device, uint8_t wanted, gantry_error *err)
{
    gantry_error why = { 0 };
    uint64_t scratch = 0;
    GY_TRY(gy_own_kernel_open(h, &own, h->combine, device, err));
    gantry_launch l = { .struct_size = sizeof l, .handle = h->combine[device] };
    const gy_cuda_kernel *kernel = gy_cuda_kernel_find(GY_CUDA_COMBINE);
    if (wanted == COPIES || !l.handle || !kernel->prepare)
        return GANTRY_OK;
    GY_TRY(gy_cuda_use(h, device, err));
    gantry_status status = kernel->prepare(&l, &scratch, &why);
    return status ? gy_own_kernel_fail(h, &own, device, status, &why, err) : GANTRY_OK;
}

/* Opens the kernel on every GPU that is an end of a collective, or whose lanes have copies that it makes. */
static gantry_status open_all(gy_cuda *h, gantry_error *err)
{
    gantry_status status = GANTRY_OK;
    uint8_t *wanted = gy_arena_calloc(&h->arena, h->devices, sizeof *wanted);
    if (!wanted)
        return gy_fail_nomem(err);
    for (uint32_t op = 0; op < h->job->schedule->ops.count; op++) {
        const gy_exchange *exchange = h->op[op].called ? NULL : gy_collective_exchange(h, op);
        const gy_op *o = &h->job->schedule->ops.at[op];
        uint8_t *copier = &wanted[h->lane[h->job->schedule->op_lane.at[o->lane]].queue.device];
        if (h->op[op].by_kernel && !*copier)
            *copier = COPIES;
        for (uint32_t k = 0; exchange && !exchange->staged && k < exchange->ends; k++) {
            uint32_t device = gy_collective_end(h, op, 0, k, 0).device;
            if (device != GY_NONE)
                wanted[device] = COMBINES;
        }
    }
    for (uint32_t i = 0; i < h->devices && status == GANTRY_OK; i++)
        status = wanted[i] ? open_on(h, i, wanted[i], err) : GANTRY_OK;
    return status;
}

gantry_status gy_combine_make(gy_cuda *h, gantry_error *err)
{
    h->combine = gy_arena_calloc(&h->arena, h->devices, sizeof *h->combine);
    if (!h->combine)
        return gy_fail_nomem(err);
    gantry_status status = h->step ? GANTRY_OK : gy_collectives_join(h, err);
    status = status ? status : open_all(h, err);
    status = status ? status : gy_counted_find(h, err);
    for (uint32_t op = 0; op < h->job->schedule->ops.count && status == GANTRY_OK; op++)
        status = h->op[op].exchange && !h->op[op].called ? gy_shares_make(h, op, err) : GANTRY_OK;
    return status ? status : gy_counted_fit(h, err);
}

void gy_combine_free(gy_cuda *h)
{
    gy_own_kernel_close(h, &own, h->combine);
}

/* ---- submitted ---- */

typedef struct batch {
    gantry_arg arg[GY_CUDA_ENDS];
    uint32_t args, parts;
} batch;

/* Adds an end as an argument. */
static void add_end(batch *b, const gy_exchange *exchange, const gy_share *s, gantry_access access, gy_location at)
{
    gantry_dtype dtype = s->sources > 1 ? exchange->dtype : GANTRY_U8;
    b->arg[b->args++] = gy_combine_arg(access, dtype, at.at, s->bytes);
}

static gy_location end_at(const gy_submit *x, const gy_share *s, uint32_t end)
{
    return gy_collective_end(x->h, x->op, x->turn, end, s->offset);
}

/* The target behind the GPU's own, so that GPUs do not all store to one at a time. */
static uint32_t first_target(const gy_submit *x, const gy_share *s)
{
    for (uint32_t k = 0; k < s->targets; k++)
        if (end_at(x, s, s->target + k).device == s->device)
            return k + 1;
    return s->distance;
}

static void add_share(batch *b, const gy_submit *x, const gy_share *s)
{
    const gy_exchange *exchange = gy_collective_exchange(x->h, x->op);
    uint32_t before = b->args, first = first_target(x, s);
    gy_location from = end_at(x, s, s->source);
    for (uint32_t k = 0; k < s->sources; k++)
        add_end(b, exchange, s, GANTRY_READ, end_at(x, s, s->source + k));
    for (uint32_t k = 0; k < s->targets; k++) {
        gy_location to = end_at(x, s, s->target + (first + k) % s->targets);
        if (s->sources > 1)
            add_end(b, exchange, s, exchange->reduce, to);
        else if (!gy_location_same(to, from))
            add_end(b, exchange, s, GANTRY_WRITE, to);
    }
    if (b->args == before + s->sources)
        b->args = before; /* in place, and nowhere else */
    else
        b->parts++;
}

gantry_status gy_combine_launch(gy_submit *x, const char *name, const gantry_launch *l, const char *what)
{
    const gy_cuda_kernel *kernel = gy_cuda_kernel_find(name);
    if (kernel->launch(l) == GANTRY_OK)
        return GANTRY_OK;
    const char *why = kernel->why ? kernel->why(l->handle) : NULL;
    return gy_fail(x->err, GANTRY_E_DEVICE, NULL, "op %u: the driver refused to %s on device \"%s\"%s%s", x->op, what,
                   x->h->job->schedule->machine->device[l->device].id, why ? ": " : "", why ? why : "");
}

/* `meeting` may be NULL. */
static gantry_status launch_on(gy_submit *x, gy_queue queue, const batch *b, const gy_cuda_meeting *meeting)
{
    gy_cuda *h = x->h;
    uint32_t device = queue.device;
    GY_TRY(gy_cuda_use(h, device, x->err));
    gantry_launch l = { .struct_size = sizeof l,
                        .device = (int32_t)device,
                        .device_ordinal = h->device[device].ordinal,
                        .stream = queue.stream,
                        .args = (int32_t)b->args,
                        .arg = b->arg,
                        .arg_size = sizeof *b->arg,
                        .user = (void *)(uintptr_t)meeting,
                        .handle = h->combine[device] };
    return gy_combine_launch(x, GY_CUDA_COMBINE, &l, "combine or move its share");
}

static gantry_status launch(gy_submit *x, uint32_t device, const batch *b)
{
    gy_queue queue;
    GY_TRY(gy_submit_on(x, device, &queue));
    return launch_on(x, queue, b, NULL);
}

/* Meets others, and has nothing to combine. */
static void add_nothing(batch *b, gantry_access reduce, gantry_dtype dtype)
{
    b->arg[b->args++] = gy_combine_arg(GANTRY_READ, dtype, 0, 0);
    b->arg[b->args++] = gy_combine_arg(reduce, dtype, 0, 0);
    b->parts++;
}

gantry_status gy_combine_nothing(gy_submit *x, gy_queue lane, const gy_cuda_meeting *meeting)
{
    batch b;
    b.args = b.parts = 0;
    add_nothing(&b, GANTRY_SUM, GANTRY_F32);
    return launch_on(x, lane, &b, meeting);
}

gantry_status gy_combine_lane(gy_submit *x, gy_queue lane, const gy_cuda_meeting *meeting)
{
    const gy_cuda_op *op = &x->h->op[x->op];
    const gy_exchange *exchange = gy_collective_exchange(x->h, x->op);
    batch b;
    b.args = b.parts = 0;
    for (uint32_t i = 0; i < op->shares; i++)
        if (op->share[i].device == lane.device)
            add_share(&b, x, &op->share[i]);
    if (!b.parts && op->share->sources > 1)
        add_nothing(&b, exchange->reduce, exchange->dtype);
    else if (!b.parts)
        add_nothing(&b, GANTRY_WRITE, GANTRY_U8);
    return launch_on(x, lane, &b, meeting);
}

gantry_status gy_combine_submit(gy_submit *x, const gy_share *share, uint32_t count, uint32_t *done)
{
    batch b;
    uint32_t i = b.args = b.parts = 0;
    while (i < count && share[i].way == GY_SHARE_KERNEL && share[i].round == share[0].round &&
           share[i].device == share[0].device && (share[i].sources > 1) == (share[0].sources > 1) &&
           b.args + share[i].sources + share[i].targets <= GY_CUDA_ENDS && b.parts < GY_CUDA_PARTS)
        add_share(&b, x, &share[i++]);
    *done = i;
    return b.parts ? launch(x, share[0].device, &b) : GANTRY_OK;
}

gantry_status gy_combine_meet(gy_submit *x)
{
    batch b;
    b.args = b.parts = 0;
    return x->h->combine[x->first_lane.device] ? launch(x, x->first_lane.device, &b) : GANTRY_OK;
}
