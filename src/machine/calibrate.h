/* SPDX-License-Identifier: Apache-2.0 */
/**
 * From what was measured to a machine.
 *
 * Routes get the measured times. More bytes cannot take less time, and what disturbs a copy makes it longer, never
 * shorter: so where a larger copy was faster, the smaller one counts as taking no longer than that. The same holds for
 * kernels and collectives. Copies that are `partial` change the curve that is there in proportion: between two of them
 * the proportion goes over from one to the other, below and beyond them it stays.
 *
 * Kernels. A figure for exact arguments replaces the one for the same. `partial` ones for all arguments begin a table
 * where there is none, and are added to one that was begun so; a table that was measured by itself stays as it is.
 *
 * Resources, where traffic was measured, are made anew, so that max-min sharing gives what was seen. Of a memory beside
 * the host's: "M.out" and "M.in", what it sends to and gets from others of its kind together; "M.both", where both at
 * once are less than their sum; "M.to_host" and "M.from_host", what its copies to and from the host share; "M.link_out"
 * and "M.link_in", where copies to others are hardly faster than those to the host and so take the same wires. Of all:
 * "H.out", "H.in" and "H.both" of the host memory H, and "peers", where all pairs at once are slower than each alone.
 * A resource is never slower than the fastest copy that uses it: what a copy does alone is right first. Without traffic
 * a resource changes as the copies through it did, the one that gained most: as many as before fill it.
 */
#ifndef GY_MACHINE_CALIBRATE_H
#define GY_MACHINE_CALIBRATE_H

#include "machine/measured.h"

/* A new machine: `m` with the figures in `what`, notes on how good they are, and those notes of `m` that begin with
 * "assumed" dropped once every copy between two memories was measured. E_NOMEM. */
gantry_status gy_machine_calibrated(gantry_machine **out, const gantry_machine *m, const gy_measured *what,
                                    gantry_error *err);

#endif
