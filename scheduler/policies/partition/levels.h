/* SPDX-License-Identifier: Apache-2.0 */
/**
 * A task graph at several grains, for multilevel partitioning: the finest level has a node per task, each further one a
 * node per cluster of the one before. Clusters are made in rounds. The first rounds keep the graph free of circles
 * (*acyclic*), so that a cluster can be seen as one larger task; the later ones only look for what belongs together.
 *
 * Why the acyclic rounds are: a circle of clusters leaves each cluster somewhere and enters it again higher up.
 *   in-trees   every member but one has its only successor in the cluster: who enters gets out at the root, and a
 *              circle of clusters would be one of tasks
 *   out-trees  the same upside down
 *   siblings   members have the same depth (edges on the longest path from an entry), and every edge goes to larger
 * depth
 *
 * After J. Herrmann, M. Y. Ozkaya, B. Ucar, K. Kaya, U. V. Catalyurek, Multilevel Algorithms for Acyclic Partitioning
 * of Directed Acyclic Graphs, SIAM J. Sci. Comput. 41(4), 2019. Theirs are other rules (members that differ by one
 * level, with forbidden neighbours): on the regular graphs that GPUs get, trees and siblings find the larger clusters.
 *
 * Each round is O(nodes + ties x 16).
 */
#ifndef GY_SCHEDULER_POLICIES_PARTITION_LEVELS_H
#define GY_SCHEDULER_POLICIES_PARTITION_LEVELS_H

#include "scheduler/policies/list/ranks.h"

/* A dependency, seen from one end. `cost`: what it takes to move the data, over a typical route. */
typedef struct gy_tie {
    uint32_t to;
    gy_ticks cost;
} gy_tie;

/* Work to be done at about one time. */
typedef struct gy_slice {
    uint32_t band;
    gy_ticks work;
} gy_slice;

typedef struct gy_level {
    uint32_t nodes;
    /* Ties of node u: tie[first[u] .. first[u + 1]); those from after[u] on lead to successors. */
    size_t *first, *after;
    GY_VEC(gy_tie) tie;
    gy_ticks *work;      /* per node, on a typical device */
    int64_t *bytes;      /* per node: what it leaves in its memory */
    uint32_t *kind;      /* per node: which devices it may run on; clusters are of one kind */
    size_t *slice_first; /* nodes + 1 */
    GY_VEC(gy_slice) slice;
    uint32_t *up; /* per node: its node of the next level */
} gy_level;

/* Tasks, of which `to` is listed later, that read the same rows of an input. */
typedef struct gy_shared_tie {
    uint32_t from, to;
    int64_t bytes;
    gy_ticks cost;
} gy_shared_tie;

/* Which clusters are too large: work of one, and of one of a single depth as a fraction of all work of that depth. */
typedef struct gy_grain {
    gy_ticks most;
    uint32_t per_depth;
} gy_grain;

typedef struct gy_levels {
    GY_VEC(gy_level) at;
    uint32_t bands, kinds, devices;
    GY_VEC(uint8_t) allowed;      /* kinds x devices */
    GY_VEC(gy_shared_tie) shared; /* more ties of the finest level, by `to`; none unless they were asked for */
    gy_grain grain;
    size_t acyclic; /* levels up to this one are free of circles */
    uint32_t shift; /* times are in units of 2^shift ticks, so that no sum of them overflows */
} gy_levels;

/* The finest level (finest.c): a node per task, ties from the dependencies and of `shared`, equally many units of work
 * in each band of falling rank. Collectives are no work. What many read costs little per reader: it is brought to a
 * device once. false: out of memory. */
bool gy_levels_begin(gy_levels *l, const gy_plan *p, const gy_rank *rank, uint32_t bands);
/* `at[0]` is there. Adds levels while there are more than `parts` nodes, free of circles, then while there are more
 * than `groups` nodes, with or without. false: out of memory. */
bool gy_levels_coarsen(gy_levels *l, uint32_t parts, uint32_t groups);
/* The next level. `up` of the last one holds representatives (a node of the same cluster, which represents itself), and
 * afterwards numbers. false: out of memory. */
bool gy_levels_contract(gy_levels *l);
void gy_levels_free(gy_levels *l);
/* Room for a level, but for ties and slices, as the next. NULL: out of memory. */
gy_level *gy_levels_add(gy_levels *l, uint32_t nodes);

/* ---- the rounds (clusters.c): fill `up` with representatives. false: out of memory ---- */

typedef bool (*gy_clustering)(const gy_level *l, const gy_grain *grain, uint32_t *up);
bool gy_cluster_in_trees(const gy_level *l, const gy_grain *grain, uint32_t *up);
bool gy_cluster_out_trees(const gy_level *l, const gy_grain *grain, uint32_t *up);
bool gy_cluster_siblings(const gy_level *l, const gy_grain *grain, uint32_t *up);
/* Pairs with much to tell each other, whatever circles that makes. */
bool gy_cluster_neighbours(const gy_level *l, const gy_grain *grain, uint32_t *up);

/* Nodes in a topological order, or with fewer than all in `count` if there is a circle. false: out of memory. */
bool gy_level_sort(const gy_level *l, uint32_t *order, uint32_t *count);

#endif
