/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Offsets for things that share a space for a while: given when each is there and how large it is, find offsets so that
 * no two that are there at one time overlap, below a capacity. (Dynamic storage allocation; NP-complete.)
 *
 * First greedy (offsets_greedy.c): one after the other, in several orders, each into the smallest gap that is large
 * enough. If none of these fits, a search (offsets_search.c) in the manner of M. D. Moffitt, "MiniMalloc: A Lightweight
 * Memory Allocator for Hardware-Accelerated Machine Learning", ASPLOS 2023, with a stronger bound and a memory of
 * states that failed. It ends after a number of steps, never by a clock: the same input gives the same offsets.
 */
#ifndef GY_SCHEDULER_PACK_OFFSETS_H
#define GY_SCHEDULER_PACK_OFFSETS_H

#include <gantry/status.h>
#include <stdbool.h>

/* Time is whatever the caller counts in: only the order of beginnings and ends matters. Nothing is there if first >=
 * last; such an item gets offset 0. */
typedef struct gy_offset_item {
    int64_t first, last; /* half open */
    uint64_t size;       /* bytes */
    uint64_t align;      /* of the offset, any number of bytes; 0 as 1 */
} gy_offset_item;

typedef struct gy_offset_answer {
    bool fits;      /* peak <= capacity */
    bool proved;    /* no offsets fit: there is too much at one time, or the search saw all there is to see */
    uint64_t peak;  /* of the offsets given */
    uint64_t load;  /* most bytes that are there at one time: no offsets have a lower peak */
    uint64_t steps; /* of the search; 0: greedy was enough, or was all there was */
} gy_offset_answer;

#define GY_OFFSETS_ITEMS 2048 /* parts of a problem with more items are left to greedy */

/*
 * Fills `offset` (count entries) with offsets that fit, or with the best that were found. `budget`: steps of the
 * search, 0 for greedy alone. Sizes must add up to less than 2^62: E_INVALID. E_NOMEM.
 */
gantry_status gy_offsets_find(const gy_offset_item *item, size_t count, uint64_t capacity, uint64_t budget,
                              uint64_t *offset, gy_offset_answer *answer, gantry_error *err);

#endif
