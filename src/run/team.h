/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The threads of CPU devices. A device has one thread that carries its ops out, whichever back end that is; a kernel
 * that cuts its work (gantry_launch_cut) is helped by others, which sleep otherwise, and are made when they are wanted
 * for the first time.
 */
#ifndef GY_RUN_TEAM_H
#define GY_RUN_TEAM_H

#include "run/backend.h"

typedef struct gy_teams gy_teams;

/* Of a run with the schedule. `asked`: threads of each device, its own among them; 0: as the machine says, and where it
 * says nothing this process's cores, divided among the CPU devices of the run. *teams NULL: no device has a second. */
gantry_status gy_teams_make(gy_teams **teams, const gantry_schedule *schedule, const gantry_network *network,
                            int32_t asked, gantry_error *err);
/* While no op is at work. NULL is allowed. */
void gy_teams_free(gy_teams *teams);
/* Per device: `team` of a launch on it, or NULL. */
void **gy_teams_of(const gy_teams *teams);
/* How many threads the device computes with; 0: it computes nothing. */
uint32_t gy_teams_threads(const gy_teams *teams, uint32_t device);
/* The function behind gantry_launch_cut. */
gantry_status gy_team_cut(const gantry_launch *launch, int64_t items, int64_t grain, gantry_piece_fn piece, void *data);

#endif
