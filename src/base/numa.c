/* SPDX-License-Identifier: Apache-2.0 */
/* Sets memory policies by system calls: libnuma would be one more library for two functions. Where the system refuses
 * them, as containers may, nothing changes. */
#include "base/numa.h"

#include <limits.h>
#include <linux/mempolicy.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { BITS = sizeof(unsigned long) * CHAR_BIT };

void gy_numa_prefer(gy_numa *before, int node)
{
    unsigned long nodes[GY_NUMA_NODES / BITS] = { 0 };
    memset(before, 0, sizeof *before);
    if (node < 0 || node >= GY_NUMA_NODES ||
        syscall(SYS_get_mempolicy, &before->mode, before->nodes, (unsigned long)GY_NUMA_NODES, NULL, 0UL)) {
        before->mode = -1;
        return;
    }
    nodes[node / BITS] = 1UL << node % BITS;
    if (syscall(SYS_set_mempolicy, MPOL_PREFERRED, nodes, (unsigned long)GY_NUMA_NODES))
        before->mode = -1;
}

void gy_numa_restore(const gy_numa *before)
{
    if (before->mode >= 0)
        syscall(SYS_set_mempolicy, before->mode, before->nodes, (unsigned long)GY_NUMA_NODES);
}
