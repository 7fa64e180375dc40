/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Simulated annealing over order and devices (Kirkpatrick, Gelatt, Vecchi, Science 220, 1983). A step moves one task to
 * another place in the order, to another device (sometimes with a task that it exchanges data with), or both; half of
 * the tasks it looks at are on the chain that decides the makespan. It is kept if the makespan grows by no more than an
 * exponential variate whose mean, the temperature, falls to 1/256 in eight halvings.
 *
 * Tasks that must be on one device are a unit, and move together. For a while whole families (families.h) may be the
 * units, so that a step can do what takes many for the worse otherwise: then some steps exchange two of them.
 */
#ifndef GY_SCHEDULER_SEARCH_ANNEAL_H
#define GY_SCHEDULER_SEARCH_ANNEAL_H

#include "scheduler/search/candidate.h"
#include "scheduler/search/decode.h"
#include "scheduler/search/folding.h"
#include "scheduler/search/random.h"
#include "scheduler/search/room.h"

typedef struct gy_anneal {
    const gy_model *m;
    gy_decode decode;
    uint32_t *order, *position;    /* position: the inverse of order */
    uint32_t *chain, chained;      /* tasks that decide the makespan, as of a short while ago */
    const uint32_t *unit, *member; /* as in gy_model: of the model, or families */
    const size_t *first_member;
    bool folded;   /* families */
    gy_room *room; /* borrowed: what lacks room counts, too; NULL: it does not */
    gy_random random;
    uint64_t evaluations; /* of all runs so far */
} gy_anneal;

gantry_status gy_anneal_init(gy_anneal *a, const gy_model *m, uint64_t seed, gantry_error *err);
void gy_anneal_free(gy_anneal *a);
/* From now on families are the units, or again those of the model. `f` is borrowed until then. */
void gy_anneal_fold(gy_anneal *a, const gy_folding *f);
void gy_anneal_unfold(gy_anneal *a);
/* Begins with `c` and leaves the best that was found there, with its makespan; never a worse one. `budget` counts
 * evaluations; `heat` is the first temperature. Ends early when nothing can be better. */
void gy_anneal_run(gy_anneal *a, gy_candidate *c, uint64_t budget, gy_ticks heat);

/* Of `tries` steps from `c` the one that the model likes best, as a candidate; false: there is no step. */
bool gy_anneal_neighbour(gy_anneal *a, const gy_candidate *c, uint32_t tries, gy_candidate *to);

#endif
