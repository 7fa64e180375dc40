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

/* In PTX, so that it is there without a CUDA toolkit too: the driver compiles it. */
static const char empty_kernel[] = ".version 6.3\n.target sm_75\n.address_size 64\n"
                                   ".visible .entry gantry_empty()\n{\n    ret;\n}\n";

gantry_status gy_bed_fail(const gy_bed *bed, CUresult code, uint32_t gpu, const char *what, gantry_error *err)
{
    char text[160];
    snprintf(text, sizeof text, "%s on device \"%s\"", what, bed->machine->device[bed->gpu[gpu].device].id);
    gantry_status status = gy_driver_fail(&bed->d, code, text, err);
    if (err) {
        err->device = (int32_t)bed->gpu[gpu].device;
    }
    return status;
}

gantry_status gy_bed_use(const gy_bed *bed, uint32_t gpu, gantry_error *err)
{
    return gy_bed_check(bed, bed->d.cuCtxSetCurrent(bed->gpu[gpu].context), gpu, "making the context current", err);
}

/* ---- waiting ---- */

static void rest(unsigned turn)
{
    if (turn > SPINS) {
        nanosleep(&(struct timespec){ .tv_nsec = 20000 }, NULL);
    } else if (turn > SPINS / 2) {
        sched_yield();
    }
}

gantry_status gy_bed_wait(gy_bed *bed, CUevent event, uint32_t gpu, gantry_error *err)
{
    int64_t until = gy_now_ns() + bed->patience_ns;
    CUresult code;
    for (unsigned turn = 0; (code = bed->d.cuEventQuery(event)) == CUDA_ERROR_NOT_READY; turn++) {
        if (turn % 64 == 63 && gy_now_ns() > until) {
            bed->hung = true;
            return gy_fail(err, GANTRY_E_TIMEOUT, NULL,
                           "device \"%s\" did not end what it was given to measure within %.1f s",
                           bed->machine->device[bed->gpu[gpu].device].id, (double)bed->patience_ns / NS_PER_SECOND);
        }
        rest(turn);
    }
    return gy_bed_check(bed, code, gpu, "measuring", err);
}

gantry_status gy_bed_drain(gy_bed *bed, gantry_error *err)
{
    gantry_status status = GANTRY_OK;
    for (uint32_t i = 0; i < bed->gpus && !status; i++) {
        gy_bed_gpu *g = &bed->gpu[i];
        for (uint32_t k = 0; k < GY_BED_STREAMS && g->stream[k] && g->mark[0] && !status; k++) {
            status = gy_bed_use(bed, i, err);
            status = status ? status
                            : gy_bed_check(bed, bed->d.cuEventRecord(g->mark[0], g->stream[k]), i, "recording an event",
                                           err);
            status = status ? status : gy_bed_wait(bed, g->mark[0], i, err);
        }
    }
    return status;
}

/* The first failure may be that of a call long ago. */
bool gy_bed_settle(gy_bed *bed)
{
    if (!bed->hung && gy_bed_drain(bed, NULL)) {
        gy_bed_drain(bed, NULL);
    }
    return !bed->hung;
}

/* ---- opening ---- */

static gantry_status open_streams(gy_bed *bed, uint32_t i, gantry_error *err)
{
    gy_bed_gpu *g = &bed->gpu[i];
    CUresult code = CUDA_SUCCESS;
    for (int k = 0; k < GY_BED_STREAMS && !code; k++) {
        code = bed->d.cuStreamCreate(&g->stream[k], CU_STREAM_NON_BLOCKING);
        g->stream[k] = code ? NULL : g->stream[k];
    }
    for (int k = 0; k < GY_BED_MARKS + 2 && !code; k++) {
        CUevent *event = k == 0 ? &g->begin : k == 1 ? &g->end : &g->mark[k - 2];
        code = bed->d.cuEventCreate(event, k < 2 ? CU_EVENT_DEFAULT : CU_EVENT_DISABLE_TIMING);
        *event = code ? NULL : *event;
    }
    return gy_bed_check(bed, code, i, "creating streams and events", err);
}

static gantry_status open_kernel(gy_bed *bed, uint32_t i, gantry_error *err)
{
    gy_bed_gpu *g = &bed->gpu[i];
    CUresult code = bed->d.cuModuleLoadData(&g->module, empty_kernel);
    g->module = code ? NULL : g->module;
    code = code ? code : bed->d.cuModuleGetFunction(&g->empty, g->module, "gantry_empty");
    return gy_bed_check(bed, code, i, "loading an empty kernel", err);
}

static gantry_status open_gpu(gy_bed *bed, uint32_t i, gantry_error *err)
{
    gy_bed_gpu *g = &bed->gpu[i];
    CUresult code = bed->d.cuDeviceGet(&g->id, gy_device_ordinal(bed->machine, g->device));
    code = code ? code : bed->d.cuDevicePrimaryCtxRetain(&g->context, g->id);
    if (code) {
        g->context = NULL;
        return gy_bed_fail(bed, code, i, "opening the primary context", err);
    }
    gantry_status status = gy_bed_use(bed, i, err);
    status = status ? status : open_streams(bed, i, err);
    return status ? status : open_kernel(bed, i, err);
}

static void free_blocks(gy_bed *bed)
{
    for (uint32_t i = 0; i < bed->gpus; i++) {
        gy_bed_gpu *g = &bed->gpu[i];
        if ((g->block || g->host) && gy_bed_use(bed, i, NULL) == GANTRY_OK) {
            if (g->block) {
                bed->d.cuMemFree(g->block);
            }
            if (g->host) {
                bed->d.cuMemFreeHost(g->host);
            }
        }
        g->block = 0;
        g->host = NULL;
    }
}

static CUresult make_blocks(gy_bed *bed, uint32_t i)
{
    gy_bed_gpu *g = &bed->gpu[i];
    void *host = NULL;
    CUdeviceptr block = 0;
    gy_numa before;
    CUresult code = bed->d.cuMemAlloc(&block, 2 * bed->bytes);
    g->block = code ? 0 : block;
    gy_numa_prefer(&before, bed->machine->memory[g->memory].numa);
    code = code ? code : bed->d.cuMemHostAlloc(&host, bed->host, CU_MEMHOSTALLOC_PORTABLE);
    gy_numa_restore(&before);
    g->host = code ? NULL : host;
    return code;
}

/* As large as there is room for on all of them: others may use these GPUs too. */
static gantry_status open_blocks(gy_bed *bed, const gy_bed_want *want, gantry_error *err)
{
    bed->bytes = want->bytes;
    bed->host = want->host;
    for (;; bed->bytes /= 2, bed->host /= 2) {
        CUresult code = CUDA_SUCCESS;
        uint32_t i = 0;
        for (; i < bed->gpus && !code; i++) {
            gantry_status status = gy_bed_use(bed, i, err);
            if (status) {
                return status;
            }
            code = make_blocks(bed, i);
        }
        if (!code) {
            return GANTRY_OK;
        }
        if (code != CUDA_ERROR_OUT_OF_MEMORY || !want->less || bed->bytes / 2 < LEAST_BYTES) {
            return gy_bed_fail(bed, code, i - 1, "allocating memory to measure with", err);
        }
        free_blocks(bed);
    }
}

static bool enable(gy_bed *bed, uint32_t from, uint32_t to)
{
    return gy_bed_use(bed, from, NULL) == GANTRY_OK &&
           gy_driver_reach(&bed->d, bed->gpu[from].id, bed->gpu[to].id, bed->gpu[to].context);
}

/* As runs do it: both ways or not at all. */
static void open_peers(gy_bed *bed)
{
    for (uint32_t a = 0; a < bed->gpus; a++) {
        for (uint32_t b = a + 1; b < bed->gpus; b++) {
            bool can = bed->gpu[a].context != bed->gpu[b].context && enable(bed, a, b) && enable(bed, b, a);
            bed->peer[a * bed->gpus + b] = bed->peer[b * bed->gpus + a] = can;
        }
    }
}

static gantry_status find_gpus(gy_bed *bed, int devices, uint32_t most, gantry_error *err)
{
    const gantry_machine *m = bed->machine;
    for (uint32_t i = 0; i < m->devices && (!most || bed->gpus < most); i++) {
        int ordinal = gy_device_ordinal(m, i);
        if (m->device[i].gpu && ordinal >= devices) {
            return gy_fail(err, GANTRY_E_DEVICE, NULL, "device \"%s\" is GPU %d, and this computer has %d",
                           m->device[i].id, ordinal, devices);
        }
        if (m->device[i].gpu && m->device[i].memory != 0) {
            bed->gpu[bed->gpus++] = (gy_bed_gpu){ .device = i, .memory = m->device[i].memory };
        }
    }
    if (bed->gpus == 0 || bed->gpus < most) {
        return gy_fail(err, GANTRY_E_DEVICE, NULL, "machine \"%s\" has %u GPUs with memories of their own, not %u",
                       m->name, bed->gpus, most ? most : 1);
    }
    return GANTRY_OK;
}

static gantry_status open_all(gy_bed *bed, int devices, const gy_bed_want *want, gantry_error *err)
{
    uint32_t most = bed->machine->devices;
    bed->gpu = gy_calloc(most, sizeof *bed->gpu);
    bed->peer = gy_calloc((size_t)most * most, 1);
    gantry_status status = bed->gpu && bed->peer ? find_gpus(bed, devices, want->gpus, err) : gy_fail_nomem(err);
    for (uint32_t i = 0; i < bed->gpus && !status; i++) {
        status = open_gpu(bed, i, err);
    }
    status = status ? status : open_blocks(bed, want, err);
    if (!status && want->peers) {
        open_peers(bed);
    }
    return status;
}

gantry_status gy_bed_open(gy_bed *bed, const gantry_machine *machine, const gy_bed_want *want, gantry_error *err)
{
    int devices;
    *bed = (gy_bed){ .machine = machine, .patience_ns = (int64_t)(want->patience * NS_PER_SECOND) };
    gantry_status status = gy_driver_start(&bed->d, &devices, err);
    if (status) {
        return status;
    }
    if (bed->d.cuCtxGetCurrent(&bed->before)) {
        bed->before = NULL;
    }
    status = open_all(bed, devices, want, err);
    if (status) {
        gy_bed_close(bed);
    }
    return status;
}

static void close_gpu(gy_bed *bed, uint32_t i)
{
    gy_bed_gpu *g = &bed->gpu[i];
    if (!g->context || gy_bed_use(bed, i, NULL)) {
        return;
    }
    for (int k = 0; k < GY_BED_STREAMS; k++) {
        if (g->stream[k]) {
            bed->d.cuStreamDestroy(g->stream[k]);
        }
    }
    for (int k = 0; k < GY_BED_MARKS + 2; k++) {
        CUevent event = k == 0 ? g->begin : k == 1 ? g->end : g->mark[k - 2];
        if (event) {
            bed->d.cuEventDestroy(event);
        }
    }
    if (g->module) {
        bed->d.cuModuleUnload(g->module);
    }
}

/* After what hung has had some more time, it is left alone with all that it may use. */
void gy_bed_close(gy_bed *bed)
{
    bed->patience_ns = bed->hung ? GRACE_NS : bed->patience_ns;
    bed->hung = false;
    gy_bed_settle(bed);
    for (uint32_t i = 0; i < bed->gpus && !bed->hung; i++) {
        close_gpu(bed, i);
    }
    if (!bed->hung) {
        free_blocks(bed);
    }
    bed->d.cuCtxSetCurrent(bed->before); /* before its context may go */
    for (uint32_t i = 0; i < bed->gpus && !bed->hung; i++) {
        if (bed->gpu[i].context) {
            bed->d.cuDevicePrimaryCtxRelease(bed->gpu[i].id);
        }
    }
    gy_free(bed->gpu);
    gy_free(bed->peer);
    if (!bed->hung) {
        gy_driver_close(&bed->d);
    }
    *bed = (gy_bed){ 0 };
}

/* ---- work ---- */

gantry_status gy_bed_order(gy_bed *bed, gy_bed_lane from, gy_bed_lane to, gantry_error *err)
{
    gy_bed_gpu *g = &bed->gpu[from.gpu];
    CUevent mark = g->mark[g->next_mark++ % GY_BED_MARKS];
    gantry_status status = gy_bed_use(bed, from.gpu, err);
    status = status ? status
                    : gy_bed_check(bed, bed->d.cuEventRecord(mark, gy_bed_stream(bed, from)), from.gpu,
                                   "recording an event", err);
    status = status ? status : gy_bed_use(bed, to.gpu, err);
    return status ? status
                  : gy_bed_check(bed, bed->d.cuStreamWaitEvent(gy_bed_stream(bed, to), mark, 0), to.gpu,
                                 "waiting for an event", err);
}

gantry_status gy_bed_order_all(gy_bed *bed, uint32_t gpus, uint32_t streams, bool before, gantry_error *err)
{
    gy_bed_lane lead = { 0, 0 };
    gantry_status status = GANTRY_OK;
    for (uint32_t i = 1; i < gpus * streams && !status; i++) {
        gy_bed_lane side = { i % gpus, i / gpus };
        status = before ? gy_bed_order(bed, lead, side, err) : gy_bed_order(bed, side, lead, err);
    }
    return status;
}

bool gy_bed_reaches(const gy_bed *bed, uint32_t from, uint32_t to)
{
    return from == GY_BED_HOST || to == GY_BED_HOST || bed->gpu[from].context == bed->gpu[to].context ||
           bed->peer[from * bed->gpus + to];
}

gantry_status gy_bed_copy(gy_bed *bed, gy_bed_lane lane, uint32_t from, uint32_t to, uint64_t bytes, uint64_t offset,
                          gantry_error *err)
{
    const gy_bed_gpu *g = &bed->gpu[lane.gpu];
    CUstream stream = gy_bed_stream(bed, lane);
    gantry_status status = gy_bed_use(bed, lane.gpu, err);
    CUresult code = CUDA_SUCCESS;
    if (status) {
        return status;
    }
    if (from == GY_BED_HOST) {
        code = bed->d.cuMemcpyHtoDAsync(g->block + bed->bytes, g->host + offset, bytes, stream);
    } else if (to == GY_BED_HOST) {
        code = bed->d.cuMemcpyDtoHAsync(g->host + offset, g->block, bytes, stream);
    } else {
        code = bed->d.cuMemcpyDtoDAsync(bed->gpu[to].block + bed->bytes, bed->gpu[from].block, bytes, stream);
    }
    return gy_bed_check(bed, code, lane.gpu, "copying", err);
}

gantry_status gy_bed_empty(gy_bed *bed, gy_bed_lane lane, gantry_error *err)
{
    gantry_status status = gy_bed_use(bed, lane.gpu, err);
    return status ? status
                  : gy_bed_check(bed,
                                 bed->d.cuLaunchKernel(bed->gpu[lane.gpu].empty, 1, 1, 1, 32, 1, 1, 0,
                                                       gy_bed_stream(bed, lane), NULL, NULL),
                                 lane.gpu, "launching an empty kernel", err);
}
