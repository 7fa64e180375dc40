/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contents of instances that come beside a start. They are uploaded into a landing, memory of their own on the same
 * GPU, while the start goes on, and copied from there into their instances ahead of the next start. So addresses stay,
 * whatever replays starts, and a start waits for a copy within the GPU's memory, not for the host's.
 */
#include "backends/cuda/stream/stream.h"

#include "base/error.h"
#include <string.h>

static gy_use whole_of(const gy_cuda *h, uint32_t instance)
{
    const gy_instance *i = &h->job->schedule->instances.at[instance];
    return (gy_use){ .instance = instance, .first = i->first, .last = i->last };
}

static gy_cuda_landing *find(gy_cuda *h, uint32_t instance)
{
    for (size_t i = 0; i < h->landings.count; i++)
        if (h->landings.at[i].instance == instance)
            return &h->landings.at[i];
    return NULL;
}

/* The stream of landings of the device, and the event that says when they are in their instances. */
static gantry_status make_queue(gy_cuda *h, uint32_t device, gantry_error *err)
{
    gy_cuda_device *d = &h->device[device];
    if (!d->landing.stream)
        GY_TRY(gy_cuda_queue_new(h, &d->landing, device, false, err));
    return d->landed ? GANTRY_OK : gy_cuda_event_new(h, &d->landed, device, false, err);
}

/* NULL: it could not be made, and *status says why. */
static gy_cuda_landing *make(gy_cuda *h, uint32_t instance, gantry_status *status, gantry_error *err)
{
    gy_use whole = whole_of(h, instance);
    gy_location place = gy_cuda_location(h, &whole, 0);
    gy_cuda_landing l = { .instance = instance, .device = place.device };
    l.bytes = gy_use_bytes(h->job->schedule, &whole);
    *status = gy_vec_reserve(&h->landings, h->landings.count + 1) ? GANTRY_OK : gy_fail_nomem(err);
    if (!*status && place.device != GY_NONE && l.bytes) {
        *status = make_queue(h, place.device, err);
        *status = *status ? *status : gy_cuda_allocate(h, &l.at, place.device, l.bytes, "a landing", err);
    }
    if (*status)
        return NULL;
    h->landings.at[h->landings.count++] = l;
    return gy_vec_last(&h->landings);
}

static gantry_status upload(gy_cuda *h, const gy_cuda_landing *l, gantry_error *err)
{
    GY_TRY(gy_cuda_use(h, l->device, err));
    CUresult code = h->d.cuMemcpyHtoDAsync(l->at, l->rows, l->bytes, h->device[l->device].landing.stream);
    return code == CUDA_SUCCESS ? GANTRY_OK : gy_cuda_fail(h, code, l->device, "uploading to a landing", err);
}

gantry_status gy_land(gy_cuda *h, uint32_t instance, const void *rows, gantry_error *err)
{
    gantry_status status = GANTRY_OK;
    gy_cuda_landing *l = find(h, instance);
    if (h->broken.status)
        return gy_fail(err, h->broken.status, NULL, "%s", h->broken.text);
    gy_cuda_enter(h);
    l = l ? l : make(h, instance, &status, err);
    if (l) {
        l->rows = rows;
        status = l->at ? upload(h, l, err) : GANTRY_OK;
        l->waits = status == GANTRY_OK;
    }
    gy_cuda_leave(h);
    return status;
}

static gantry_status bring(gy_cuda *h, const gy_cuda_landing *l, gantry_error *err)
{
    gy_use whole = whole_of(h, l->instance);
    gy_location to = gy_cuda_location(h, &whole, 0);
    if (!l->at) {
        if (l->bytes)
            memcpy(to.host, l->rows, l->bytes);
        return GANTRY_OK;
    }
    GY_TRY(gy_cuda_use(h, l->device, err));
    gy_cuda_device *d = &h->device[l->device];
    CUresult code = h->d.cuMemcpyDtoDAsync(to.at, l->at, l->bytes, d->landing.stream);
    d->lands = true;
    return code == CUDA_SUCCESS ? GANTRY_OK : gy_cuda_fail(h, code, l->device, "copying from a landing", err);
}

static gantry_status order(gy_cuda *h, uint32_t device, gantry_error *err)
{
    gy_cuda_device *d = &h->device[device];
    d->lands = false;
    GY_TRY(gy_cuda_use(h, device, err));
    CUresult code = h->d.cuEventRecord(d->landed, d->landing.stream);
    GY_TRY(code == CUDA_SUCCESS ? GANTRY_OK : gy_cuda_fail(h, code, device, "recording an event", err));
    GY_TRY(gy_cuda_use(h, h->end_stream.device, err));
    code = h->d.cuStreamWaitEvent(h->end_stream.stream, d->landed, 0);
    return code == CUDA_SUCCESS ? GANTRY_OK : gy_cuda_fail(h, code, device, "waiting for an event", err);
}

gantry_status gy_land_bring(gy_cuda *h, bool *some, gantry_error *err)
{
    gantry_status status = GANTRY_OK;
    *some = false;
    for (size_t i = 0; i < h->landings.count && status == GANTRY_OK; i++)
        status = h->landings.at[i].waits ? bring(h, &h->landings.at[i], err) : GANTRY_OK;
    for (uint32_t i = 0; i < h->devices && status == GANTRY_OK && h->landings.count; i++) {
        *some |= h->device[i].lands;
        status = h->device[i].lands ? order(h, i, err) : GANTRY_OK;
    }
    for (size_t i = 0; i < h->landings.count; i++) /* after a failure all are brought again */
        h->landings.at[i].waits = h->landings.at[i].waits && status;
    return status;
}

void gy_land_forget(gy_cuda *h, uint32_t instance)
{
    gy_cuda_landing *l = find(h, instance);
    if (!l)
        return;
    l->waits = false;
    gy_cuda_enter(h);
    if (l->at)
        gy_cuda_settle(h, h->device[l->device].landing);
    gy_cuda_leave(h);
}

void gy_land_settle(gy_cuda *h)
{
    for (uint32_t i = 0; i < h->devices && h->landings.count; i++)
        if (h->device[i].landing.stream)
            gy_cuda_settle(h, h->device[i].landing);
}

void gy_land_free(gy_cuda *h)
{
    for (size_t i = 0; i < h->landings.count; i++)
        if (h->landings.at[i].at && gy_cuda_use(h, h->landings.at[i].device, NULL) == GANTRY_OK)
            h->d.cuMemFree(h->landings.at[i].at);
    gy_vec_free(&h->landings);
    for (uint32_t i = 0; i < h->devices; i++) {
        gy_cuda_device *d = &h->device[i];
        if (d->landing.stream && gy_cuda_use(h, i, NULL) == GANTRY_OK)
            h->d.cuStreamDestroy(d->landing.stream);
        if (d->landed)
            h->d.cuEventDestroy(d->landed);
    }
}
