/* SPDX-License-Identifier: Apache-2.0 */
/* Virtual devices, for gantry_machine_virtual and for a computer without GPUs. */
#ifndef GY_MACHINE_VIRTUAL_H
#define GY_MACHINE_VIRTUAL_H

#include "machine/build.h"

typedef struct gy_virtual_device {
    uint64_t bytes; /* of its memory */
    int numa;       /* node of that memory, or -1 */
} gy_virtual_device;

/* The `source` of such a machine. */
extern const char gy_virtual_source[];

/* A host memory, and `devices` devices with a memory each, everything joined to everything. Composed, not sealed.
 * NULL: out of memory. */
gantry_machine *gy_virtual_machine(const char *name, uint32_t devices, const gy_virtual_device *each,
                                   uint64_t host_bytes);

#endif
