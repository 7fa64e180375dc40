/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The free time of a device: gaps between what is placed on it. A treap by begin, each node with the longest gap below
 * it, so that the earliest gap that is long enough is found without walking over the short ones. O(log n).
 */
#ifndef GY_SCHEDULER_PLACE_GAPS_H
#define GY_SCHEDULER_PLACE_GAPS_H

#include "base/ticks.h"
#include "base/vec.h"
#include <stdbool.h>

typedef struct gy_gap {
    gy_ticks begin, end, longest;
    uint32_t left, right;
    uint64_t rank; /* heap order; a hash of the index: the same on every run */
} gy_gap;

typedef struct gy_gaps {
    GY_VEC(gy_gap) at;
    uint32_t root, free_;
} gy_gaps;

bool gy_gaps_init(gy_gaps *gaps); /* all time from 0 on; false: out of memory */
void gy_gaps_free(gy_gaps *gaps);
/* The earliest begin >= `ready` of `length` free ticks. */
gy_ticks gy_gaps_find(const gy_gaps *gaps, gy_ticks ready, gy_ticks length);
/* Takes [begin, begin + length), which is free. false: out of memory, nothing taken. */
bool gy_gaps_take(gy_gaps *gaps, gy_ticks begin, gy_ticks length);
/* Gives back what was taken last and not given back yet, so that everything is as it was before. Cannot fail. */
void gy_gaps_give(gy_gaps *gaps, gy_ticks begin, gy_ticks length);

#endif
