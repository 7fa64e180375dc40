/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The transfers of a collective: step by step, as the scheduler times an algorithm, and in all, as the simulator has
 * them share links with what else goes on.
 */
#ifndef GY_SCHEDULE_TRAFFIC_TRAFFIC_H
#define GY_SCHEDULE_TRAFFIC_TRAFFIC_H

#include "base/vec.h"
#include "schedule/traffic/group.h"

/* ---- order.c ---- */

/* The ranks along a ring: `order` has room for all. The next is the nearest that is left, the lower of equals. */
void gy_ring_order(const gantry_machine *m, const gy_group *g, uint32_t *order);

/* ---- steps.c ---- */

/* Told of each transfer of a step, then of the step's end. `times`: the step is made so often, one after the other. */
typedef struct gy_step_walk {
    void (*send)(void *context, uint32_t from, uint32_t to, int64_t bytes); /* ranks */
    void (*end)(void *context, int64_t times);
    void *context;
} gy_step_walk;

/* The steps of an algorithm that can do the group; `order` is that of its ring, `pieces` are those that a chain cuts
 * its bytes into, 0: so many that what is under way first and last counts for nothing. Of NCCL nobody knows the steps:
 * they are those by which the fewest bytes cross any cut. */
void gy_algorithm_steps(const gy_group *g, gy_algorithm algorithm, const uint32_t *order, int64_t pieces,
                        const gy_step_walk *walk);

/* ---- traffic.c ---- */

/* Bytes that cross a resource of the machine. */
typedef struct gy_crossing {
    uint32_t resource;
    int64_t bytes;
} gy_crossing;
typedef GY_VEC(gy_crossing) gy_crossings;

/* Room to work out the loads of many ops. Zeroed, with the machine. */
typedef struct gy_link_traffic {
    const gantry_machine *m;
    const gy_group *g;
    int64_t *step, *all; /* per resource */
    GY_VEC(uint32_t) used, order, ranks;
} gy_link_traffic;
bool gy_link_traffic_init(gy_link_traffic *t, const gantry_machine *m);
void gy_link_traffic_free(gy_link_traffic *t);
/* Appends what a collective op puts on each resource, each once. false: out of memory. */
bool gy_link_traffic_of_op(gy_link_traffic *t, const gantry_schedule *s, const gy_op *op, gy_crossings *to);

#endif
