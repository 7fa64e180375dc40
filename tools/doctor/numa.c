/* SPDX-License-Identifier: Apache-2.0 */
/* NUMA: the nodes of GPUs against the CPUs and the memory that this process may use. */
#include "doctor.h"
#include <stdlib.h>
#include <string.h>

/* Nodes with memory: they may be where arrays of the host land. */
static size_t count_nodes(const doctor *d)
{
    char **names;
    size_t count = list_names(d, &names, "/sys/devices/system/node", "node");
    free_names(names, count);
    return count;
}

static bool any_cpu(const doctor *d, int node, const char *allowed)
{
    char cpus[LINE];
    enum { MOST_CPUS = 8192 };
    if (!read_line(d, cpus, "/sys/devices/system/node/node%d/cpulist", node))
        return true;
    for (long cpu = 0; cpu < MOST_CPUS; cpu++)
        if (list_has(cpus, cpu) && list_has(allowed, cpu))
            return true;
    return !*cpus; /* a node of memory alone */
}

/* Where the process was bound, by numactl, a container or a batch system. */
static bool check_bound(doctor *d, int node)
{
    char cpus[LINE], memories[LINE];
    bool fine = true;
    if (read_entry(d, memories, "/proc/self/status", "Mems_allowed_list:") && !list_has(memories, node)) {
        add_finding(
            d,
            (finding){ STATE_FOUND, "NUMA",
                       text_of("GPUs are on node %d, whose memory this process may not use: copies of the host "
                               "cross the link between nodes",
                               node),
                       text_of("/proc/self/status has Mems_allowed_list %s", memories),
                       text_of("numactl --membind=%d, or give the container or job the memory of that node", node) });
        fine = false;
    }
    if (read_entry(d, cpus, "/proc/self/status", "Cpus_allowed_list:") && !any_cpu(d, node, cpus)) {
        add_finding(
            d, (finding){ STATE_FOUND, "NUMA",
                          text_of("GPUs are on node %d, whose CPUs this process may not use: starting work takes "
                                  "longer",
                                  node),
                          text_of("/proc/self/status has Cpus_allowed_list %s", cpus),
                          text_of("numactl --cpunodebind=%d, or give the container or job CPUs of that node", node) });
        fine = false;
    }
    return fine;
}

/* One finding for each node. */
static bool check_nodes(doctor *d)
{
    bool fine = true;
    for (size_t i = 0; i < d->gpus; i++) {
        bool seen = false;
        for (size_t k = 0; k < i; k++)
            seen = seen || d->gpu[k].node == d->gpu[i].node;
        if (!seen && d->gpu[i].node >= 0)
            fine = check_bound(d, d->gpu[i].node) && fine;
    }
    return fine;
}

static bool check_together(doctor *d, size_t nodes)
{
    int node = d->gpu[0].node;
    for (size_t i = 1; i < d->gpus; i++)
        if (d->gpu[i].node != node)
            return true;
    add_finding(
        d, (finding){ STATE_FOUND, "NUMA",
                      text_of("all %zu GPUs are on node %d of %zu: they share its links to memory, and arrays on other "
                              "nodes are far from all of them",
                              d->gpus, node, nodes),
                      text_of("/sys/bus/pci/devices/*/numa_node is %d for each", node),
                      text_of("numactl --cpunodebind=%d --membind=%d keeps the host's part near them; slots of other "
                              "sockets would have links of their own",
                              node, node) });
    return false;
}

void check_numa(doctor *d)
{
    size_t nodes = count_nodes(d), untold = 0;
    if (nodes < 2 || d->gpus == 0) {
        if (d->gpus)
            add_finding(d, (finding){ STATE_FINE, "NUMA", text_of("one node"),
                                      text_of("/sys/devices/system/node has %zu", nodes), NULL });
        return;
    }
    for (size_t i = 0; i < d->gpus; i++)
        untold += d->gpu[i].node < 0;
    if (untold) {
        add_finding(d,
                    (finding){ STATE_UNKNOWN, "NUMA", text_of("of %zu GPUs the system does not know the node", untold),
                               text_of("/sys/bus/pci/devices/*/numa_node is -1"),
                               text_of("a newer firmware may tell (ACPI _PXM); nvidia-smi topo -m guesses") });
        return;
    }
    bool fine = check_nodes(d);
    if (d->gpus > 1)
        fine = check_together(d, nodes) && fine;
    if (fine)
        add_finding(d, (finding){ STATE_FINE, "NUMA", text_of("this process may use CPUs and memory beside each GPU"),
                                  text_of("numa_node of GPUs, /proc/self/status"), NULL });
}
