/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Decides the counters of a schedule: a function of its ops, uses, addresses, lanes and sync table alone, so that a
 * schedule from a file gets those that its maker would have given it. docs/design/counters.md has the protocol.
 *
 * Every row of the sync table that lanes do not carry is a dependency; so is, from start to start, each pair of ops
 * that touch the same byte, one writing, with no write between them. Of these, what lane order and other waits imply is
 * left out. What is left has a counter for each pair of lanes.
 */
#ifndef GY_SCHEDULE_COUNTERS_COUNTERS_H
#define GY_SCHEDULE_COUNTERS_COUNTERS_H

#include "schedule/schedule.h"

/* The schedule, and each of its phases, becomes one of the replay mode "device", with counters. */
gantry_status gy_counters_make(gantry_schedule *s, gantry_error *err);

/* ---- its parts ---- */

/* `to` of a start waits for `from` of the start that is `distance` before it. */
typedef struct gy_counted_need {
    uint32_t to, distance, from;
    bool kept;
} gy_counted_need;
typedef GY_VEC(gy_counted_need) gy_counted_needs;

/* Appends what starts need of earlier ones (hazards.c). false: out of memory. */
bool gy_counters_hazards(gy_counted_needs *needs, const gantry_schedule *s);
/* Makes counters of the needs that are kept (build.c). false: out of memory. */
bool gy_counters_build(gantry_schedule *s, const gy_counted_needs *needs);

#endif
