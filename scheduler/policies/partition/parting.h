/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Dividing the nodes of all levels between devices. What is minimised:
 *
 *   transfers   each tie that is cut costs its time, times how slow the route between the two devices is
 *   balance     the work that a device has in a band (a stretch of time) beyond its share, which is by its speed
 *   memory      bytes beyond what a memory has room for, more than anything else
 *
 * A first division is grown on the coarsest level, one device after the other, always by the node that is most tied to
 * what is there, from several seeds; devices that are alike change places if that brings heavy ties onto fast routes.
 * Then nodes move, one at a time, to where they cost least, on each level down to the finest: B. W. Kernighan, S. Lin,
 * An Efficient Heuristic Procedure for Partitioning Graphs, Bell System Technical Journal 49(2), 1970, in the greedy
 * form for many parts of G. Karypis, V. Kumar, Multilevel k-way Partitioning Scheme for Irregular Graphs, J. Parallel
 * Distrib. Comput. 48(1), 1998. Levels, nodes and devices are visited by number; of equals the lower device.
 *
 * Cost: a few passes a level, O(ties + nodes x devices) each, on levels that shrink.
 */
#ifndef GY_SCHEDULER_POLICIES_PARTITION_PARTING_H
#define GY_SCHEDULER_POLICIES_PARTITION_PARTING_H

#include "scheduler/policies/partition/levels.h"

#define GY_SHARES 65536 /* all shares together */

typedef struct gy_parting {
    const gy_levels *levels; /* borrowed */
    uint32_t devices, memories;
    uint32_t *memory;   /* per device */
    uint32_t *share;    /* per device: of GY_SHARES; 0: it gets only what can go nowhere else */
    uint32_t *distance; /* devices x devices: 256 is a typical route, 0 the same memory */
    gy_ticks *limit;    /* devices x bands: work */
    int64_t *room;      /* per memory: bytes */
    uint32_t *device;   /* per node of the finest level: the result */

    size_t finest;                /* nodes of finer levels than this one stay together; 0: none do */
    struct gy_planning *planning; /* whose caller may have had enough: then any division will do; borrowed */

    gy_ticks *load;         /* devices x bands, while dividing */
    int64_t *held;          /* per memory */
    gy_ticks *cut;          /* per device: ties of the node that is looked at */
    uint32_t *cut_to, cuts; /* the devices where `cut` is not 0 */
} gy_parting;

/* Arrays for those levels, zeroed but for `room`, which is without end. gy_parting_free in any case. */
bool gy_parting_init(gy_parting *x, const gy_levels *levels, uint32_t memories);
void gy_parting_free(gy_parting *x);
/* limit, from the shares: what each device should have of a band, and 1 % more. */
void gy_parting_set_limits(gy_parting *x);
/* Divides. false: out of memory. */
bool gy_parting_run(gy_parting *x);
/* The cost that is minimised, of a division of a level. */
gy_ticks gy_parting_cost(gy_parting *x, const gy_level *l, const uint32_t *device);

#endif
