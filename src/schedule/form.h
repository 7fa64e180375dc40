/* SPDX-License-Identifier: Apache-2.0 */
/* Rule form, which needs no graph, and what it shares with the checker: errors of rules, and where rows begin. */
#ifndef GY_SCHEDULE_FORM_H
#define GY_SCHEDULE_FORM_H

#include "schedule/schedule.h"

#define GY_IN_FLIGHT_MAX 64 /* of a schedule file; the walk visits every op that many times */

/* Bases of instances, and so the least distance between two of them. */
#define GY_ALIGNMENT 256

/* "rule NAME: ..." with the pointer "/list/index" of the thing in a schedule file. Returns GANTRY_E_SCHEDULE. */
gantry_status gy_breach(gantry_error *err, const char *rule, const char *list, size_t index, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* An error in the schedule of phase i: "phase i: ...", with the pointer inside of the phase. Returns its status. */
gantry_status gy_schedule_phase_fail(size_t i, const gantry_error *inner, gantry_error *err);

static inline bool gy_is_reduction(uint8_t mode)
{
    return mode >= GANTRY_SUM && mode <= GANTRY_PROD;
}
/* Where row `row` of a value begins, counted from its row 0. */
int64_t gy_row_offset(const gantry_schedule *s, uint32_t value, int64_t row);

/* The half of rule phases that needs no graph. */
gantry_status gy_schedule_phases_form(const gantry_schedule *s, gantry_error *err);

/* Indices, values and order of counters, and that they are there for replay "device" only. */
gantry_status gy_form_counters(const gantry_schedule *s, gantry_error *err);

gantry_status gy_form_ops(const gantry_schedule *s, const uint32_t *geometry, gantry_error *err);

/*
 * Geometry: two values have the same number here if each row begins at the same byte in both, so that copying rows
 * from the one to the other copies bytes. One entry per value, the caller's to free.
 */
gantry_status gy_form_geometry(const gantry_schedule *s, uint32_t **geometry, gantry_error *err);
#define GY_GEOMETRY_ANY UINT32_MAX /* of contents that are the same in every row */

#endif
