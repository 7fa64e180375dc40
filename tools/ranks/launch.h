/* SPDX-License-Identifier: Apache-2.0 */
/* gantry run --processes: the launcher, and the guard of each rank. */
#ifndef GANTRY_COMMAND_LAUNCH_H
#define GANTRY_COMMAND_LAUNCH_H

#include "command.h"
#include <time.h>

/* Tells a rank that the launcher has started it: "1", or "0" behind its guard. */
#define GUARDED "GANTRY_GUARDED"

/* Tells a rank in which folder the schedule of the first attempt is kept, and what is in it: kept.c. */
#define KEPT          "GANTRY_KEPT"
#define KEPT_SCHEDULE "schedule.json"
#define KEPT_PART     "schedule.part"
#define KEPT_LOSS     "lost"
enum { KEPT_ROOM = 1024 };
/* Tells a rank that devices may have gone with a loss: --devices N is as many as are left then. */
#define LEFT "GANTRY_LEFT"

/* Tells a rank how many processes the first attempt had: so many devices without GPUs one computer counts as. */
#define FIRST "GANTRY_FIRST_PROCESSES"

/* launch.c: the options --processes, --on-loss and --mpirun; the exit code of the last attempt. */
int check_launch(const options *o);
int launch(const options *o);

/* guard.c: returns in the process that works; the other one watches it, and ends with its exit code. `timeout`: seconds
 * that a silent rank has; 0: not given. */
int guard_begin(double timeout);
/* Tells it that all ranks have done all, so that this one is to end. */
void guard_leave(void);
/* Keeps how far the rank is, and the op that it is at if that is known, to be said when it is gone. */
void guard_note(uint64_t starts, const gantry_run_progress *p);

/* remains.c, of the launcher: kills all below it that run this program, and what is between; those of children that are
 * gone are its own, with launch(). Others stay, such as a connection that ssh keeps for all that come later. */
void kill_ranks(void);
/* Removes what MPICH has left in the folder of shared memory since then, and nobody uses. */
void remove_segments(const char *folder, time_t since);

/* kept.c, of the launcher: makes the folder, or "" where none can be; removes it with all in it. */
void kept_begin(char folder[KEPT_ROOM]);
void kept_end(const char *folder);
/* True if a guard has noted a loss there since the last kept_loss. */
bool has_loss(const char *folder);
bool kept_loss(const char *folder);
/* Of a guard: notes that its rank was killed. The exit code of mpirun may be that of another rank, which MPI ended
 * since its peer was gone. */
void keep_loss(void);
/* Of a rank: the schedule of the first attempt with its graph, dealt out to the processes that there are; false: there
 * is none, or it is not to be had. Rank 0 keeps the first one. */
bool take_kept(gantry_schedule **schedule, const options *o, gantry_graph *graph);
void keep_schedule(const gantry_schedule *schedule, const options *o, const gantry_graph *graph);
/* Processes have found a machine of one computer without GPUs. */
bool is_plain_computer(const gantry_machine *found);

#endif
