/* SPDX-License-Identifier: Apache-2.0 */
/* Contents of instances, copied in chunks through page-locked memory. */
#include "backends/cuda/stream/stream.h"

#include "base/error.h"
#include "run/fill.h"
#include <string.h>

#define LEAST_CHUNK (UINT64_C(64) << 10)

/* Copies the chunk to the device (`in`), or bytes of the device to the chunk. */
static gantry_status move_chunk(gy_cuda *h, gy_location device, uint64_t bytes, bool in, gantry_error *err)
{
    gy_queue queue = h->device[device.device].auxiliary;
    GY_TRY(gy_cuda_use(h, queue.device, err));
    CUresult code = in ? h->d.cuMemcpyHtoDAsync(device.at, h->chunk, bytes, queue.stream)
                       : h->d.cuMemcpyDtoHAsync(h->chunk, device.at, bytes, queue.stream);
    code = code == CUDA_SUCCESS ? gy_cuda_settle(h, queue) : code;
    return code == CUDA_SUCCESS
               ? GANTRY_OK
               : gy_cuda_fail(h, code, device.device,
                              in ? "copying what a state or constant begins with" : "reading a state", err);
}

/* Makes the chunk large enough. It is kept, as page-locking costs more than moving most states; it grows a few times at
 * most. */
static gantry_status reserve_chunk(gy_cuda *h, uint64_t least, gantry_error *err)
{
    uint64_t bytes = LEAST_CHUNK;
    if (h->chunk_bytes >= least)
        return GANTRY_OK;
    while (bytes < least)
        bytes *= 2;
    if (h->chunk)
        h->d.cuMemFreeHost(h->chunk);
    h->chunk_bytes = 0;
    gantry_status status = gy_cuda_pinned(h, (void **)&h->chunk, bytes, err);
    h->chunk_bytes = status ? 0 : bytes;
    return status;
}

static gantry_status move_rows(gy_cuda *h, gy_location device, char *rows, uint64_t bytes, bool in, gantry_error *err)
{
    uint64_t most = bytes < GY_CUDA_CHUNK ? bytes : GY_CUDA_CHUNK;
    gantry_status status = reserve_chunk(h, most, err);
    for (uint64_t done = 0; done < bytes && status == GANTRY_OK; done += most) {
        uint64_t count = bytes - done < most ? bytes - done : most;
        if (in)
            memcpy(h->chunk, rows + done, count);
        status = move_chunk(h, gy_location_at(device, done), count, in, err);
        if (!in && status == GANTRY_OK)
            memcpy(rows + done, h->chunk, count);
    }
    return status;
}

gantry_status gy_cuda_contents_move(gy_cuda *h, uint32_t instance, char *rows, bool in, gantry_error *err)
{
    const gy_instance *i = &h->job->schedule->instances.at[instance];
    gy_use whole = { .instance = instance, .first = i->first, .last = i->last };
    uint64_t bytes = gy_use_bytes(h->job->schedule, &whole);
    gy_location place = gy_cuda_location(h, &whole, 0);
    if (h->broken.status)
        return gy_fail(err, h->broken.status, NULL, "%s", h->broken.text);
    if (bytes == 0)
        return GANTRY_OK;
    if (in)
        gy_land_forget(h, instance);
    if (place.device == GY_NONE) {
        memcpy(in ? place.host : rows, in ? rows : place.host, bytes);
        return GANTRY_OK;
    }
    gy_cuda_enter(h);
    gantry_status status = move_rows(h, place, rows, bytes, in, err);
    gy_cuda_leave(h);
    return status;
}

static gantry_status make_rows(gy_cuda *h, const gy_fill_target *t, gantry_error *err)
{
    const gy_buffer *b = t->buffer;
    gy_queue queue = h->device[t->to.device].auxiliary;
    uint64_t bits = 0, bytes = (uint64_t)gy_buffer_span(b, t->first, t->last);
    size_t size = gantry_dtype_size(b->dtype);
    CUresult code = CUDA_SUCCESS;
    GY_TRY(gy_cuda_use(h, queue.device, err));
    if (t->what->kind == GY_INIT_VALUE) {
        gy_fill_elements(&bits, b->dtype, t->what, 0, 1);
        code = gy_fill_set(&h->d, t->to.at, bits, size, bytes / size, queue.stream);
    } else if (gy_fill_launch(h, t, queue.stream)) {
        return gy_fail(err, GANTRY_E_DEVICE, NULL,
                       "what buffer \"%s\" begins with could not be made on device \"%s\": %s", b->name,
                       h->job->schedule->machine->device[queue.device].id, gy_fill_why(h, t));
    }
    code = code == CUDA_SUCCESS ? gy_cuda_settle(h, queue) : code;
    return code == CUDA_SUCCESS
               ? GANTRY_OK
               : gy_cuda_fail(h, code, queue.device, "making what a state or constant begins with", err);
}

gantry_status gy_cuda_contents_make(gy_cuda *h, uint32_t instance, bool *made, gantry_error *err)
{
    const gantry_schedule *s = h->job->schedule;
    const gy_instance *i = &s->instances.at[instance];
    gy_use whole = { .instance = instance, .first = i->first, .last = i->last };
    gy_fill_target target = gy_fill_target_of(h, &whole, &h->job->graph->buffers.at[i->value].init, 0);
    bool by_memset = target.to.device != GY_NONE && target.what->kind == GY_INIT_VALUE;
    *made = !h->job->network && !h->broken.status && (by_memset || gy_fill_by_kernel(h, &target));
    if (!*made || gy_use_bytes(s, &whole) == 0)
        return GANTRY_OK;
    gy_land_forget(h, instance);
    gy_cuda_enter(h);
    gantry_status status = make_rows(h, &target, err);
    gy_cuda_leave(h);
    return status;
}
