/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/measure/harness.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/numa.h"
#include "machine/gpus.h"
#include <sched.h>
#include <stdio.h>
#include <time.h>

enum { SPINS = 4000 };
#define LEAST_BYTES   (UINT64_C(64) << 10)
#define GRACE_NS      INT64_C(500000000)
#define NS_PER_SECOND 1e9

/* The kernel is PTX, which the driver compiles, so that no CUDA toolkit is needed. */
static const char empty_kernel[] = ".version 6.3\n.target sm_75\n.address_size 64\n"
                                   ".visible .entry gantry_empty()\n{\n    ret;\n}\n";

gantry_status gy_harness_fail(const gy_harness *harness, CUresult code, uint32_t gpu, const char *what,
                              gantry_error *err)
{
    char text[160];
    snprintf(text, sizeof text, "%s on device \"%s\"", what, harness->machine->device[harness->gpu[gpu].device].id);
    gantry_status status = gy_driver_fail(&harness->d, code, text, err);
    if (err)
        err->device = (int32_t)harness->gpu[gpu].device;
    return status;
}

gantry_status gy_harness_launched(const gy_harness *harness, uint32_t gpu, const gy_cuda_kernel *kernel, void *handle,
                                  gantry_status status, gantry_error *err)
{
    const char *why = status && kernel->why ? kernel->why(handle) : NULL;
    return status ? gy_fail(err, GANTRY_E_DEVICE, NULL, "kernel \"%s\" cannot be launched on device \"%s\": %s",
                            kernel->name, harness->machine->device[harness->gpu[gpu].device].id,
                            why ? why : gantry_status_text(status))
                  : GANTRY_OK;
}

gantry_status gy_harness_use(const gy_harness *harness, uint32_t gpu, gantry_error *err)
{
    return gy_harness_check(harness, harness->d.cuCtxSetCurrent(harness->gpu[gpu].context), gpu,
                            "making the context current", err);
}

/* ---- waiting ---- */

static void rest(unsigned polls)
{
    if (polls > SPINS)
        nanosleep(&(struct timespec){ .tv_nsec = 20000 }, NULL);
    else if (polls > SPINS / 2)
        sched_yield();
}

gantry_status gy_harness_wait(gy_harness *harness, CUevent event, uint32_t gpu, gantry_error *err)
{
    gy_waited waited = gy_waited_begin();
    CUresult code;
    for (unsigned polls = 0; (code = harness->d.cuEventQuery(event)) == CUDA_ERROR_NOT_READY; polls++) {
        if (polls % 64 == 63 && gy_waited_look(&waited) > harness->patience_ns) {
            harness->hung = true;
            return gy_fail(
                err, GANTRY_E_TIMEOUT, NULL, "device \"%s\" did not end what it was given to measure within %.1f s",
                harness->machine->device[harness->gpu[gpu].device].id, (double)harness->patience_ns / NS_PER_SECOND);
        }
        rest(polls);
    }
    return gy_harness_check(harness, code, gpu, "measuring", err);
}

gantry_status gy_harness_drain(gy_harness *harness, gantry_error *err)
{
    gantry_status status = GANTRY_OK;
    for (uint32_t i = 0; i < harness->gpus && !status; i++) {
        gy_harness_gpu *g = &harness->gpu[i];
        for (uint32_t k = 0; k < GY_HARNESS_STREAMS && g->stream[k] && g->scratch_event[0] && !status; k++) {
            status = gy_harness_use(harness, i, err);
            status = status ? status
                            : gy_harness_check(harness, harness->d.cuEventRecord(g->scratch_event[0], g->stream[k]), i,
                                               "recording an event", err);
            status = status ? status : gy_harness_wait(harness, g->scratch_event[0], i, err);
        }
    }
    return status;
}

/* The first failure may be that of a call long ago. */
bool gy_harness_settle(gy_harness *harness)
{
    if (!harness->hung && gy_harness_drain(harness, NULL))
        gy_harness_drain(harness, NULL);
    return !harness->hung;
}

/* ---- opening ---- */

static gantry_status open_streams(gy_harness *harness, uint32_t i, gantry_error *err)
{
    gy_harness_gpu *g = &harness->gpu[i];
    CUresult code = CUDA_SUCCESS;
    for (int k = 0; k < GY_HARNESS_STREAMS && !code; k++) {
        code = harness->d.cuStreamCreate(&g->stream[k], CU_STREAM_NON_BLOCKING);
        g->stream[k] = code ? NULL : g->stream[k];
    }
    for (int k = 0; k < GY_HARNESS_SCRATCH_EVENTS + 2 && !code; k++) {
        CUevent *event = k == 0 ? &g->begin : k == 1 ? &g->end : &g->scratch_event[k - 2];
        code = harness->d.cuEventCreate(event, k < 2 ? CU_EVENT_DEFAULT : CU_EVENT_DISABLE_TIMING);
        *event = code ? NULL : *event;
    }
    return gy_harness_check(harness, code, i, "creating streams and events", err);
}

static gantry_status open_kernel(gy_harness *harness, uint32_t i, gantry_error *err)
{
    gy_harness_gpu *g = &harness->gpu[i];
    CUresult code = harness->d.cuModuleLoadData(&g->module, empty_kernel);
    g->module = code ? NULL : g->module;
    code = code ? code : harness->d.cuModuleGetFunction(&g->empty, g->module, "gantry_empty");
    return gy_harness_check(harness, code, i, "loading an empty kernel", err);
}

static gantry_status open_gpu(gy_harness *harness, uint32_t i, gantry_error *err)
{
    gy_harness_gpu *g = &harness->gpu[i];
    CUresult code = harness->d.cuDeviceGet(&g->id, gy_device_ordinal(harness->machine, g->device));
    code = code ? code : harness->d.cuDevicePrimaryCtxRetain(&g->context, g->id);
    if (code) {
        g->context = NULL;
        return gy_harness_fail(harness, code, i, "opening the primary context", err);
    }
    gantry_status status = gy_harness_use(harness, i, err);
    status = status ? status : open_streams(harness, i, err);
    return status ? status : open_kernel(harness, i, err);
}

static void free_blocks(gy_harness *harness)
{
    for (uint32_t i = 0; i < harness->gpus; i++) {
        gy_harness_gpu *g = &harness->gpu[i];
        if ((g->block || g->host) && gy_harness_use(harness, i, NULL) == GANTRY_OK) {
            if (g->block)
                harness->d.cuMemFree(g->block);
            if (g->host)
                harness->d.cuMemFreeHost(g->host);
        }
        g->block = 0;
        g->host = NULL;
    }
}

static CUresult make_blocks(gy_harness *harness, uint32_t i)
{
    gy_harness_gpu *g = &harness->gpu[i];
    void *host = NULL;
    CUdeviceptr block = 0;
    gy_numa before;
    CUresult code = harness->d.cuMemAlloc(&block, 2 * harness->bytes);
    g->block = code ? 0 : block;
    gy_numa_prefer(&before, harness->machine->memory[g->memory].numa);
    code = code ? code : harness->d.cuMemHostAlloc(&host, harness->host, CU_MEMHOSTALLOC_PORTABLE);
    gy_numa_restore(&before);
    g->host = code ? NULL : host;
    return code;
}

/* Allocates as much as there is room for on all GPUs: others may use them too. */
static gantry_status open_blocks(gy_harness *harness, const gy_harness_want *want, gantry_error *err)
{
    harness->bytes = want->bytes;
    harness->host = want->host;
    for (;; harness->bytes /= 2, harness->host /= 2) {
        CUresult code = CUDA_SUCCESS;
        uint32_t i = 0;
        for (; i < harness->gpus && !code; i++) {
            gantry_status status = gy_harness_use(harness, i, err);
            if (status)
                return status;
            code = make_blocks(harness, i);
        }
        if (!code)
            return GANTRY_OK;
        if (code != CUDA_ERROR_OUT_OF_MEMORY || !want->less || harness->bytes / 2 < LEAST_BYTES)
            return gy_harness_fail(harness, code, i - 1, "allocating memory to measure with", err);
        free_blocks(harness);
    }
}

static bool enable(gy_harness *harness, uint32_t from, uint32_t to)
{
    return gy_harness_use(harness, from, NULL) == GANTRY_OK &&
           gy_driver_reach(&harness->d, harness->gpu[from].id, harness->gpu[to].id, harness->gpu[to].context);
}

/* Enables access both ways or not at all, as runs do. */
static void open_peers(gy_harness *harness)
{
    for (uint32_t a = 0; a < harness->gpus; a++) {
        for (uint32_t b = a + 1; b < harness->gpus; b++) {
            bool can =
                harness->gpu[a].context != harness->gpu[b].context && enable(harness, a, b) && enable(harness, b, a);
            harness->peer[a * harness->gpus + b] = harness->peer[b * harness->gpus + a] = can;
        }
    }
}

static gantry_status find_gpus(gy_harness *harness, int devices, uint32_t most, gantry_error *err)
{
    const gantry_machine *m = harness->machine;
    for (uint32_t i = 0; i < m->devices && (!most || harness->gpus < most); i++) {
        int ordinal = gy_device_ordinal(m, i);
        if (m->device[i].gpu && ordinal >= devices) {
            return gy_fail(err, GANTRY_E_DEVICE, NULL, "device \"%s\" is GPU %d, and this computer has %d",
                           m->device[i].id, ordinal, devices);
        }
        if (m->device[i].gpu && m->device[i].memory != 0)
            harness->gpu[harness->gpus++] = (gy_harness_gpu){ .device = i, .memory = m->device[i].memory };
    }
    if (harness->gpus == 0 || harness->gpus < most) {
        return gy_fail(err, GANTRY_E_DEVICE, NULL, "machine \"%s\" has %u GPUs with memories of their own, not %u",
                       m->name, harness->gpus, most ? most : 1);
    }
    return GANTRY_OK;
}

static gantry_status open_all(gy_harness *harness, int devices, const gy_harness_want *want, gantry_error *err)
{
    uint32_t most = harness->machine->devices;
    harness->gpu = gy_calloc(most, sizeof *harness->gpu);
    harness->peer = gy_calloc((size_t)most * most, 1);
    gantry_status status =
        harness->gpu && harness->peer ? find_gpus(harness, devices, want->gpus, err) : gy_fail_nomem(err);
    for (uint32_t i = 0; i < harness->gpus && !status; i++)
        status = open_gpu(harness, i, err);
    status = status ? status : open_blocks(harness, want, err);
    if (!status && want->peers)
        open_peers(harness);
    return status;
}

gantry_status gy_harness_open(gy_harness *harness, const gantry_machine *machine, const gy_harness_want *want,
                              gantry_error *err)
{
    int devices;
    *harness = (gy_harness){ .machine = machine, .patience_ns = (int64_t)(want->patience * NS_PER_SECOND) };
    gantry_status status = gy_driver_start(&harness->d, &devices, err);
    if (status)
        return status;
    if (harness->d.cuCtxGetCurrent(&harness->before))
        harness->before = NULL;
    status = open_all(harness, devices, want, err);
    if (status)
        gy_harness_close(harness);
    return status;
}

static void close_gpu(gy_harness *harness, uint32_t i)
{
    gy_harness_gpu *g = &harness->gpu[i];
    if (!g->context || gy_harness_use(harness, i, NULL))
        return;
    for (int k = 0; k < GY_HARNESS_STREAMS; k++)
        if (g->stream[k])
            harness->d.cuStreamDestroy(g->stream[k]);
    for (int k = 0; k < GY_HARNESS_SCRATCH_EVENTS + 2; k++) {
        CUevent event = k == 0 ? g->begin : k == 1 ? g->end : g->scratch_event[k - 2];
        if (event)
            harness->d.cuEventDestroy(event);
    }
    if (g->module)
        harness->d.cuModuleUnload(g->module);
}

/* After what hung has had some more time, it is left alone with all that it may use. */
void gy_harness_close(gy_harness *harness)
{
    harness->patience_ns = harness->hung ? GRACE_NS : harness->patience_ns;
    harness->hung = false;
    gy_harness_settle(harness);
    for (uint32_t i = 0; i < harness->gpus && !harness->hung; i++)
        close_gpu(harness, i);
    if (!harness->hung)
        free_blocks(harness);
    gy_driver_give_back(&harness->d, harness->before); /* before its context may go */
    for (uint32_t i = 0; i < harness->gpus && !harness->hung; i++)
        if (harness->gpu[i].context)
            harness->d.cuDevicePrimaryCtxRelease(harness->gpu[i].id);
    gy_free(harness->gpu);
    gy_free(harness->peer);
    if (!harness->hung)
        gy_driver_close(&harness->d);
    *harness = (gy_harness){ 0 };
}

/* ---- work ---- */

gantry_status gy_harness_order(gy_harness *harness, gy_harness_lane from, gy_harness_lane to, gantry_error *err)
{
    gy_harness_gpu *g = &harness->gpu[from.gpu];
    CUevent event = g->scratch_event[g->next_scratch_event++ % GY_HARNESS_SCRATCH_EVENTS];
    gantry_status status = gy_harness_use(harness, from.gpu, err);
    status = status ? status
                    : gy_harness_check(harness, harness->d.cuEventRecord(event, gy_harness_stream(harness, from)),
                                       from.gpu, "recording an event", err);
    status = status ? status : gy_harness_use(harness, to.gpu, err);
    return status ? status
                  : gy_harness_check(harness, harness->d.cuStreamWaitEvent(gy_harness_stream(harness, to), event, 0),
                                     to.gpu, "waiting for an event", err);
}

gantry_status gy_harness_order_all(gy_harness *harness, uint32_t gpus, uint32_t streams, bool before, gantry_error *err)
{
    gy_harness_lane first = { 0, 0 };
    gantry_status status = GANTRY_OK;
    for (uint32_t i = 1; i < gpus * streams && !status; i++) {
        gy_harness_lane other = { i % gpus, i / gpus };
        status = before ? gy_harness_order(harness, first, other, err) : gy_harness_order(harness, other, first, err);
    }
    return status;
}

bool gy_harness_reaches(const gy_harness *harness, uint32_t from, uint32_t to)
{
    return from == GY_HARNESS_HOST || to == GY_HARNESS_HOST || harness->gpu[from].context == harness->gpu[to].context ||
           harness->peer[from * harness->gpus + to];
}

uint32_t gy_harness_pairs(const gy_harness *harness)
{
    return (harness->gpus + 1) * (harness->gpus + 1);
}

bool gy_harness_pair_at(const gy_harness *harness, uint32_t i, uint32_t *from, uint32_t *to)
{
    uint32_t ends = harness->gpus + 1;
    *from = i / ends == harness->gpus ? GY_HARNESS_HOST : i / ends;
    *to = i % ends == harness->gpus ? GY_HARNESS_HOST : i % ends;
    return !(*from == GY_HARNESS_HOST && *to == GY_HARNESS_HOST) && gy_harness_reaches(harness, *from, *to);
}

uint32_t gy_harness_memory(const gy_harness *harness, uint32_t end)
{
    return end == GY_HARNESS_HOST ? 0 : harness->gpu[end].memory;
}

gantry_status gy_harness_copy(gy_harness *harness, gy_harness_lane lane, uint32_t from, uint32_t to, uint64_t bytes,
                              uint64_t offset, gantry_error *err)
{
    const gy_harness_gpu *g = &harness->gpu[lane.gpu];
    CUstream stream = gy_harness_stream(harness, lane);
    gantry_status status = gy_harness_use(harness, lane.gpu, err);
    CUresult code = CUDA_SUCCESS;
    if (status)
        return status;
    if (from == GY_HARNESS_HOST) {
        code = harness->d.cuMemcpyHtoDAsync(g->block + harness->bytes, g->host + offset, bytes, stream);
    } else if (to == GY_HARNESS_HOST) {
        code = harness->d.cuMemcpyDtoHAsync(g->host + offset, g->block, bytes, stream);
    } else {
        code = harness->d.cuMemcpyDtoDAsync(harness->gpu[to].block + harness->bytes, harness->gpu[from].block, bytes,
                                            stream);
    }
    return gy_harness_check(harness, code, lane.gpu, "copying", err);
}

gantry_status gy_harness_empty(gy_harness *harness, gy_harness_lane lane, gantry_error *err)
{
    gantry_status status = gy_harness_use(harness, lane.gpu, err);
    return status ? status
                  : gy_harness_check(harness,
                                     harness->d.cuLaunchKernel(harness->gpu[lane.gpu].empty, 1, 1, 1, 32, 1, 1, 0,
                                                               gy_harness_stream(harness, lane), NULL, NULL),
                                     lane.gpu, "launching an empty kernel", err);
}
