/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Where pages of host memory come from that this thread has the system make next: those of page-locked memory are made
 * at once, and copies between a GPU and a far NUMA node take a detour.
 */
#ifndef GY_BASE_NUMA_H
#define GY_BASE_NUMA_H

enum { GY_NUMA_NODES = 1024 };

/* The policy that held before; private. */
typedef struct gy_numa {
    int mode; /* -1: nothing was changed */
    unsigned long nodes[GY_NUMA_NODES / (8 * sizeof(unsigned long))];
} gy_numa;

/* From the node, as long as it has some. -1, or a system that does not know of nodes: as before. Not nested. */
void gy_numa_prefer(gy_numa *before, int node);
void gy_numa_restore(const gy_numa *before);

#endif
