/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside of the offset packer. Time is cut into *sections*: the maximal sets of items that are all there at one time
 * (where something began last and something ends next). An item is there in a run of neighbouring sections, and two
 * items meet if and only if they have a section in common.
 */
#ifndef GY_SCHEDULER_PACK_OFFSETS_PARTS_H
#define GY_SCHEDULER_PACK_OFFSETS_PARTS_H

#include "scheduler/pack/offsets.h"

typedef struct gy_offset_box {
    uint64_t size, align; /* align >= 1 */
    uint32_t first, last; /* sections, half open */
    uint32_t item;        /* of the caller */
} gy_offset_box;

/* Items of one span of time that no item reaches out of; at least one, none empty. */
typedef struct gy_offset_problem {
    gy_offset_box *box; /* by first section, then item */
    uint32_t boxes, sections;
    uint64_t *load; /* per section: bytes */
    uint32_t *meet; /* box i meets box meet[meet_first[i]] ..., rising; filled for the search only */
    size_t *meet_first;
    uint64_t capacity;
} gy_offset_problem;

static inline uint64_t gy_offset_align(uint64_t offset, uint64_t align)
{
    uint64_t over = offset % align;
    return over ? offset + (align - over) : offset;
}

/* Tries all orders until one fits; `offset` (per box) and *peak are those of the best. false: out of memory. */
bool gy_offsets_greedy(const gy_offset_problem *p, uint64_t *offset, uint64_t *peak);

/* A static order: letters of offsets_rank.c. */
#define GY_OFFSETS_ORDERS 6
#define GY_OFFSETS_KEYS   3
typedef struct gy_offset_rank {
    double key[GY_OFFSETS_KEYS]; /* larger comes first */
    uint32_t box;
} gy_offset_rank;
/* Fills `rank` (boxes entries) with all boxes in the order. */
void gy_offsets_rank(const gy_offset_problem *p, uint32_t order, gy_offset_rank *rank);

typedef enum gy_offset_end { GY_OFFSETS_FOUND, GY_OFFSETS_NONE, GY_OFFSETS_GAVE_UP, GY_OFFSETS_NOMEM } gy_offset_end;
/* Offsets that fit the capacity: FOUND, with `offset` filled; NONE: there are none; or the budget is used up.
 * Takes what it uses off *budget. */
gy_offset_end gy_offsets_search(gy_offset_problem *p, uint64_t *budget, uint64_t *offset);

#endif
