/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The placing of tasks, for policies. Predecessors of a task are placed before it; gy_place_try may ask earlier, and
 * leaves those out that have no place yet.
 */
#ifndef GY_SCHEDULER_PLACE_PLACE_H
#define GY_SCHEDULER_PLACE_PLACE_H

#include "scheduler/collective/collective.h"
#include "scheduler/plan/options.h"
#include "scheduler/plan/plan.h"

/* Gives each task its place through the functions below: what a policy does. */
typedef gantry_status gy_place_all(gy_plan *p, gantry_error *err);
/* The pass: has a policy place all tasks, and lists them (gy_place_in_order). */
gantry_status gy_plan_place(gy_plan *p, gy_place_all *place_all, gantry_error *err);

/* Lists all tasks, which are placed, by their starts, each behind its predecessors (in_order.c). false: out of memory.
 */
bool gy_place_in_order(gy_plan *p);

/* After the placing, where memory is short: collectives begin just before their results are read (late.c). */
gantry_status gy_place_late(gy_plan *p, gantry_error *err);

/* Before the placing, where the attempt asks for replicas: the nodes whose tasks are likely to have some wherever their
 * rows are wanted, so that nobody waits for copies of them. */
gantry_status gy_place_anywhere(gy_plan *p, gantry_error *err);
/* After the placing: the replicas of tasks, where the attempt asks for them (replicas.c). */
gantry_status gy_plan_replicas(gy_plan *p, const gy_options *o, gantry_error *err);

/* May the task go to the device, given `on`, what it can run, and the `with` and `apart` of what is placed already? */
bool gy_place_allowed(const gy_plan *p, uint32_t task, uint32_t device);
/* The earliest slot of the device that is long enough, after the task's data can be there. */
gy_try gy_place_try(gy_plan *p, uint32_t task, uint32_t device);
/* The slot again, for the same data: the device may have filled up since `t` was tried. */
void gy_place_again(const gy_plan *p, uint32_t task, gy_try *t);
/* Places the task in the slot of the try, which is still free; not for collectives. */
gantry_status gy_place_at(gy_plan *p, uint32_t task, const gy_try *t, gantry_error *err);
/* Takes the last gy_place_at back that was not taken back yet, as if it had not been. Not while links are booked. */
void gy_place_undo(gy_plan *p, uint32_t task);
/* Places the task on the device where it ends first (the lower index of equals). A collective goes to the devices of
 * its ranks, whoever calls, but one that is tied (gy_plan_is_tied). E_UNSUPPORTED when no device is allowed. */
gantry_status gy_place_earliest(gy_plan *p, uint32_t task, gantry_error *err);
/* Places the task on `device` if that is allowed, else on the next allowed one, cyclically. */
gantry_status gy_place_on(gy_plan *p, uint32_t task, uint32_t device, gantry_error *err);

/* ---- collectives ---- */

/* Gives ranks without a device (GY_NONE) one that has no rank yet, while there are some; where memory is to be spared
 * (gy_attempt), one with room for what the rank has. */
void gy_place_ranks(const gy_plan *p, uint32_t task, uint32_t *device, uint32_t ranks);
/* Time and algorithm of a collective task on these devices, one a rank. E_GRAPH if the algorithm that it asks for
 * cannot do it there. */
gantry_status gy_place_team_time(const gy_plan *p, uint32_t task, const uint32_t *device, gy_way *choice,
                                 gantry_error *err);

#endif
