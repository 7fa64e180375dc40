/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Static orders of the search for offsets: which of two boxes goes first where both could begin equally low. Small
 * changes of the order make the search find a solution at once or never, so there are several.
 * Every key is a number of sections, boxes or bytes, so an order does not depend on the unit that time is counted in.
 */
#include "scheduler/pack/offsets_parts.h"

#include <stdlib.h>

/* Letters, larger first: A size times sections; C sections; O boxes that it meets; B size times these; T most bytes in
 * a section of it; Z size. The first letter decides, the next among equals. */
static const char *const orders[GY_OFFSETS_ORDERS] = { "CAT", "TAC", "TCA", "OBT", "TOB", "CBT" };

static uint64_t crowd_of(const gy_offset_problem *p, const gy_offset_box *b)
{
    uint64_t most = 0;
    for (uint32_t s = b->first; s < b->last; s++)
        most = p->load[s] > most ? p->load[s] : most;
    return most;
}

static double key_of(const gy_offset_problem *p, uint32_t box, char letter)
{
    const gy_offset_box *b = &p->box[box];
    size_t meets = p->meet_first[box + 1] - p->meet_first[box];
    switch (letter) {
    case 'A':
        return (double)b->size * (b->last - b->first);
    case 'B':
        return (double)b->size * (double)meets;
    case 'C':
        return b->last - b->first;
    case 'O':
        return (double)meets;
    case 'T':
        return (double)crowd_of(p, b);
    default:
        return (double)b->size;
    }
}

static int by_rank(const void *a, const void *b)
{
    const gy_offset_rank *x = a, *y = b;
    for (size_t i = 0; i < GY_OFFSETS_KEYS; i++)
        if (x->key[i] != y->key[i])
            return x->key[i] > y->key[i] ? -1 : 1;
    return x->box < y->box ? -1 : x->box > y->box;
}

void gy_offsets_rank(const gy_offset_problem *p, uint32_t order, gy_offset_rank *rank)
{
    for (uint32_t i = 0; i < p->boxes; i++) {
        rank[i].box = i;
        for (size_t k = 0; k < GY_OFFSETS_KEYS; k++)
            rank[i].key[k] = key_of(p, i, orders[order][k]);
    }
    qsort(rank, p->boxes, sizeof *rank, by_rank);
}
