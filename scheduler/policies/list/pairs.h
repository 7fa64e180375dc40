/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Policies that again and again take the best pair of a ready task and a device, behind what the device has already
 * (no insertion). What a pair is worth depends on its start, max(data ready, device free), and on a value of its own:
 *
 *   unit 0   earlier start first; of equal starts the larger value
 *   unit u   larger (value - u start) first
 *
 * ties: lower task, then lower device. `priority` goes before all of it.
 *
 * Each device has its ready tasks in three heaps: those whose data are there by the time the device is free, by value
 * (all of them would start then); the others by worth, and by when their data come. So nothing is scored again when a
 * device fills up: O(e p + n p log n).
 */
#ifndef GY_SCHEDULER_POLICIES_LIST_PAIRS_H
#define GY_SCHEDULER_POLICIES_LIST_PAIRS_H

#include "scheduler/policies/list/held_memory.h"
#include "scheduler/policies/list/ranks.h"

typedef struct gy_pairing {
    const gy_rank *level; /* per task; value of a pair: level - unit * time on the device */
    gy_rank unit;
    gy_held_memory
        *room; /* NULL: memory is no matter. Else pairs are left out that it has no room for, unless no device has */
    /*
     * Per task its favourite child, or GY_NONE; NULL: none have one. A device that ran a task keeps itself for the
     * favourite child while that is ready and could not start earlier elsewhere; other tasks start there no sooner than
     * their data could be on every device.
     */
    const uint32_t *favourite;
} gy_pairing;

gantry_status gy_place_pairs(gy_plan *p, const gy_pairing *how, gantry_error *err);

#endif
