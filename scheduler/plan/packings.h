/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Packings that were searched. Plans of one graph often ask for the same one: policies place alike, and a device that
 * has all tasks has the same lifetimes whatever moves elsewhere. A question is known by the sizes of the things that
 * share a memory and by which of them meet, not by their numbers, and not by the moments at which they begin and end.
 */
#ifndef GY_SCHEDULER_PLAN_PACKINGS_H
#define GY_SCHEDULER_PLAN_PACKINGS_H

#include "base/vec.h"
#include <stdbool.h>
#include <stdint.h>

typedef struct gy_packing_key {
    uint64_t half[2]; /* two hashes of the question, independent of each other */
} gy_packing_key;

typedef struct gy_packing {
    gy_packing_key key;
    uint64_t budget; /* steps that the search could take */
    uint64_t peak;
    uint64_t *offset; /* of the things, in the order that makes questions alike; NULL: none were found that fit */
    bool proved;      /* no offsets fit: no budget finds any */
} gy_packing;

typedef struct gy_packings {
    GY_VEC(gy_packing) at;
} gy_packings; /* zero-initialised is ready */

/* The answer that a search of so many steps would give; NULL: not known. */
const gy_packing *gy_packings_find(const gy_packings *all, gy_packing_key key, uint64_t budget);
/* Keeps the answer, in place of one that a shorter search gave. Takes the offsets. false: out of memory. */
bool gy_packings_keep(gy_packings *all, const gy_packing *answer);
void gy_packings_free(gy_packings *all);

#endif
