/* SPDX-License-Identifier: Apache-2.0 */
/* The memory, cores and GPUs of this computer, as far as the operating system tells. Nothing else calls hwloc. */
#ifndef GY_MACHINE_HOST_H
#define GY_MACHINE_HOST_H

#include "base/arena.h"
#include <gantry/status.h>
#include <stdint.h>

/* A NUMA node with cores, in the order of hwloc. */
typedef struct gy_host_node {
    int number;     /* the operating system's */
    uint64_t bytes; /* at least 1 */
} gy_host_node;

/* A display or 3D controller on the PCI bus. Nothing is known of what it can do: that is for a back end to say. */
typedef struct gy_host_gpu {
    const char *bus;   /* "0000:06:00.0" */
    const char *maker; /* "NVIDIA", or "vendor 10de"; never NULL */
    const char *model; /* "H200", or "device 2335"; never NULL */
    int numa;          /* nearest node, or -1 */
    double link_gbs;   /* PCI link per direction; 0: unknown */
} gy_host_gpu;

typedef struct gy_host_info {
    gy_arena arena;
    const char *cpu; /* model of the CPU; "CPU" where it is unknown */
    gy_host_node *node;
    gy_host_gpu *gpu;
    uint32_t nodes, gpus, cores; /* nodes >= 1, cores >= 1 */
    uint64_t bytes;              /* memory of all nodes */
    uint64_t hidden_bytes;       /* of those, what hwloc does not know of: virtual machines report little */
    uint64_t forbidden_bytes;    /* that a control group does not allow; they are in neither of these */
} gy_host_info;

/* Asks hwloc, which obeys its own environment (HWLOC_XMLFILE, HWLOC_SYNTHETIC). Free on success only. */
gantry_status gy_host_read(gy_host_info *host, gantry_error *err);
void gy_host_free(gy_host_info *host);

#endif
