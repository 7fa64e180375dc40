/* SPDX-License-Identifier: Apache-2.0 */
/**
 * When each resource of the machine (a link direction, a port, a bus) and each copy engine is
 * busy, so that a policy sees transfers in each other's way while it places. Edge scheduling, after O. Sinnen,
 * L. A. Sousa, Communication Contention in Task Scheduling, IEEE TPDS 16(6), 2005.
 *
 * A transfer takes the earliest time, gaps included, on the resources of its route one after the other: it fills each
 * for bytes / rate of that resource, begins on none before the one before it, ends on none before the one before it,
 * and arrives when it has left the last, but not before its solo time is over. (Resources are shared by turns here and
 * by equal shares in the simulator: the last of several transfers ends at the same time in both.) It holds a copy
 * engine of the device that copies for its solo time. Relayed and staged routes are two transfers. The same rows are
 * brought to a memory once; contributions to one reduction leave a memory as one.
 *
 * Off where the machine has contention off: then nothing is reserved.
 *
 * Cost of a task on one device: its predecessors' accesses times its own, and for each transfer its resources and the
 * engines of a device, each O(log transfers).
 */
#ifndef GY_SCHEDULER_PLACE_LINKS_H
#define GY_SCHEDULER_PLACE_LINKS_H

#include "scheduler/plan/plan.h"

typedef struct gy_links gy_links;

/* Makes the links of the plan (nothing happens with contention off); false: out of memory. */
bool gy_links_open(gy_plan *p);
void gy_links_free(gy_links *links); /* NULL allowed */
/* When the data of the task can be in the memory, next to all that is booked. Nothing stays booked. */
gy_ticks gy_links_try(gy_links *links, const gy_plan *p, uint32_t task, uint32_t memory);
/* Books the transfers that gy_links_try found. false: out of memory, now or in an earlier try. */
bool gy_links_book(gy_links *links, const gy_plan *p, uint32_t task, uint32_t memory);

#endif
