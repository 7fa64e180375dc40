/* SPDX-License-Identifier: Apache-2.0 */
/* Which of two schedules of a graph is better, for the least makespan. */
#ifndef GY_SCHEDULER_SEARCH_BETTER_H
#define GY_SCHEDULER_SEARCH_BETTER_H

#include "schedule/schedule.h"
#include "scheduler/plan/known.h"

/*
 * Makespans within a thousandth of the least count as equal, since no prediction is that exact. Of equals the one that
 * moves fewer bytes is better, then the one that uses fewer devices, then the one that takes less memory, and only then
 * the one that ends first.
 *
 * `b` was the best so far, and `least` is the least makespan of all before `a`. A row of choices so never ends more
 * than a thousandth above the least.
 */
bool gy_is_preferred(const gantry_schedule *a, const gantry_schedule *b, gy_ticks least);
/* `a` is the end of a plan on the same machine, of which the schedule need not be there. */
bool gy_is_end_preferred(const gy_plan_end *a, const gantry_schedule *b, gy_ticks least);

/* Does it end so little after its bound that without effort nothing else is tried? */
bool gy_is_near_bound(const gantry_schedule *s);

#endif
