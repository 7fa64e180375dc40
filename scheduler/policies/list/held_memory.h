/* SPDX-License-Identifier: Apache-2.0 */
/**
 * A coarse account of memory for policies that ask for room while they place: the rows of each buffer that a memory has
 * held so far, as if nothing were ever given back (Baechi's account of operators, which keep what they make). What fits
 * here fits the packer, which shares addresses; the reverse does not hold.
 */
#ifndef GY_SCHEDULER_POLICIES_LIST_HELD_MEMORY_H
#define GY_SCHEDULER_POLICIES_LIST_HELD_MEMORY_H

#include "scheduler/plan/plan.h"

typedef struct gy_held_memory gy_held_memory;

gy_held_memory *gy_held_memory_new(const gy_plan *p); /* yours, gy_held_memory_free; NULL: out of memory */
void gy_held_memory_free(gy_held_memory *room);
/* Is there room for the rows the task touches that the memory does not hold yet? O(accesses log rows). */
bool gy_held_memory_has(const gy_held_memory *room, uint32_t task, uint32_t memory);
bool gy_held_memory_take(gy_held_memory *room, uint32_t task, uint32_t memory); /* false: out of memory */

#endif
