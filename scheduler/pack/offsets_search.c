/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Depth-first search for offsets below a capacity. Of MiniMalloc (Moffitt 2023):
 *   canonical   boxes are placed by rising offset, each as low as what it meets allows, equal ones by rank: every
 *               solution that cannot be pushed down is found in exactly one order
 *   dominance   no box is placed at or above where another that is left could end: that one would fit below it
 *   sections    what is left in a section must fit above its floor
 *   parts       when no box that is left reaches across a point in time, both sides are solved on their own
 *   hatless     where a box that pushed nothing up led to no solution, nothing else does in its place
 *   restarts    several static orders (ranks, offsets_rank.c), each with a limit of steps that doubles
 * Added here: the bound of a section stacks what is left by where each box can begin at the earliest (one machine with
 * release times); a box that the canonical order has passed by must come to rest on one that is left, and so begins no
 * lower than the lowest of these can end (*support*); and states that failed are remembered by what is left and how low
 * it can go.
 */
#include "base/map.h"
#include "base/vec.h"
#include "scheduler/pack/offsets_parts.h"
#include <stdlib.h>
#include <string.h>

typedef struct change {
    uint64_t *where, old;
} change;

typedef struct search {
    const gy_offset_problem *p;
    uint64_t *low;         /* per box: the lowest offset that what is placed leaves; its offset once it is placed */
    uint8_t *placed;       /* per box */
    uint32_t *rank;        /* per box: in the static order */
    gy_offset_rank *ranks; /* scratch of reset() */
    uint32_t *left;        /* boxes; a part of the problem is a range of it */
    uint64_t *top;         /* per section: end of what is placed */
    uint64_t *stack;       /* per section: scratch of fits() */
    uint32_t *cross;       /* per section: boxes left that are there in the next one too */
    GY_VEC(change) changes;
    GY_VEC(uint32_t) trail;  /* boxes, as they were placed */
    GY_VEC(uint32_t) choice; /* candidates of the nodes above */
    uint64_t *failed;        /* hashes of states */
    uint64_t steps;          /* that are left */
    uint64_t ranking;        /* says which order the ranks are of */
    bool hatless;            /* the box of the last choice pushed nothing up */
    bool nomem;
} search;

/* A range of boxes that are left, and the point up to which the canonical order has come. */
typedef struct part {
    uint32_t begin, end;
    uint64_t floor;
    uint32_t rank;
} part;

#define MEMORY_BITS 20

static bool set(search *w, uint64_t *where, uint64_t value)
{
    change c = { where, *where };
    if (!gy_vec_push(&w->changes, c)) {
        w->nomem = true;
        return false;
    }
    *where = value;
    return true;
}

static bool place(search *w, uint32_t box)
{
    const gy_offset_problem *p = w->p;
    const gy_offset_box *b = &p->box[box];
    uint64_t top = w->low[box] + b->size;
    if (!gy_vec_push(&w->trail, box)) {
        w->nomem = true;
        return false;
    }
    w->placed[box] = 1;
    for (uint32_t s = b->first; s + 1 < b->last; s++)
        w->cross[s]--;
    for (uint32_t s = b->first; s < b->last; s++)
        if (!set(w, &w->top[s], top))
            return false;
    for (size_t i = p->meet_first[box]; i < p->meet_first[box + 1]; i++) {
        uint32_t other = p->meet[i];
        if (!w->placed[other] && w->low[other] < top &&
            !set(w, &w->low[other], gy_offset_align(top, p->box[other].align)))
            return false;
    }
    return true;
}

static void undo(search *w, size_t trail, size_t changes)
{
    while (w->trail.count > trail) {
        uint32_t box = w->trail.at[--w->trail.count];
        w->placed[box] = 0;
        for (uint32_t s = w->p->box[box].first; s + 1 < w->p->box[box].last; s++)
            w->cross[s]++;
    }
    while (w->changes.count > changes) {
        const change *c = &w->changes.at[--w->changes.count];
        *c->where = c->old;
    }
}

static bool comes_before(const search *w, uint32_t a, uint32_t b)
{
    return w->low[a] != w->low[b] ? w->low[a] < w->low[b] : w->rank[a] < w->rank[b];
}

/* By lowest offset, then rank. Nearly sorted when it comes. */
static void sort_part(search *w, const part *t)
{
    for (uint32_t i = t->begin + 1; i < t->end; i++) {
        uint32_t box = w->left[i], k = i;
        for (; k > t->begin && comes_before(w, box, w->left[k - 1]); k--)
            w->left[k] = w->left[k - 1];
        w->left[k] = box;
    }
}

/* Stacks what is left in each section above what is placed there: is there any hope? */
static bool fits(search *w, const part *t)
{
    const gy_offset_problem *p = w->p;
    uint32_t first = UINT32_MAX, last = 0;
    for (uint32_t i = t->begin; i < t->end; i++) {
        const gy_offset_box *b = &p->box[w->left[i]];
        first = b->first < first ? b->first : first;
        last = b->last > last ? b->last : last;
    }
    for (uint32_t s = first; s < last; s++)
        w->stack[s] = w->top[s] > t->floor ? w->top[s] : t->floor;
    for (uint32_t i = t->begin; i < t->end; i++) {
        const gy_offset_box *b = &p->box[w->left[i]];
        uint64_t low = w->low[w->left[i]];
        for (uint32_t s = b->first; s < b->last; s++) {
            w->stack[s] = (low > w->stack[s] ? low : w->stack[s]) + b->size;
            if (w->stack[s] > p->capacity)
                return false;
        }
    }
    return true;
}

/* The canonical order has passed by: the box cannot stay where it could begin now. */
static bool is_deferred(const search *w, const part *t, uint32_t box)
{
    return w->low[box] < t->floor || (w->low[box] == t->floor && w->rank[box] < t->rank);
}

/* The lowest end of a box that is left and that this one could rest on; UINT64_MAX: there is none. */
static uint64_t support_of(const search *w, const part *t, uint32_t box)
{
    const gy_offset_problem *p = w->p;
    uint64_t least = UINT64_MAX;
    for (size_t k = p->meet_first[box]; k < p->meet_first[box + 1]; k++) {
        uint32_t other = p->meet[k];
        uint64_t from = w->low[other] > t->floor ? w->low[other] : t->floor;
        if (!w->placed[other] && from + p->box[other].size < least)
            least = from + p->box[other].size;
    }
    return least;
}

/* Raises what was passed by to where it could rest. false: one has no room there, or memory is out. */
static bool raise_deferred(search *w, const part *t)
{
    bool raised = false;
    for (uint32_t i = t->begin; i < t->end && w->low[w->left[i]] <= t->floor; i++) {
        uint32_t box = w->left[i];
        const gy_offset_box *b = &w->p->box[box];
        if (!is_deferred(w, t, box))
            continue;
        uint64_t support = support_of(w, t, box);
        if (support == UINT64_MAX)
            return false;
        support = gy_offset_align(support, b->align);
        if (support + b->size > w->p->capacity || !set(w, &w->low[box], support))
            return false;
        raised = true;
    }
    if (raised)
        sort_part(w, t);
    return true;
}

/* Candidates of the node, lowest first. */
static bool list_choices(search *w, const part *t)
{
    uint64_t least = UINT64_MAX;
    for (uint32_t i = t->begin; i < t->end; i++) {
        uint64_t top = w->low[w->left[i]] + w->p->box[w->left[i]].size;
        least = top < least ? top : least;
    }
    for (uint32_t i = t->begin; i < t->end && w->low[w->left[i]] < least; i++) {
        uint32_t box = w->left[i];
        if (is_deferred(w, t, box))
            continue;
        if (!gy_vec_push(&w->choice, box)) {
            w->nomem = true;
            return false;
        }
    }
    return true;
}

static gy_offset_end look(search *w, part t);

static int by_first(const void *a, const void *b, void *context)
{
    const search *w = context;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    if (w->p->box[x].first != w->p->box[y].first)
        return w->p->box[x].first < w->p->box[y].first ? -1 : 1;
    return x < y ? -1 : x > y;
}

static gy_offset_end look_at_parts(search *w, part t)
{
    gy_offset_end end = GY_OFFSETS_FOUND;
    qsort_r(w->left + t.begin, t.end - t.begin, sizeof *w->left, by_first, w);
    for (uint32_t i = t.begin; i < t.end && end == GY_OFFSETS_FOUND;) {
        part one = t;
        uint32_t last = 0;
        one.begin = i;
        for (; i < t.end && (i == one.begin || w->p->box[w->left[i]].first < last); i++)
            last = w->p->box[w->left[i]].last > last ? w->p->box[w->left[i]].last : last;
        one.end = i;
        end = look(w, one);
    }
    return end;
}

/* Has the box that was placed held two parts together? */
static bool falls_apart(const search *w, uint32_t box)
{
    for (uint32_t s = w->p->box[box].first; s + 1 < w->p->box[box].last; s++)
        if (!w->cross[s])
            return true;
    return false;
}

static gy_offset_end choose(search *w, const part *t, uint32_t box)
{
    size_t trail = w->trail.count, changes = w->changes.count;
    uint32_t i = t->begin;
    while (w->left[i] != box)
        i++;
    w->left[i] = w->left[t->begin];
    w->left[t->begin] = box;
    if (!place(w, box))
        return GY_OFFSETS_NOMEM;
    bool hatless = w->changes.count - changes == w->p->box[box].last - w->p->box[box].first;
    part rest = { t->begin + 1, t->end, w->low[box], w->rank[box] };
    gy_offset_end end = falls_apart(w, box) ? look_at_parts(w, rest) : look(w, rest);
    if (end != GY_OFFSETS_FOUND)
        undo(w, trail, changes);
    w->hatless = hatless;
    return end;
}

/* Hash of the boxes that are left and how low each can go. The canonical order forbids none of that any more. */
static uint64_t state_of(const search *w, const part *t)
{
    uint64_t sum = w->ranking;
    for (uint32_t i = t->begin; i < t->end; i++)
        sum += gy_hash64(w->low[w->left[i]] * UINT64_C(0x9e3779b97f4a7c15) + w->left[i] + 1);
    return sum;
}

static gy_offset_end look(search *w, part t)
{
    size_t choices = w->choice.count;
    gy_offset_end end = GY_OFFSETS_NONE;
    if (t.begin == t.end)
        return GY_OFFSETS_FOUND;
    if (!w->steps)
        return GY_OFFSETS_GAVE_UP;
    w->steps--;
    sort_part(w, &t);
    if (!raise_deferred(w, &t) || !fits(w, &t))
        return w->nomem ? GY_OFFSETS_NOMEM : GY_OFFSETS_NONE;
    uint64_t state = state_of(w, &t), *slot = &w->failed[state >> (64 - MEMORY_BITS)];
    if (*slot == state)
        return GY_OFFSETS_NONE;
    if (!list_choices(w, &t))
        return GY_OFFSETS_NOMEM;
    size_t last = w->choice.count;
    w->hatless = false;
    for (size_t i = choices; i < last && end == GY_OFFSETS_NONE && !w->hatless; i++)
        end = choose(w, &t, w->choice.at[i]);
    w->choice.count = choices;
    if (end == GY_OFFSETS_NONE)
        *slot = state;
    return end;
}

/* ---- the search ---- */

static bool list_meetings(gy_offset_problem *p, size_t *room)
{
    size_t count = 0;
    for (uint32_t i = 0; i < p->boxes; i++) {
        p->meet_first[i] = count;
        for (uint32_t k = 0; k < p->boxes; k++) {
            if (k == i || p->box[k].first >= p->box[i].last || p->box[i].first >= p->box[k].last)
                continue;
            if (count == *room) {
                size_t more = *room * 2 + 64;
                uint32_t *grown = gy_realloc(p->meet, more, sizeof *grown);
                if (!grown)
                    return false;
                p->meet = grown;
                *room = more;
            }
            p->meet[count++] = k;
        }
    }
    p->meet_first[p->boxes] = count;
    return true;
}

static void count_crossings(search *w)
{
    const gy_offset_problem *p = w->p;
    memset(w->cross, 0, p->sections * sizeof *w->cross);
    for (uint32_t i = 0; i < p->boxes; i++)
        for (uint32_t s = p->box[i].first; s + 1 < p->box[i].last; s++)
            w->cross[s]++;
}

/* As at the beginning, with the ranks of another order. */
static void reset(search *w, uint32_t order)
{
    w->ranking = gy_hash64(order + 1);
    gy_offsets_rank(w->p, order, w->ranks);
    for (uint32_t i = 0; i < w->p->boxes; i++) {
        w->low[i] = 0;
        w->placed[i] = 0;
        w->left[i] = w->ranks[i].box;
        w->rank[w->left[i]] = i;
    }
    count_crossings(w);
    memset(w->top, 0, w->p->sections * sizeof *w->top);
    w->changes.count = w->trail.count = w->choice.count = 0;
}

static gy_offset_end try_orders(search *w, uint64_t *budget)
{
    const gy_offset_problem *p = w->p;
    gy_offset_end end = GY_OFFSETS_GAVE_UP;
    for (uint64_t limit = 2 * (uint64_t)p->boxes; end == GY_OFFSETS_GAVE_UP && *budget; limit *= 2)
        for (uint32_t order = 0; order < GY_OFFSETS_ORDERS && end == GY_OFFSETS_GAVE_UP && *budget; order++) {
            uint64_t steps = limit < *budget ? limit : *budget;
            part all = { 0, p->boxes, 0, 0 };
            reset(w, order);
            w->steps = steps;
            end = look(w, all);
            *budget -= steps - w->steps;
        }
    return w->nomem ? GY_OFFSETS_NOMEM : end;
}

gy_offset_end gy_offsets_search(gy_offset_problem *p, uint64_t *budget, uint64_t *offset)
{
    size_t boxes = (size_t)p->boxes + 1, sections = (size_t)p->sections + 1, room = 0;
    search w = { .p = p };
    gy_offset_end end = GY_OFFSETS_NOMEM;
    p->meet_first = gy_calloc(boxes + 1, sizeof *p->meet_first);
    w.low = gy_calloc(boxes, sizeof *w.low);
    w.placed = gy_calloc(boxes, sizeof *w.placed);
    w.rank = gy_calloc(boxes, sizeof *w.rank);
    w.ranks = gy_calloc(boxes, sizeof *w.ranks);
    w.left = gy_calloc(boxes, sizeof *w.left);
    w.top = gy_calloc(sections, sizeof *w.top);
    w.stack = gy_calloc(sections, sizeof *w.stack);
    w.cross = gy_calloc(sections, sizeof *w.cross);
    w.failed = gy_calloc((size_t)1 << MEMORY_BITS, sizeof *w.failed);
    if (p->meet_first && w.low && w.placed && w.rank && w.ranks && w.left && w.top && w.stack && w.cross && w.failed &&
        list_meetings(p, &room))
        end = try_orders(&w, budget);
    if (end == GY_OFFSETS_FOUND)
        memcpy(offset, w.low, p->boxes * sizeof *offset);
    gy_free(p->meet);
    gy_free(p->meet_first);
    gy_free(w.low);
    gy_free(w.placed);
    gy_free(w.rank);
    gy_free(w.ranks);
    gy_free(w.left);
    gy_free(w.top);
    gy_free(w.stack);
    gy_free(w.cross);
    gy_free(w.failed);
    gy_vec_free(&w.changes);
    gy_vec_free(&w.trail);
    gy_vec_free(&w.choice);
    p->meet = NULL;
    p->meet_first = NULL;
    return end;
}
