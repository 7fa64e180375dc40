/* SPDX-License-Identifier: Apache-2.0 */
/**
 * A coarse account of memory for policies that ask for room while they place: the rows of each buffer that a memory has
 * held so far, as if nothing were ever given back (Baechi's account of operators, which keep what they make). What fits
 * here fits the packer, which shares addresses; the reverse does not hold.
 */
#ifndef GY_SCHEDULER_POLICIES_LIST_ROOM_H
#define GY_SCHEDULER_POLICIES_LIST_ROOM_H

#include "scheduler/plan/plan.h"

typedef struct gy_room gy_room;

gy_room *gy_room_new(const gy_plan *p); /* yours, gy_room_free; NULL: out of memory */
void gy_room_free(gy_room *room);
/* Is there room for the rows the task touches that the memory does not hold yet? O(accesses log rows). */
bool gy_room_has(const gy_room *room, uint32_t task, uint32_t memory);
bool gy_room_take(gy_room *room, uint32_t task, uint32_t memory); /* false: out of memory */

#endif
