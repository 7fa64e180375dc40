/* SPDX-License-Identifier: Apache-2.0 */
/* What the driver reports: devices and who can reach whose memory; and which of the libraries that are opened when they
 * are wanted are there. */
#include "backends/cuda/cuda_backend.h"
#include "backends/cuda/driver.h"

#include "base/error.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int attribute(const gy_driver *d, CUdevice device, CUdevice_attribute which)
{
    int value = 0;
    return d->cuDeviceGetAttribute(&value, which, device) == CUDA_SUCCESS ? value : 0;
}

/* The driver's NUMA attribute is younger than the oldest driver that will do; the machine layer asks hwloc. */
static void read_gpu(const gy_driver *d, CUdevice device, gy_gpu *to)
{
    size_t bytes = 0;
    d->cuDeviceGetName(to->name, (int)sizeof to->name, device);
    d->cuDeviceGetPCIBusId(to->bus, (int)sizeof to->bus, device);
    d->cuDeviceTotalMem(&bytes, device);
    to->numa = -1;
    to->bytes = to->unused = bytes;
    to->major = attribute(d, device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
    to->minor = attribute(d, device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    to->sms = attribute(d, device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    to->clock_khz = attribute(d, device, CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
    to->memory_khz = attribute(d, device, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
    to->bus_bits = attribute(d, device, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
    to->copy_engines = attribute(d, device, CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT);
}

static gantry_status read_gpus(const gy_driver *d, int devices, gy_gpus *to, gantry_error *err)
{
    for (int i = 0; i < devices; i++) {
        CUdevice device;
        CUresult code = d->cuDeviceGet(&device, i);
        if (code != CUDA_SUCCESS) {
            return gy_driver_fail(d, code, "asking for a GPU", err);
        }
        to->at[i].ordinal = i;
        read_gpu(d, device, &to->at[i]);
        for (int k = 0; k < devices; k++) {
            CUdevice other;
            int can = 0;
            if (k != i && d->cuDeviceGet(&other, k) == CUDA_SUCCESS &&
                d->cuDeviceCanAccessPeer(&can, device, other) == CUDA_SUCCESS) {
                to->peer[i * devices + k] = can != 0;
            }
        }
    }
    to->count = (uint32_t)devices;
    return GANTRY_OK;
}

static gantry_status discover_with(const gy_driver *d, int devices, gy_gpus *found, gantry_error *err)
{
    gy_gpus gpus = { .at = gy_calloc((size_t)devices, sizeof *gpus.at),
                     .peer = gy_calloc((size_t)devices * (size_t)devices, 1) };
    gantry_status status = gpus.at && gpus.peer ? read_gpus(d, devices, &gpus, err) : gy_fail_nomem(err);
    if (status) {
        gy_gpus_free(&gpus);
        return status;
    }
    *found = gpus;
    return GANTRY_OK;
}

gantry_status gy_cuda_discover(gy_gpus *found, gantry_error *err)
{
    gy_driver d;
    int devices;
    if (gy_driver_start(&d, &devices, NULL)) {
        *found = (gy_gpus){ 0 };
        return GANTRY_OK;
    }
    gantry_status status = discover_with(&d, devices, found, err);
    gy_driver_close(&d);
    return status;
}

/* ---- for people ---- */

static void describe_gpu(gy_text *to, const gy_gpu *g)
{
    char size[32];
    gy_text_printf(to, "device %d: %s at %s, compute capability %d.%d, %d SMs at %d MHz, %s, %d copy engine%s\n",
                   g->ordinal, g->name, g->bus, g->major, g->minor, g->sms, g->clock_khz / 1000,
                   gy_bytes_text(size, sizeof size, g->bytes), g->copy_engines, g->copy_engines == 1 ? "" : "s");
}

/* GB/s are for a calibration to measure. */
static void describe_peers(gy_text *to, const gy_gpus *gpus)
{
    uint32_t pairs = gpus->count * (gpus->count - 1), can = 0;
    for (size_t i = 0; i < (size_t)gpus->count * gpus->count; i++) {
        can += gpus->peer[i];
    }
    if (pairs == 0) {
        gy_text_add(to, "peer access: one device only\n");
    } else if (can == pairs) {
        gy_text_printf(to, "peer access: all %u pairs, not measured\n", pairs);
    } else {
        gy_text_printf(to, "peer access: %u of %u pairs, not measured; others are staged through the host\n", can,
                       pairs);
    }
}

static void describe_driver(gy_text *to)
{
    gy_driver d;
    gy_gpus gpus = { 0 };
    gantry_error why = { 0 };
    int devices = 0, version = 0;
    if (gy_driver_start(&d, &devices, &why)) {
        gy_text_printf(to, "driver: %s\n", why.text);
        return;
    }
    d.cuDriverGetVersion(&version);
    gy_text_printf(to, "driver: libcuda.so.1 for CUDA %d.%d\n", version / 1000, version % 1000 / 10);
    if (discover_with(&d, devices, &gpus, &why)) {
        gy_text_printf(to, "devices: %s\n", why.text);
    } else {
        for (uint32_t i = 0; i < gpus.count; i++) {
            describe_gpu(to, &gpus.at[i]);
        }
        describe_peers(to, &gpus);
    }
    gy_gpus_free(&gpus);
    gy_driver_close(&d);
}

/* The first of the names that can be opened; *why: the last refusal. */
static void *open_first(const char *const *names, const char **found, const char **why)
{
    void *library = NULL;
    for (; *names && !library; names++) {
        library = dlopen(*names, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE); /* unloading them loses memory of theirs */
        *found = *names;
        *why = library ? NULL : dlerror();
    }
    return library;
}

static void *symbol_of(void *library, const char *name, void *to, size_t size)
{
    void *found = dlsym(library, name);
    memcpy(to, &found, size);
    return found;
}

static void describe_nccl(gy_text *to)
{
    static const char *const names[] = { "libnccl.so.2", NULL };
    const char *name = NULL, *why = NULL;
    void *library = open_first(names, &name, &why);
    int (*ask)(int *version) = NULL;
    int version = 0;
    if (!library) {
        gy_text_printf(to, "NCCL: not found: %s; collectives are copies\n", why ? why : name);
        return;
    }
    if (!symbol_of(library, "ncclGetVersion", &ask, sizeof ask) || ask(&version) != 0) {
        gy_text_printf(to, "NCCL: %s does not tell its version\n", name);
    } else {
        int major = version >= 10000 ? version / 10000 : version / 1000; /* 2.9 and later: 2 09 00 */
        int rest = version >= 10000 ? version % 10000 : version % 1000;
        gy_text_printf(to, "NCCL: %s, version %d.%d.%d; this version of gantry does not use it yet\n", name, major,
                       rest / 100, rest % 100);
    }
    dlclose(library);
}

static void describe_nvrtc(gy_text *to)
{
    static const char *const names[] = { "libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", NULL };
    const char *name = NULL, *why = NULL;
    void *library = open_first(names, &name, &why);
    int (*ask)(int *major, int *minor) = NULL;
    int major = 0, minor = 0;
    if (!library) {
        gy_text_printf(to, "NVRTC: not found: %s; CUDA kernels of users cannot be compiled\n", why ? why : name);
        return;
    }
    if (!symbol_of(library, "nvrtcVersion", &ask, sizeof ask) || ask(&major, &minor) != 0) {
        gy_text_printf(to, "NVRTC: %s does not tell its version\n", name);
    } else {
        gy_text_printf(to, "NVRTC: %s, version %d.%d; this version of gantry does not use it yet\n", name, major,
                       minor);
    }
    dlclose(library);
}

void gy_cuda_describe(gy_text *to)
{
    describe_driver(to);
    describe_nccl(to);
    describe_nvrtc(to);
}
