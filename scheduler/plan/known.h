/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Plans whose end is known. Of the placements that are tried for one graph on one machine many are alike: policies
 * place alike, a search comes back to where it was, and another way is tried of both. All that the passes after the
 * placement read of it, and of what the attempt asks for, is in a hash. A plan with the hash of one that was carried
 * through is *recalled*: it is known how it ends, and it is carried through only where its schedule is wanted.
 *
 * Plans that may spill, or that starts overlap in, are not kept; nor are those that did not fit.
 */
#ifndef GY_SCHEDULER_PLAN_KNOWN_H
#define GY_SCHEDULER_PLAN_KNOWN_H

#include "base/map.h"
#include "base/ticks.h"
#include "base/vec.h"

struct gy_plan;

/* How a plan ended: by that the best is chosen, and by that it is chosen which other ways are tried. */
typedef struct gy_plan_end {
    gy_ticks makespan;
    gy_ticks small_copies;  /* as in the plan, from here on */
    uint64_t moved, memory; /* bytes: usage.h */
    uint32_t devices;       /* that are used */
    uint32_t collectives, passed_over, batched;
    gy_ticks teams_spare;
    bool passed_makers, hops, packed, teams_joined, turns, overtakes;
    bool replicable, replicated; /* replicas would be there; are there */
} gy_plan_end;

typedef struct gy_known_plans {
    const struct gantry_graph *graph; /* NULL: that of whoever owns them */
    gy_map number;                    /* hash -> index of `end` */
    GY_VEC(gy_plan_end) end;
} gy_known_plans; /* zero-initialised is ready */

/* Hash of all that the passes after the placement read of it. */
uint64_t gy_placement_hash(const struct gy_plan *p, uint64_t seed);
/* For a plan that is placed: its hash, and whether it may be known at all. */
bool gy_known_hash(const struct gy_plan *p, uint64_t *hash);
/* Fills in `end` and `recalled` of the plan. false: it is not known. */
bool gy_known_recall(struct gy_plan *p, uint64_t hash);
/* Fills in `end` of a plan that was carried through. */
void gy_plan_note_end(struct gy_plan *p);
/* Keeps it under that hash, which it was given before it was carried through. false: out of memory. */
bool gy_known_keep(struct gy_plan *p, uint64_t hash);
void gy_known_free(gy_known_plans *known);

#endif
