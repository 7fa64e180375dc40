/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/nvidia/nvml.h"

#include "base/error.h"
#include "base/memory.h"
#include <string.h>
#include <strings.h>

enum { OFF = 0, ON = 1 };

gantry_status gy_nvml_open(gy_nvml *nvml, gantry_error *err)
{
    static const char *const names[] = { "libnvidia-ml.so.1", NULL };
    gy_library library;
    *nvml = (gy_nvml){ 0 };
    GY_TRY(gy_library_open(&library, names, err));
    gy_nvml n = { 0 };
#define GY_X(member, name, parameters)                                                                                 \
    if (gy_library_find(&library, #name, &n.member, NULL))                                                             \
        n.member = NULL;
    GY_NVML_FUNCTIONS(GY_X)
#undef GY_X
    if (!n.init || !n.shutdown || !n.device)
        return gy_fail(err, GANTRY_E_DEVICE, NULL, "%s is too old", library.name);
    int code = n.init();
    if (code)
        return gy_fail(err, GANTRY_E_DEVICE, NULL, "%s cannot be initialised (%d)", library.name, code);
    n.open = true;
    *nvml = n;
    return GANTRY_OK;
}

void gy_nvml_close(gy_nvml *nvml)
{
    if (nvml->open)
        nvml->shutdown();
    *nvml = (gy_nvml){ 0 };
}

static gy_nvml_device device_of(const gy_nvml *nvml, const char *bus)
{
    gy_nvml_device device = NULL;
    return nvml->open && nvml->device(bus, &device) == 0 ? device : NULL;
}

unsigned gy_nvml_clock_now(const gy_nvml *nvml, const char *bus)
{
    gy_nvml_device device = device_of(nvml, bus);
    unsigned mhz = 0;
    return device && nvml->clock && nvml->clock(device, GY_NVML_CLOCK_SM, &mhz) == 0 ? mhz : 0;
}

unsigned gy_nvml_clock_most(const gy_nvml *nvml, const char *bus)
{
    gy_nvml_device device = device_of(nvml, bus);
    unsigned mhz = 0;
    return device && nvml->max_clock && nvml->max_clock(device, GY_NVML_CLOCK_SM, &mhz) == 0 ? mhz : 0;
}

/* 1 off, 2 on, 0 unknown (gy_gpu). */
static int ecc_of(const gy_nvml *nvml, gy_nvml_device device)
{
    int now = OFF, pending = OFF;
    return !nvml->ecc || nvml->ecc(device, &now, &pending) != 0 ? 0 : now == ON ? 2 : 1;
}

/* ---- links ---- */

/* GB/s a lane of PCI Express, one way, after its encoding. The generation of a link that rests is lower than what it
 * can do, so the most is asked for. */
static double pci_gbs(const gy_nvml *nvml, gy_nvml_device device)
{
    static const double lane[] = { 0, 0.25, 0.5, 0.985, 1.969, 3.938, 7.563 };
    unsigned generation = 0, width = 0;
    if (!nvml->pci_generation || !nvml->pci_width || nvml->pci_generation(device, &generation) != 0 ||
        nvml->pci_width(device, &width) != 0 || generation >= sizeof lane / sizeof *lane)
        return 0;
    return lane[generation] * width;
}

/* GB/s of one NVLink, one way: NVLink 1 came with 6.0, 2 with 7.0, 3 with 8.0, 4 with 9.0, 5 with 10.0. */
static double nvlink_gbs(const gy_gpu *gpu)
{
    return gpu->major >= 10 ? 50 : gpu->major >= 7 ? 25 : gpu->major == 6 ? 20 : 0;
}

/* "00000000:06:00.0" of NVML, "0000:06:00.0" of the driver. */
static bool same_bus(const char *nvml, const char *driver)
{
    size_t a = strlen(nvml), b = strlen(driver);
    return a && b && (a >= b ? strcasecmp(nvml + (a - b), driver) : strcasecmp(nvml, driver + (b - a))) == 0;
}

typedef struct links {
    uint32_t active, switched, *to; /* to: of them, by GPU at the other end */
} links;

/* The GPU at the other end: `count` of them, if it is none of these. */
static uint32_t gpu_behind(const gy_nvml *nvml, gy_nvml_device device, unsigned link, const gy_gpus *gpus)
{
    gy_nvml_pci remote = { .bus = 0 };
    uint32_t k = 0;
    if (!nvml->link_remote || nvml->link_remote(device, link, &remote) != 0)
        return gpus->count;
    remote.bus_id[sizeof remote.bus_id - 1] = 0;
    while (k < gpus->count && !same_bus(remote.bus_id, gpus->at[k].bus))
        k++;
    return k;
}

/* If NVML does not tell the other end, as in a virtual machine, it is taken for a switch. */
static void count_links(const gy_nvml *nvml, gy_nvml_device device, const gy_gpus *gpus, links *l)
{
    for (unsigned i = 0; nvml->link_state && i < GY_NVML_LINKS; i++) {
        int active = OFF, kind = -1;
        if (nvml->link_state(device, i, &active) != 0 || active != ON)
            continue;
        l->active++;
        uint32_t k = gpu_behind(nvml, device, i, gpus);
        if (k < gpus->count)
            l->to[k]++;
        else if (!nvml->link_kind || nvml->link_kind(device, i, &kind) != 0 || kind != GY_NVML_REMOTE_GPU)
            l->switched++;
    }
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* A switch joins all that have links to it. */
static void set_links(gy_gpus *gpus, const links *l)
{
    for (uint32_t a = 0; a < gpus->count; a++) {
        for (uint32_t b = 0; b < gpus->count; b++) {
            uint32_t count = a == b ? 0 : l[a].to[b] + least(l[a].switched, l[b].switched);
            gpus->nvlink_gbs[(size_t)a * gpus->count + b] = count * nvlink_gbs(&gpus->at[a]);
        }
        gpus->at[a].nvlinks = (int)l[a].active;
        gpus->at[a].nvlinks_gbs = l[a].active * nvlink_gbs(&gpus->at[a]);
    }
}

void gy_nvml_tell(const gy_nvml *nvml, gy_gpus *gpus)
{
    char version[sizeof gpus->at->driver] = "";
    if (nvml->open && nvml->driver_version && nvml->driver_version(version, sizeof version) != 0)
        version[0] = 0;
    links *l = gy_calloc(gpus->count, sizeof *l);
    uint32_t *to = gy_calloc((size_t)gpus->count * gpus->count, sizeof *to);
    for (uint32_t i = 0; nvml->open && l && to && i < gpus->count; i++) {
        gy_nvml_device device = device_of(nvml, gpus->at[i].bus);
        l[i].to = to + (size_t)i * gpus->count;
        memcpy(gpus->at[i].driver, version, sizeof version);
        if (device) {
            gpus->at[i].ecc = ecc_of(nvml, device);
            gpus->at[i].pci_gbs = pci_gbs(nvml, device);
            count_links(nvml, device, gpus, &l[i]);
        }
    }
    if (nvml->open && l && to && gpus->nvlink_gbs)
        set_links(gpus, l);
    gy_free(l);
    gy_free(to);
}
