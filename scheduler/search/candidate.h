/* SPDX-License-Identifier: Apache-2.0 */
/* A placement without times: which device each task goes to, and an order that is topological. */
#ifndef GY_SCHEDULER_SEARCH_CANDIDATE_H
#define GY_SCHEDULER_SEARCH_CANDIDATE_H

#include "scheduler/plan/plan.h"

typedef struct gy_candidate {
    uint32_t tasks;
    uint32_t *order, *device;
    gy_ticks model;     /* makespan in the model of search; GY_TICKS_MAX while it is not known */
    gy_ticks simulated; /* that of its schedule; likewise */
} gy_candidate;

bool gy_candidate_init(gy_candidate *c, uint32_t tasks); /* false: out of memory */
void gy_candidate_free(gy_candidate *c);
void gy_candidate_copy(gy_candidate *to, const gy_candidate *from);
bool gy_candidate_is_same(const gy_candidate *a, const gy_candidate *b);
/* Takes over the decisions of a policy. */
void gy_candidate_from_plan(gy_candidate *c, const gy_plan *p);
/* Reads the decisions off the ops of a schedule, for the flow of its graph; false: out of memory. */
bool gy_candidate_from_schedule(gy_candidate *c, const gantry_schedule *s, const gy_flow *flow);

#endif
