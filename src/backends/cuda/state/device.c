/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts, streams and events. The context that is current in the caller is put back after every call. */
#include "backends/cuda/state/device.h"

#include "base/error.h"
#include "base/thread.h"
#include <stdio.h>
#include <string.h>

/* Errors after which the context, and with it the run, is lost. */
static bool is_sticky(CUresult code)
{
    switch (code) {
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_DEINITIALIZED:
    case CUDA_ERROR_UNKNOWN:
        return true;
    default:
        return false;
    }
}

gantry_status gy_cuda_fail(gy_cuda *h, CUresult code, uint32_t device, const char *what, gantry_error *err)
{
    char text[256];
    gantry_error made = { 0 };
    snprintf(text, sizeof text, "%s on device \"%s\"", what, h->job->schedule->machine->device[device].id);
    gy_driver_fail(&h->d, code, text, &made);
    made.device = (int32_t)device;
    pthread_mutex_lock(&h->broken_lock);
    if (is_sticky(code) && h->broken.status == GANTRY_OK)
        h->broken = made;
    pthread_mutex_unlock(&h->broken_lock);
    if (err)
        *err = made;
    return GANTRY_E_DEVICE;
}

void gy_cuda_enter(gy_cuda *h)
{
    h->current = GY_NONE;
    if (h->d.cuCtxGetCurrent(&h->before) != CUDA_SUCCESS)
        h->before = NULL;
}

void gy_cuda_leave(gy_cuda *h)
{
    gy_driver_give_back(&h->d, h->before);
    h->current = GY_NONE;
}

gantry_status gy_cuda_use(gy_cuda *h, uint32_t device, gantry_error *err)
{
    if (!h->concurrent && h->current == device)
        return GANTRY_OK;
    CUresult code = h->d.cuCtxSetCurrent(h->device[device].context);
    if (code != CUDA_SUCCESS)
        return gy_cuda_fail(h, code, device, "cannot make the context current", err);
    if (!h->concurrent)
        h->current = device;
    return GANTRY_OK;
}

void gy_cuda_forget(gy_cuda *h)
{
    if (!h->concurrent)
        h->current = GY_NONE;
}

gantry_status gy_cuda_event_new(gy_cuda *h, CUevent *event, uint32_t device, bool timed, gantry_error *err)
{
    GY_TRY(gy_cuda_use(h, device, err));
    CUresult code = h->d.cuEventCreate(event, timed ? CU_EVENT_DEFAULT : CU_EVENT_DISABLE_TIMING);
    if (code != CUDA_SUCCESS) {
        *event = NULL;
        return gy_cuda_fail(h, code, device, "cannot create an event", err);
    }
    return GANTRY_OK;
}

gantry_status gy_cuda_queue_new(gy_cuda *h, gy_queue *queue, uint32_t device, bool urgent, gantry_error *err)
{
    int least = 0, most = 0;
    GY_TRY(gy_cuda_use(h, device, err));
    /* Not blocking: the application's default stream has nothing to do with this. */
    CUresult code = h->d.cuCtxGetStreamPriorityRange(&least, &most);
    code = code ? code : h->d.cuStreamCreateWithPriority(&queue->stream, CU_STREAM_NON_BLOCKING, urgent ? most : least);
    if (code != CUDA_SUCCESS) {
        queue->stream = NULL;
        return gy_cuda_fail(h, code, device, "cannot create a stream", err);
    }
    queue->device = device;
    return GANTRY_OK;
}

/* One context that is opened beside the others. */
typedef struct opening {
    const gy_driver *driver;
    gy_cuda_device *device;
    pthread_t thread;
    bool there; /* the program, or another run, has it open */
    bool begun; /* in its thread */
    CUresult code;
} opening;

static void *open_context(void *data)
{
    opening *o = data;
    o->code = o->driver->cuDevicePrimaryCtxRetain(&o->device->context, o->device->id);
    o->device->context = o->code == CUDA_SUCCESS ? o->device->context : NULL;
    return NULL;
}

static CUresult find_gpu(opening *o)
{
    unsigned flags = 0;
    int active = 0;
    CUresult code = o->driver->cuDeviceGet(&o->device->id, o->device->ordinal);
    code = code ? code : o->driver->cuDevicePrimaryCtxGetState(o->device->id, &flags, &active);
    o->there = code == CUDA_SUCCESS && active;
    return code;
}

/* Opens the context in a thread, where it takes longer than a thread, and one can be had. */
static void begin_opening(opening *o)
{
    o->begun = !o->there && gy_thread_create(&o->thread, open_context, o) == 0;
    if (!o->begun)
        open_context(o);
}

/* A context takes the driver a third of a second, and those of eight GPUs one second at once. */
static gantry_status open_contexts(gy_cuda *h, gantry_error *err)
{
    opening *all = gy_arena_calloc(&h->arena, h->devices, sizeof *all);
    gantry_status status = all ? GANTRY_OK : gy_fail_nomem(err);
    for (uint32_t i = 0; i < h->devices && status == GANTRY_OK; i++) {
        all[i] = (opening){ .driver = &h->d, .device = &h->device[i] };
        CUresult code = h->device[i].used ? find_gpu(&all[i]) : CUDA_SUCCESS; /* of all before one is opened */
        status = code == CUDA_SUCCESS ? GANTRY_OK : gy_cuda_fail(h, code, i, "cannot find the GPU", err);
    }
    for (uint32_t i = 0; i < h->devices && status == GANTRY_OK; i++)
        if (h->device[i].used)
            begin_opening(&all[i]);
    for (uint32_t i = 0; i < h->devices && all; i++) {
        if (all[i].begun)
            pthread_join(all[i].thread, NULL);
        if (status == GANTRY_OK && all[i].code != CUDA_SUCCESS)
            status = gy_cuda_fail(h, all[i].code, i, "cannot open the primary context", err);
    }
    return status;
}

static gantry_status open_device(gy_cuda *h, uint32_t device, gantry_error *err)
{
    gy_cuda_device *d = &h->device[device];
    gantry_status status = gy_cuda_queue_new(h, &d->auxiliary, device, false, err);
    for (int i = 0; i < GY_CUDA_SCRATCH_EVENTS && status == GANTRY_OK; i++)
        status = gy_cuda_event_new(h, &d->scratch_event[i], device, false, err);
    return status;
}

/* The compute lane before `lane` whose stream it has too, where ops of a device are kept apart; NULL: it has its own.
 */
static const gy_cuda_lane *lender(const gy_cuda *h, uint32_t lane)
{
    const gy_lane *all = h->job->schedule->lanes.at;
    for (uint32_t i = 0; h->job->apart && all[lane].kind == GY_LANE_COMPUTE && i < lane; i++)
        if (h->lane[i].used && all[i].kind == GY_LANE_COMPUTE && all[i].device == all[lane].device)
            return &h->lane[i];
    return NULL;
}

static gantry_status open_lane(gy_cuda *h, uint32_t lane, gantry_error *err)
{
    const gy_lane *l = &h->job->schedule->lanes.at[lane];
    const gy_cuda_lane *other = lender(h, lane);
    if (!other)
        return gy_cuda_queue_new(h, &h->lane[lane].queue, h->device[l->device].gpu ? l->device : h->first_gpu,
                                 l->urgent, err);
    h->lane[lane].queue = other->queue;
    h->lane[lane].borrowed = true;
    return GANTRY_OK;
}

/* Streams of lanes without an op are not needed. */
static gantry_status open_lanes(gy_cuda *h, gantry_error *err)
{
    const gantry_schedule *s = h->job->schedule;
    for (size_t i = 0; i < s->op_lane.count; i++) {
        uint32_t device = s->lanes.at[s->op_lane.at[i]].device;
        h->lane[s->op_lane.at[i]].used = gy_cuda_mine(h, gy_device_rank(s->machine, device));
    }
    gantry_status status = GANTRY_OK;
    if (h->step) {
        h->lane[h->lanes - 1].used = true;
        GY_TRY(gy_cuda_queue_new(h, &h->lane[h->lanes - 1].queue, h->first_gpu, true, err));
    }
    for (uint32_t i = 0; i < s->lanes.count && status == GANTRY_OK; i++)
        status = h->lane[i].used ? open_lane(h, i, err) : GANTRY_OK;
    return status;
}

/* A context takes a quarter of a second and hundreds of megabytes: GPUs without anything to do get none, but for one. A
 * process without a rank in the machine, which has nothing to do, has the first GPU of others for its streams.
 */
static void find_used(gy_cuda *h)
{
    const gantry_schedule *s = h->job->schedule;
    uint32_t any = GY_NONE, first = GY_NONE;
    for (size_t i = 0; i < s->op_lane.count; i++) {
        uint32_t device = s->lanes.at[s->op_lane.at[i]].device;
        bool mine = gy_cuda_mine(h, gy_device_rank(s->machine, device));
        h->device[device].used = h->device[device].used || (mine && s->machine->device[device].gpu);
    }
    h->first_gpu = GY_NONE;
    for (uint32_t i = h->devices; i-- > 0;) {
        h->device[i].gpu = s->machine->device[i].gpu;
        any = h->device[i].gpu && gy_cuda_mine(h, gy_device_rank(s->machine, i)) ? i : any;
        h->first_gpu = h->device[i].used ? i : h->first_gpu;
        first = h->device[i].gpu ? i : first;
    }
    any = any == GY_NONE ? first : any;
    if (h->first_gpu == GY_NONE) {
        h->first_gpu = any;
        h->device[any].used = true;
    }
}

gantry_status gy_cuda_devices_make(gy_cuda *h, gantry_error *err)
{
    const gantry_machine *m = h->job->schedule->machine;
    gantry_status status = GANTRY_OK;
    find_used(h);
    for (uint32_t i = 0; i < h->devices; i++)
        h->device[i].ordinal = gy_device_ordinal(m, i);
    status = open_contexts(h, err);
    for (uint32_t i = 0; i < h->devices && status == GANTRY_OK; i++)
        status = h->device[i].used ? open_device(h, i, err) : GANTRY_OK;
    status = status ? status : gy_cuda_queue_new(h, &h->end_stream, h->first_gpu, false, err);
    return status ? status : open_lanes(h, err);
}

static void free_queue(gy_cuda *h, gy_queue *queue)
{
    if (queue->stream && gy_cuda_use(h, queue->device, NULL) == GANTRY_OK)
        h->d.cuStreamDestroy(queue->stream);
    queue->stream = NULL;
}

void gy_cuda_devices_free(gy_cuda *h)
{
    for (uint32_t i = 0; i < h->lanes; i++)
        if (!h->lane[i].borrowed)
            free_queue(h, &h->lane[i].queue);
    free_queue(h, &h->end_stream);
    for (uint32_t i = 0; i < h->devices; i++) {
        gy_cuda_device *d = &h->device[i];
        free_queue(h, &d->auxiliary);
        for (int k = 0; k < GY_CUDA_SCRATCH_EVENTS; k++)
            if (d->scratch_event[k])
                h->d.cuEventDestroy(d->scratch_event[k]);
    }
    gy_driver_give_back(&h->d, h->before); /* before its context may go */
    h->current = GY_NONE;
    for (uint32_t i = 0; i < h->devices; i++)
        if (h->device[i].context)
            h->d.cuDevicePrimaryCtxRelease(h->device[i].id);
}

/* ---- lanes by which ops wait for each other ---- */

uint32_t gy_cuda_lane_on(const gy_cuda *h, uint32_t op, uint32_t device)
{
    const gantry_schedule *s = h->job->schedule;
    const gy_op *o = &s->ops.at[op];
    for (uint32_t i = 0; i < o->lanes && device != GY_NONE; i++)
        if (gy_cuda_same_gpu(h, gy_op_device(s, o, i), device))
            return i;
    return GY_NONE;
}

/* An op that has no lane on that GPU waits, and is waited for, by its first. */
static uint32_t lane_or_first(const gy_cuda *h, uint32_t op, uint32_t device)
{
    uint32_t lane = gy_cuda_lane_on(h, op, device);
    return lane == GY_NONE ? 0 : lane;
}

uint32_t gy_cuda_lane_after(const gy_cuda *h, uint32_t op, uint32_t from)
{
    bool meets = gy_cuda_op_meets(&h->op[op]);
    return meets ? lane_or_first(h, op, gy_cuda_lane_of(h, from, 0)->queue.device) : 0;
}

uint32_t gy_cuda_lane_ahead(const gy_cuda *h, uint32_t from, uint32_t device)
{
    return gy_cuda_op_has_met(&h->op[from]) ? lane_or_first(h, from, device) : 0;
}
