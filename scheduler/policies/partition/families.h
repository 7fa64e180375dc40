/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Families: chains of tasks of which each goes on with what the one before it has made, folded over time. A part of a
 * stencil over all steps is one, a tile of a product over all its summands, a tile of a factorisation over all updates.
 * Who keeps a family together moves no more than what families tell each other: owner computes (D. Callahan,
 * K. Kennedy, Compiling Programs for Distributed-Memory Multiprocessors, J. Supercomputing 2, 1988), for graphs in
 * which nobody has said who owns what. Chains are linear clusters along heavy edges (S. J. Kim, J. C. Browne, A General
 * Approach to Mapping of Parallel Computation upon Multiprocessor Architectures, ICPP 1988), each chosen locally.
 *
 * A task goes on with the predecessor whose rows it changes in place; else with the one before it that read the same
 * rows of an input, if these are most of what it touches; else with the predecessor it has most bytes of, if it has no
 * more of the inputs: of equals one that wrote the same rows of its buffer, then the one in the middle. Of several that
 * would go on with one task, the strongest by the same rule does, then the one of most work; the others take one that
 * nobody goes on with and that they have as much of. For who is left a family begins, unless it overwrites rows of one.
 * What is alone then and takes little joins the family that it has most from, or that reads the same inputs.
 *
 * All tasks of a family may run on the same devices; collectives are in none.
 *
 * What several tasks read of the inputs is a tie between each reader and the next: it is brought up once for a device.
 */
#ifndef GY_SCHEDULER_POLICIES_PARTITION_FAMILIES_H
#define GY_SCHEDULER_POLICIES_PARTITION_FAMILIES_H

#include "scheduler/policies/partition/levels.h"

/* Per task, a task by which its family is known (which is known by itself). O(dependencies + accesses). false: out of
 * memory. */
bool gy_families_find(const gy_plan *p, uint32_t *family);
/* The first write of a task; NULL: it has none. */
const gy_access *gy_families_place(const gy_plan *p, uint32_t task);
/* Before gy_levels_begin: fills `shared`, the ties of readers of the same inputs. false: out of memory. */
bool gy_families_share(gy_levels *l, const gy_plan *p);

#endif
