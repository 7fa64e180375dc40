/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Branch and bound in the model of search, for small graphs: depth first over (task that is ready, device), in the
 * order of starts, so that every schedule is built in one way only. Pruned by the least time that must follow
 * (gy_model.tail), by the work that is left, by devices that are alike, by tasks that are, with what follows them, and
 * by states that were seen before: O. Sinnen, A. V. Kozlov, A. Z. S. Shahul, Optimal Scheduling of Task Graphs on
 * Parallel Systems, PDCS 2007.
 *
 * "Seen before" goes by a hash of 128 bits; that two states of one search share one is not to be expected.
 */
#ifndef GY_SCHEDULER_SEARCH_EXACT_H
#define GY_SCHEDULER_SEARCH_EXACT_H

#include "scheduler/search/candidate.h"
#include "scheduler/search/model.h"

#define GY_EXACT_TASKS 64 /* at most */

/* Can it be tried on this model? No collectives, no groups, no nodes that a batch may have (the model knows none), no
 * more than GY_EXACT_TASKS tasks. */
bool gy_exact_can(const gy_model *m);
/* Improves `c`, whose `model` is known, looking at `budget` states at most (counted in *states). *proved: nothing is
 * better than what `c` is now. E_NOMEM. */
gantry_status gy_exact_run(const gy_model *m, gy_candidate *c, uint64_t budget, uint64_t *states, bool *proved,
                           gantry_error *err);
/* Where nothing was proved: what is known all the same, as an error. `bound`: no schedule takes less. */
gantry_status gy_exact_refuse(uint32_t tasks, uint64_t states, gy_ticks found, gy_ticks bound, gantry_error *err);
/* Per task: those of lower numbers with which it may change places, each with what follows it; bit u is task u. Of
 * several that are ready, only the first has to be tried: nothing of what changes places has a place yet (twins.c). */
void gy_exact_find_twins(const gy_model *m, uint64_t *before);

#endif
