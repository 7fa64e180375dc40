/* SPDX-License-Identifier: Apache-2.0 */
/* Inside gantry diff, what-if and serve: two schedules held against each other, and one with changes. */
#ifndef GANTRY_COMMAND_VIEW_H
#define GANTRY_COMMAND_VIEW_H

#include "command.h"

/* Changes in the words of the command line: "NODE=DEVICE", "FROM:TO=GBps=RATE,latency_us=US", "NAME=GBps". */
typedef struct changes {
    const string_list *moves, *routes, *resources;
} changes;

/* change.c: the machine with other rates, and the moves, read; complaints name the option. *machine stays NULL where
 * its rates stay. Free *moves, which has an entry for each word. */
int change_machine(gantry_machine **machine, const gantry_machine *from, const changes *c);
int read_moves(gantry_move **moves, const gantry_schedule *from, const gantry_graph *graph, const changes *c);

/* cmd_what_if.c: the graph of the command line and its schedule, made or of --schedule; and the schedule with changes.
 */
int load_asked(gantry_graph **graph, gantry_schedule **schedule, const options *o);
int ask_what_if(gantry_schedule **answer, const gantry_schedule *from, const gantry_graph *graph, const changes *c);

/* cmd_diff.c: the difference as a text, which is yours (gantry_free). */
int make_diff(char **text, size_t *length, const gantry_schedule *first, const gantry_schedule *second,
              gantry_format format);
int write_diff(const gantry_schedule *first, const gantry_schedule *second, gantry_format format, const char *path);

#endif
