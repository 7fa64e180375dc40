/* SPDX-License-Identifier: Apache-2.0 */
/* gantry run --processes: the launcher, and the guard of each rank. */
#ifndef GANTRY_COMMAND_LAUNCH_H
#define GANTRY_COMMAND_LAUNCH_H

#include "command.h"

/* Tells a rank that the launcher has started it: "1", or "0" behind its guard. */
#define GUARDED "GANTRY_GUARDED"

/* launch.c: the options --processes, --on-loss and --mpirun; the exit code of the last attempt. */
int check_launch(const options *o);
int launch(const options *o);

/* guard.c: returns in the process that works; the other one watches it, and ends with its exit code. */
int guard_begin(void);
/* Keeps what the rank is at, to be said when it is gone. */
void guard_note(uint64_t starts, const char *at);

#endif
