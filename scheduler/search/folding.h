/* SPDX-License-Identifier: Apache-2.0 */
/* The graph folded over time: families of tasks (policies/partition/families.h) as units for search. */
#ifndef GY_SCHEDULER_SEARCH_FOLDING_H
#define GY_SCHEDULER_SEARCH_FOLDING_H

#include "scheduler/search/candidate.h"
#include "scheduler/search/decode.h"

/* Tasks of unit u: member[first_member[u] .. first_member[u + 1]), as in gy_model. Units are numbered by the rows that
 * they write. */
typedef struct gy_folding {
    uint32_t units, *unit, *member;
    size_t *first_member;
    uint32_t *count; /* per device: room to count in */
    gy_ticks *load;  /* and to sum up in */
} gy_folding;

/* `units` is 0 where families are small, or where tasks have to be kept together or apart anyway. E_NOMEM;
 * gy_folding_free in any case. */
gantry_status gy_folding_make(gy_folding *f, const gy_model *m, gantry_error *err);
void gy_folding_free(gy_folding *f);
/* Gathers each family on the device that has most of it by now. */
void gy_folding_gather(const gy_folding *f, const gy_model *m, gy_candidate *c);
/* Deals families out in their order, in so many lots: each to the device that would have done all of its own first. Of
 * devices that are alike that is one after the other; with as many lots as devices, neighbours are together. There are
 * no more lots than units. The order stays. */
void gy_folding_deal(const gy_folding *f, const gy_model *m, uint32_t lots, gy_candidate *c);
/* Pairs of devices exchange all that they have, as long as the model likes that: c->model is that of the decode. Stops
 * after `budget` evaluations; returns how many it made. */
uint64_t gy_folding_exchange(gy_decode *d, gy_candidate *c, uint64_t budget);

#endif
