/* SPDX-License-Identifier: Apache-2.0 */
/**
 * libnvidia-ml.so.1 for tests, by the environment variable FAKE_NVML: unset: it cannot be initialised; "plain": GPUs
 * without NVLink; "switch": 18 links of each GPU end at a switch; "pairs": GPUs 0 and 1, 2 and 3, ... are joined by 4.
 * Bus ids are those of the fake driver. Its declarations are its own, by NVIDIA's documentation of NVML.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
enum { OK = 0, UNINITIALIZED = 1, INVALID = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, NO_DRIVER = 9 };

typedef struct nvmlDevice_st *nvmlDevice_t;
typedef struct nvmlPciInfo_st {
    char busIdLegacy[16];
    unsigned int domain, bus, device, pciDeviceId, pciSubSystemId;
    char busId[32];
} nvmlPciInfo_t;

EXPORT int nvmlInit_v2(void);
EXPORT int nvmlShutdown(void);
EXPORT int nvmlSystemGetDriverVersion(char *text, unsigned int length);
EXPORT int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, nvmlDevice_t *device);
EXPORT int nvmlDeviceGetClockInfo(nvmlDevice_t device, int type, unsigned int *mhz);
EXPORT int nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, int type, unsigned int *mhz);
EXPORT int nvmlDeviceGetEccMode(nvmlDevice_t device, int *now, int *pending);
EXPORT int nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned int link, int *active);
EXPORT int nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t device, unsigned int link, nvmlPciInfo_t *pci);
EXPORT int nvmlDeviceGetNvLinkRemoteDeviceType(nvmlDevice_t device, unsigned int link, int *type);
EXPORT int nvmlDeviceGetMaxPcieLinkGeneration(nvmlDevice_t device, unsigned int *generation);
EXPORT int nvmlDeviceGetCurrPcieLinkWidth(nvmlDevice_t device, unsigned int *width);

static int open_count;

static int is(const char *what)
{
    const char *set = getenv("FAKE_NVML");
    return set && strcmp(set, what) == 0;
}

int nvmlInit_v2(void)
{
    if (!getenv("FAKE_NVML"))
        return NO_DRIVER;
    open_count++;
    return OK;
}

int nvmlShutdown(void)
{
    return open_count-- > 0 ? OK : UNINITIALIZED;
}

static void __attribute__((destructor)) check_open(void)
{
    if (open_count != 0) {
        fprintf(stderr, "fake NVML: initialised and shut down are apart by %d\n", open_count);
        abort();
    }
}

int nvmlSystemGetDriverVersion(char *text, unsigned int length)
{
    snprintf(text, length, "580.65.06");
    return OK;
}

/* Devices are numbers from 1, as pointers that nobody follows. */
static unsigned number(nvmlDevice_t device)
{
    return (unsigned)((size_t)device - 1);
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, nvmlDevice_t *device)
{
    unsigned domain, at;
    if (sscanf(bus, "%x:%x:", &domain, &at) != 2 || at < 16)
        return NOT_FOUND;
    *device = (nvmlDevice_t)(size_t)(at - 16 + 1);
    return OK;
}

int nvmlDeviceGetClockInfo(nvmlDevice_t device, int type, unsigned int *mhz)
{
    *mhz = 1700 + number(device);
    return type == 1 ? OK : INVALID;
}

int nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, int type, unsigned int *mhz)
{
    (void)device;
    *mhz = 1980;
    return type == 1 ? OK : INVALID;
}

int nvmlDeviceGetEccMode(nvmlDevice_t device, int *now, int *pending)
{
    (void)device;
    *now = *pending = 1;
    return OK;
}

int nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned int link, int *active)
{
    (void)device;
    *active = is("switch") || (is("pairs") && link < 4);
    return is("plain") ? NOT_SUPPORTED : OK;
}

int nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t device, unsigned int link, nvmlPciInfo_t *pci)
{
    unsigned bus = is("pairs") ? 16 + (number(device) ^ 1) : 0xA0 + link % 4;
    memset(pci, 0, sizeof *pci);
    pci->bus = bus;
    snprintf(pci->busId, sizeof pci->busId, "00000000:%02X:00.0", bus);
    return OK;
}

int nvmlDeviceGetNvLinkRemoteDeviceType(nvmlDevice_t device, unsigned int link, int *type)
{
    (void)device;
    (void)link;
    *type = is("pairs") ? 0 : 2;
    return OK;
}

int nvmlDeviceGetMaxPcieLinkGeneration(nvmlDevice_t device, unsigned int *generation)
{
    (void)device;
    *generation = 5;
    return OK;
}

int nvmlDeviceGetCurrPcieLinkWidth(nvmlDevice_t device, unsigned int *width)
{
    (void)device;
    *width = 16;
    return OK;
}
