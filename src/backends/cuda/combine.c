/* SPDX-License-Identifier: Apache-2.0 */
/* Contributions combined by GPUs: each piece of a collective by the first GPU that is a target of it, into that target.
 * Memory of peers is read directly; what the GPU cannot read is brought to an area of its own first, by chunks. The
 * order and the arithmetic are those of the host. */
#include "backends/cuda/state.h"

#include "backends/host/ops.h"
#include "base/error.h"

static uint64_t chunk_of(uint64_t bytes)
{
    return bytes < GY_CUDA_CHUNK ? bytes : GY_CUDA_CHUNK;
}

static bool can_read(const gy_cuda *h, uint32_t device, gy_place from)
{
    return from.device != GY_NONE &&
           (h->device[from.device].context == h->device[device].context || h->peer[device * h->devices + from.device]);
}

/* The first target that is memory of a GPU; GY_NONE: there is none, or nothing is to be combined there. */
static uint32_t target_of(const gy_cuda *h, uint32_t op, const gy_piece *piece)
{
    const gy_exchange *parts = h->op[op].parts;
    if (piece->sources < 2 || piece->sources > GY_CUDA_SOURCES || parts->stage || !piece->bytes) {
        return GY_NONE;
    }
    for (uint32_t k = piece->target; k < piece->target + piece->targets; k++) {
        if (gy_collective_end(h, op, 0, k, 0).device != GY_NONE) {
            return k;
        }
    }
    return GY_NONE;
}

bool gy_combine_does(const gy_cuda *h, uint32_t op, const gy_piece *piece)
{
    uint32_t target = target_of(h, op, piece);
    return target != GY_NONE && h->combine[gy_collective_end(h, op, 0, target, 0).device];
}

/* ---- prepared at open ---- */

/* A GPU that no code was compiled for is no failure: the host combines. */
static gantry_status open_on(gy_cuda *h, uint32_t device, gantry_error *err)
{
    const gy_cuda_kernel *kernel = gy_cuda_kernel_find(GY_CUDA_COMBINE);
    gantry_error why = { 0 };
    gantry_status status = gy_cuda_use(h, device, err);
    if (status || !(status = kernel->open(&h->combine[device], kernel, &h->d, &why))) {
        return status;
    }
    h->combine[device] = NULL;
    if (why.native == CUDA_ERROR_NO_BINARY_FOR_GPU) {
        return GANTRY_OK;
    }
    gy_fail(err, status, NULL, "what combines contributions could not be opened on device \"%s\": %s",
            h->job->schedule->machine->device[device].id, why.text);
    if (err) {
        err->native = why.native;
        err->device = (int32_t)device;
    }
    return status;
}

/* On every GPU that has something to combine. */
static gantry_status open_all(gy_cuda *h, gantry_error *err)
{
    gantry_status status = GANTRY_OK;
    uint8_t *wanted = gy_arena_calloc(&h->arena, h->devices, sizeof *wanted);
    if (!wanted) {
        return gy_fail_nomem(err);
    }
    for (uint32_t op = 0; op < h->job->schedule->ops.count; op++) {
        const gy_exchange *parts = h->op[op].parts;
        for (uint32_t i = 0; parts && i < parts->pieces; i++) {
            uint32_t target = target_of(h, op, &parts->piece[i]);
            if (target != GY_NONE) {
                wanted[gy_collective_end(h, op, 0, target, 0).device] = 1;
            }
        }
    }
    for (uint32_t i = 0; i < h->devices && status == GANTRY_OK; i++) {
        status = wanted[i] ? open_on(h, i, err) : GANTRY_OK;
    }
    return status;
}

/* Collectives of one lane follow each other and share their areas. */
static gy_cuda_area *area_of(const gy_cuda *h, uint32_t op, uint32_t device)
{
    const gantry_schedule *s = h->job->schedule;
    return &h->area[s->op_lane.at[s->ops.at[op].lane] * h->devices + device];
}

/* Room for a chunk of each source that the GPU cannot read. */
static void size_area(gy_cuda *h, uint32_t op, const gy_piece *piece)
{
    uint64_t bytes = 0;
    uint32_t device = gy_collective_end(h, op, 0, target_of(h, op, piece), 0).device;
    gy_cuda_area *area = area_of(h, op, device);
    for (uint32_t k = 0; k < piece->sources; k++) {
        bool here = can_read(h, device, gy_collective_end(h, op, 0, piece->source + k, 0));
        bytes += here ? 0 : chunk_of(piece->bytes);
    }
    area->bytes = bytes > area->bytes ? bytes : area->bytes;
}

static gantry_status make_areas(gy_cuda *h, gantry_error *err)
{
    gantry_status status = GANTRY_OK;
    for (uint32_t op = 0; op < h->job->schedule->ops.count; op++) {
        const gy_exchange *parts = h->op[op].parts;
        for (uint32_t i = 0; parts && i < parts->pieces; i++) {
            if (gy_combine_does(h, op, &parts->piece[i])) {
                size_area(h, op, &parts->piece[i]);
            }
        }
    }
    for (uint32_t i = 0; i < h->lanes * h->devices && status == GANTRY_OK; i++) {
        if (h->area[i].bytes) {
            status = gy_cuda_allocate(h, &h->area[i].at, i % h->devices, h->area[i].bytes, "combining", err);
        }
    }
    return status;
}

gantry_status gy_combine_make(gy_cuda *h, gantry_error *err)
{
    h->combine = gy_arena_calloc(&h->arena, h->devices, sizeof *h->combine);
    h->area = gy_arena_calloc(&h->arena, (size_t)h->lanes * h->devices + 1, sizeof *h->area);
    if (!h->combine || !h->area) {
        return gy_fail_nomem(err);
    }
    if (!gy_cuda_kernel_find(GY_CUDA_COMBINE)) {
        return GANTRY_OK;
    }
    gantry_status status = open_all(h, err);
    return status ? status : make_areas(h, err);
}

void gy_combine_free(gy_cuda *h)
{
    for (uint32_t i = 0; h->area && i < h->lanes * h->devices; i++) {
        if (h->area[i].at && gy_cuda_use(h, i % h->devices, NULL) == GANTRY_OK) {
            h->d.cuMemFree(h->area[i].at);
        }
    }
    for (uint32_t i = 0; h->combine && i < h->devices; i++) {
        if (h->combine[i] && gy_cuda_use(h, i, NULL) == GANTRY_OK) {
            gy_cuda_kernel_find(GY_CUDA_COMBINE)->close(h->combine[i]);
        }
    }
}

/* ---- submitted ---- */

static gantry_arg arg_of(const gy_exchange *parts, gantry_access access, CUdeviceptr at, uint64_t bytes)
{
    size_t size = gantry_dtype_size(parts->dtype);
    return (gantry_arg){ .name = "",
                         .dtype = parts->dtype,
                         .access = access,
                         .rows = (int64_t)(bytes / size),
                         .row_bytes = (int64_t)size,
                         .data = (void *)(uintptr_t)at };
}

static gantry_status launch(gy_submit *x, uint32_t device, const gantry_arg *arg, uint32_t args)
{
    gy_cuda *h = x->h;
    gy_queue queue;
    gantry_status status = gy_submit_on(x, device, &queue);
    status = status ? status : gy_cuda_use(h, queue.device, x->err);
    if (status) {
        return status;
    }
    gantry_launch l = { .struct_size = sizeof l,
                        .device = (int32_t)device,
                        .device_ordinal = h->device[device].ordinal,
                        .stream = queue.stream,
                        .args = (int32_t)args,
                        .arg = arg,
                        .handle = h->combine[device] };
    if (gy_cuda_kernel_find(GY_CUDA_COMBINE)->launch(&l)) {
        return gy_fail(x->err, GANTRY_E_DEVICE, NULL,
                       "op %u: the driver refused to combine contributions on device \"%s\"", x->op,
                       h->job->schedule->machine->device[device].id);
    }
    return gy_submit_join(x);
}

/* One chunk: what is not reachable comes first. */
static gantry_status combine_chunk(gy_submit *x, const gy_piece *piece, gy_place to, uint64_t offset, uint64_t bytes)
{
    const gy_exchange *parts = x->h->op[x->op].parts;
    gantry_arg arg[1 + GY_CUDA_SOURCES];
    gy_place next = { .device = to.device, .at = area_of(x->h, x->op, to.device)->at };
    gantry_status status = GANTRY_OK;
    arg[0] = arg_of(parts, parts->reduce, to.at, bytes);
    for (uint32_t k = 0; k < piece->sources && status == GANTRY_OK; k++) {
        gy_place from = gy_collective_end(x->h, x->op, x->turn, piece->source + k, offset);
        if (!can_read(x->h, to.device, from)) {
            status = gy_submit_copy(x, next, from, bytes);
            status = status ? status : gy_submit_join(x); /* copies share the stage */
            from = next;
            next = gy_place_at(next, chunk_of(piece->bytes));
        }
        arg[1 + k] = arg_of(parts, GANTRY_READ, from.at, bytes);
    }
    return status ? status : launch(x, to.device, arg, 1 + piece->sources);
}

gantry_status gy_combine_submit(gy_submit *x, const gy_piece *piece, gy_place *result)
{
    uint32_t target = target_of(x->h, x->op, piece);
    *result = gy_collective_end(x->h, x->op, x->turn, target, 0);
    uint64_t step = area_of(x->h, x->op, result->device)->bytes ? GY_CUDA_CHUNK : piece->bytes;
    gantry_status status = GANTRY_OK;
    for (uint64_t done = 0; done < piece->bytes && status == GANTRY_OK; done += step) {
        uint64_t bytes = piece->bytes - done < step ? piece->bytes - done : step;
        status = combine_chunk(x, piece, gy_place_at(*result, done), done, bytes);
    }
    return status;
}
