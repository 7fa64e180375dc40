/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The schedule that these tests change: right.json, made by hand for the graph of hand_graph.
 *
 *   make: x -> y    use: y, w += ...    side: after make    s0: y adds to t    s1: w adds to t      outputs y, t; state
 * w
 *
 * make and s0 run on d1, use and s1 on d2, side on the CPU; y goes to d2 by way of the host, t is reduced into its
 * output.
 */
#ifndef TESTS_SCHEDULE_HAND_H
#define TESTS_SCHEDULE_HAND_H

#include "schedule/schedule.h"

gantry_graph *hand_graph(void); /* checked */
/* right.json with `from` replaced by `to` where it is found first; aborts the test if it is not there. NULL: as it is.
 * The text is the caller's. */
char *hand_text(const char *from, const char *to);
/* The same, parsed; NULL and `err` where it is refused. */
gantry_schedule *hand_schedule(const char *from, const char *to, gantry_error *err);

#endif
