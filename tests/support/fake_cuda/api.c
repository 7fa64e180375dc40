/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of the driver that the back end calls, and those that its users may: as cuda.h declares them. */
#include "fake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* In static memory of threads: leak checkers do not survive other memory of a library that was unloaded once. */
static _Thread_local __attribute__((tls_model("initial-exec"))) CUcontext current;

/* Counts, and leaves with the error that a test wants or that the context is lost with. */
#define ENTER(name)                                                                                                    \
    lock();                                                                                                            \
    CUresult code = count_call(#name);                                                                                 \
    if (code) {                                                                                                        \
        unlock();                                                                                                      \
        return code;                                                                                                   \
    }
#define LEAVE(result)                                                                                                  \
    do {                                                                                                               \
        CUresult left_ = (result);                                                                                     \
        unlock();                                                                                                      \
        return left_;                                                                                                  \
    } while (0)
/* Frees are carried out also where the context is lost, and say that it is. */
#define ENTER_FREE(name)                                                                                               \
    lock();                                                                                                            \
    CUresult code = count_call(#name);

/* ---- errors, devices ---- */

CUresult cuGetErrorName(CUresult error, const char **name)
{
    static const struct {
        CUresult code;
        const char *name;
    } names[] = { { CUDA_SUCCESS, "CUDA_SUCCESS" },
                  { CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE" },
                  { CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY" },
                  { CUDA_ERROR_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE" },
                  { CUDA_ERROR_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT" },
                  { CUDA_ERROR_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS" },
                  { CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES" },
                  { CUDA_ERROR_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED" },
                  { CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE" },
                  { CUDA_ERROR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE" },
                  { CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED" } };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (names[i].code == error) {
            *name = names[i].name;
            return CUDA_SUCCESS;
        }
    }
    *name = "CUDA_ERROR_OF_THE_FAKE";
    return CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult error, const char **text)
{
    *text = error == CUDA_ERROR_OUT_OF_MEMORY ? "out of memory" : "as the fake driver was told";
    return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int *version)
{
    const char *text = getenv("FAKE_CUDA_VERSION");
    *version = text ? atoi(text) : CUDA_VERSION;
    return CUDA_SUCCESS;
}

/* As in the real driver; set by a debugger. */
__attribute__((visibility("default"))) uint32_t cudbgIpcFlag;

void fakeCudaDebug(int debugged)
{
    cudbgIpcFlag = (uint32_t)debugged;
}

CUresult cuDeviceGetCount(int *count)
{
    ENTER(cuDeviceGetCount)
    *count = fake.devices;
    LEAVE(CUDA_SUCCESS);
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    ENTER(cuDeviceGet)
    if (ordinal < 0 || ordinal >= fake.devices)
        LEAVE(CUDA_ERROR_INVALID_DEVICE);
    *device = ordinal;
    LEAVE(CUDA_SUCCESS);
}

CUresult cuDeviceGetName(char *name, int size, CUdevice device)
{
    ENTER(cuDeviceGetName)
    snprintf(name, (size_t)size, "NVIDIA Fake 9%d", device);
    LEAVE(CUDA_SUCCESS);
}

CUresult cuDeviceGetPCIBusId(char *id, int size, CUdevice device)
{
    ENTER(cuDeviceGetPCIBusId)
    snprintf(id, (size_t)size, "0000:%02X:00.0", 16 + device);
    LEAVE(CUDA_SUCCESS);
}

CUresult cuDeviceTotalMem(size_t *bytes, CUdevice device)
{
    (void)device;
    ENTER(cuDeviceTotalMem)
    *bytes = fake.bytes;
    LEAVE(CUDA_SUCCESS);
}

/* Figures of an H200. */
CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute which, CUdevice device)
{
    static const struct {
        CUdevice_attribute which;
        int value;
    } values[] = { { CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9 },
                   { CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0 },
                   { CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, MULTIPROCESSORS },
                   { CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1980000 },
                   { CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 3201000 },
                   { CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 6144 },
                   { CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 3 },
                   { CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024 },
                   { CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024 },
                   { CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64 },
                   { CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 2147483647 },
                   { CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535 },
                   { CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535 },
                   { CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 232448 },
                   { CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 1 },
                   { CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS_V1, 1 },
                   { CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, 1 } };
    (void)device;
    ENTER(cuDeviceGetAttribute)
    const char *capability = getenv("FAKE_CUDA_CAPABILITY");
    if (capability && which == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) {
        *value = atoi(capability) / 10;
        LEAVE(CUDA_SUCCESS);
    }
    if (which == CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT) {
        *value = getenv("FAKE_CUDA_DISPLAY") != NULL;
        LEAVE(CUDA_SUCCESS);
    }
    if (places() && which == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) {
        *value = places();
        LEAVE(CUDA_SUCCESS);
    }
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        if (values[i].which == which) {
            *value = values[i].value;
            LEAVE(CUDA_SUCCESS);
        }
    }
    LEAVE(CUDA_ERROR_INVALID_VALUE);
}

CUresult cuDeviceCanAccessPeer(int *can, CUdevice from, CUdevice to)
{
    ENTER(cuDeviceCanAccessPeer)
    *can = fake.peer[from][to];
    LEAVE(CUDA_SUCCESS);
}

/* ---- contexts ---- */

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    ENTER(cuDevicePrimaryCtxRetain)
    *context = &fake.context[device];
    (*context)->retained++;
    LEAVE(CUDA_SUCCESS);
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active)
{
    ENTER(cuDevicePrimaryCtxGetState)
    *flags = 0;
    *active = fake.context[device].retained > 0;
    LEAVE(CUDA_SUCCESS);
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device)
{
    ENTER_FREE(cuDevicePrimaryCtxRelease)
    struct CUctx_st *c = &fake.context[device];
    if (c->retained == 0)
        wrong("the context of device %d is released too often", device);
    if (--c->retained == 0)
        memset(c->peer, 0, sizeof c->peer);
    if (c->retained == 0 && current == c)
        wrong("the context of device %d is destroyed while it is current", device);
    LEAVE(code);
}

CUresult cuCtxGetCurrent(CUcontext *context)
{
    *context = current;
    return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context)
{
    lock();
    bool gone = context && context->retained == 0;
    unlock();
    current = gone ? current : context;
    return gone ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice *device)
{
    ENTER(cuCtxGetDevice)
    *device = current ? current->device : -1;
    LEAVE(current ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT);
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags)
{
    ENTER(cuCtxEnablePeerAccess)
    if (!current || flags)
        LEAVE(CUDA_ERROR_INVALID_CONTEXT);
    if (!fake.peer[current->device][peer->device])
        LEAVE(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
    if (current->peer[peer->device])
        LEAVE(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
    current->peer[peer->device] = true;
    LEAVE(CUDA_SUCCESS);
}

/* ---- memory ---- */

/* For this thread: what may wait is forbidden to the thread that captures, or, as the mode of a capture says, to all or
 * to none. */
static bool forbids(const capture *c)
{
    return c->mode == CU_STREAM_CAPTURE_MODE_GLOBAL ||
           (c->mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL && pthread_equal(c->by, pthread_self()));
}

static bool capturing(void)
{
    for (CUstream s = fake.streams; s; s = s->next) {
        if (s->capture && forbids(s->capture)) {
            s->capture->bad = true; /* what may wait is not allowed in a capture, and ends it */
            return true;
        }
    }
    return false;
}

CUresult cuMemGetInfo(size_t *unused, size_t *all)
{
    ENTER(cuMemGetInfo)
    if (!current)
        LEAVE(CUDA_ERROR_INVALID_CONTEXT);
    *all = fake.bytes;
    *unused = fake.bytes - fake.used[current->device];
    LEAVE(CUDA_SUCCESS);
}

CUresult cuMemAlloc(CUdeviceptr *to, size_t bytes)
{
    ENTER(cuMemAlloc)
    if (!current || capturing())
        LEAVE(current ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_ERROR_INVALID_CONTEXT);
    void *at = NULL;
    code = memory_new(&at, current->device, bytes);
    *to = code ? *to : (CUdeviceptr)(uintptr_t)at;
    LEAVE(code);
}

CUresult cuMemFree(CUdeviceptr at)
{
    ENTER_FREE(cuMemFree)
    memory_delete((void *)(uintptr_t)at, false);
    LEAVE(code);
}

CUresult cuMemHostAlloc(void **to, size_t bytes, unsigned int flags)
{
    (void)flags;
    ENTER(cuMemHostAlloc)
    if (!current || capturing())
        LEAVE(current ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_ERROR_INVALID_CONTEXT);
    LEAVE(memory_new(to, -1, bytes));
}

CUresult cuMemFreeHost(void *at)
{
    ENTER_FREE(cuMemFreeHost)
    memory_delete(at, true);
    LEAVE(code);
}

CUresult cuMemHostRegister(void *at, size_t bytes, unsigned int flags)
{
    (void)flags;
    ENTER(cuMemHostRegister)
    LEAVE(capturing() ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : memory_register(at, bytes));
}

CUresult cuMemHostUnregister(void *at)
{
    ENTER_FREE(cuMemHostUnregister)
    memory_unregister(at);
    LEAVE(code);
}

/* Of memory that is not known all are 0 (ordinals -2), which is no error. */
CUresult cuPointerGetAttributes(unsigned int count, CUpointer_attribute *which, void **data, CUdeviceptr at)
{
    ENTER(cuPointerGetAttributes)
    int device, type = memory_type((void *)(uintptr_t)at, &device);
    for (unsigned i = 0; i < count; i++) {
        bool ordinal = which[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL;
        if (which[i] != CU_POINTER_ATTRIBUTE_MEMORY_TYPE && !ordinal)
            LEAVE(CUDA_ERROR_INVALID_VALUE);
        *(int *)data[i] = !ordinal ? type : type ? device : -2;
    }
    LEAVE(CUDA_SUCCESS);
}

CUresult cuMemGetAddressRange(CUdeviceptr *base, size_t *size, CUdeviceptr at)
{
    ENTER(cuMemGetAddressRange)
    const void *begin = memory_block((void *)(uintptr_t)at, size);
    *base = (CUdeviceptr)(uintptr_t)begin;
    LEAVE(begin ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

/* ---- streams and events ---- */

CUresult cuStreamCreate(CUstream *stream, unsigned int flags)
{
    ENTER(cuStreamCreate)
    if (!current || flags != CU_STREAM_NON_BLOCKING)
        LEAVE(current ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_CONTEXT);
    CUstream s = calloc(1, sizeof *s);
    s->context = current;
    s->urgency = draw();
    s->next = fake.streams;
    fake.streams = s;
    fake.alive_streams++;
    *stream = s;
    LEAVE(CUDA_SUCCESS);
}

enum { LEAST_PRIORITY = 0, MOST_PRIORITY = -5 }; /* as of the GPUs that Gantry was tried on */

CUresult cuCtxGetStreamPriorityRange(int *least, int *most)
{
    ENTER(cuCtxGetStreamPriorityRange)
    *least = LEAST_PRIORITY;
    *most = MOST_PRIORITY;
    LEAVE(current ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT);
}

CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned int flags, int priority)
{
    if (priority > LEAST_PRIORITY || priority < MOST_PRIORITY)
        return CUDA_ERROR_INVALID_VALUE;
    return cuStreamCreate(stream, flags);
}

CUresult cuStreamDestroy(CUstream stream)
{
    ENTER_FREE(cuStreamDestroy)
    CUstream *link = &fake.streams;
    while (*link && *link != stream)
        link = &(*link)->next;
    if (!*link || stream->capture)
        wrong("a stream is destroyed twice or while it is captured");
    *link = stream->next;
    op_drop(stream->last);
    free(stream->told);
    free(stream);
    fake.alive_streams--;
    LEAVE(code);
}

CUresult cuStreamGetCtx(CUstream stream, CUcontext *context)
{
    ENTER(cuStreamGetCtx)
    *context = stream ? stream->context : current;
    LEAVE(CUDA_SUCCESS);
}

/* A stream is given work while its context is current. */
static CUresult check_stream(CUstream stream)
{
    return !stream ? CUDA_ERROR_INVALID_HANDLE : stream->context == current ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags)
{
    ENTER(cuStreamWaitEvent)
    (void)flags;
    if ((code = check_stream(stream)))
        LEAVE(code);
    if (event->capture) {
        if (!event->capture->open)
            LEAVE(CUDA_ERROR_CAPTURED_EVENT);
        if (!stream->capture) {
            stream->capture = event->capture;
            stream->capture->references++;
        } else if (stream->capture != event->capture) {
            LEAVE(CUDA_ERROR_STREAM_CAPTURE_MERGE);
        }
        set_join(&stream->front, &event->front);
        LEAVE(CUDA_SUCCESS);
    }
    if (stream->capture) {
        stream->capture->bad = true;
        LEAVE(CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    }
    if (event->last) {
        work nothing = { .kind = NOTHING };
        op *before[] = { stream->last, event->last };
        op *o = op_new(&nothing, before, 2, stream->urgency);
        op_drop(stream->last);
        stream->last = o;
    }
    LEAVE(CUDA_SUCCESS);
}

CUresult cuEventCreate(CUevent *event, unsigned int flags)
{
    ENTER(cuEventCreate)
    if (!current)
        LEAVE(CUDA_ERROR_INVALID_CONTEXT);
    CUevent e = calloc(1, sizeof *e);
    e->context = current;
    e->timed = !(flags & CU_EVENT_DISABLE_TIMING);
    fake.alive_events++;
    *event = e;
    LEAVE(CUDA_SUCCESS);
}

static void forget(CUevent event)
{
    op_drop(event->last);
    capture_drop(event->capture);
    set_free(&event->front);
    event->last = NULL;
    event->capture = NULL;
}

CUresult cuEventDestroy(CUevent event)
{
    ENTER_FREE(cuEventDestroy)
    forget(event);
    free(event);
    fake.alive_events--;
    LEAVE(code);
}

CUresult cuEventRecord(CUevent event, CUstream stream)
{
    ENTER(cuEventRecord)
    if ((code = check_stream(stream)))
        LEAVE(code);
    if (event->context != stream->context)
        LEAVE(CUDA_ERROR_INVALID_HANDLE);
    forget(event);
    if (stream->capture) {
        event->capture = stream->capture;
        event->capture->references++;
        event->front = set_copy(&stream->front);
        LEAVE(CUDA_SUCCESS);
    }
    work nothing = { .kind = NOTHING };
    code = queue_work(stream, &nothing);
    event->last = op_keep(stream->last);
    LEAVE(code);
}

CUresult cuEventQuery(CUevent event)
{
    ENTER(cuEventQuery)
    if (event->capture)
        LEAVE(CUDA_ERROR_CAPTURED_EVENT);
    if (event->last && !event->last->done)
        steps((int)(draw() % 64));
    if (fake.sticky)
        LEAVE(fake.sticky);
    LEAVE(!event->last || event->last->done ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY);
}

static CUresult elapsed(float *ms, CUevent start, CUevent end)
{
    ENTER(cuEventElapsedTime)
    if (!start->timed || !end->timed || !start->last || !end->last || start->context != end->context)
        LEAVE(CUDA_ERROR_INVALID_HANDLE);
    if (!start->last->done || !end->last->done)
        LEAVE(CUDA_ERROR_NOT_READY);
    *ms = (float)((double)(end->last->done_ns - start->last->done_ns) / 1e6);
    LEAVE(CUDA_SUCCESS);
}

CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent end)
{
    return elapsed(ms, start, end);
}
#undef cuEventElapsedTime
/* The name that drivers of CUDA 12 have, too. */
CUresult __attribute__((visibility("default"))) cuEventElapsedTime(float *ms, CUevent start, CUevent end);
CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent end)
{
    return elapsed(ms, start, end);
}

CUresult cuStreamQuery(CUstream stream)
{
    ENTER(cuStreamQuery)
    if (stream->capture) {
        stream->capture->bad = true;
        LEAVE(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    }
    if (stream->last && !stream->last->done)
        steps((int)(draw() % 64));
    if (fake.sticky)
        LEAVE(fake.sticky);
    LEAVE(!stream->last || stream->last->done ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY);
}

CUresult cuEventSynchronize(CUevent event)
{
    ENTER(cuEventSynchronize)
    if (event->capture)
        LEAVE(CUDA_ERROR_CAPTURED_EVENT);
    finish(event->last);
    LEAVE(fake.sticky);
}

CUresult cuStreamSynchronize(CUstream stream)
{
    ENTER(cuStreamSynchronize)
    if (stream->capture) {
        stream->capture->bad = true;
        LEAVE(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    }
    finish(stream->last);
    LEAVE(fake.sticky);
}

/* ---- work ---- */

static CUresult queue_on(CUstream stream, const work *w)
{
    CUresult code = check_stream(stream);
    return code ? code : queue_work(stream, w);
}

CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    ENTER(cuMemcpyHtoDAsync)
    work w = { .kind = HTOD, .device = current->device, .to = (char *)(uintptr_t)to, .from = from, .bytes = bytes };
    memory_check(from, bytes, -1, "cuMemcpyHtoDAsync");
    memory_check(w.to, bytes, w.device, "cuMemcpyHtoDAsync");
    LEAVE(queue_on(stream, &w));
}

CUresult cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    ENTER(cuMemcpyDtoHAsync)
    work w = { .kind = DTOH, .device = current->device, .from_device = current->device, .to = to, .bytes = bytes };
    w.from = (const char *)(uintptr_t)from;
    memory_check(to, bytes, -1, "cuMemcpyDtoHAsync");
    memory_check(w.from, bytes, w.device, "cuMemcpyDtoHAsync");
    LEAVE(queue_on(stream, &w));
}

/* A real driver would stage by itself; whoever calls this says that it has access. */
static void check_peers(const work *w, const char *what)
{
    memory_check(w->to, w->bytes, w->device, what);
    memory_check(w->from, w->bytes, w->from_device, what);
    if (current->device != w->device && current->device != w->from_device)
        wrong("%s on a stream of a third device", what);
    int other = current->device == w->device ? w->from_device : w->device;
    if (other != current->device && !current->peer[other])
        wrong("%s between devices %d and %d without peer access", what, w->from_device, w->device);
}

/* Addresses tell whose memory it is. */
CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    ENTER(cuMemcpyDtoDAsync)
    work w = { .kind = DTOD, .bytes = bytes };
    w.to = (char *)(uintptr_t)to;
    w.from = (const char *)(uintptr_t)from;
    memory_type(w.to, &w.device);
    memory_type(w.from, &w.from_device);
    w.kind = w.device == w.from_device ? DTOD : PEER;
    check_peers(&w, "cuMemcpyDtoDAsync");
    LEAVE(queue_on(stream, &w));
}

/* The driver does not capture it: error 900, and the capture is lost. */
CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t bytes,
                           CUstream stream)
{
    ENTER(cuMemcpyPeerAsync)
    work w = { .kind = PEER, .device = to_context->device, .from_device = from_context->device, .bytes = bytes };
    w.to = (char *)(uintptr_t)to;
    w.from = (const char *)(uintptr_t)from;
    check_peers(&w, "cuMemcpyPeerAsync");
    if (stream->capture) {
        stream->capture->bad = true;
        LEAVE(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    }
    LEAVE(queue_on(stream, &w));
}

/* At once: no stream of this library waits for the default stream. */
CUresult cuMemcpyDtoH(void *to, CUdeviceptr from, size_t bytes)
{
    ENTER(cuMemcpyDtoH)
    if (!current || capturing())
        LEAVE(current ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_ERROR_INVALID_CONTEXT);
    const void *at = (const void *)(uintptr_t)from;
    bool devices[MOST_DEVICES] = { false };
    memory_check(at, bytes, current->device, "cuMemcpyDtoH");
    devices[current->device] = true;
    memory_open(devices);
    memcpy(to, at, bytes);
    memory_close();
    LEAVE(CUDA_SUCCESS);
}

/* Of a device that the stream's has access to, or page-locked. No capture takes it. */
static CUresult queue_word(CUstream stream, kind what, CUdeviceptr at, uint64_t value, unsigned flags)
{
    work w = { .kind = what, .to = (char *)(uintptr_t)at, .word = value };
    int device, type = memory_type(w.to, &device);
    CUresult code = check_stream(stream);
    if (code || flags || at % sizeof value)
        return code ? code : CUDA_ERROR_INVALID_VALUE;
    memory_check(w.to, sizeof value, device, "a word that a stream waits for or writes");
    if (type == CU_MEMORYTYPE_DEVICE && device != current->device && !current->peer[device])
        wrong("a stream of device %d waits for or writes a word of device %d without peer access", current->device,
              device);
    if (stream->capture) {
        stream->capture->bad = true;
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    w.device = current->device;
    return queue_work(stream, &w);
}

/* Of the kinds of waits only CU_STREAM_WAIT_VALUE_GEQ is known. */
CUresult cuStreamWaitValue64(CUstream stream, CUdeviceptr at, cuuint64_t value, unsigned int flags)
{
    ENTER(cuStreamWaitValue64)
    LEAVE(queue_word(stream, WAIT, at, value, flags));
}

CUresult cuStreamWriteValue64(CUstream stream, CUdeviceptr at, cuuint64_t value, unsigned int flags)
{
    ENTER(cuStreamWriteValue64)
    LEAVE(queue_word(stream, WRITE, at, value, flags));
}

static CUresult set_on(CUstream stream, CUdeviceptr at, size_t count, size_t width, size_t pitch, uint32_t value)
{
    work w = { .kind = SET, .device = current->device, .bytes = count, .width = width, .pitch = pitch, .value = value };
    w.to = (char *)(uintptr_t)at;
    if (count && at % width)
        return CUDA_ERROR_INVALID_VALUE;
    return queue_on(stream, &w);
}

CUresult cuMemsetD8Async(CUdeviceptr at, unsigned char value, size_t count, CUstream stream)
{
    ENTER(cuMemsetD8Async)
    LEAVE(set_on(stream, at, count, 1, 1, value));
}

CUresult cuMemsetD16Async(CUdeviceptr at, unsigned short value, size_t count, CUstream stream)
{
    ENTER(cuMemsetD16Async)
    LEAVE(set_on(stream, at, count, 2, 2, value));
}

CUresult cuMemsetD32Async(CUdeviceptr at, unsigned int value, size_t count, CUstream stream)
{
    ENTER(cuMemsetD32Async)
    LEAVE(set_on(stream, at, count, 4, 4, value));
}

/* Of one column, which is all that is asked for. */
CUresult cuMemsetD2D32Async(CUdeviceptr at, size_t pitch, unsigned int value, size_t width, size_t height,
                            CUstream stream)
{
    ENTER(cuMemsetD2D32Async)
    LEAVE(width == 1 ? set_on(stream, at, height, 4, pitch, value) : CUDA_ERROR_INVALID_VALUE);
}

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn call, void *data)
{
    ENTER(cuLaunchHostFunc)
    work w = { .kind = HOST, .call = call, .data = data };
    LEAVE(queue_on(stream, &w));
}

typedef enum manner { PLAIN, EARLY, COOPERATIVE } manner;

static void note_cooperative(const work *w)
{
    uint64_t *first = &fake.cooperative[w->device].first;
    fake.cooperative[w->device].blocks = (int)(w->grid[0] * w->grid[1] * w->grid[2]);
    if (w->function->params > 0 && w->function->size[0] == sizeof *first)
        memcpy(first, w->param[0], sizeof *first);
}

int fakeCudaCooperative(int device, uint64_t *first)
{
    lock();
    int blocks = fake.cooperative[device].blocks;
    *first = fake.cooperative[device].first;
    unlock();
    return blocks;
}

int fakeCudaWaiting(void)
{
    lock();
    int waiting = fake.waiting;
    unlock();
    return waiting;
}

int fakeCudaTelling(void)
{
    lock();
    int telling = fake.telling;
    unlock();
    return telling;
}

/* Nobody refuses one that waits where it has not room: some of its blocks would never begin. */
static bool in_slices(const CUlaunchConfig *c, CUfunction function, void **params)
{
    const fakeCudaResident *resides = function->resides;
    int what = resides && resides->waits ? resides->waits(function->name, params) : 0;
    if (what == FAKE_WAITS && !fits_device(c))
        wrong("%s waits for others, and has more blocks than the device has room for", function->name);
    fake.waiting += what == FAKE_WAITS;
    fake.telling += what == FAKE_TELLS;
    return what != 0;
}

/* Does the device have room for blocks like these? */
static bool is_possible(const CUlaunchConfig *c, CUfunction function)
{
    bool blocks = c->gridDimX && c->gridDimY && c->gridDimZ && c->gridDimX <= INT32_MAX && c->gridDimY <= UINT16_MAX &&
                  c->gridDimZ <= UINT16_MAX;
    bool threads = c->blockDimX && c->blockDimY && c->blockDimZ && c->blockDimX <= 1024 && c->blockDimY <= 1024 &&
                   c->blockDimZ <= 64;
    bool fits = c->sharedMemBytes <= 48 * 1024 || (int)c->sharedMemBytes <= function->shared;
    return blocks && threads && (uint64_t)c->blockDimX * c->blockDimY * c->blockDimZ <= 1024 && fits;
}

static work work_of(const CUlaunchConfig *c, CUfunction function, void **params, manner how)
{
    work w = { .kind = KERNEL,
               .device = current->device,
               .function = function,
               .grid = { c->gridDimX, c->gridDimY, c->gridDimZ },
               .block = { c->blockDimX, c->blockDimY, c->blockDimZ },
               .early = how == EARLY,
               .cooperative = how == COOPERATIVE,
               .waits = how == COOPERATIVE || in_slices(c, function, params) };
    for (int i = 0; i < function->params; i++)
        w.param[i] = params[i];
    return w;
}

CUresult kernel_work(work *w, const CUDA_KERNEL_NODE_PARAMS_v3 *p)
{
    CUlaunchConfig c = { p->gridDimX,  p->gridDimY,       p->gridDimZ, p->blockDimX, p->blockDimY,
                         p->blockDimZ, p->sharedMemBytes, NULL,        NULL,         0 };
    if (!current || !p->func || p->extra || !is_possible(&c, p->func))
        return CUDA_ERROR_INVALID_VALUE;
    *w = work_of(&c, p->func, p->kernelParams, PLAIN);
    return CUDA_SUCCESS;
}

static CUresult launch(const CUlaunchConfig *c, CUfunction function, void **params, manner how)
{
    if (!is_possible(c, function))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult code = check_stream(c->hStream);
    if (!code && how == COOPERATIVE && !fits_device(c))
        code = CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
    if (code)
        return code;
    work w = work_of(c, function, params, how);
    if (how == COOPERATIVE)
        note_cooperative(&w);
    return queue_work(c->hStream, &w);
}

CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                        unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared,
                        CUstream stream, void **params, void **extra)
{
    ENTER(cuLaunchKernel)
    CUlaunchConfig c = { grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream, NULL, 0 };
    LEAVE(extra ? CUDA_ERROR_INVALID_VALUE : launch(&c, function, params, PLAIN));
}

CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                                   unsigned int block_x, unsigned int block_y, unsigned int block_z,
                                   unsigned int shared, CUstream stream, void **params)
{
    ENTER(cuLaunchCooperativeKernel)
    CUlaunchConfig c = { grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream, NULL, 0 };
    LEAVE(launch(&c, function, params, COOPERATIVE));
}

/* The one attribute that is known says that the kernel may come early; outside of a graph nobody asks for it. */
CUresult cuLaunchKernelEx(const CUlaunchConfig *c, CUfunction function, void **params, void **extra)
{
    ENTER(cuLaunchKernelEx)
    bool early = c->numAttrs == 1 && c->attrs[0].id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION &&
                 c->attrs[0].value.programmaticStreamSerializationAllowed;
    if (extra || !early || !c->hStream->capture)
        wrong("cuLaunchKernelEx for something else than an early launch in a capture");
    LEAVE(launch(c, function, params, EARLY));
}

/* ---- code ---- */

enum { MOST_FUNCTIONS = 2048 };
static struct CUfunc_st functions[MOST_FUNCTIONS];
static int function_count;

CUfunction fakeCudaFunction(const char *name, fakeCudaBody body, const size_t *sizes, int params)
{
    lock();
    int i = 0;
    while (i < function_count && strcmp(functions[i].name, name) != 0)
        i++;
    if (i == MOST_FUNCTIONS || params > MOST_PARAMS)
        wrong("no room for function \"%s\"", name);
    struct CUfunc_st *f = &functions[i];
    snprintf(f->name, sizeof f->name, "%s", name);
    f->body = body;
    f->params = params;
    for (int k = 0; k < params; k++)
        f->size[k] = sizes[k];
    function_count += i == function_count;
    unlock();
    return f;
}

static void do_nothing(const fakeCudaLaunch *launch, void **params)
{
    (void)launch;
    (void)params;
}

/* "gantry_tiny" of tools/bench/gpus.c: so many bytes from its second parameter to its first. */
static void copy_tiny(const fakeCudaLaunch *launch, void **params)
{
    void *to, *from;
    (void)launch;
    memcpy(&to, params[0], sizeof to);
    memcpy(&from, params[1], sizeof from);
    memcpy(to, from, 4096);
}

/* Fat binaries, cubins and PTX by how they begin. Functions are those of fakeCudaFunction; of the last two only those
 * that the image declares, see code.c. In PTX there may be one that does nothing, "gantry_empty", or "gantry_tiny". */
CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    static const unsigned char magic[] = { 0x50, 0xED, 0x55, 0xBA };
    ENTER(cuModuleLoadData)
    struct CUmod_st m = { .any = memcmp(image, magic, sizeof magic) == 0 };
    if (!current || (!m.any && !code_entries(&m.entries, image)))
        LEAVE(CUDA_ERROR_INVALID_IMAGE);
    if (!m.any && code_has(m.entries, "gantry_empty"))
        fakeCudaFunction("gantry_empty", do_nothing, NULL, 0);
    if (!m.any && code_has(m.entries, "gantry_tiny"))
        fakeCudaFunction("gantry_tiny", copy_tiny, (const size_t[]){ sizeof(void *), sizeof(void *) }, 2);
    *module = calloc(1, sizeof **module);
    **module = m;
    fake.alive_modules++;
    LEAVE(CUDA_SUCCESS);
}

/* Of the options a log for errors is all that is known. */
CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int count, CUjit_option *option, void **value)
{
    CUresult code = cuModuleLoadData(module, image);
    if (code && count > 1 && option[0] == CU_JIT_ERROR_LOG_BUFFER && option[1] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)
        snprintf(value[0], (size_t)(uintptr_t)value[1], "the fake cannot\nread this image\n");
    return code;
}

/* ---- variables of modules ---- */

static struct global {
    char name[64];
    const void *at;
    size_t bytes;
} globals[MOST_GLOBALS];
static int global_count;

void fakeCudaGlobal(const char *name, const void *at, size_t bytes)
{
    lock();
    int i = 0;
    while (i < global_count && strcmp(globals[i].name, name) != 0)
        i++;
    if (i == MOST_GLOBALS || strlen(name) >= sizeof globals[i].name)
        wrong("no room for variable \"%s\"", name);
    snprintf(globals[i].name, sizeof globals[i].name, "%s", name);
    globals[i].at = at;
    globals[i].bytes = bytes;
    global_count += i == global_count;
    unlock();
}

/* Memory of the current device, with what the variable held. */
static CUresult make_global(void **to, const struct global *g)
{
    CUresult code = memory_new(to, current->device, g->bytes);
    bool devices[MOST_DEVICES] = { false };
    devices[current->device] = true;
    if (!code) {
        memory_open(devices);
        memcpy(*to, g->at, g->bytes);
        memory_close();
    }
    return code;
}

CUresult cuModuleGetGlobal(CUdeviceptr *at, size_t *bytes, CUmodule module, const char *name)
{
    ENTER(cuModuleGetGlobal)
    int i = 0;
    while (i < global_count && strcmp(globals[i].name, name) != 0)
        i++;
    if (!current || i == global_count || !module->any)
        LEAVE(current ? CUDA_ERROR_NOT_FOUND : CUDA_ERROR_INVALID_CONTEXT);
    if (!module->global[i])
        code = make_global(&module->global[i], &globals[i]);
    if (at)
        *at = (CUdeviceptr)(uintptr_t)module->global[i];
    if (bytes)
        *bytes = globals[i].bytes;
    LEAVE(code);
}

CUresult cuModuleUnload(CUmodule module)
{
    ENTER_FREE(cuModuleUnload)
    for (int i = 0; i < MOST_GLOBALS; i++)
        if (module->global[i])
            memory_delete(module->global[i], false);
    free(module->entries);
    free(module);
    fake.alive_modules--;
    LEAVE(code);
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    ENTER(cuModuleGetFunction)
    for (int i = 0; i < function_count; i++) {
        if (strcmp(functions[i].name, name) == 0 && (module->any || code_has(module->entries, name))) {
            *function = &functions[i];
            LEAVE(CUDA_SUCCESS);
        }
    }
    LEAVE(CUDA_ERROR_NOT_FOUND);
}

/* As if registers and shared memory never ran out. */
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function, int threads, size_t shared)
{
    ENTER(cuOccupancyMaxActiveBlocksPerMultiprocessor)
    *blocks = function && threads > 0 && threads <= 1024 && !shared ? places() ? 1 : THREADS / threads : 0;
    LEAVE(*blocks ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

void fakeCudaBegins(CUfunction function)
{
    function->begins = true;
}

void fakeCudaResides(CUfunction function, const fakeCudaResident *how)
{
    function->resides = how;
}

void fakeCudaLimit(CUfunction function, int threads)
{
    function->threads = threads;
}

CUresult cuFuncGetAttribute(int *value, CUfunction_attribute which, CUfunction function)
{
    ENTER(cuFuncGetAttribute)
    const char *registers = getenv("FAKE_CUDA_REGISTERS"), *shared = getenv("FAKE_CUDA_SHARED");
    *value = which == CU_FUNC_ATTRIBUTE_NUM_REGS            ? atoi(registers ? registers : "32")
             : which == CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES ? atoi(shared ? shared : "0")
             : function->threads                            ? function->threads
                                                            : 1024;
    bool known = which == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK || which == CU_FUNC_ATTRIBUTE_NUM_REGS ||
                 which == CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES;
    LEAVE(known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute which, int value)
{
    ENTER(cuFuncSetAttribute)
    function->shared = value;
    LEAVE(which == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t *offset, size_t *bytes)
{
    ENTER(cuFuncGetParamInfo)
    if (index >= (size_t)function->params)
        LEAVE(CUDA_ERROR_INVALID_VALUE);
    *offset = 0;
    *bytes = function->size[index];
    LEAVE(CUDA_SUCCESS);
}
