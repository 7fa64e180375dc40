/* SPDX-License-Identifier: Apache-2.0 */
/* Schedules made by hand, for tests of what reads schedules. Every call aborts the test on failure. */
#ifndef TESTS_SUPPORT_HAND_H
#define TESTS_SUPPORT_HAND_H

#include "schedule/schedule.h"

/* An empty schedule of graph "hand" on a machine in JSON. Free it with gantry_schedule_free. */
gantry_schedule *hand_new(const char *machine_json);
uint32_t hand_lane(gantry_schedule *s, uint32_t device, gy_lane_kind kind);
uint32_t hand_value(gantry_schedule *s, const char *name, int64_t rows, int64_t row_bytes);
/* Rows [first, last) of a value at the end of the slab of `memory`, aligned to 256 bytes. */
uint32_t hand_instance(gantry_schedule *s, uint32_t value, uint32_t memory, int64_t first, int64_t last);

/* Ops get the next position. A launch op makes a node of that id. */
uint32_t hand_launch(gantry_schedule *s, const char *id, uint32_t lane, double us);
/* A use of all rows of an instance, by the op that was made last. */
void hand_use(gantry_schedule *s, uint32_t instance, gantry_access mode);
/* A transfer of all rows of `to`. `from` holds them. */
uint32_t hand_copy(gantry_schedule *s, uint32_t lane, uint32_t from, uint32_t to);
/* The same for a fresh value of so many bytes, between fresh instances. */
uint32_t hand_move(gantry_schedule *s, uint32_t lane, uint32_t from_memory, uint32_t to_memory, int64_t bytes);
uint32_t hand_collective(gantry_schedule *s, gantry_collective kind, uint32_t lanes, const uint32_t *lane, double us);
void hand_sync(gantry_schedule *s, uint32_t from, uint32_t to, uint32_t distance, gy_carrier carrier, gy_reason reason);
/* An event, for data, within a start. */
void hand_wait(gantry_schedule *s, uint32_t from, uint32_t to);

#endif
