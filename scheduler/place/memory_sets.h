/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Sets of memories as numbers of 64 bits, for maps that have such a payload. With few memories a set is its bits; with
 * more it is the number of a set that is kept once (hash consing), and unions that were made before are looked up. The
 * empty set is 0 in both. A set may have a mark beside its memories.
 */
#ifndef GY_SCHEDULER_PLACE_MEMORY_SETS_H
#define GY_SCHEDULER_PLACE_MEMORY_SETS_H

#include "base/map.h"
#include "base/vec.h"

enum { GY_MEMORY_SET_FEW = 62 };
#define GY_MEMORY_SET_MARK (UINT64_C(1) << 62)

typedef struct gy_memory_sets {
    uint32_t memories, words; /* words: of a kept set; 0: sets are their bits */
    GY_VEC(uint64_t) word;    /* of kept sets, one behind the other */
    gy_map number;            /* by the hash of its words: 1 + the number of a set */
    gy_map made;              /* by two numbers: their union */
    uint64_t *room;           /* for one set that may be new */
    bool failed;              /* out of memory: sets mean nothing any more */
} gy_memory_sets;

/* gy_memory_sets_free, also if it failed. */
void gy_memory_sets_make(gy_memory_sets *s, uint32_t memories);
void gy_memory_sets_free(gy_memory_sets *s);

/* For many memories. */
uint64_t gy_memory_sets_one(gy_memory_sets *s, uint32_t memory);
uint64_t gy_memory_sets_union(gy_memory_sets *s, uint64_t a, uint64_t b);
uint64_t gy_memory_sets_common(gy_memory_sets *s, uint64_t a, uint64_t b);
uint64_t gy_memory_sets_without(gy_memory_sets *s, uint64_t set, uint32_t memory);
uint64_t gy_memory_sets_all(gy_memory_sets *s);
bool gy_memory_sets_has(const gy_memory_sets *s, uint64_t set, uint32_t memory);
bool gy_memory_sets_several(const gy_memory_sets *s, uint64_t set);

static inline uint64_t gy_set_one(gy_memory_sets *s, uint32_t memory)
{
    return s->words ? gy_memory_sets_one(s, memory) : UINT64_C(1) << memory;
}
/* Marked if one of them is. */
static inline uint64_t gy_set_union(gy_memory_sets *s, uint64_t a, uint64_t b)
{
    return s->words ? gy_memory_sets_union(s, a, b) : a | b;
}
/* Marked if both are. */
static inline uint64_t gy_set_common(gy_memory_sets *s, uint64_t a, uint64_t b)
{
    return s->words ? gy_memory_sets_common(s, a, b) : a & b;
}
static inline uint64_t gy_set_without(gy_memory_sets *s, uint64_t set, uint32_t memory)
{
    return s->words ? gy_memory_sets_without(s, set, memory) : set & ~(UINT64_C(1) << memory);
}
static inline bool gy_set_has(const gy_memory_sets *s, uint64_t set, uint32_t memory)
{
    return s->words ? gy_memory_sets_has(s, set, memory) : set >> memory & 1;
}
/* May it have the memory or one behind it? Of a set without a mark. */
static inline bool gy_set_goes_on(const gy_memory_sets *s, uint64_t set, uint32_t memory)
{
    return s->words ? set && memory < s->memories : set >> memory;
}
/* Has it two memories or more? */
static inline bool gy_set_several(const gy_memory_sets *s, uint64_t set)
{
    set &= ~GY_MEMORY_SET_MARK;
    return s->words ? gy_memory_sets_several(s, set) : set & (set - 1);
}
static inline uint64_t gy_set_all(gy_memory_sets *s)
{
    return s->words ? gy_memory_sets_all(s) : (UINT64_C(1) << s->memories) - 1;
}

#endif
