/* SPDX-License-Identifier: Apache-2.0 */
/* An AVL tree (Adelson-Velsky and Landis 1962) whose nodes are the intervals; `balance_` holds a node's height. */
#include "base/imap.h"

#include "base/memory.h"

#define NONE GY_IMAP_NONE

static uint32_t height(const gy_imap *map, uint32_t i)
{
    return i == NONE ? 0 : map->at[i].balance_;
}

static void update_height(gy_imap *map, uint32_t i)
{
    uint32_t left = height(map, map->at[i].left), right = height(map, map->at[i].right);
    map->at[i].balance_ = 1 + (left > right ? left : right);
}

/* Puts `to` where `from` hangs below its parent. */
static void replace_child(gy_imap *map, uint32_t from, uint32_t to)
{
    uint32_t parent = map->at[from].parent;
    if (parent == NONE) {
        map->root = to;
    } else if (map->at[parent].left == from) {
        map->at[parent].left = to;
    } else {
        map->at[parent].right = to;
    }
    if (to != NONE) {
        map->at[to].parent = parent;
    }
}

static void set_left(gy_imap *map, uint32_t i, uint32_t child)
{
    map->at[i].left = child;
    if (child != NONE) {
        map->at[child].parent = i;
    }
}

static void set_right(gy_imap *map, uint32_t i, uint32_t child)
{
    map->at[i].right = child;
    if (child != NONE) {
        map->at[child].parent = i;
    }
}

/* The right child comes up; returns it. */
static uint32_t rotate_left(gy_imap *map, uint32_t i)
{
    uint32_t up = map->at[i].right;
    replace_child(map, i, up);
    set_right(map, i, map->at[up].left);
    set_left(map, up, i);
    update_height(map, i);
    update_height(map, up);
    return up;
}

static uint32_t rotate_right(gy_imap *map, uint32_t i)
{
    uint32_t up = map->at[i].left;
    replace_child(map, i, up);
    set_left(map, i, map->at[up].right);
    set_right(map, up, i);
    update_height(map, i);
    update_height(map, up);
    return up;
}

/* Heights of the children of `i` differ by at most 2; returns the top of the subtree, balanced again. */
static uint32_t balance_at(gy_imap *map, uint32_t i)
{
    uint32_t left = map->at[i].left, right = map->at[i].right;
    if (height(map, left) > height(map, right) + 1) {
        if (height(map, map->at[left].left) < height(map, map->at[left].right)) {
            rotate_left(map, left);
        }
        return rotate_right(map, i);
    }
    if (height(map, right) > height(map, left) + 1) {
        if (height(map, map->at[right].right) < height(map, map->at[right].left)) {
            rotate_right(map, right);
        }
        return rotate_left(map, i);
    }
    update_height(map, i);
    return i;
}

static void balance_up(gy_imap *map, uint32_t i)
{
    while (i != NONE) {
        uint32_t before = map->at[i].balance_;
        uint32_t top = balance_at(map, i);
        if (map->at[top].balance_ == before) {
            break;
        }
        i = map->at[top].parent;
    }
}

static uint32_t leftmost(const gy_imap *map, uint32_t i)
{
    while (map->at[i].left != NONE) {
        i = map->at[i].left;
    }
    return i;
}

/* Hangs the new leaf `i` directly after `before`. */
static void insert_after(gy_imap *map, uint32_t before, uint32_t i)
{
    uint32_t right = map->at[before].right, parent = before;
    if (right == NONE) {
        set_right(map, before, i);
    } else {
        parent = leftmost(map, right);
        set_left(map, parent, i);
    }
    balance_up(map, parent);
}

/* Takes `i` out of the tree; it has at most one child. */
static void remove_thin(gy_imap *map, uint32_t i)
{
    uint32_t parent = map->at[i].parent;
    replace_child(map, i, map->at[i].left != NONE ? map->at[i].left : map->at[i].right);
    balance_up(map, parent);
}

/* Takes `i` out of the tree. All other intervals keep their index, so its successor is relinked, not copied. */
static void remove_node(gy_imap *map, uint32_t i)
{
    if (map->at[i].left == NONE || map->at[i].right == NONE) {
        remove_thin(map, i);
        return;
    }
    uint32_t next = leftmost(map, map->at[i].right);
    remove_thin(map, next);
    /* Balancing may have moved `i`: its links are read only now. */
    gy_interval *node = &map->at[next];
    node->balance_ = map->at[i].balance_;
    replace_child(map, i, next);
    set_left(map, next, map->at[i].left);
    set_right(map, next, map->at[i].right);
}

/* Many maps stay one interval: the first is all there is room for at the beginning. */
static bool reserve_two(gy_imap *map)
{
    uint32_t freed = map->used_ - map->count;
    if (freed + (map->capacity - map->used_) >= 2) {
        return true;
    }
    if (map->capacity > UINT32_MAX / 2 - 8) {
        return false;
    }
    uint32_t capacity = map->capacity < 4 ? 4 : map->capacity + map->capacity / 2;
    gy_interval *at = gy_realloc(map->at, capacity, sizeof *at);
    if (!at) {
        return false;
    }
    map->at = at;
    map->capacity = capacity;
    return true;
}

/* There is room. Freed slots form a list through `right`. */
static uint32_t new_slot(gy_imap *map, int64_t first, int64_t last, uint64_t payload)
{
    uint32_t i = map->free_;
    if (i != NONE) {
        map->free_ = map->at[i].right;
    } else {
        i = map->used_++;
    }
    map->count++;
    map->at[i] = (gy_interval){ first, last, payload, NONE, NONE, NONE, 1 };
    return i;
}

static void free_slot(gy_imap *map, uint32_t i)
{
    map->at[i].right = map->free_;
    map->free_ = i;
    map->count--;
}

bool gy_imap_init(gy_imap *map, int64_t first, int64_t last, uint64_t payload)
{
    *map = (gy_imap){ .root = NONE, .free_ = NONE };
    if (first >= last) {
        return true;
    }
    map->at = gy_alloc(sizeof *map->at);
    if (!map->at) {
        return false;
    }
    map->capacity = 1;
    map->root = new_slot(map, first, last, payload);
    return true;
}

void gy_imap_free(gy_imap *map)
{
    gy_free(map->at);
    *map = (gy_imap){ .root = NONE, .free_ = NONE };
}

uint32_t gy_imap_find(const gy_imap *map, int64_t point)
{
    uint32_t i = map->count ? map->root : NONE;
    while (i != NONE && (point < map->at[i].first || point >= map->at[i].last)) {
        i = point < map->at[i].first ? map->at[i].left : map->at[i].right;
    }
    return i;
}

/* Cuts interval `i` at `point` strictly inside it; returns the upper half. There is room. */
static uint32_t cut_at(gy_imap *map, uint32_t i, int64_t point)
{
    uint64_t payload = map->at[i].payload;
    if (map->on_cut) {
        payload = map->on_cut(map->context, payload);
    }
    uint32_t upper = new_slot(map, point, map->at[i].last, payload);
    map->at[i].last = point;
    insert_after(map, i, upper);
    return upper;
}

uint32_t gy_imap_cut(gy_imap *map, int64_t first, int64_t last)
{
    uint32_t i = gy_imap_find(map, first);
    if (i == NONE || first >= last) {
        return NONE;
    }
    if (map->at[i].first == first && map->at[i].last == last) {
        return i;
    }
    if (!reserve_two(map)) {
        return NONE;
    }
    if (map->at[i].first < first) {
        i = cut_at(map, i, first);
    }
    uint32_t end = last <= map->at[i].last ? i : gy_imap_find(map, last);
    if (end != NONE && map->at[end].first < last && last < map->at[end].last) {
        cut_at(map, end, last);
    }
    return i;
}

uint32_t gy_imap_next(const gy_imap *map, uint32_t i)
{
    if (map->at[i].right != NONE) {
        return leftmost(map, map->at[i].right);
    }
    uint32_t parent = map->at[i].parent;
    while (parent != NONE && map->at[parent].right == i) {
        i = parent;
        parent = map->at[i].parent;
    }
    return parent;
}

void gy_imap_join(gy_imap *map, int64_t first, int64_t last)
{
    uint32_t i = first > INT64_MIN ? gy_imap_find(map, first - 1) : NONE;
    if (i == NONE) {
        i = gy_imap_find(map, first);
    }
    while (i != NONE && map->at[i].last <= last) {
        uint32_t next = gy_imap_next(map, i);
        if (next == NONE) {
            break;
        }
        if (map->at[next].payload != map->at[i].payload) {
            i = next;
            continue;
        }
        map->at[i].last = map->at[next].last;
        remove_node(map, next);
        free_slot(map, next);
    }
}
