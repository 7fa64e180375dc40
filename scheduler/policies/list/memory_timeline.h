/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The contents of memories over time, for policies that place where there is room (J. Herrmann, L. Marchal,
 * Y. Robert, Memory-aware list scheduling for hybrid platforms, IPDPS Workshops 2014). Values are cut into *cells*, at
 * every row where some access begins or ends. A cell is in a memory from the first task there that touches it until all
 * tasks that touch it anywhere are placed and have ended; what persists is there all the time. So nothing is counted as
 * given back before that is certain: what has room here has room in fact, but for holes and copies on their way.
 */
#ifndef GY_SCHEDULER_POLICIES_LIST_MEMORY_TIMELINE_H
#define GY_SCHEDULER_POLICIES_LIST_MEMORY_TIMELINE_H

#include "scheduler/plan/plan.h"

typedef struct gy_memory_timeline gy_memory_timeline;

gy_memory_timeline *gy_memory_timeline_new(const gy_plan *p); /* yours, gy_memory_timeline_free; NULL: out of memory */
void gy_memory_timeline_free(gy_memory_timeline *timeline);
/* Bytes by which the memory would overflow if the task began there at `start`; 0: there is room. */
uint64_t gy_memory_timeline_excess(const gy_memory_timeline *timeline, uint32_t task, uint32_t memory, gy_ticks start);
/* The task was placed (all ranks of a collective). false: out of memory. */
bool gy_memory_timeline_take(gy_memory_timeline *timeline, uint32_t task);

#endif
