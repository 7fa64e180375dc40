/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of the schedule that a kernel carries out by one call. The call finds the addresses of all launches in memory
 * of the GPU, too, where they are as they were when the turn's addresses were last set: so it can be captured. */
#include "backends/cuda/submit/submit.h"

#include "base/error.h"
#include <string.h>

/* One launch after the other otherwise: on a CPU, by code of the user, by kernels without such a call. */
static const gy_cuda_kernel *kernel_of(const gy_cuda *h, const gy_op *op)
{
    if (!op->batch)
        return NULL;
    const gy_cuda_kernel *kernel = gy_cuda_kernel_of(h, op, gy_op_device(h->job->schedule, op, 0));
    return kernel && kernel->launch_batch ? kernel : NULL;
}

static size_t pointers_of(const gy_cuda_calls *c)
{
    return (size_t)c->count * c->args;
}

static gantry_status make_calls(gy_cuda *h, uint32_t id, gantry_error *err)
{
    const gy_op *op = &h->job->schedule->ops.at[id];
    gy_cuda_calls *c = gy_arena_calloc(&h->arena, 1, sizeof *c);
    if (!c || !(c->launch = gy_arena_calloc(&h->arena, (size_t)h->turns * op->batch, sizeof *c->launch)))
        return gy_fail_nomem(err);
    c->count = op->batch;
    c->args = (uint32_t)h->op[id].call->launch.args;
    for (uint32_t t = 0; t < h->turns; t++)
        for (uint32_t i = 0; i < c->count; i++)
            c->launch[(size_t)t * c->count + i] = &h->op[id + i].call[t].launch;
    for (uint32_t i = 1; i < c->count; i++)
        h->op[id + i].called = true;
    h->op[id].calls = c;
    size_t bytes = h->turns * pointers_of(c) * sizeof *c->data;
    void *block = NULL;
    GY_TRY(gy_cuda_pinned(h, &block, bytes, err));
    c->data = block;
    memset(block, 0, bytes);
    return gy_cuda_allocate(h, &c->at, gy_op_device(h->job->schedule, op, 0), bytes, "addresses of batches", err);
}

gantry_status gy_cuda_batches_make(gy_cuda *h, gantry_error *err)
{
    for (uint32_t i = 0; i < h->job->schedule->ops.count; i++)
        if (kernel_of(h, &h->job->schedule->ops.at[i]))
            GY_TRY(make_calls(h, i, err));
    return GANTRY_OK;
}

void gy_cuda_batches_free(gy_cuda *h)
{
    for (uint32_t i = 0; h->op && i < h->job->schedule->ops.count; i++) {
        const gy_cuda_calls *c = h->op[i].calls;
        uint32_t device = c ? gy_op_device(h->job->schedule, &h->job->schedule->ops.at[i], 0) : GY_NONE;
        if (c && gy_cuda_use(h, device, NULL) == GANTRY_OK) {
            if (c->at)
                h->d.cuMemFree(c->at);
            if (c->data)
                h->d.cuMemFreeHost(c->data);
        }
    }
}

/* Writes the addresses of the turn. false: they were there already. */
static bool collect(const gy_cuda_calls *c, uint32_t turn)
{
    const void **data = c->data + turn * pointers_of(c);
    bool changed = false;
    for (uint32_t a = 0; a < c->args; a++)
        for (uint32_t i = 0; i < c->count; i++) {
            const void **to = &data[(size_t)a * c->count + i], *is = c->launch[turn * c->count + i]->arg[a].data;
            changed = changed || *to != is;
            *to = is;
        }
    return changed;
}

static gantry_status upload(gy_cuda *h, const gy_cuda_calls *c, uint32_t device, uint32_t turn, gantry_error *err)
{
    size_t first = turn * pointers_of(c), bytes = pointers_of(c) * sizeof *c->data;
    gy_queue queue = h->device[device].auxiliary;
    GY_TRY(gy_cuda_use(h, device, err));
    CUresult code = h->d.cuMemcpyHtoDAsync(c->at + first * sizeof *c->data, c->data + first, bytes, queue.stream);
    code = code == CUDA_SUCCESS ? gy_cuda_settle(h, queue) : code;
    return code == CUDA_SUCCESS ? GANTRY_OK : gy_cuda_fail(h, code, device, "uploading addresses", err);
}

gantry_status gy_cuda_batches_point(gy_cuda *h, uint32_t turn, gantry_error *err)
{
    const gantry_schedule *s = h->job->schedule;
    for (uint32_t i = 0; i < s->ops.count; i++) {
        const gy_cuda_calls *c = h->op[i].calls;
        if (c && collect(c, turn))
            GY_TRY(upload(h, c, gy_op_device(s, &s->ops.at[i], 0), turn, err));
    }
    return GANTRY_OK;
}

gantry_status gy_cuda_batch_launch(const gy_cuda *h, uint32_t op, uint32_t turn)
{
    const gy_cuda_calls *c = h->op[op].calls;
    gy_cuda_batch batch = { .launch = c->launch + (size_t)turn * c->count, .count = c->count };
    batch.data = c->at + turn * pointers_of(c) * sizeof *c->data;
    return kernel_of(h, &h->job->schedule->ops.at[op])->launch_batch(batch.launch[0], &batch);
}
