/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Recognising collectives among the copies of a draft. Copies that a reader needed together are a *batch*: those of one
 * access, and those of all accesses of one task. Batches of one value that can all begin where the first of them stands
 * make a *cluster*:
 *
 *   broadcast    three or more memories (two, if there is a halfway) get the same rows from one instance
 *   scatter      as many get different rows from one instance
 *   gather       one memory gets rows from three or more
 *   all_gather   several memories get rows from three or more, each row from the same place, and all get all of them
 *   all_to_all   three or more memories get rows from each other, each from all others rows that no other gets
 *
 * A copy that goes on from halfway (a staged or relayed route) counts as one from where its rows were before, and all
 * that go on from the same place are in one cluster or in none.
 *
 * A cluster becomes one op if that ends no later than its copies would. Host memory takes no part.
 */
#ifndef GY_SCHEDULER_LOWER_FIND_COLLECTIVES_H
#define GY_SCHEDULER_LOWER_FIND_COLLECTIVES_H

#include "scheduler/collective/collective.h"
#include "scheduler/plan/plan.h"

/* Rows of one instance. */
typedef struct gy_span {
    uint32_t instance, memory;
    int64_t first, last;
} gy_span;
typedef GY_VEC(gy_span) gy_spans;

typedef enum gy_cluster_kind {
    GY_CLUSTER_ONE /* undecided: one piece */,
    GY_CLUSTER_SAME,
    GY_CLUSTER_PARTS,
    GY_CLUSTER_MANY
} gy_cluster_kind;

typedef struct gy_cluster {
    uint32_t value;
    uint8_t kind;            /* gy_cluster_kind */
    uint8_t collective;      /* gantry_collective once it is decided; 0: stays copies */
    GY_VEC(uint32_t) copy;   /* drafts, rising */
    gy_spans read;           /* by first row; different ones only */
    gy_spans write;          /* runs of neighbouring rows */
    GY_VEC(uint32_t) memory; /* destinations, each once */
    gy_way way;
} gy_cluster;
typedef GY_VEC(gy_cluster) gy_clusters;

/* The rows that a copy moves: `use` 0 where it has them from, before its halfway if it goes on from there; 1 where it
 * brings them. */
gy_span gy_copy_span(const gy_plan *p, uint32_t draft, uint32_t use);
/* Replaces the copies of each cluster that has a collective, and those to halfway, by that op, where the first of them
 * stood. */
gantry_status gy_clusters_merge(gy_plan *p, const gy_clusters *clusters, gantry_error *err);
/* Do enough memories get rows from one place? Three do; two only where there is a halfway, at which rows for both wait
 * for each other. */
bool gy_cluster_has_readers(const gy_plan *p, const gy_cluster *c);
/* How many memories it reads from. */
size_t gy_cluster_sources(const gy_cluster *c);
/* Sets `collective` and `way` if that is not slower than the copies. */
gantry_status gy_cluster_decide(const gy_plan *p, gy_cluster *c, gantry_error *err);

#endif
