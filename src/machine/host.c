/* SPDX-License-Identifier: Apache-2.0 */
/* hwloc, and nothing but hwloc. I/O objects are hidden by default: the filter keeps those that matter. */
#include "machine/host.h"

#include "base/error.h"
#include "machine/limit.h"
#include <errno.h>
#include <hwloc.h>
#include <string.h>
#include <unistd.h>

#define PCI_CLASS_DISPLAY 0x03 /* the upper byte of VGA, 3D and other display controllers */

static gantry_status read_nodes(gy_host_info *host, hwloc_topology_t topology, gantry_error *err)
{
    int count = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_NUMANODE);
    host->node = gy_arena_calloc(&host->arena, count > 0 ? (size_t)count : 1, sizeof *host->node);
    if (!host->node)
        return gy_fail_nomem(err);
    for (int i = 0; i < count; i++) {
        hwloc_obj_t o = hwloc_get_obj_by_type(topology, HWLOC_OBJ_NUMANODE, (unsigned)i);
        host->bytes += o->attr->numanode.local_memory;
        if (hwloc_bitmap_iszero(o->cpuset)) /* memory without cores: nothing can run there */
            continue;
        uint64_t bytes = o->attr->numanode.local_memory;
        host->node[host->nodes++] = (gy_host_node){ (int)o->os_index, bytes ? bytes : 1 };
    }
    if (!host->nodes)
        host->node[host->nodes++] = (gy_host_node){ 0, host->bytes ? host->bytes : 1 };
    return GANTRY_OK;
}

/* Memory that the system has but hwloc does not know of is divided evenly among the nodes. */
static void add_hidden_memory(gy_host_info *host, hwloc_topology_t topology)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    uint64_t bytes = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0;
    if (!hwloc_topology_is_thissystem(topology) || bytes <= host->bytes)
        return;
    host->hidden_bytes = bytes - host->bytes;
    host->bytes = bytes;
    for (uint32_t i = 0; i < host->nodes; i++)
        host->node[i].bytes += host->hidden_bytes / host->nodes;
}

/* Memory that a container may not have is not its machine's: each node has so much less. */
static void leave_out_forbidden(gy_host_info *host, hwloc_topology_t topology)
{
    __extension__ typedef unsigned __int128 wide;
    uint64_t allowed = gy_memory_allowed("");
    if (!hwloc_topology_is_thissystem(topology) || allowed >= host->bytes || !allowed)
        return;
    for (uint32_t i = 0; i < host->nodes; i++) {
        uint64_t bytes = (uint64_t)((wide)host->node[i].bytes * allowed / host->bytes);
        host->node[i].bytes = bytes ? bytes : 1;
    }
    host->forbidden_bytes = host->bytes - allowed;
    host->bytes = allowed;
}

/* "NVIDIA" for an id that everybody knows, for computers without a list of PCI names. */
static const char *known_maker(unsigned vendor)
{
    return vendor == 0x10de ? "NVIDIA" : vendor == 0x1002 ? "AMD" : vendor == 0x8086 ? "Intel" : NULL;
}

static int nearest_node(hwloc_topology_t topology, hwloc_obj_t device)
{
    hwloc_obj_t near = hwloc_get_non_io_ancestor_obj(topology, device);
    int first = near && near->nodeset ? hwloc_bitmap_first(near->nodeset) : -1;
    return first >= 0 && hwloc_bitmap_weight(near->nodeset) == 1 ? first : -1;
}

static bool describe_gpu(gy_host_info *host, hwloc_topology_t topology, hwloc_obj_t device, gy_host_gpu *g)
{
    const struct hwloc_pcidev_attr_s *pci = &device->attr->pcidev;
    const char *maker = hwloc_obj_get_info_by_name(device, "PCIVendor");
    const char *model = hwloc_obj_get_info_by_name(device, "PCIDevice");
    if (!maker)
        maker = known_maker(pci->vendor_id);
    g->bus = gy_arena_printf(&host->arena, "%04x:%02x:%02x.%x", pci->domain, pci->bus, pci->dev, pci->func);
    g->maker =
        maker ? gy_arena_strdup(&host->arena, maker) : gy_arena_printf(&host->arena, "vendor %04x", pci->vendor_id);
    g->model =
        model ? gy_arena_strdup(&host->arena, model) : gy_arena_printf(&host->arena, "device %04x", pci->device_id);
    g->numa = nearest_node(topology, device);
    g->link_gbs = (double)pci->linkspeed;
    return g->bus && g->maker && g->model;
}

static gantry_status read_gpus(gy_host_info *host, hwloc_topology_t topology, gantry_error *err)
{
    int count = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PCI_DEVICE);
    host->gpu = gy_arena_calloc(&host->arena, count > 0 ? (size_t)count : 1, sizeof *host->gpu);
    if (!host->gpu)
        return gy_fail_nomem(err);
    for (hwloc_obj_t o = hwloc_get_next_pcidev(topology, NULL); o; o = hwloc_get_next_pcidev(topology, o))
        if (o->attr->pcidev.class_id >> 8 == PCI_CLASS_DISPLAY &&
            !describe_gpu(host, topology, o, &host->gpu[host->gpus++]))
            return gy_fail_nomem(err);
    return GANTRY_OK;
}

static gantry_status read_all(gy_host_info *host, hwloc_topology_t topology, gantry_error *err)
{
    hwloc_obj_t package = hwloc_get_obj_by_type(topology, HWLOC_OBJ_PACKAGE, 0);
    const char *cpu = package ? hwloc_obj_get_info_by_name(package, "CPUModel") : NULL;
    int cores = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE);
    if (cores < 1)
        cores = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PU);
    host->cores = cores > 0 ? (uint32_t)cores : 1;
    host->cpu = gy_arena_strdup(&host->arena, cpu ? cpu : "CPU");
    if (!host->cpu)
        return gy_fail_nomem(err);
    gantry_status status = read_nodes(host, topology, err);
    if (!status) {
        add_hidden_memory(host, topology);
        leave_out_forbidden(host, topology);
    }
    return status ? status : read_gpus(host, topology, err);
}

static gantry_status fail_hwloc(gantry_error *err, const char *what)
{
    int code = errno;
    gantry_status status =
        gy_fail(err, GANTRY_E_DEVICE, NULL, "hwloc cannot %s: %s; give a machine file instead", what, strerror(code));
    if (err)
        err->native = code;
    return status;
}

/* Parts of hwloc that ask GPU drivers, which back ends ask themselves, and one that runs on each core in turn to learn
 * what the system tells anyway: on a virtual machine with 8 GPUs and 128 cores they take 0.8 s of 0.83. The last one, a
 * plug-in over libpciaccess, loses a kilobyte at each load; without it hwloc reads the same devices from /sys. */
static void leave_out(hwloc_topology_t topology)
{
    static const char *const parts[] = { "cuda", "nvml", "opencl", "rsmi", "levelzero", "gl", "x86", "pci" };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        hwloc_topology_set_components(topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, parts[i]);
}

gantry_status gy_host_read(gy_host_info *host, gantry_error *err)
{
    hwloc_topology_t topology;
    memset(host, 0, sizeof *host);
    if (hwloc_topology_init(&topology))
        return fail_hwloc(err, "start");
    gantry_status status;
    leave_out(topology);
    if (hwloc_topology_set_io_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_IMPORTANT) || hwloc_topology_load(topology))
        status = fail_hwloc(err, "look at this computer");
    else
        status = read_all(host, topology, err);
    hwloc_topology_destroy(topology);
    if (status)
        gy_host_free(host);
    return status;
}

void gy_host_free(gy_host_info *host)
{
    gy_arena_free(&host->arena);
}
