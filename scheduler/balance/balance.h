/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Load balance: where automatic splits are cut for one machine.
 *
 *   static    equal parts
 *   dynamic   by speed: the devices take equally long for the nodes that work on the parts
 *   memory    by room: parts in proportion to the capacity of the memories
 *
 * Splits that belong together are one group and are cut alike: those with as many parts that one node names parts of,
 * and those that a loop carries into each other. A group keeps equal parts if it has fewer rows than parts, if a node
 * names parts of it beside those of a fixed split of as many rows and parts, or if a kernel refuses other parts.
 */
#ifndef GY_SCHEDULER_BALANCE_BALANCE_H
#define GY_SCHEDULER_BALANCE_BALANCE_H

#include "scheduler/plan/options.h"
#include "scheduler/plan/plan.h"

/* Bounds of a group count units: `unit` of them are all rows of each of its buffers. */
typedef struct gy_split_group {
    int64_t parts, unit;
    bool fixed, moved;     /* must keep equal parts; has other ones now */
    uint32_t *device;      /* per part: the device it is meant for */
    int64_t *count;        /* per device: how many parts are meant for it */
    double *time;          /* parts x workers: of all nodes that work on the part, INFINITY: not there; in ticks */
    int64_t *bound, *best; /* parts + 1: those at work, those with the least `load` so far */
    bool best_moved;
    double load;
} gy_split_group;

typedef struct gy_splits {
    gantry_graph *graph;
    const gantry_machine *machine;
    const gy_options *options;
    uint32_t workers;
    uint32_t *group_of; /* per buffer: GY_NONE: no automatic split */
    uint32_t *owner;    /* per node: the group whose time it counts for, GY_NONE: none */
    uint32_t *part;     /* and the part of it */
    gy_split_group *group;
    uint32_t groups;
    gy_arena arena;
} gy_splits;

/* ---- balance_groups.c ---- */

/* Finds groups, and which node works on which part. Everything goes with gy_splits_free. */
gantry_status gy_splits_make(gy_splits *s, gantry_graph *graph, const gantry_machine *machine,
                             const gy_options *options, gantry_error *err);
void gy_splits_free(gy_splits *s);
bool gy_graph_has_auto(const gantry_graph *graph);

/* ---- balance.c ---- */

/* The graph, cut by a method for the machine; another owner of `graph` where that changes nothing. */
gantry_status gy_balance_cut(gantry_graph **out, gantry_graph *graph, const gantry_machine *machine,
                             const gy_options *options, gy_balance method, gantry_error *err);

/* ---- balance_run.c ---- */

/* gy_phases_run for the graph as the options want it cut; where they leave that open, for each way that differs, and
 * the schedule that is predicted to be fastest is kept. All phases of a graph get the same bounds: the graph is cut
 * before it is divided into phases. */
gantry_status gy_balance_run(gantry_schedule **schedule, gantry_graph *graph, const gantry_machine *machine,
                             const gy_options *options, gantry_error *err);

#endif
