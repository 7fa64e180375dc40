/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Policies that look at all ready tasks, find for each where it would end first (gaps included), and place one of them
 * there: min-min, max-min, sufferage. Equals: the lower task; a task's devices: the lower of equals. `priority` goes
 * before the rule.
 *
 * A device's slot for a task is looked for again only when another task was put into it, and only if it matters for
 * what the rule asks. O(e p + n r) steps for r ready tasks at a time, and O(log n) for each slot that is looked for.
 */
#ifndef GY_SCHEDULER_POLICIES_LIST_BATCH_H
#define GY_SCHEDULER_POLICIES_LIST_BATCH_H

#include "scheduler/plan/plan.h"

/* The figures of a task that rules compare: its earliest end, and that on another device (GY_TICKS_MAX: there is
 * none). */
typedef struct gy_choice {
    gy_ticks best, second;
} gy_choice;

typedef struct gy_batch_rule {
    /* Below 0: the task of `a` goes before that of `b`; 0: the rule does not care. */
    int (*compare)(const gy_choice *a, const gy_choice *b);
    bool second; /* asks for `second` */
} gy_batch_rule;

gantry_status gy_place_batch(gy_plan *p, const gy_batch_rule *rule, gantry_error *err);

#endif
