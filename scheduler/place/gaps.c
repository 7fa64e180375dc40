/* SPDX-License-Identifier: Apache-2.0 */
/* Treap: Seidel and Aragon, Randomized Search Trees, 1996; the heap order comes from a hash, not from chance. */
#include "scheduler/place/gaps.h"

#include "base/map.h"

#define NIL     UINT32_MAX
#define FOREVER (GY_TICKS_MAX * 2)

static void update(gy_gaps *g, uint32_t i)
{
    gy_gap *n = &g->at.at[i];
    n->longest = n->end - n->begin;
    if (n->left != NIL && g->at.at[n->left].longest > n->longest)
        n->longest = g->at.at[n->left].longest;
    if (n->right != NIL && g->at.at[n->right].longest > n->longest)
        n->longest = g->at.at[n->right].longest;
}

/* Cuts the tree in two: gaps that begin before `key`, and the others. */
static void split(gy_gaps *g, uint32_t i, gy_ticks key, uint32_t *before, uint32_t *after)
{
    if (i == NIL) {
        *before = *after = NIL;
    } else if (g->at.at[i].begin < key) {
        split(g, g->at.at[i].right, key, &g->at.at[i].right, after);
        update(g, i);
        *before = i;
    } else {
        split(g, g->at.at[i].left, key, before, &g->at.at[i].left);
        update(g, i);
        *after = i;
    }
}

static uint32_t merge(gy_gaps *g, uint32_t before, uint32_t after)
{
    if (before == NIL || after == NIL)
        return before == NIL ? after : before;
    if (g->at.at[before].rank > g->at.at[after].rank) {
        g->at.at[before].right = merge(g, g->at.at[before].right, after);
        update(g, before);
        return before;
    }
    g->at.at[after].left = merge(g, before, g->at.at[after].left);
    update(g, after);
    return after;
}

/* There is room for it. */
static void insert(gy_gaps *g, gy_ticks begin, gy_ticks end)
{
    uint32_t i = g->free_, before, after;
    if (i != NIL)
        g->free_ = g->at.at[i].left;
    else
        i = (uint32_t)g->at.count++;
    g->at.at[i] = (gy_gap){ begin, end, end - begin, NIL, NIL, gy_hash64(i + 1) };
    split(g, g->root, begin, &before, &after);
    g->root = merge(g, merge(g, before, i), after);
}

bool gy_gaps_init(gy_gaps *g)
{
    *g = (gy_gaps){ .root = NIL, .free_ = NIL };
    if (!gy_vec_reserve(&g->at, 4))
        return false;
    insert(g, 0, FOREVER);
    return true;
}

void gy_gaps_free(gy_gaps *g)
{
    gy_vec_free(&g->at);
}

/* The last gap that begins at or before `time`. */
static uint32_t floor_of(const gy_gaps *g, gy_ticks time)
{
    uint32_t found = NIL;
    for (uint32_t i = g->root; i != NIL;) {
        bool right = g->at.at[i].begin <= time;
        found = right ? i : found;
        i = right ? g->at.at[i].right : g->at.at[i].left;
    }
    return found;
}

/* The first gap below `i` that begins after `time` and is long enough. */
static uint32_t first_fit(const gy_gaps *g, uint32_t i, gy_ticks time, gy_ticks length)
{
    if (i == NIL || g->at.at[i].longest < length)
        return NIL;
    const gy_gap *n = &g->at.at[i];
    if (n->begin > time) {
        uint32_t found = first_fit(g, n->left, time, length);
        if (found != NIL)
            return found;
        if (n->end - n->begin >= length)
            return i;
    }
    return first_fit(g, n->right, time, length);
}

gy_ticks gy_gaps_find(const gy_gaps *g, gy_ticks ready, gy_ticks length)
{
    uint32_t i = floor_of(g, ready);
    if (i != NIL && g->at.at[i].end - ready >= length && g->at.at[i].end >= ready)
        return ready;
    i = first_fit(g, g->root, ready, length);
    return i == NIL ? GY_TICKS_MAX : g->at.at[i].begin;
}

/* Cuts the gap that begins at `begin` out of the tree and returns its end. */
static gy_ticks cut(gy_gaps *g, gy_ticks begin)
{
    uint32_t before, after, self;
    split(g, g->root, begin, &before, &after);
    split(g, after, begin + 1, &self, &after);
    g->root = merge(g, before, after);
    gy_ticks end = g->at.at[self].end;
    g->at.at[self].left = g->free_;
    g->free_ = self;
    return end;
}

bool gy_gaps_take(gy_gaps *g, gy_ticks begin, gy_ticks length)
{
    if (length == 0)
        return true;
    if (!gy_vec_reserve(&g->at, g->at.count + 2))
        return false;
    gy_ticks low = g->at.at[floor_of(g, begin)].begin, high = cut(g, low);
    if (low < begin)
        insert(g, low, begin);
    if (begin + length < high)
        insert(g, begin + length, high);
    return true;
}

/* There were no more gaps before the taking than there are nodes, so there is one for the gap that comes back. */
void gy_gaps_give(gy_gaps *g, gy_ticks begin, gy_ticks length)
{
    gy_ticks low = begin, high = begin + length;
    if (length == 0)
        return;
    uint32_t i = floor_of(g, begin);
    if (i != NIL && g->at.at[i].end == begin) {
        low = g->at.at[i].begin;
        cut(g, low);
    }
    i = floor_of(g, high);
    if (i != NIL && g->at.at[i].begin == high)
        high = cut(g, high);
    insert(g, low, high);
}
