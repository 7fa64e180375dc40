/* SPDX-License-Identifier: Apache-2.0 */
/* The division that the policy "partition" places by, for search. */
#ifndef GY_SCHEDULER_POLICIES_PARTITION_PARTITION_H
#define GY_SCHEDULER_POLICIES_PARTITION_PARTITION_H

#include "scheduler/plan/plan.h"

#define GY_PARTITIONS 9 /* ways to divide: 0 is the policy's, the others take finer or coarser grains and bands */

/* A device for each task, and an order that is topological. Heeds what may run where, but not `with` and `apart`.
 * false: out of memory. */
bool gy_partition_divide(const gy_plan *p, uint32_t way, uint32_t *order, uint32_t *device);

/* An order that is topological: by falling rank, with the tasks on these devices. false: out of memory. */
bool gy_partition_order(const gy_plan *p, const uint32_t *device, uint32_t *order);

#endif
