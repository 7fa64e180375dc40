/* SPDX-License-Identifier: Apache-2.0 */
/* Inside calibrate.c: its parts. */
#ifndef GY_MACHINE_CALIBRATE_BUILD_H
#define GY_MACHINE_CALIBRATE_BUILD_H

#include "machine/build.h"
#include "machine/calibrate.h"

/* curve.c: a list of points with rising work and times that never fall. */
typedef GY_VEC(gy_point) gy_curve;

/* Those of `points` that were measured. false: out of memory. */
bool gy_curve_of(gy_curve *to, const gy_measured_points *points);
/* Changes the times of `old` in proportion to the points in `to`, which then has all of it. At least one point in each.
 * false: out of memory. */
bool gy_curve_follow(gy_curve *to, const gy_route *old);
/* Adds those points of `old` whose work is none of those in `to`, or near one. false: out of memory. */
bool gy_curve_join(gy_curve *to, const gy_kernel_table *old);
/* strided.c: `strided` of a table whose points are the curve, from the times of pieces. false: out of memory. */
bool gy_strided_of(gantry_machine *m, gy_kernel_table *to, const gy_curve *curve, const gy_measured_kernel *k);
/* Drops what keeps the last two points from rising, as routes must. false: fewer than two are left. */
bool gy_curve_end(gy_curve *c);

/* calibrate_ports.c: m->resource and the resources of all routes, whose times are final, from the traffic. false: out
 * of memory. */
bool gy_calibrate_ports(gantry_machine *m, const gy_measured *what);
/* Without traffic: as many copies as before fill a resource. */
void gy_calibrate_shared(gantry_machine *m, const gantry_machine *old);

/* calibrate_notes.c: notes, source, quality and facts of the new machine. false: out of memory. */
bool gy_calibrate_notes(gantry_machine *m, const gantry_machine *old, const gy_measured *what);

#endif
