/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/nvidia/discover.h"

#include "backends/cuda/nvidia/nvml.h"
#include "base/error.h"
#include "base/memory.h"
#include <stdio.h>

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

static void read_versions(const gy_driver *d, gy_gpus *gpus)
{
    gy_nvml nvml;
    int version = 0;
    for (uint32_t i = 0; d->cuDriverGetVersion(&version) == CUDA_SUCCESS && i < gpus->count; i++)
        snprintf(gpus->at[i].cuda, sizeof gpus->at[i].cuda, "%d.%d", version / 1000, version % 1000 / 10);
    gy_nvml_open(&nvml, NULL);
    gy_nvml_tell(&nvml, gpus);
    gy_nvml_close(&nvml);
}

static gantry_status read_gpus(const gy_driver *d, int devices, gy_gpus *to, gantry_error *err)
{
    for (int i = 0; i < devices; i++) {
        CUdevice device;
        CUresult code = d->cuDeviceGet(&device, i);
        if (code != CUDA_SUCCESS)
            return gy_driver_fail(d, code, "asking for a GPU", err);
        to->at[i].ordinal = i;
        read_gpu(d, device, &to->at[i]);
        for (int k = 0; k < devices; k++) {
            CUdevice other;
            if (k != i && d->cuDeviceGet(&other, k) == CUDA_SUCCESS)
                to->peer[i * devices + k] = gy_driver_can_reach(d, device, other);
        }
    }
    to->count = (uint32_t)devices;
    return GANTRY_OK;
}

gantry_status gy_cuda_discover_with(const gy_driver *d, int devices, gy_gpus *found, gantry_error *err)
{
    gy_gpus gpus = { .at = gy_calloc((size_t)devices, sizeof *gpus.at),
                     .peer = gy_calloc((size_t)devices * (size_t)devices, 1),
                     .nvlink_gbs = gy_calloc((size_t)devices * (size_t)devices, sizeof *gpus.nvlink_gbs) };
    gantry_status status =
        gpus.at && gpus.peer && gpus.nvlink_gbs ? read_gpus(d, devices, &gpus, err) : gy_fail_nomem(err);
    if (status) {
        gy_gpus_free(&gpus);
        return status;
    }
    read_versions(d, &gpus);
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
    gantry_status status = gy_cuda_discover_with(&d, devices, found, err);
    gy_driver_close(&d);
    return status;
}
