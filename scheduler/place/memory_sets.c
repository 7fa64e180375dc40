/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/place/memory_sets.h"

#include <string.h>

enum { BITS = 64 };

static uint64_t *words_of(const gy_memory_sets *s, uint64_t set)
{
    return s->word.at + set * s->words;
}

/* The number of the set in `room`, which is kept if there is none like it. Sets of one hash follow each other. */
static uint64_t keep(gy_memory_sets *s)
{
    size_t bytes = s->words * sizeof *s->room;
    uint64_t hash = gy_hash_bytes(s->room, bytes, 0), found = 0;
    for (; gy_map_get(&s->number, hash, &found); hash++)
        if (memcmp(words_of(s, found - 1), s->room, bytes) == 0)
            return found - 1;
    size_t at = s->word.count;
    if (s->failed || !gy_vec_add(&s->word, s->words) || !gy_map_put(&s->number, hash, at / s->words + 1)) {
        s->failed = true;
        return 0;
    }
    memcpy(s->word.at + at, s->room, bytes);
    return at / s->words;
}

void gy_memory_sets_make(gy_memory_sets *s, uint32_t memories)
{
    *s = (gy_memory_sets){ .memories = memories };
    if (memories <= GY_MEMORY_SET_FEW)
        return;
    s->words = (memories + BITS - 1) / BITS;
    s->room = gy_calloc(s->words, sizeof *s->room);
    s->failed = !s->room;
    if (s->room)
        (void)keep(s); /* the empty set is number 0 */
}

void gy_memory_sets_free(gy_memory_sets *s)
{
    gy_vec_free(&s->word);
    gy_map_free(&s->number);
    gy_map_free(&s->made);
    gy_free(s->room);
}

/* Copies the set to `room`. False: there is no memory for sets. */
static bool take(gy_memory_sets *s, uint64_t set)
{
    if (!s->failed)
        memcpy(s->room, words_of(s, set), s->words * sizeof *s->room);
    return !s->failed;
}

uint64_t gy_memory_sets_one(gy_memory_sets *s, uint32_t memory)
{
    if (!take(s, 0))
        return 0;
    s->room[memory / BITS] = UINT64_C(1) << memory % BITS;
    return keep(s);
}

uint64_t gy_memory_sets_all(gy_memory_sets *s)
{
    if (!take(s, 0))
        return 0;
    for (uint32_t m = 0; m < s->memories; m++)
        s->room[m / BITS] |= UINT64_C(1) << m % BITS;
    return keep(s);
}

static uint64_t bare(uint64_t set)
{
    return set & ~GY_MEMORY_SET_MARK;
}

static uint64_t unite(gy_memory_sets *s, uint64_t low, uint64_t high)
{
    uint64_t key = high << 32 | low, found;
    if (low == 0 || low == high)
        return high;
    if (gy_map_get(&s->made, key, &found))
        return found;
    if (!take(s, low))
        return 0;
    for (uint32_t i = 0; i < s->words; i++)
        s->room[i] |= words_of(s, high)[i];
    found = keep(s);
    s->failed = s->failed || !gy_map_put(&s->made, key, found);
    return found;
}

uint64_t gy_memory_sets_union(gy_memory_sets *s, uint64_t a, uint64_t b)
{
    uint64_t x = bare(a), y = bare(b);
    return unite(s, x < y ? x : y, x < y ? y : x) | ((a | b) & GY_MEMORY_SET_MARK);
}

static uint64_t intersect(gy_memory_sets *s, uint64_t a, uint64_t b)
{
    if (a == 0 || b == 0 || a == b || !take(s, a))
        return a == b ? a : 0;
    for (uint32_t i = 0; i < s->words; i++)
        s->room[i] &= words_of(s, b)[i];
    return keep(s);
}

uint64_t gy_memory_sets_common(gy_memory_sets *s, uint64_t a, uint64_t b)
{
    return intersect(s, bare(a), bare(b)) | (a & b & GY_MEMORY_SET_MARK);
}

uint64_t gy_memory_sets_without(gy_memory_sets *s, uint64_t set, uint32_t memory)
{
    if (!gy_memory_sets_has(s, set, memory) || !take(s, bare(set)))
        return set;
    s->room[memory / BITS] &= ~(UINT64_C(1) << memory % BITS);
    return keep(s) | (set & GY_MEMORY_SET_MARK);
}

bool gy_memory_sets_has(const gy_memory_sets *s, uint64_t set, uint32_t memory)
{
    return !s->failed && words_of(s, bare(set))[memory / BITS] >> memory % BITS & 1;
}

bool gy_memory_sets_several(const gy_memory_sets *s, uint64_t set)
{
    uint64_t before = 0;
    for (uint32_t i = 0; i < s->words && !s->failed; i++) {
        uint64_t word = words_of(s, set)[i];
        if (word & (word - 1) || (word && before))
            return true;
        before |= word;
    }
    return false;
}
