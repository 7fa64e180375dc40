/* SPDX-License-Identifier: Apache-2.0 */
/**
 * How a schedule is found (`effort` of gantry_schedule_options):
 *
 *   0      the default policy; where that ends more than a ninth after the bound, or has no room, also a division of
 *          the graph and one device
 *   1      every policy that fits the size: placed, lowered, simulated with contention; the least makespan wins
 *   2..9   then rounds, one more and a longer one with each step: annealing in a model with coarse contention, whose
 *          finds are lowered and simulated like what a policy placed; then single steps, each of which is simulated,
 *          unless the model is exact. Graphs of up to 12 tasks are solved in the model first. Beyond 10,000 tasks a
 * round looks at another division of the whole graph (policies/partition.h) instead
 *
 * A higher effort does all that a lower one does first, so it is never worse. Everything is counted in evaluations, and
 * the same seed gives the same bytes. A named policy stands for all of them.
 */
#ifndef GY_SCHEDULER_SEARCH_SEARCH_H
#define GY_SCHEDULER_SEARCH_SEARCH_H

#include "scheduler/plan/options.h"
#include "scheduler/search/candidate.h"

#define GY_EFFORT_DEFAULT 3
#define GY_EFFORT_MOST    9

/* Names that gantry_schedule_policy gives to what no policy placed. */
extern const char gy_search_name[], gy_optimal_name[];

/* Options are checked and filled in, the graph is sealed. The schedule is verified. */
gantry_status gy_search_run(gantry_schedule **schedule, gantry_graph *graph, const gantry_machine *machine,
                            const gy_options *options, gantry_error *err);

/* Places each task where the plan's candidate says, in its order. */
extern const gy_policy gy_policy_replay;

#endif
