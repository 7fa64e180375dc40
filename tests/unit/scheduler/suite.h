/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers that the scheduler's tests share. Every call fails the test when something goes wrong. */
#ifndef TESTS_SCHEDULER_SUITE_H
#define TESTS_SCHEDULER_SUITE_H

#include <check.h>

#include "schedule/schedule.h"
#include "support/run_suite.h"

/* Machines in JSON. */
extern const char machine_shared_link[]; /* two GPUs that reach each other through the host, and a CPU for host calls */
extern const char machine_relay[];       /* three GPUs in a line: gpu0 <-> gpu1 <-> gpu2, host at gpu0 only */
extern const char machine_host_cpu[];    /* a CPU that works in host memory, and one GPU */
extern const char machine_launches[];    /* two GPUs of four and three lanes whose launches take most of the time */
extern const char machine_twins[];       /* two devices that share a memory, a third with its own */

gantry_machine *parse_machine(const char *json);
gantry_machine *virtual_machine(int devices);
/* `devices` devices, each with `capacity` bytes, all pairs joined. */
gantry_machine *small_machine(int devices, long long capacity);

gantry_schedule *schedule(gantry_graph *g, const gantry_machine *m, const char *policy);
/* Schedules and expects an error with this status; returns its text (static). */
const char *refusal(gantry_graph *g, const gantry_machine *m, const gantry_schedule_options *o, gantry_status status);
gantry_buffer buffer(gantry_graph *g, const char *name, int64_t rows);
gantry_node work(gantry_graph *g, const char *id, double us);

/* The op of a node (iteration 0). */
const gy_op *op_of(const gantry_schedule *s, const char *id);
const char *device_of(const gantry_schedule *s, const char *id);
uint32_t count_kind(const gantry_schedule *s, gy_op_kind kind);
/* Collectives that scheduling added. */
uint32_t count_collectives(const gantry_schedule *s, gantry_collective kind);
uint32_t count_role(const gantry_schedule *s, gy_role role);
char *schedule_text(const gantry_schedule *s); /* JSON; yours, gantry_free */

#endif
