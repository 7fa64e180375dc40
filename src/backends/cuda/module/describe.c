/* SPDX-License-Identifier: Apache-2.0 */
/* Tells people what was found on this computer, a line each. */
#include "backends/cuda/module/module.h"

#include "backends/cuda/kernels/linalg.h"
#include "backends/cuda/nvidia/cudnn_api.h"
#include "backends/cuda/nvidia/cupti_api.h"
#include "backends/cuda/nvidia/discover.h"
#include "backends/cuda/nvidia/nccl_api.h"
#include "backends/cuda/nvidia/nvml.h"
#include "backends/cuda/nvidia/nvrtc_api.h"
#include "base/error.h"
#include <stdio.h>

static void describe_gpu(gy_text *to, const gy_gpu *g)
{
    char size[32];
    gy_text_printf(to, "device %d: %s at %s, compute capability %d.%d, %d SMs at %d MHz, %s, %d copy engine%s",
                   g->ordinal, g->name, g->bus, g->major, g->minor, g->sms, g->clock_khz / 1000,
                   gy_bytes_text(size, sizeof size, g->bytes), g->copy_engines, g->copy_engines == 1 ? "" : "s");
    if (g->pci_gbs > 0)
        gy_text_printf(to, ", PCI link of %.1f GB/s", g->pci_gbs);
    if (g->nvlinks)
        gy_text_printf(to, ", %d NVLinks of together %.0f GB/s", g->nvlinks, g->nvlinks_gbs);
    gy_text_add(to, "\n");
}

/* GB/s are for a calibration to measure. */
static void describe_peers(gy_text *to, const gy_gpus *gpus)
{
    uint32_t pairs = gpus->count * (gpus->count - 1), can = 0;
    for (size_t i = 0; i < (size_t)gpus->count * gpus->count; i++)
        can += gpus->peer[i];
    if (pairs == 0) {
        gy_text_add(to, "peer access: one device only\n");
    } else if (gy_driver_peers_off()) {
        gy_text_add(to,
                    "peer access: kept off by GANTRY_CUDA_PEERS; copies between GPUs are staged through the host\n");
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
    if (gy_cuda_discover_with(&d, devices, &gpus, &why)) {
        gy_text_printf(to, "devices: %s\n", why.text);
    } else {
        for (uint32_t i = 0; i < gpus.count; i++)
            describe_gpu(to, &gpus.at[i]);
        describe_peers(to, &gpus);
    }
    gy_gpus_free(&gpus);
    gy_driver_close(&d);
}

static void describe_nvml(gy_text *to)
{
    gy_nvml nvml;
    gantry_error why = { 0 };
    char version[80] = "";
    if (gy_nvml_open(&nvml, &why)) {
        gy_text_printf(to, "NVML: %s; links and clocks of GPUs are not told\n", why.text);
        return;
    }
    if (!nvml.driver_version || nvml.driver_version(version, sizeof version) != 0)
        snprintf(version, sizeof version, "that does not tell its version");
    gy_text_printf(to, "NVML: libnvidia-ml.so.1 of driver %s\n", version);
    gy_nvml_close(&nvml);
}

static void describe_nccl(gy_text *to)
{
    gy_nccl_api api;
    gantry_error why = { 0 };
    if (gy_nccl_load(&api, &why)) {
        gy_text_printf(to, "NCCL: %s; collectives are copies\n", why.text);
        return;
    }
    gy_text_printf(to, "NCCL: %s, version %d.%d.%d\n", api.lib.name, api.version[0], api.version[1], api.version[2]);
}

static void describe_nvrtc(gy_text *to)
{
    gy_nvrtc nvrtc;
    gantry_error why = { 0 };
    if (gy_nvrtc_open(&nvrtc, &why)) {
        gy_text_printf(to, "NVRTC: %s; CUDA C++ of users cannot be compiled, PTX and cubins can be loaded\n", why.text);
        return;
    }
    gy_text_printf(to, "NVRTC: %s, version %d.%d; compiles the .cu files of graphs, with --allow-code\n",
                   nvrtc.lib.name, nvrtc.major, nvrtc.minor);
}

static void describe_cupti(gy_text *to)
{
    gy_cupti_api api;
    const char *few;
    gantry_error why = { 0 };
    if (gy_cupti_load(&api, 0, &few, &why)) {
        gy_text_printf(to, "CUPTI: %s; times of ops are those of events, and none in graphs\n", why.text);
        return;
    }
    gy_text_printf(to, "CUPTI: %s, version %u of its API; times of ops, in graphs too\n", api.lib.name,
                   (unsigned)api.version);
}

/* The CUDA version of the driver: a library that the driver cannot run is not taken. */
static int driver_version(void)
{
    gy_driver d;
    if (gy_driver_open(&d, NULL))
        return 0;
    int version = gy_linalg_driver_version(&d);
    gy_driver_close(&d);
    return version;
}

static void describe_cudnn(gy_text *to, int driver)
{
    gy_cudnn cudnn;
    gantry_error why = { 0 };
    if (gy_cudnn_open(&cudnn, driver, &why)) {
        gy_text_printf(
            to,
            "cuDNN: %s; attention, attention_grad, conv2d, conv2d_grad_w and conv2d_grad_x run as plain kernels, which "
            "are slower\n",
            why.text);
        return;
    }
    size_t version = cudnn.cudnnGetVersion();
    gy_text_printf(to, "cuDNN: %s, version %zu.%zu.%zu\n", cudnn.lib.name, version / 10000, version / 100 % 100,
                   version % 100);
}

void gy_cuda_describe(gy_text *to)
{
    int driver = driver_version();
    describe_driver(to);
    describe_nvml(to);
    describe_nccl(to);
    describe_nvrtc(to);
    describe_cupti(to);
    gy_linalg_describe(to, driver);
    describe_cudnn(to, driver);
}
