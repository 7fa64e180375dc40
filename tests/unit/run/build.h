/* SPDX-License-Identifier: Apache-2.0 */
/* Schedules made by hand for a real graph on a virtual machine: memory 0 is the host's, device d works in memory d + 1.
 * Every call ends the test on failure. */
#ifndef TESTS_UNIT_RUN_BUILD_H
#define TESTS_UNIT_RUN_BUILD_H

#ifdef BUILD_WITHOUT_CHECK /* for programs that are no tests */
#include <stdio.h>
#include <stdlib.h>
#define ck_assert(condition)           ((condition) ? (void)0 : abort())
#define ck_assert_ptr_nonnull(pointer) ck_assert((pointer) != NULL)
#define ck_assert_msg(condition, ...)  ((condition) ? (void)0 : (fprintf(stderr, __VA_ARGS__), abort()))
#else
#include "support/run_suite.h"
#include <check.h>
#endif
#include "schedule/schedule.h"
#include <gantry/gantry.h>

#define MUST(call)                                                                                                     \
    do {                                                                                                               \
        gantry_error must_ = { 0 };                                                                                    \
        gantry_status status_ = (call);                                                                                \
        (void)must_;                                                                                                   \
        ck_assert_msg(status_ == GANTRY_OK, "%s: %s: %s", #call, gantry_status_name(status_), must_.text);             \
    } while (0)
#define MUST_ERR &must_

/* The graph is checked and then kept by the schedule; one compute lane per device, lane d. */
gantry_schedule *build_schedule(gantry_graph *graph, int devices);
uint32_t build_lane(gantry_schedule *s, uint32_t device, gy_lane_kind kind);
/* Rows [first, last) of a value in the slab of a memory. */
uint32_t build_instance(gantry_schedule *s, uint32_t value, uint32_t memory, int64_t first, int64_t last);
/* All rows of a buffer in an instance of space INPUT or OUTPUT, or of role PERSIST in a memory. */
uint32_t build_input(gantry_schedule *s, uint32_t buffer);
uint32_t build_output(gantry_schedule *s, uint32_t buffer);
uint32_t build_persist(gantry_schedule *s, uint32_t buffer, uint32_t memory);
uint32_t build_accumulator(gantry_schedule *s, uint32_t buffer, uint32_t memory, gantry_access op);
/* Ops; uses are added to the last one. */
uint32_t build_op(gantry_schedule *s, gy_op_kind kind, uint32_t node, uint32_t lane);
void build_use(gantry_schedule *s, uint32_t instance, gantry_access mode, int64_t first, int64_t last);
void build_use_all(gantry_schedule *s, uint32_t instance, gantry_access mode);
uint32_t build_copy(gantry_schedule *s, uint32_t lane, uint32_t from, uint32_t to);
/* A collective over the lanes 0 .. lanes - 1. */
uint32_t build_collective(gantry_schedule *s, gantry_collective kind, gantry_access reduce, uint32_t node,
                          uint32_t lanes);
/* A row carried by an event of its own. */
void build_event(gantry_schedule *s, uint32_t from, uint32_t to, uint32_t distance);

/* Start and wait; the status of the first that fails. */
gantry_status run_once(gantry_run *run, gantry_error *err);

#endif
