/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Offsets one after the other: each box takes the smallest gap that is large enough between the boxes that it meets, or
 * goes on top of them (best fit; Y. Pisarchyk, J. Lee, "Efficient Memory Management for Deep Neural Net Inference",
 * 2020, place by size and by the crowd of a section). The order decides, so several are tried.
 */
#include "scheduler/pack/offsets_parts.h"

#include "base/memory.h"
#include <stdlib.h>
#include <string.h>

#define MANY 32768 /* boxes: then only the order that looks at few of them; the others take some seconds here */

typedef enum order { BY_START, BY_SIZE, BY_AREA, BY_LENGTH, BY_CROWD, BY_END, ORDERS } order;

typedef struct greedy {
    const gy_offset_problem *p;
    double *key;               /* per box: larger comes first */
    uint32_t *sequence;        /* boxes in the order in which they are placed */
    uint32_t *placed, placed_; /* boxes by offset */
    uint64_t *offset;
} greedy;

static uint64_t most_load(const gy_offset_problem *p, const gy_offset_box *b)
{
    uint64_t most = 0;
    for (uint32_t s = b->first; s < b->last; s++)
        most = p->load[s] > most ? p->load[s] : most;
    return most;
}

static double key_of(const gy_offset_problem *p, const gy_offset_box *b, order by)
{
    switch (by) {
    case BY_SIZE:
        return (double)b->size;
    case BY_AREA:
        return (double)b->size * (b->last - b->first);
    case BY_LENGTH:
        return b->last - b->first;
    case BY_CROWD:
        return (double)most_load(p, b);
    case BY_START:
        return (double)(p->sections - b->first);
    case BY_END:
        return (double)b->last;
    case ORDERS:
        break;
    }
    return 0;
}

static int by_key(const void *a, const void *b, void *context)
{
    const greedy *g = context;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    if (g->key[x] != g->key[y])
        return g->key[x] > g->key[y] ? -1 : 1;
    if (g->p->box[x].size != g->p->box[y].size)
        return g->p->box[x].size > g->p->box[y].size ? -1 : 1;
    return x < y ? -1 : x > y;
}

static bool meets(const gy_offset_box *a, const gy_offset_box *b)
{
    return a->first < b->last && b->first < a->last;
}

/* The smallest gap, the lowest of equals; else on top of all it meets. */
static uint64_t best_gap(const greedy *g, const gy_offset_box *b)
{
    uint64_t end = 0, least = UINT64_MAX, at = 0;
    for (uint32_t i = 0; i < g->placed_; i++) {
        const gy_offset_box *other = &g->p->box[g->placed[i]];
        if (!meets(b, other))
            continue;
        uint64_t begin = gy_offset_align(end, b->align), low = g->offset[g->placed[i]], top = low + other->size;
        if (low >= begin && low - begin >= b->size && low - begin < least) {
            least = low - begin;
            at = begin;
        }
        end = top > end ? top : end;
    }
    return least == UINT64_MAX ? gy_offset_align(end, b->align) : at;
}

static void put(greedy *g, uint32_t box, uint64_t offset)
{
    uint32_t low = 0, high = g->placed_;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (g->offset[g->placed[middle]] <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    memmove(&g->placed[low + 1], &g->placed[low], (g->placed_ - low) * sizeof *g->placed);
    g->placed[low] = box;
    g->placed_++;
    g->offset[box] = offset;
}

/* Boxes come by their beginnings: those that have ended meet none of the rest. */
static void drop_ended(greedy *g, uint32_t section)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < g->placed_; i++)
        if (g->p->box[g->placed[i]].last > section)
            g->placed[kept++] = g->placed[i];
    g->placed_ = kept;
}

static uint64_t place_all(greedy *g, order by)
{
    const gy_offset_problem *p = g->p;
    uint64_t peak = 0;
    for (uint32_t i = 0; i < p->boxes; i++) {
        g->sequence[i] = i;
        g->key[i] = key_of(p, &p->box[i], by);
    }
    qsort_r(g->sequence, p->boxes, sizeof *g->sequence, by_key, g);
    g->placed_ = 0;
    for (uint32_t i = 0; i < p->boxes; i++) {
        const gy_offset_box *b = &p->box[g->sequence[i]];
        if (by == BY_START)
            drop_ended(g, b->first);
        uint64_t at = best_gap(g, b);
        put(g, g->sequence[i], at);
        peak = at + b->size > peak ? at + b->size : peak;
    }
    return peak;
}

bool gy_offsets_greedy(const gy_offset_problem *p, uint64_t *offset, uint64_t *peak)
{
    size_t count = (size_t)p->boxes + 1;
    greedy g = { .p = p };
    g.key = gy_calloc(count, sizeof *g.key);
    g.sequence = gy_calloc(count, sizeof *g.sequence);
    g.placed = gy_calloc(count, sizeof *g.placed);
    g.offset = gy_calloc(count, sizeof *g.offset);
    bool done = g.key && g.sequence && g.placed && g.offset;
    *peak = UINT64_MAX;
    order orders = p->boxes > MANY ? BY_START + 1 : ORDERS;
    for (order by = BY_START; by < orders && done && *peak > p->capacity; by++) {
        uint64_t reached = place_all(&g, by);
        if (reached >= *peak)
            continue;
        *peak = reached;
        memcpy(offset, g.offset, p->boxes * sizeof *offset);
    }
    gy_free(g.key);
    gy_free(g.sequence);
    gy_free(g.placed);
    gy_free(g.offset);
    return done;
}
