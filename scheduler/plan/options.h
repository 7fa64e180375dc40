/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The options of a schedule: gantry_schedule_options, checked, with defaults filled in and words as numbers
 * (scheduler/options.c). Nothing below the entry compares words.
 */
#ifndef GY_SCHEDULER_PLAN_OPTIONS_H
#define GY_SCHEDULER_PLAN_OPTIONS_H

#include "schedule/schedule.h"
#include "scheduler/plan/attempt.h"
#include "scheduler/plan/known.h"
#include "scheduler/plan/planning.h"

/* Ways to cut automatic splits, in the order of gy_balance_words; CHOSEN: the one whose schedule is predicted to be
 * fastest. */
typedef enum gy_balance {
    GY_BALANCE_STATIC,
    GY_BALANCE_DYNAMIC,
    GY_BALANCE_MEMORY,
    GY_BALANCE_GUIDED,
    GY_BALANCE_CHOSEN
} gy_balance;

typedef struct gy_options {
    const struct gy_policy *policy; /* the one that was named; NULL: the best of several */
    const char *max_memory;         /* as in gantry_schedule_options; NULL: all of each memory */
    const gantry_schedule *like;    /* automatic splits are cut as there; NULL: by `balance` */
    gy_objective objective;
    gy_balance balance;
    gy_spilling spilling;
    gy_replay replay;
    bool any_size;     /* of the policies, those for graphs of any size alone are tried */
    bool optimal;      /* a proved optimum is asked for */
    int32_t effort;    /* 0..9 */
    int32_t in_flight; /* starts that may overlap; 0: chosen */
    int64_t unroll;    /* nodes that loops unroll to at most */
    uint64_t seed;
    gy_planning *planning; /* borrowed; NULL: nobody asks how far it is */
    bool part;             /* the graph is one of several phases: its makespan is not that of the whole */
    gy_known_plans *known; /* of one of the graphs, on this machine; borrowed; NULL: there are none */
} gy_options;

#endif
