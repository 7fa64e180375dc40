/* SPDX-License-Identifier: Apache-2.0 */
/**
 * A policy decides where tasks run, and in which order each device takes them. It is one file with one entry in the
 * table of policies.c.
 */
#ifndef GY_SCHEDULER_POLICIES_POLICY_H
#define GY_SCHEDULER_POLICIES_POLICY_H

#include "scheduler/plan/plan.h"

struct gy_policy {
    const char *name;    /* as typed after --policy */
    const char *summary; /* one line for people */
    /*
     * Called once, after cost and origin, with every device free. Must give each task of the flow a place, in a
     * topological order, through one of the functions of place.h; these respect `on`, `with` and `apart` and keep
     * the book of free times. Returns an error of theirs, or E_NOMEM.
     */
    gantry_status (*place)(gy_plan *p, gantry_error *err);
};

extern const gy_policy gy_policy_cpop, gy_policy_dls, gy_policy_etf, gy_policy_heft, gy_policy_heft_links,
    gy_policy_heft_max, gy_policy_heft_median, gy_policy_heft_min, gy_policy_lookahead, gy_policy_m_etf,
    gy_policy_m_sct, gy_policy_max_min, gy_policy_mem_heft, gy_policy_min_min, gy_policy_owner, gy_policy_partition,
    gy_policy_peft, gy_policy_round_robin, gy_policy_single, gy_policy_single_rank, gy_policy_split,
    gy_policy_sufferage;

/* By name; NULL gives the default. An unknown name is E_INVALID with the near one. */
gantry_status gy_policy_find(const gy_policy **policy, const char *name, gantry_error *err);

#endif
