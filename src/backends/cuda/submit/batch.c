/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of the schedule that a kernel carries out by one call. The call finds the addresses of all launches in memory
 * of the GPU, too, where they are as they were when the turn's addresses were last set: so it can be captured. */
#include "backends/cuda/submit/submit.h"

#include "base/error.h"
#include <string.h>

/* One launch after the other otherwise: on a CPU, by code of the user, by kernels without such a call. Copies are
 * carried (collective/carry.c). */
static const gy_cuda_kernel *kernel_of(const gy_cuda *h, const gy_op *op)
{
    if (!op->batch || op->kind != GY_OP_LAUNCH || h->job->apart || h->step)
        return NULL;
    const gy_cuda_kernel *kernel = gy_cuda_kernel_of(h, op, gy_op_device(h->job->schedule, op, 0));
    return kernel && kernel->launch_batch ? kernel : NULL;
}

static gy_cuda_device *device_of(gy_cuda *h, uint32_t op)
{
    return &h->device[gy_op_device(h->job->schedule, &h->job->schedule->ops.at[op], 0)];
}

static gantry_status make_calls(gy_cuda *h, uint32_t id, gantry_error *err)
{
    const gy_op *op = &h->job->schedule->ops.at[id];
    gy_cuda_device *device = device_of(h, id);
    gy_cuda_calls *c = gy_arena_calloc(&h->arena, 1, sizeof *c);
    if (!c || !(c->launch = gy_arena_calloc(&h->arena, (size_t)h->turns * op->batch, sizeof *c->launch)))
        return gy_fail_nomem(err);
    c->count = op->batch;
    c->args = (uint32_t)h->op[id].call->launch.args;
    c->first = device->address_count;
    device->address_count += (size_t)c->count * c->args;
    for (uint32_t t = 0; t < h->turns; t++)
        for (uint32_t i = 0; i < c->count; i++)
            c->launch[(size_t)t * c->count + i] = &h->op[id + i].call[t].launch;
    for (uint32_t i = 1; i < c->count; i++)
        h->op[id + i].called = true;
    h->op[id].calls = c;
    return GANTRY_OK;
}

static gantry_status make_addresses(gy_cuda *h, uint32_t device, gantry_error *err)
{
    gy_cuda_device *d = &h->device[device];
    size_t bytes = h->turns * d->address_count * sizeof *d->host_addresses;
    void *block = NULL;
    if (!bytes)
        return GANTRY_OK;
    GY_TRY(gy_cuda_pinned(h, &block, bytes, err));
    d->host_addresses = block;
    memset(block, 0, bytes);
    return gy_cuda_allocate(h, &d->addresses, device, bytes, "addresses of batches", err);
}

gantry_status gy_cuda_batches_make(gy_cuda *h, gantry_error *err)
{
    for (uint32_t i = 0; i < h->job->schedule->ops.count; i++)
        if (kernel_of(h, &h->job->schedule->ops.at[i]))
            GY_TRY(make_calls(h, i, err));
    for (uint32_t i = 0; i < h->devices; i++)
        GY_TRY(make_addresses(h, i, err));
    return GANTRY_OK;
}

void gy_cuda_batches_free(gy_cuda *h)
{
    for (uint32_t i = 0; i < h->devices; i++) {
        const gy_cuda_device *d = &h->device[i];
        if (d->host_addresses && gy_cuda_use(h, i, NULL) == GANTRY_OK) {
            if (d->addresses)
                h->d.cuMemFree(d->addresses);
            h->d.cuMemFreeHost(d->host_addresses);
        }
    }
}

/* Writes the addresses of the turn. false: they were there already. */
static bool collect(const gy_cuda_calls *c, const gy_cuda_device *device, uint32_t turn)
{
    const void **data = device->host_addresses + turn * device->address_count + c->first;
    bool changed = false;
    for (uint32_t a = 0; a < c->args; a++)
        for (uint32_t i = 0; i < c->count; i++) {
            const void **to = &data[(size_t)a * c->count + i];
            const void *is = c->launch[(size_t)turn * c->count + i]->arg[a].data;
            changed = changed || *to != is;
            *to = is;
        }
    return changed;
}

static gantry_status upload(gy_cuda *h, uint32_t device, uint32_t turn, gantry_error *err)
{
    gy_cuda_device *d = &h->device[device];
    size_t first = turn * d->address_count, bytes = d->address_count * sizeof *d->host_addresses;
    GY_TRY(gy_cuda_use(h, device, err));
    CUresult code = h->d.cuMemcpyHtoDAsync(d->addresses + first * sizeof *d->host_addresses, d->host_addresses + first,
                                           bytes, d->auxiliary.stream);
    code = code == CUDA_SUCCESS ? gy_cuda_settle(h, d->auxiliary) : code;
    return code == CUDA_SUCCESS ? GANTRY_OK : gy_cuda_fail(h, code, device, "uploading addresses", err);
}

gantry_status gy_cuda_batches_point(gy_cuda *h, uint32_t turn, gantry_error *err)
{
    for (uint32_t device = 0; device < h->devices; device++) {
        const gy_cuda_device *d = &h->device[device];
        bool changed = false;
        for (uint32_t i = 0; d->address_count && i < h->job->schedule->ops.count; i++)
            if (h->op[i].calls && device_of(h, i) == d)
                changed = collect(h->op[i].calls, d, turn) || changed;
        if (changed)
            GY_TRY(upload(h, device, turn, err));
    }
    return GANTRY_OK;
}

gantry_status gy_cuda_batch_launch(gy_cuda *h, uint32_t op, uint32_t turn)
{
    const gy_cuda_calls *c = h->op[op].calls;
    const gy_cuda_device *d = device_of(h, op);
    gy_cuda_batch batch = { .launch = c->launch + (size_t)turn * c->count, .count = c->count };
    batch.data = d->addresses + (turn * d->address_count + c->first) * sizeof *d->host_addresses;
    return kernel_of(h, &h->job->schedule->ops.at[op])->launch_batch(batch.launch[0], &batch);
}
