/* SPDX-License-Identifier: Apache-2.0 */
/**
 * `--objective period`: starts that overlap. The schedule is that of one start, as for other objectives; lanes run
 * start after start, each start has its window of every memory (pack.h), and states order one start behind the other
 * (sync_starts.c). So a device that is done with its part of a start goes on with the next start's, up to `in_flight`
 * starts ahead. What the period is then, the simulator says.
 *
 * Candidates: what the policies of the portfolio place, and the assignment of least load (load.h), which is what a full
 * pipeline wants. Each is lowered for as many starts in flight as hide how long one start takes, ceil(makespan /
 * busiest lane) + 1, at most GY_PERIOD_STARTS, or as many as the memories have room for; the least period wins, then
 * the fewest starts in flight, then the least makespan.
 */
#ifndef GY_SCHEDULER_OBJECTIVE_PERIOD_H
#define GY_SCHEDULER_OBJECTIVE_PERIOD_H

#include "scheduler/plan/options.h"
#include "scheduler/search/candidate.h"

#define GY_PERIOD_STARTS 16 /* in flight, where `in_flight` of the options leaves the choice */

/* As gy_search_run, for the least period. The schedule knows its period and the bound of it. */
gantry_status gy_period_run(gantry_schedule **schedule, gantry_graph *graph, const gantry_machine *machine,
                            const gy_options *options, gantry_error *err);

/* From the end of one start to that of the next, when many have been queued: simulated, on average over the starts
 * after which the distances repeat, once the pipeline has filled; and no less than its busiest lane does. */
gantry_status gy_period_measure(const gantry_schedule *s, gy_ticks *period, gantry_error *err);

/* No period is less than what one lane has to do. */
gantry_status gy_period_least(const gantry_schedule *s, gy_ticks *least, gantry_error *err);

#endif
