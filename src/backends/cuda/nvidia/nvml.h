/* SPDX-License-Identifier: Apache-2.0 */
/**
 * NVML, opened at run time: what the driver API does not tell of GPUs and their links. Only read; nothing is ever set.
 * Everything is optional: a function that is not there, or refused as in a container, tells nothing.
 */
#ifndef GY_CUDA_NVIDIA_NVML_H
#define GY_CUDA_NVIDIA_NVML_H

#include "backends/cuda/nvidia/library.h"
#include "machine/gpus.h"

/* As nvml.h, which toolkits need not have, declares them: their ABI does not change. */
typedef struct gy_nvml_device_st *gy_nvml_device;
typedef struct gy_nvml_pci {
    char bus_legacy[16];
    unsigned domain, bus, device, pci_device, pci_subsystem;
    char bus_id[32];
} gy_nvml_pci;
enum { GY_NVML_CLOCK_SM = 1, GY_NVML_LINKS = 18, GY_NVML_REMOTE_GPU = 0 };

#define GY_NVML_FUNCTIONS(X)                                                                                           \
    X(init, nvmlInit_v2, (void))                                                                                       \
    X(shutdown, nvmlShutdown, (void))                                                                                  \
    X(driver_version, nvmlSystemGetDriverVersion, (char *text, unsigned size))                                         \
    X(library_version, nvmlSystemGetNVMLVersion, (char *text, unsigned size))                                          \
    X(device, nvmlDeviceGetHandleByPciBusId_v2, (const char *bus, gy_nvml_device *device))                             \
    X(clock, nvmlDeviceGetClockInfo, (gy_nvml_device device, int which, unsigned *mhz))                                \
    X(max_clock, nvmlDeviceGetMaxClockInfo, (gy_nvml_device device, int which, unsigned *mhz))                         \
    X(ecc, nvmlDeviceGetEccMode, (gy_nvml_device device, int *now, int *pending))                                      \
    X(link_state, nvmlDeviceGetNvLinkState, (gy_nvml_device device, unsigned link, int *active))                       \
    X(link_kind, nvmlDeviceGetNvLinkRemoteDeviceType, (gy_nvml_device device, unsigned link, int *kind))               \
    X(link_remote, nvmlDeviceGetNvLinkRemotePciInfo_v2, (gy_nvml_device device, unsigned link, gy_nvml_pci *to))       \
    X(pci_generation, nvmlDeviceGetMaxPcieLinkGeneration, (gy_nvml_device device, unsigned *generation))               \
    X(pci_generation_now, nvmlDeviceGetCurrPcieLinkGeneration, (gy_nvml_device device, unsigned *generation))          \
    X(pci_width, nvmlDeviceGetCurrPcieLinkWidth, (gy_nvml_device device, unsigned *width))

/* Zero-initialised is one that is not there: every question is answered by nothing known. */
typedef struct gy_nvml {
    bool open;
#define GY_X(member, name, parameters) int(*member) parameters;
    GY_NVML_FUNCTIONS(GY_X)
#undef GY_X
} gy_nvml;

/* E_DEVICE: libnvidia-ml.so.1 is not there, too old, or cannot be initialised; *nvml is then one that is not there. */
gantry_status gy_nvml_open(gy_nvml *nvml, gantry_error *err);
void gy_nvml_close(gy_nvml *nvml);

/* MHz of the SMs, now or at most; 0: unknown. By the driver's bus id, "0000:06:00.0". */
unsigned gy_nvml_clock_now(const gy_nvml *nvml, const char *bus);
unsigned gy_nvml_clock_most(const gy_nvml *nvml, const char *bus);
/* Fills in what only NVML knows of GPUs: driver, ECC, what their links carry. */
void gy_nvml_tell(const gy_nvml *nvml, gy_gpus *gpus);

#endif
