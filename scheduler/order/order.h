/* SPDX-License-Identifier: Apache-2.0 */
/* The order of ops: one total order, lanes, turns at shared links, and the sync table. */
#ifndef GY_SCHEDULER_ORDER_ORDER_H
#define GY_SCHEDULER_ORDER_ORDER_H

#include "scheduler/plan/plan.h"

/* The pass that gives each op its position. `early` of the arrangement: by expected start, so that copies are queued in
 * the order in which they can begin. Otherwise the order of the draft, in which rows are brought just before they are
 * used: fewest bytes at a time. */
gantry_status gy_plan_order(gy_plan *p, const gy_arrangement *how, gantry_error *err);
/* Puts launches that one call can carry out next to each other in sequence.draft_of, as batches, where that is expected
 * to end sooner: duration, `batch` and `joined` of their ops in the draft say so. `start`: per op of the draft, when it
 * is expected to begin; new ones where there are batches. */
gantry_status gy_plan_batch(gy_plan *p, gy_ticks *start, gantry_error *err);
/* Puts alike collectives among the same ranks next to each other, as batches: as many as the attempt says. If it asks
 * for none, the plan learns what they might spare. `start` is as above; `early`: the order is by it. */
gantry_status gy_plan_batch_teams(gy_plan *p, bool early, gy_ticks *start, gantry_error *err);
/* By position: does the end wait for the op? false: out of memory. */
bool gy_plan_urgent(const gy_plan *p, bool *urgent);
/* The pass that gives each op its lanes. */
gantry_status gy_plan_stream(gy_plan *p, const gy_arrangement *how, gantry_error *err);
/* Uploads one after the other where they share a link of host memory: adds to `need`. */
gantry_status gy_plan_upload_turns(gy_plan *p, gantry_error *err);
/* The pass that makes the sync table; also from one start to the next where starts overlap. */
gantry_status gy_plan_sync(gy_plan *p, gantry_error *err);
/* The part of it that joins starts (sync_starts.c): adds rows with distance 1. `slot`: per op, its event or GY_NONE;
 * *slots: how many are given out. */
gantry_status gy_plan_sync_starts(gy_plan *p, uint32_t *slot, uint32_t *slots, gantry_error *err);

/* A copy that takes much longer than its latency, over a route that is full with one such copy, or nearly: two at once
 * gain nothing. Never with contention off. */
bool gy_copy_is_long(const gantry_machine *m, uint32_t from, uint32_t to, gy_ticks duration);
/* The first resource on the route out of host memory that more routes share than fill it, and how many copies do;
 * GY_MACHINE_NONE if there is none. */
uint32_t gy_shared_link(const gantry_machine *m, uint32_t to);
uint32_t gy_link_turns(const gantry_machine *m, uint32_t resource, const gy_route *route);

#endif
