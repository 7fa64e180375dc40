/* SPDX-License-Identifier: Apache-2.0 */
/* Local search for an assignment of least load, and the schedule for `--objective max_load`. */
#ifndef GY_SCHEDULER_OBJECTIVE_MAX_LOAD_SEARCH_H
#define GY_SCHEDULER_OBJECTIVE_MAX_LOAD_SEARCH_H

#include "scheduler/load/load.h"
#include "scheduler/plan/options.h"

/* Name that gantry_schedule_policy gives to what the search found. */
extern const char gy_load_search_name[];

/*
 * Improves `device` (per unit, all allowed) in `moves` steps, and is never worse: less that does not fit the memories
 * first, then the load of the busiest device. The same seed, the same answer. false: out of memory.
 */
bool gy_load_improve(const gy_load *l, uint32_t *device, uint64_t moves, uint64_t seed);

/* As gy_search_run, for the least load: the split, or where that has less what other policies place, or what the named
 * policy places; then, with `effort` above 1, more local search. The schedule knows its loads. */
gantry_status gy_load_run(gantry_schedule **schedule, gantry_graph *graph, const gantry_machine *machine,
                          const gy_options *options, gantry_error *err);

#endif
