/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Which device has which part of a placement, where devices are alike and the routes between them are not: parts that
 * send each other much belong on devices that are near each other (a quadratic assignment). A makespan says nothing of
 * an exchange of two devices while others still wait as long, so here the sum of all transfers is made less, by passes
 * of exchanges of which the best beginning is kept (after B. W. Kernighan, S. Lin, An efficient heuristic procedure for
 * partitioning graphs, Bell System Technical Journal 49, 1970): on the way it may rise.
 */
#ifndef GY_SCHEDULER_SEARCH_SEATS_H
#define GY_SCHEDULER_SEARCH_SEATS_H

#include "scheduler/search/candidate.h"
#include "scheduler/search/model.h"

/* False where all seats are as good as each other: no two devices that are alike have routes that differ. Also for more
 * devices than this is worth while for, and where tasks are kept together or apart. */
bool gy_seats_matter(const gy_model *m);
/* Devices on which all tasks take as long exchange all that they have. The order stays. `changed`: some did. O(arcs +
 * devices^2 kinds), and devices^4 a pass. E_NOMEM. */
gantry_status gy_seats_choose(const gy_model *m, gy_candidate *c, bool *changed, gantry_error *err);

#endif
