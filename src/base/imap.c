/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interval 0 is always the lowest: cutting leaves the lower half its index, and joining removes the upper one. So the
 * list begins at 0, and a map of few intervals needs nothing else. Pages are never more than full; they are merged only
 * with the one to their right, and go when they are empty, which is enough as cuts come back to where joins were.
 */
#include "base/imap.h"

#include "base/memory.h"
#include <string.h>

#define NONE  GY_IMAP_NONE
#define FAN   GY_IMAP_FAN
#define FEW   8  /* intervals that are looked through one by one */
#define DEPTH 12 /* pages on a path, at most: a page is cut when it is full, so depth d takes 16^d cuts */

/* A way down: the page of each depth (0: the lowest) and where in it. */
typedef struct path {
    uint32_t depth, page[DEPTH], at[DEPTH];
} path;

/* ---- searching ---- */

/* The last entry whose key is at most `point`; there is one. */
static uint32_t entry_of(const gy_imap_page *p, int64_t point)
{
    uint32_t low = 0, count = p->count;
    while (count > 1) {
        uint32_t half = count / 2;
        low += (p->key[low + half] <= point) * half; /* no branch: the processor could not predict it */
        count -= half;
    }
    return low;
}

static uint32_t descend(const gy_imap *map, int64_t point, path *way)
{
    uint32_t i = map->root_;
    way->depth = map->depth_;
    for (uint32_t d = way->depth + 1; d-- > 0;) {
        const gy_imap_page *p = &map->page_[i];
        uint32_t at = entry_of(p, point);
        way->page[d] = i;
        way->at[d] = at;
        i = p->child[at];
    }
    return i;
}

static uint32_t look_through(const gy_imap *map, int64_t point)
{
    uint32_t i = 0;
    while (i != NONE && point >= map->at[i].last)
        i = map->at[i].next_;
    return i;
}

uint32_t gy_imap_find(const gy_imap *map, int64_t point)
{
    if (!map->count || point < map->at[0].first)
        return NONE;
    if (!map->pages_)
        return look_through(map, point);
    uint32_t i = map->root_;
    for (uint32_t d = map->depth_ + 1; d-- > 0;) {
        const gy_imap_page *p = &map->page_[i];
        i = p->child[entry_of(p, point)];
    }
    return point < map->at[i].last ? i : NONE;
}

uint32_t gy_imap_next(const gy_imap *map, uint32_t i)
{
    return map->at[i].next_;
}

/* ---- the tree ---- */

static uint32_t new_page(gy_imap *map)
{
    uint32_t i = map->free_page_;
    if (i != NONE)
        map->free_page_ = map->page_[i].child[0];
    else
        i = map->pages_++;
    map->page_[i].count = 0;
    return i;
}

static void free_page(gy_imap *map, uint32_t i)
{
    map->page_[i].child[0] = map->free_page_;
    map->free_page_ = i;
}

static void put_entry(gy_imap_page *p, uint32_t at, int64_t key, uint32_t child)
{
    memmove(&p->key[at + 1], &p->key[at], (p->count - at) * sizeof *p->key);
    memmove(&p->child[at + 1], &p->child[at], (p->count - at) * sizeof *p->child);
    p->key[at] = key;
    p->child[at] = child;
    p->count++;
}

static void move_entries(gy_imap_page *to, gy_imap_page *from, uint32_t first)
{
    uint32_t count = from->count - first;
    memcpy(&to->key[to->count], &from->key[first], count * sizeof *to->key);
    memcpy(&to->child[to->count], &from->child[first], count * sizeof *to->child);
    to->count += count;
    from->count = first;
}

static void grow_root(gy_imap *map, int64_t key, uint32_t child)
{
    uint32_t old = map->root_;
    map->root_ = new_page(map);
    put_entry(&map->page_[map->root_], 0, map->page_[old].key[0], old);
    put_entry(&map->page_[map->root_], 1, key, child);
    map->depth_++;
}

/* Right of where the way leads. A full page is cut in two; at its end, where maps that grow upwards do it, the upper
 * one gets the new entry alone. There is room for the pages that takes. */
static void insert_entry(gy_imap *map, const path *way, int64_t key, uint32_t child)
{
    for (uint32_t d = 0; d <= way->depth; d++) {
        gy_imap_page *p = &map->page_[way->page[d]];
        uint32_t at = way->at[d] + 1;
        if (p->count < FAN) {
            put_entry(p, at, key, child);
            return;
        }
        uint32_t upper = new_page(map), half = at == FAN ? FAN : FAN / 2;
        gy_imap_page *u = &map->page_[upper];
        move_entries(u, p, half);
        if (at > half || half == FAN)
            put_entry(u, at - half, key, child);
        else
            put_entry(p, at, key, child);
        key = u->key[0];
        child = upper;
    }
    grow_root(map, key, child);
}

/* The lowest key of the page at depth d has changed. */
static void tell_parents(gy_imap *map, const path *way, uint32_t d)
{
    for (; d < way->depth; d++) {
        gy_imap_page *parent = &map->page_[way->page[d + 1]];
        parent->key[way->at[d + 1]] = map->page_[way->page[d]].key[0];
        if (way->at[d + 1])
            return;
    }
}

static void drop_entry(gy_imap_page *p, uint32_t at)
{
    p->count--;
    memmove(&p->key[at], &p->key[at + 1], (p->count - at) * sizeof *p->key);
    memmove(&p->child[at], &p->child[at + 1], (p->count - at) * sizeof *p->child);
}

/* The one to the right comes into the page at depth d, if that leaves room to grow. Returns whether it did. */
static bool merge_right(gy_imap *map, const path *way, uint32_t d)
{
    if (d == way->depth)
        return false;
    gy_imap_page *p = &map->page_[way->page[d]], *parent = &map->page_[way->page[d + 1]];
    uint32_t at = way->at[d + 1];
    if (at + 1 == parent->count || p->count + map->page_[parent->child[at + 1]].count > FAN * 3 / 4)
        return false;
    uint32_t right = parent->child[at + 1];
    move_entries(p, &map->page_[right], 0);
    drop_entry(parent, at + 1);
    free_page(map, right);
    return true;
}

/* The entry that the way leads to; never that of interval 0, so the root is never empty. (Inlined, gcc 12 does not see
 * that the way was filled.) */
static __attribute__((noinline)) void remove_entry(gy_imap *map, const path *way)
{
    for (uint32_t d = 0; d <= way->depth; d++) {
        gy_imap_page *p = &map->page_[way->page[d]];
        drop_entry(p, way->at[d]);
        if (p->count) {
            if (way->at[d] == 0)
                tell_parents(map, way, d);
            while (merge_right(map, way, d))
                d++;
            return;
        }
        free_page(map, way->page[d]);
    }
}

/* The list has become long: a tree over it. There is room. */
static void plant(gy_imap *map)
{
    map->root_ = new_page(map);
    map->depth_ = 0;
    gy_imap_page *p = &map->page_[map->root_];
    for (uint32_t i = 0; i != NONE; i = map->at[i].next_)
        put_entry(p, p->count, map->at[i].first, i);
}

/* ---- intervals ---- */

static bool grow(void *array, uint32_t *capacity, uint32_t need, uint32_t least, size_t item)
{
    void *old;
    if (need <= *capacity)
        return true;
    if (need > UINT32_MAX / 2 - 8)
        return false;
    uint32_t more = *capacity + *capacity / 2;
    more = more > need ? more : need;
    more = more > least ? more : least;
    memcpy(&old, array, sizeof old);
    void *new = gy_realloc(old, more, item);
    if (!new)
        return false;
    memcpy(array, &new, sizeof new);
    *capacity = more;
    return true;
}

/* Each insertion may cut a page at every depth, and add a root. */
static uint32_t pages_for_two(const gy_imap *map)
{
    if (!map->pages_)
        return 1;
    if (!map->depth_ && map->page_[map->root_].count + 2 <= FAN)
        return 0;
    return 2 * (map->depth_ + 3);
}

/* Many maps stay one interval: the first is all there is room for at the beginning. */
static bool reserve_two(gy_imap *map)
{
    uint32_t freed = map->used_ - map->count;
    if (freed < 2 && !grow(&map->at, &map->capacity, map->used_ + 2 - freed, 4, sizeof *map->at))
        return false;
    if (map->count + 2 <= FEW && !map->pages_)
        return true;
    return grow(&map->page_, &map->page_capacity_, map->pages_ + pages_for_two(map), 1, sizeof *map->page_);
}

/* There is room. Freed slots form a list through `next_`. */
static uint32_t new_slot(gy_imap *map, int64_t first, int64_t last, uint64_t payload)
{
    uint32_t i = map->free_;
    if (i != NONE)
        map->free_ = map->at[i].next_;
    else
        i = map->used_++;
    map->count++;
    map->at[i] = (gy_interval){ first, last, payload, NONE, NONE };
    return i;
}

bool gy_imap_init(gy_imap *map, int64_t first, int64_t last, uint64_t payload)
{
    *map = (gy_imap){ .free_ = NONE, .free_page_ = NONE };
    if (first >= last)
        return true;
    map->at = gy_alloc(sizeof *map->at);
    if (!map->at)
        return false;
    map->capacity = 1;
    (void)new_slot(map, first, last, payload);
    return true;
}

void gy_imap_free(gy_imap *map)
{
    gy_free(map->at);
    gy_free(map->page_);
    *map = (gy_imap){ .free_ = NONE, .free_page_ = NONE };
}

static void link_after(gy_imap *map, uint32_t i, uint32_t new)
{
    uint32_t next = map->at[i].next_;
    map->at[new].next_ = next;
    map->at[new].before_ = i;
    map->at[i].next_ = new;
    if (next != NONE)
        map->at[next].before_ = new;
}

/* Looks at the interval of the last cut and the one behind it first: callers often come back to it, or go on there. */
static uint32_t find_near(const gy_imap *map, int64_t point)
{
    uint32_t i = map->hint_;
    if (i < map->used_ && point >= map->at[i].first) {
        if (point < map->at[i].last)
            return i;
        i = map->at[i].next_;
        if (i != NONE && point < map->at[i].last)
            return i;
    }
    return gy_imap_find(map, point);
}

/* Cuts interval `i` at `point` strictly inside it; returns the upper half. There is room. */
static uint32_t cut_at(gy_imap *map, uint32_t i, int64_t point)
{
    uint64_t payload = map->at[i].payload;
    path way;
    if (map->on_cut)
        payload = map->on_cut(map->context, payload);
    uint32_t upper = new_slot(map, point, map->at[i].last, payload);
    map->at[i].last = point;
    link_after(map, i, upper);
    if (map->pages_) {
        (void)descend(map, point, &way);
        insert_entry(map, &way, point, upper);
    } else if (map->count > FEW) {
        plant(map);
    }
    return upper;
}

uint32_t gy_imap_cut(gy_imap *map, int64_t first, int64_t last)
{
    uint32_t i = find_near(map, first);
    if (i == NONE || first >= last)
        return NONE;
    map->hint_ = i;
    if (map->at[i].first == first && map->at[i].last == last)
        return i;
    if (!reserve_two(map))
        return NONE;
    if (map->at[i].first < first)
        map->hint_ = i = cut_at(map, i, first);
    uint32_t end = last <= map->at[i].last ? i : gy_imap_find(map, last);
    if (end != NONE && map->at[end].first < last && last < map->at[end].last)
        (void)cut_at(map, end, last);
    return i;
}

/* The hint stays in use: it is never the one that goes. */
static void remove_next(gy_imap *map, uint32_t i)
{
    uint32_t next = map->at[i].next_, after = map->at[next].next_;
    path way;
    if (map->pages_) {
        (void)descend(map, map->at[next].first, &way);
        remove_entry(map, &way);
    }
    map->at[i].last = map->at[next].last;
    map->at[i].next_ = after;
    if (after != NONE)
        map->at[after].before_ = i;
    map->hint_ = map->hint_ == next ? i : map->hint_;
    map->at[next].next_ = map->free_;
    map->free_ = next;
    map->count--;
}

void gy_imap_join(gy_imap *map, int64_t first, int64_t last)
{
    uint32_t i = map->count ? find_near(map, first) : NONE;
    if (i != NONE && map->at[i].first == first && map->at[i].before_ != NONE)
        i = map->at[i].before_;
    while (i != NONE && map->at[i].last <= last) {
        uint32_t next = map->at[i].next_;
        if (next == NONE)
            break;
        if (map->at[next].payload != map->at[i].payload)
            i = next;
        else
            remove_next(map, i);
    }
}

static bool set(gy_imap *map, int64_t first, int64_t last, uint64_t payload, bool empty_only)
{
    if (first >= last)
        return true;
    uint32_t i = gy_imap_cut(map, first, last);
    if (i == NONE)
        return false;
    for (; i != NONE && map->at[i].first < last; i = map->at[i].next_)
        if (!empty_only || !map->at[i].payload)
            map->at[i].payload = payload;
    gy_imap_join(map, first, last);
    return true;
}

bool gy_imap_set(gy_imap *map, int64_t first, int64_t last, uint64_t payload)
{
    return set(map, first, last, payload, false);
}

bool gy_imap_fill(gy_imap *map, int64_t first, int64_t last, uint64_t payload)
{
    return set(map, first, last, payload, true);
}
