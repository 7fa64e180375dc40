/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The machine of a computer with GPUs, from what a driver and hwloc report. Speeds follow from clocks and counts; what
 * a link does is not reported by either, so the figures of links are assumed until they are measured; the notes say so.
 */
#include "machine/gpus_build.h"

#include "base/memory.h"
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define CORE_GFLOPS_F32 8.0 /* host code on one core, as in virtual.c */
#define CORE_GBS        12.0
#define MOST_CPU_GBS    200.0
#define CPU_LAUNCH_US   0.3
#define GPU_LAUNCH_US   1.3 /* these as measured on an H200: what a node of a CUDA graph takes, ... */
#define GPU_SIGNAL_US   3.4 /* ... until another GPU goes on behind it, ... */
#define HOST_LATENCY_US 2.6
#define PEER_LATENCY_US 2.4
#define START_US        11.0 /* ... and what the host takes for a start, an op in a stream, and a wait between GPUs */
#define SUBMIT_US       4.0
#define ISSUE_US        1.7
#define EDGE_US         4.4  /* ... until another GPU goes on in a captured start, by an edge of one graph, */
#define GATE_US         2.3  /* ... and by a gate */
#define DEFAULT_GBS     12.0 /* assumed for a PCI link that is not reported */
#define KERNEL_BYTES                                                                                                   \
    (INT64_C(1) << 20) /* up to which a kernel copies sooner than the driver, within a GPU and over NVLink */
#define HOST_KERNEL_BYTES                                                                                              \
    (INT64_C(64) << 10)     /* the same between a GPU and the host; kernels that copy more hold it up too long */
#define LINK_SHARE     0.85 /* of the nominal rate of a PCI link that copies reach */
#define GPU_LANES      16
#define LEAST_RESERVED (UINT64_C(1) << 30) /* a context, code, libraries */

enum { OUT, IN, DIRECTIONS };

void gy_gpus_free(gy_gpus *gpus)
{
    gy_free(gpus->at);
    gy_free(gpus->peer);
    gy_free(gpus->nvlink_gbs);
    *gpus = (gy_gpus){ 0 };
}

int gy_device_ordinal(const gantry_machine *m, uint32_t device)
{
    if (!m->device[device].gpu || m->device[device].ordinal >= 0)
        return m->device[device].ordinal;
    int place = 0;
    for (uint32_t i = 0; i < device; i++)
        place += m->device[i].gpu;
    return place;
}

bool gy_device_same_gpu(const gantry_machine *m, uint32_t a, uint32_t b)
{
    return m->device[a].gpu && m->device[b].gpu && gy_device_ordinal(m, a) == gy_device_ordinal(m, b);
}

/* ---- speeds ---- */

/* Multiply-adds that an SM makes in a clock: as many as it has FP32 units; of f64 as many as it has units, or twice as
 * many where its tensor cores take them (8.0, 9.0), which is what products go by; of f16 those of dense matrices by
 * tensor cores. f8 is twice as fast, from 8.9 on, and bf16 as fast, from 8.0 on (CUDA C++ Programming Guide,
 * "Arithmetic Instructions"; NVIDIA's papers on the architectures). */
typedef struct units {
    int f32, f64, f16;
} units;

static units units_of(const gy_gpu *gpu)
{
    int version = gpu->major * 10 + gpu->minor;
    switch (version) {
    case 70:
        return (units){ 64, 32, 512 };
    case 80:
        return (units){ 64, 64, 1024 };
    case 75:
        return (units){ 64, 2, 512 };
    case 90:
        return (units){ 128, 128, 2048 };
    case 100:
        return (units){ 128, 64, 4096 };
    default:
        return version > 80 ? (units){ 128, 2, 512 } : (units){ 64, 2, 0 };
    }
}

double gy_gpu_gflops(const gy_gpu *gpu, gantry_dtype dtype)
{
    units per_sm = units_of(gpu);
    bool has_f8 = dtype == GANTRY_F8E4M3 && gpu->major * 10 + gpu->minor >= 89;
    bool half = has_f8 || dtype == GANTRY_F16 || (dtype == GANTRY_BF16 && gpu->major >= 8);
    int count = dtype == GANTRY_F32 ? per_sm.f32 : dtype == GANTRY_F64 ? per_sm.f64 : half ? per_sm.f16 : 0;
    count *= has_f8 ? 2 : 1;
    double mega = 2.0 * count * gpu->sms * (gpu->clock_khz / 1000.0); /* a multiply-add is two */
    return (double)(int64_t)(mega / 1e3 + 0.5);
}

/* The share of the peak that large products reach. Measured on an H200 (graphs/machines/h200-8.json): 51.0 of 66.9
 * TFLOP/s in f32, which no tensor core takes, 61.2 of 66.9 in f64, 797 and 833 of 1071 in f16 and bf16; an H100, which
 * has the same SMs and clock, makes 49 in f32. Of others nothing was measured. */
static double reached(const gy_gpu *gpu, gantry_dtype dtype)
{
    if (gpu->major != 9)
        return 1;
    return dtype == GANTRY_F64 ? 0.91 : 0.76;
}

double gy_gpu_gbs(const gy_gpu *gpu)
{
    double mega = 2.0 * (gpu->memory_khz / 1000.0) * (gpu->bus_bits / 8.0); /* two transfers a clock */
    return (double)(int64_t)(mega / 1e3 + 0.5);
}

/* ---- parts ---- */

/* "NVIDIA H200 NVL" becomes "h200_nvl": an id. */
static const char *kind_of(gantry_machine *m, const gy_gpu *gpu)
{
    const char *from = strncmp(gpu->name, "NVIDIA ", 7) == 0 ? gpu->name + 7 : gpu->name;
    char id[sizeof gpu->name + 4];
    size_t n = 0;
    if (!isalpha((unsigned char)*from))
        n = (size_t)snprintf(id, sizeof id, "gpu_");
    for (; *from && n + 1 < sizeof id; from++)
        id[n++] =
            isalnum((unsigned char)*from) || *from == '.' || *from == '-' ? (char)tolower((unsigned char)*from) : '_';
    id[n] = 0;
    return gy_machine_text(m, id);
}

static const gy_host_gpu *on_bus(const gy_host_info *host, const gy_gpu *gpu)
{
    for (uint32_t i = 0; i < host->gpus; i++)
        if (strcasecmp(host->gpu[i].bus, gpu->bus) == 0)
            return &host->gpu[i];
    return NULL;
}

static int64_t rate_of(double gbs)
{
    return (int64_t)(gbs * 10 + 0.5) * INT64_C(100000000);
}

/* The driver says what the link can do, hwloc what it does now, which is less where it rests. 0: neither knows. */
static double pci_gbs(const gy_host_info *host, const gy_gpu *gpu)
{
    const gy_host_gpu *seen = on_bus(host, gpu);
    return gpu->pci_gbs > 0 ? gpu->pci_gbs : seen ? seen->link_gbs : 0;
}

static int64_t link_rate(const gy_host_info *host, const gy_gpu *gpu)
{
    double gbs = pci_gbs(host, gpu);
    return rate_of(gbs > 0 ? gbs * LINK_SHARE : DEFAULT_GBS);
}

static double nvlink_gbs(const gy_gpus *gpus, uint32_t from, uint32_t to)
{
    return gpus->nvlink_gbs ? gpus->nvlink_gbs[(size_t)from * gpus->count + to] : 0;
}

static bool has_nvlinks(const gy_gpus *gpus)
{
    double all = 0;
    for (uint32_t i = 0; i < gpus->count * gpus->count; i++)
        all += gpus->nvlink_gbs ? gpus->nvlink_gbs[i] : 0;
    return all > 0;
}

/* Behind those of PCI links. */
static uint32_t nvlink_port(const gy_gpus *gpus, uint32_t gpu, uint32_t direction)
{
    return (gpus->count + gpu) * DIRECTIONS + direction;
}

/* All NVLinks of a GPU are one port each way, as they are at a switch. Behind direct links no pair can have more than
 * its own links carry, which is the rate of the route. */
static bool add_nvlink_ports(gantry_machine *m, const gy_gpus *gpus, uint32_t i)
{
    double most = 0;
    for (uint32_t k = 0; k < gpus->count; k++)
        most = nvlink_gbs(gpus, i, k) > most ? nvlink_gbs(gpus, i, k) : most;
    double all = gpus->at[i].nvlinks_gbs > most ? gpus->at[i].nvlinks_gbs : most;
    for (uint32_t k = 0; k < DIRECTIONS; k++) {
        const char *id = gy_arena_printf(&m->arena, "gpu%u.nvlink_%s", i, k == OUT ? "out" : "in");
        m->resource[nvlink_port(gpus, i, k)] = (gy_resource){ id, rate_of(all > 0 ? all * LINK_SHARE : DEFAULT_GBS) };
        if (!id)
            return false;
    }
    return true;
}

static bool add_gpu(gantry_machine *m, const gy_host_info *host, const gy_gpu *gpu, uint32_t i)
{
    gy_memory *y = &m->memory[i + 1];
    gy_device *d = &m->device[i];
    const gy_host_gpu *seen = on_bus(host, gpu);
    uint64_t used = gpu->bytes > gpu->unused ? gpu->bytes - gpu->unused : 0;
    uint64_t reserved = used > LEAST_RESERVED ? used : LEAST_RESERVED;
    char id[32];
    snprintf(id, sizeof id, "gpu%u", i);
    *y = (gy_memory){ .id = gy_machine_text(m, id),
                      .capacity = gpu->bytes ? gpu->bytes : 1,
                      .reserved = reserved < gpu->bytes ? reserved : gpu->bytes,
                      .numa = gpu->numa >= 0 ? gpu->numa
                              : seen         ? seen->numa
                                             : -1 };
    *d = (gy_device){ .id = y->id,
                      .kind = kind_of(m, gpu),
                      .gpu = true,
                      .memory = i + 1,
                      .lanes = GPU_LANES,
                      .copy_engines = gpu->copy_engines > 0 ? (uint32_t)gpu->copy_engines : 1,
                      .multiprocessors = gpu->sms > 0 ? (uint32_t)gpu->sms : 0,
                      .ordinal = gpu->ordinal,
                      .bandwidth_gbs = gy_gpu_gbs(gpu),
                      .launch = gy_ticks_from_us(GPU_LAUNCH_US),
                      .signal = gy_ticks_from_us(GPU_SIGNAL_US) };
    static const gantry_dtype computed[] = { GANTRY_F32, GANTRY_F64, GANTRY_F16, GANTRY_BF16, GANTRY_F8E4M3 };
    for (size_t k = 0; k < sizeof computed / sizeof *computed; k++)
        d->gflops[computed[k]] = (double)(int64_t)(gy_gpu_gflops(gpu, computed[k]) * reached(gpu, computed[k]) + 0.5);
    for (int k = 0; k < DIRECTIONS; k++) {
        snprintf(id, sizeof id, "gpu%u.%s", i, k == OUT ? "out" : "in");
        m->resource[i * DIRECTIONS + (uint32_t)k] = (gy_resource){ gy_machine_text(m, id), link_rate(host, gpu) };
        if (!m->resource[i * DIRECTIONS + (uint32_t)k].id)
            return false;
    }
    return y->id && d->kind;
}

static void add_host(gantry_machine *m, const gy_host_info *host)
{
    double gbs = host->cores * CORE_GBS;
    gy_device *cpu = &m->device[m->devices - 1];
    uint64_t bytes = host->bytes ? host->bytes : 1;
    m->memory[0] =
        (gy_memory){ "host", bytes, bytes / 4, true, true, -1, 0, 0, 0, 0 }; /* a quarter for everybody else */
    *cpu = (gy_device){ .id = "cpu",
                        .kind = "cpu",
                        .host_only = true,
                        .lanes = 1,
                        .copy_engines = 1,
                        .ordinal = -1,
                        .bandwidth_gbs = gbs < MOST_CPU_GBS ? gbs : MOST_CPU_GBS,
                        .launch = gy_ticks_from_us(CPU_LAUNCH_US) };
    cpu->gflops[GANTRY_F32] = CORE_GFLOPS_F32; /* host versions run on one thread */
    cpu->gflops[GANTRY_F64] = CORE_GFLOPS_F32 / 2;
}

static bool add_host_links(gantry_machine *m, uint32_t gpu)
{
    uint32_t out = gpu * DIRECTIONS + OUT, in = gpu * DIRECTIONS + IN;
    gy_ticks latency = gy_ticks_from_us(HOST_LATENCY_US);
    bool ok = gy_machine_link(m, 0, gpu + 1, latency, m->resource[in].rate, (gy_via){ &in, 1 }) &&
              gy_machine_link(m, gpu + 1, 0, latency, m->resource[out].rate, (gy_via){ &out, 1 });
    gy_machine_by_kernels(m, 0, gpu + 1, HOST_KERNEL_BYTES);
    gy_machine_by_kernels(m, gpu + 1, 0, HOST_KERNEL_BYTES);
    return ok;
}

static bool add_peer_link(gantry_machine *m, const gy_gpus *gpus, uint32_t from, uint32_t to)
{
    bool fast = nvlink_gbs(gpus, from, to) > 0;
    uint32_t via[] = { fast ? nvlink_port(gpus, from, OUT) : from * DIRECTIONS + OUT,
                       fast ? nvlink_port(gpus, to, IN) : to * DIRECTIONS + IN };
    int64_t a = fast ? rate_of(nvlink_gbs(gpus, from, to) * LINK_SHARE) : m->resource[via[0]].rate,
            b = m->resource[via[1]].rate;
    bool ok =
        gy_machine_link(m, from + 1, to + 1, gy_ticks_from_us(PEER_LATENCY_US), a < b ? a : b, (gy_via){ via, 2 });
    gy_machine_by_kernels(m, from + 1, to + 1, fast ? KERNEL_BYTES : 0);
    return ok;
}

/* Pairs without peer access are left out: they are composed, through the host. */
static bool add_links(gantry_machine *m, const gy_gpus *gpus)
{
    uint32_t zero = 0;
    bool ok = gy_machine_link(m, 0, 0, gy_ticks_from_us(0.5), INT64_C(6000000000), (gy_via){ &zero, 0 });
    for (uint32_t i = 0; i < gpus->count && ok; i++) {
        ok = add_host_links(m, i);
        gy_machine_by_kernels(m, i + 1, i + 1, KERNEL_BYTES);
        for (uint32_t k = 0; k < gpus->count && ok; k++)
            if (k != i && gpus->peer[(size_t)i * gpus->count + k])
                ok = add_peer_link(m, gpus, i, k);
    }
    return ok;
}

static bool add_notes(gantry_machine *m, const gy_host_info *host, const gy_gpus *gpus)
{
    bool ok = true;
    for (uint32_t i = 0; i < gpus->count && ok; i++) {
        const gy_gpu *g = &gpus->at[i];
        double gbs = pci_gbs(host, g);
        const char *link = gbs <= 0 ? "not told" : gy_arena_printf(&m->arena, "%.1f GB/s a direction", gbs);
        const char *nvlinks = g->nvlinks ? gy_arena_printf(&m->arena, ", %d NVLinks", g->nvlinks) : "";
        ok = link && nvlinks &&
             gy_machine_note(
                 m, gy_arena_printf(&m->arena,
                                    "gpu%u: %s at %s, compute capability %d.%d, %d SMs at %d MHz, PCI link %s%s", i,
                                    g->name, g->bus, g->major, g->minor, g->sms, g->clock_khz / 1000, link, nvlinks));
    }
    return ok && gy_machine_note(
                     m, "assumed, not measured: latencies, what the host takes to start work, products at what an "
                        "H200 reaches of its peak (other architectures: at the peak), links at 85 % of their "
                        "nominal rate (12 GB/s where it is not told), pairs with peer access and no NVLink as fast as "
                        "their PCI links");
}

/* ---- what figures depend on ---- */

void gy_gpus_fingerprint(gy_text *to, const gy_gpus *gpus)
{
    if (gpus->count && gpus->at[0].driver[0])
        gy_text_printf(to, "driver: %s\n", gpus->at[0].driver);
    if (gpus->count && gpus->at[0].cuda[0])
        gy_text_printf(to, "CUDA: %s\n", gpus->at[0].cuda);
    if (gpus->count)
        gy_text_printf(to, "GPUs: %u\n", gpus->count);
    for (uint32_t i = 0; i < gpus->count; i++) {
        const gy_gpu *g = &gpus->at[i];
        gy_text_printf(to, "gpu%u: %s\n", i, g->name);
        if (g->ecc)
            gy_text_printf(to, "gpu%u.ecc: %s\n", i, g->ecc == 1 ? "off" : "on");
    }
}

static bool add_facts(gantry_machine *m, const gy_gpus *gpus)
{
    gy_text lines = { 0 };
    gy_gpus_fingerprint(&lines, gpus);
    bool ok = !lines.failed && gy_machine_facts(m, lines.at);
    gy_text_free(&lines);
    return ok;
}

gantry_machine *gy_gpu_machine(const gy_host_info *host, const gy_gpus *gpus)
{
    gy_text name = { 0 };
    uint32_t ports = has_nvlinks(gpus) ? 2 * DIRECTIONS : DIRECTIONS;
    gy_text_printf(&name, "%s, %u GPU%s", gpus->at[0].name, gpus->count, gpus->count == 1 ? "" : "s");
    gantry_machine *m =
        name.failed
            ? NULL
            : gy_machine_new(name.at, (gy_machine_size){ gpus->count + 1, gpus->count + 1, gpus->count * ports });
    gy_text_free(&name);
    if (!m)
        return NULL;
    m->source = "reported by the driver and hwloc: figures of devices follow from clocks and counts";
    m->start = gy_ticks_from_us(START_US);
    m->submit = gy_ticks_from_us(SUBMIT_US);
    m->issue = gy_ticks_from_us(ISSUE_US);
    if (gpus->count > 1) {
        m->edge = gy_ticks_from_us(EDGE_US);
        m->gate = gy_ticks_from_us(GATE_US);
    }
    add_host(m, host);
    bool ok = true;
    for (uint32_t i = 0; i < gpus->count && ok; i++)
        ok = add_gpu(m, host, &gpus->at[i], i) && (ports == DIRECTIONS || add_nvlink_ports(m, gpus, i));
    if (ok && add_links(m, gpus) && gy_machine_compose(m) && add_notes(m, host, gpus) && add_facts(m, gpus))
        return m;
    gantry_machine_free(m);
    return NULL;
}
