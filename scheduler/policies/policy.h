/* SPDX-License-Identifier: Apache-2.0 */
/**
 * A policy decides where tasks run, and in which order each device takes them. It is one file here and one line
 * in policies.def.
 */
#ifndef GY_SCHEDULER_POLICIES_POLICY_H
#define GY_SCHEDULER_POLICIES_POLICY_H

#include "scheduler/plan/plan.h"

struct gy_policy {
    const char *name;    /* as typed after --policy */
    const char *summary; /* one line for people */
    /*
     * Called once, after the passes cost and inputs, with every device free. Must give each task of the flow a place,
     * in a topological order, through one of the functions of place.h; these respect `on`, `with` and `apart` and
     * remember when devices are free. Returns an error of theirs, or E_NOMEM.
     */
    gantry_status (*place)(gy_plan *p, gantry_error *err);
    uint32_t largest;       /* size of the largest graph that it is tried on unasked: tasks, or dependencies / 64 */
    bool books;             /* tries every transfer to every device: of many of both, it takes far longer than others */
    bool pairs;             /* looks at every pair of devices: of many, it takes far longer than the others */
    uint32_t last_resort;   /* size of the largest graph that it is tried on where nothing else fits; 0: none */
    gy_objective objective; /* that it is tried for unasked */
    bool ignores_priority;  /* it takes tasks in the order of the flow, whatever their `priority` */
};

#define GY_ANY_SIZE      UINT32_MAX
#define GY_LARGE_GRAPHS  10000 /* for what takes more than n log n steps, but few */
#define GY_MIDDLE_GRAPHS 2000

#define GY_POLICY(id)    extern const gy_policy gy_policy_##id;
#include "scheduler/policies/policies.def"
#undef GY_POLICY

/* The policies of policies.def; NULL beyond the last. */
const gy_policy *gy_policy_at(size_t i);
/* By name; NULL gives the default. An unknown name is E_INVALID with the near one. */
gantry_status gy_policy_find(const gy_policy **policy, const char *name, gantry_error *err);

#endif
