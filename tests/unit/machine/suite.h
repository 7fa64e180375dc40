/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers that the test programs of this folder share. Every call fails the test when it cannot do what it says. */
#ifndef TEST_UNIT_MACHINE_SUITE_H
#define TEST_UNIT_MACHINE_SUITE_H

#include "machine/machine.h"
#include "support/run_suite.h"
#include <check.h>

/* Machines written in C: ' stands for ". */
gantry_machine *machine_of(const char *text);
char *with_quotes(const char *text); /* free() it */

/* graphs/machines/NAME.json, in a static buffer that the next call overwrites. */
const char *machine_path(const char *name);
gantry_machine *load_machine(const char *name);
/* The same for a file under GANTRY_SHARED; NULL, and a line that says so, when it is not there. */
const char *shared_path(const char *name);

/* By ids of memories. */
const gy_route *route_of(const gantry_machine *m, const char *from, const char *to);
gy_ticks copy_ticks(const gantry_machine *m, const char *from, const char *to, int64_t bytes);

/* Of its normal form, without `source`, `notes` and `calibration`: where it comes from is no part of a machine. */
uint64_t machine_hash(const gantry_machine *m);

#endif
