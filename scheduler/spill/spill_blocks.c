/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Addresses, given out as the walk goes. A block belongs to an old instance from the op before which it comes until the
 * last op that uses it, or until it leaves: within these ops nothing else has its bytes, which is what the packer asks
 * for. Best fit; and where no hole is large enough, the instances in one range leave, of all ranges that would
 * do the one whose nearest next use is furthest.
 */
#include "scheduler/spill/spill.h"

#include "base/error.h"
#include <string.h>

static bool is_lodger(const gy_spill *w, uint32_t memory, const gy_block *b)
{
    return gy_spill_old(w, b->x)->memory != memory;
}

static bool is_dead(const gy_spill *w, uint32_t memory, uint32_t i, const gy_block *b)
{
    const gy_held *h = &w->held[b->x];
    if (is_lodger(w, memory, b))
        return h->backing != b->instance || h->until < i || h->last < i;
    return h->now != b->instance || h->last < i;
}

/* The hole from `offset` on is better, the less is: in size, or in the way there from what was given out last. */
static uint64_t rank_of(const gy_spill *w, const gy_ground *g, uint64_t offset, uint64_t bytes)
{
    if (!w->how.way->onward)
        return bytes;
    return offset >= g->onward ? offset - g->onward : offset + g->end;
}

/* Drops what is no longer there, and finds the smallest hole that is large enough, the lowest of equals; or the next
 * one that is large enough. */
static bool find_hole(const gy_spill *w, uint32_t memory, uint32_t i, uint64_t bytes)
{
    gy_ground *g = &w->ground[memory];
    uint64_t end = g->floor, least = UINT64_MAX;
    size_t kept = 0, count = g->at.count;
    g->at.count = 0; /* of what is kept so far */
    for (size_t n = 0; n <= count; n++) {
        if (n < count && is_dead(w, memory, i, &g->at.at[n]))
            continue;
        uint64_t begin = n < count ? g->at.at[n].offset : g->end;
        /* The end of the last block may lie in the middle of a hole. */
        bool inside = w->how.way->onward && end < g->onward && begin > g->onward && begin - g->onward >= bytes;
        uint64_t from = inside ? g->onward : end;
        if (begin >= from && begin - from >= bytes && rank_of(w, g, from, begin - from) < least) {
            least = rank_of(w, g, from, begin - from);
            g->hole = kept;
            g->hole_offset = from;
        }
        if (n == count)
            break;
        end = begin + g->at.at[n].bytes;
        g->at.at[kept++] = g->at.at[n];
    }
    g->at.count = kept;
    g->hole_bytes = least == UINT64_MAX ? 0 : bytes;
    return least != UINT64_MAX;
}

bool gy_spill_has_hole(gy_spill *w, uint32_t memory, uint32_t i, uint64_t bytes)
{
    return !w->ground[memory].ours || !bytes || find_hole(w, memory, i, bytes);
}

gantry_status gy_spill_settle(gy_spill *w, uint32_t x, uint32_t instance, uint32_t i, gantry_error *err)
{
    gy_instance *in = &w->p->draft.instance.at[instance];
    gy_ground *g = &w->ground[in->memory];
    gy_block b = { .bytes = w->held[x].bytes, .x = x, .instance = instance };
    if (!g->ours || in->space != GY_SPACE_SLAB || !b.bytes)
        return GANTRY_OK;
    if (g->hole_bytes != b.bytes && !find_hole(w, in->memory, i, b.bytes))
        return gy_spill_cannot(w, in->memory, i, err);
    b.offset = g->hole_offset;
    if (!gy_vec_push(&g->at, b))
        return gy_fail_nomem(err);
    memmove(&g->at.at[g->hole + 1], &g->at.at[g->hole], (g->at.count - 1 - g->hole) * sizeof b);
    g->at.at[g->hole] = b;
    g->hole_bytes = 0;
    in->offset = b.offset;
    g->onward = b.offset + b.bytes;
    return GANTRY_OK;
}

/* ---- neighbours that leave ---- */

/* When the block is asked for next; 0: it cannot leave. */
static uint32_t next_of(const gy_spill *w, uint32_t memory, uint32_t i, const gy_block *b)
{
    const gy_held *h = &w->held[b->x];
    if (is_lodger(w, memory, b))
        return w->stuck[b->x] == i + 1 || h->now != GY_NONE || h->from != GY_NONE ? 0 : h->until;
    return h->pins || w->seen[b->x] == i + 1 ? 0 : gy_spill_next(w, b->x, i);
}

/* Neighbours, blocks [first, last), that could leave for a hole, and how near the nearest of their next uses is. */
typedef struct neighbours {
    size_t first, last;
    uint32_t next;
    uint64_t bytes; /* that leave */
    gy_ticks price; /* what it takes for them to come back, if that is weighed */
} neighbours;

/* Before op i. */
static bool is_better(const neighbours *a, const neighbours *b, uint32_t i)
{
    double x = (double)a->price * (double)(b->next - i), y = (double)b->price * (double)(a->next - i);
    if (x < y || x > y)
        return x < y;
    return a->next != b->next ? a->next > b->next : a->bytes < b->bytes;
}

static gy_ticks price_of(const gy_spill *w, const gy_block *b)
{
    return w->how.way->weigh ? gy_spill_price(w, b->x) : 0;
}

static uint64_t begin_of(const gy_ground *g, size_t n)
{
    return n < g->at.count ? g->at.at[n].offset : g->end;
}

static uint64_t end_before(const gy_ground *g, size_t n)
{
    return n ? g->at.at[n - 1].offset + g->at.at[n - 1].bytes : g->floor;
}

/* One pass, in which the range grows above and shrinks below. Its least next use is the head of a queue: a block that
 * is asked for later than one behind it never matters again. */
static bool choose_neighbours(gy_spill *w, uint32_t memory, uint32_t i, uint32_t from, uint64_t bytes, neighbours *best)
{
    const gy_ground *g = &w->ground[memory];
    gy_ids *next = &w->nearest;
    size_t first = 0;
    uint64_t leaving = 0;
    gy_ticks price = 0;
    *best = (neighbours){ 0 };
    next->count = 0;
    if (!gy_vec_reserve(next, 2 * g->at.count + 2))
        return false;
    uint32_t *queue = next->at + g->at.count + 1; /* indices of blocks */
    size_t head = 0, tail = 0;
    for (size_t n = 0; n < g->at.count; n++) {
        next->at[n] = next_of(w, memory, i, &g->at.at[n]);
        if (next->at[n] < from || !next->at[n]) {
            first = n + 1;
            head = tail = 0;
            leaving = 0;
            price = 0;
            continue;
        }
        while (tail > head && next->at[queue[tail - 1]] >= next->at[n])
            tail--;
        queue[tail++] = (uint32_t)n;
        leaving += g->at.at[n].bytes;
        price += price_of(w, &g->at.at[n]);
        while (first < n && begin_of(g, n + 1) - end_before(g, first + 1) >= bytes) {
            leaving -= g->at.at[first].bytes;
            price -= price_of(w, &g->at.at[first]);
            first++;
        }
        while (queue[head] < first)
            head++;
        neighbours s = { first, n + 1, next->at[queue[head]], leaving, price };
        if (begin_of(g, n + 1) - end_before(g, first) >= bytes && (!best->next || is_better(&s, best, i)))
            *best = s;
    }
    return best->next != 0;
}

gantry_status gy_spill_make_hole(gy_spill *w, uint32_t memory, uint32_t i, uint32_t from, uint64_t bytes, bool *made,
                                 gantry_error *err)
{
    gy_ground *g = &w->ground[memory];
    gantry_status status = GANTRY_OK;
    neighbours s;
    while (!status) {
        *made = gy_spill_has_hole(w, memory, i, bytes);
        if (*made || !choose_neighbours(w, memory, i, from, bytes, &s))
            break;
        w->leaving.count = 0;
        for (size_t n = s.first; n < s.last && !status; n++)
            status = gy_vec_push(&w->leaving, g->at.at[n].x) ? GANTRY_OK : gy_fail_nomem(err);
        for (size_t n = 0; n < w->leaving.count && !status; n++) {
            uint32_t x = w->leaving.at[n];
            bool gone = false, lodger = gy_spill_old(w, x)->memory != memory;
            status = lodger ? gy_spill_move_on(w, x, i, &gone, err) : gy_spill_leave(w, x, i, &gone, err);
            if (!gone)
                *(lodger ? &w->stuck[x] : &w->seen[x]) = i + 1;
        }
    }
    return status;
}
