/* SPDX-License-Identifier: Apache-2.0 */
/* Fills. One value again and again is a memset; what else a kernel makes with the host's bits, it makes
 * (fill_kernel.c). The rest is made by the host once, when the run is built, and uploaded. Host memory is filled by a
 * host function. */
#include "backends/cuda/stream/stream.h"

#include "base/error.h"
#include "kernel/identity.h"
#include "run/fill.h"
#include <string.h>

static const gy_buffer *buffer_of(const gy_cuda *h, const gy_use *use)
{
    const gantry_schedule *s = h->job->schedule;
    return &h->job->graph->buffers.at[s->values.at[s->instances.at[use->instance].value].buffer];
}

static const gy_init *init_of(const gy_cuda *h, const gy_op *op)
{
    return op->node == GY_NONE ? NULL : &gy_node_extra_of(h->job->graph, op->node)->fill;
}

/* The bytes of one element, if all are alike. */
static bool pattern_of(const gy_cuda *h, const gy_op *op, const gy_use *use, uint64_t *bits)
{
    const gy_buffer *b = buffer_of(h, use);
    const gy_init *init = init_of(h, op);
    const gy_instance *instance = &h->job->schedule->instances.at[use->instance];
    *bits = 0;
    if (!init)
        return gy_identity(b->dtype, (gantry_access)(op->reduce ? op->reduce : instance->op), bits);
    if (init->kind != GY_INIT_VALUE)
        return false;
    gy_fill_elements(bits, b->dtype, init, 0, 1);
    return true;
}

gantry_status gy_fill_prepare(gy_cuda *h, uint32_t id, gantry_error *err)
{
    const gantry_schedule *s = h->job->schedule;
    const gy_op *op = &s->ops.at[id];
    gantry_status status = GANTRY_OK;
    if (op->kind != GY_OP_FILL || !gy_cuda_here(h, id))
        return GANTRY_OK;
    h->op[id].image = gy_arena_calloc(&h->arena, op->uses + 1, sizeof *h->op[id].image);
    if (!h->op[id].image)
        return gy_fail_nomem(err);
    for (uint32_t k = 0; k < op->uses - gy_op_has_flag(op) && status == GANTRY_OK; k++) {
        const gy_use *use = &s->use.at[op->use + k];
        uint64_t bits;
        gy_fill_target target = gy_fill_target_of(h, use, init_of(h, op), 0);
        if (target.to.device == GY_NONE || pattern_of(h, op, use, &bits) || gy_fill_by_kernel(h, &target))
            continue;
        status = gy_cuda_pinned(h, (void **)&h->op[id].image[k], gy_use_bytes(s, use), err);
        if (status == GANTRY_OK)
            gy_fill_rows(h->op[id].image[k], buffer_of(h, use), init_of(h, op), use->first, use->last);
    }
    return status;
}

bool gy_fill_pattern(const gy_cuda *h, uint32_t id, uint32_t use, uint64_t *bits)
{
    const gy_op *op = &h->job->schedule->ops.at[id];
    return pattern_of(h, op, &h->job->schedule->use.at[op->use + use], bits);
}

void gy_fill_free(gy_cuda *h, uint32_t id)
{
    const gy_op *op = &h->job->schedule->ops.at[id];
    for (uint32_t k = 0; h->op[id].image && k < op->uses - gy_op_has_flag(op); k++)
        if (h->op[id].image[k] && gy_cuda_use(h, h->first_gpu, NULL) == GANTRY_OK)
            h->d.cuMemFreeHost(h->op[id].image[k]);
}

CUresult gy_fill_set(const gy_driver *d, CUdeviceptr at, uint64_t bits, size_t size, uint64_t count, CUstream stream)
{
    uint32_t low = (uint32_t)bits, high = (uint32_t)(bits >> 32);
    switch (size) {
    case 1:
        return d->cuMemsetD8Async(at, (unsigned char)bits, count, stream);
    case 2:
        return d->cuMemsetD16Async(at, (unsigned short)bits, count, stream);
    case 4:
        return d->cuMemsetD32Async(at, low, count, stream);
    default:
        break;
    }
    if (low == high)
        return d->cuMemsetD32Async(at, low, 2 * count, stream);
    /* The halves of a value are two columns of an array of pairs. */
    CUresult code = d->cuMemsetD2D32Async(at, 8, low, 1, count, stream);
    return code == CUDA_SUCCESS ? d->cuMemsetD2D32Async(at + 4, 8, high, 1, count, stream) : code;
}

static gantry_status launch(gy_submit *x, const gy_fill_target *target, gy_queue queue)
{
    gantry_status status = gy_fill_launch(x->h, target, queue.stream);
    return status ? gy_fail(x->err, GANTRY_E_DEVICE, NULL, "op %u: memory of device \"%s\" could not be filled: %s",
                            x->op, x->h->job->schedule->machine->device[queue.device].id, gy_fill_why(x->h, target))
                  : GANTRY_OK;
}

static gantry_status fill_gpu(gy_submit *x, const gy_use *use, gy_location to, const char *image)
{
    gy_cuda *h = x->h;
    const gantry_schedule *s = h->job->schedule;
    uint64_t bits, bytes = gy_use_bytes(s, use);
    if (image) {
        return gy_submit_copy(
            x, to, (gy_location){ .device = GY_NONE, .pinned = true, .host = (char *)(uintptr_t)image }, bytes);
    }
    gy_queue queue;
    gantry_status status = gy_submit_on(x, to.device, &queue);
    status = status ? status : gy_cuda_use(h, queue.device, x->err);
    if (status)
        return status;
    gy_fill_target target = gy_fill_target_of(h, use, init_of(h, &s->ops.at[x->op]), x->turn);
    if (gy_fill_by_kernel(h, &target))
        return launch(x, &target, queue);
    size_t size = gantry_dtype_size(buffer_of(h, use)->dtype);
    pattern_of(h, &s->ops.at[x->op], use, &bits);
    return gy_submit_check(x, gy_fill_set(&h->d, to.at, bits, size, bytes / size, queue.stream), queue,
                           "setting memory");
}

gantry_status gy_submit_fill(gy_submit *x)
{
    const gantry_schedule *s = x->h->job->schedule;
    const gy_op *op = &s->ops.at[x->op];
    gantry_status status = GANTRY_OK;
    for (uint32_t k = 0; k < op->uses - gy_op_has_flag(op) && status == GANTRY_OK; k++) {
        const gy_use *use = &s->use.at[op->use + k];
        gy_location to = gy_cuda_location(x->h, use, x->turn);
        uint64_t bytes = gy_use_bytes(s, use);
        if (bytes == 0)
            continue;
        if (to.device != GY_NONE) {
            status = fill_gpu(x, use, to, x->h->op[x->op].image[k]);
        } else {
            gy_callback callback = {
                .kind = GY_CALLBACK_FILL, .op = x->op, .use = op->use + k, .to = to.host, .bytes = bytes
            };
            status = gy_submit_callback(x, x->first_lane, callback);
        }
    }
    return status;
}
