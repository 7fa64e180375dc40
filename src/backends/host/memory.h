/* SPDX-License-Identifier: Apache-2.0 */
/* The memories of virtual devices: one slab each. */
#ifndef GY_HOST_MEMORY_H
#define GY_HOST_MEMORY_H

#include "run/backend.h"

enum { GY_HOST_ALIGN = 256 }; /* of slabs, and so of every instance */

/* `guarded`: in pages of their own, which can be made inaccessible. */
typedef struct gy_host_memory {
    char **slab;   /* per memory of the machine; NULL where the schedule needs none */
    void **block_; /* what was allocated */
    uint32_t count;
    char *staging;
    void *staging_block_;
    uint64_t *bytes_; /* per memory: of block_, with `guarded` */
    bool guarded, borrowed;
} gy_host_memory;

gantry_status gy_host_memory_make(gy_host_memory *m, const gy_job *job, bool guarded, gantry_error *err);
/* The same memory: valid as long as the other. */
static inline void gy_host_memory_borrow(gy_host_memory *m, const gy_host_memory *other)
{
    *m = *other;
    m->borrowed = true;
}
void gy_host_memory_free(gy_host_memory *m);
/* Slabs of a guarded memory can be touched, or cannot. False: the system has no room for the change, and left some as
 * they were. */
bool gy_host_memory_allow(const gy_host_memory *m, bool allow);
/* The memory whose slab contains the address, or GY_MACHINE_NONE. */
uint32_t gy_host_memory_find(const gy_host_memory *m, const void *at);
/* The first byte of an instance in starts of a turn; NULL for inputs and outputs that are not bound. */
char *gy_host_instance_at(const gy_host_memory *m, const gy_job *job, const gy_instance *instance, uint32_t turn);

#endif
