/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Groups that are kept apart, as a colouring: devices are colours. Placing one group after the other can paint itself
 * into a corner, so there is always a *plan* at hand, a device for every such group that obeys all wishes and agrees
 * with what is placed. A device is open to a group if the plan has it there, or if a search finds a plan that has: the
 * group is moved, those that this disturbs look for other devices, and so on, with backtracking. Only what is disturbed
 * is looked at. Searches end after some steps; then the device counts as closed, which costs quality and never a dead
 * end.
 */
#ifndef GY_SCHEDULER_COST_APART_H
#define GY_SCHEDULER_COST_APART_H

#include "scheduler/plan/plan.h"

typedef struct gy_apart {
    uint32_t *device; /* per group: the plan; GY_NONE: no wish, or none yet */
    uint32_t *trail;  /* groups that a search has decided, in their order */
    uint32_t *before; /* what the plan had for them */
    uint32_t trailed;
    uint8_t *decided; /* per group: on the trail */
    uint32_t *closed; /* groups x devices: the age at which it was found to be closed */
    uint32_t age;     /* grows when a placement is taken back: what was closed may be open again */
    uint64_t steps;   /* that the present search may still take */
} gy_apart;

/* After groups, who can run what, and `apart` are known; p->coloured stays NULL where nothing is kept apart, or where a
 * plan was not found in time. E_UNSUPPORTED: there is none. */
gantry_status gy_apart_plan(gy_plan *p, gantry_error *err);
/* May the group, which has no device yet, go there? */
bool gy_apart_is_open(const gy_plan *p, uint32_t group, uint32_t device);
/* The group is placed on a device that is open to it: from now on the plan has it there. */
void gy_apart_placed(gy_plan *p, uint32_t group, uint32_t device);
/* A group lost its place again. */
void gy_apart_taken_back(gy_plan *p);

/* No device is left for the node. */
gantry_status gy_apart_refuse(const gy_plan *p, uint32_t node, gantry_error *err);

#endif
