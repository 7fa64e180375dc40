/* SPDX-License-Identifier: Apache-2.0 */
/**
 * An interval map: disjoint intervals [first, last) of int64, each with a 64-bit payload, that together cover the
 * domain given at the start. Cutting an interval gives both halves the payload (the owner may intercept that to copy
 * what a payload refers to). A list in one array, its indices stay valid, and beyond a few intervals a tree of pages
 * over it (a B+ tree: R. Bayer, E. McCreight, Organization and Maintenance of Large Ordered Indices, Acta Informatica
 * 1, 1972): O(log n) per cut, few cache lines, deterministic.
 */
#ifndef GY_BASE_IMAP_H
#define GY_BASE_IMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GY_IMAP_NONE UINT32_MAX

typedef struct gy_interval {
    int64_t first, last;
    uint64_t payload;
    uint32_t next_, before_; /* not for owners */
} gy_interval;

/* A node of the tree: the lowest key of each child, which is a page or, at depth 0, an interval. */
enum { GY_IMAP_FAN = 32 };
typedef struct gy_imap_page {
    int64_t key[GY_IMAP_FAN];
    uint32_t child[GY_IMAP_FAN];
    uint32_t count, unused_;
} gy_imap_page;

typedef struct gy_imap {
    gy_interval *at;
    uint32_t count; /* intervals; their indices may be larger: gaps stay after a join */
    uint32_t capacity, used_, free_;
    uint32_t hint_;                                             /* where the last cut began */
    uint32_t root_, depth_, pages_, page_capacity_, free_page_; /* the tree; no pages while there are few intervals */
    gy_imap_page *page_;
    /* Optional, set after gy_imap_init: the payload of the upper half when an interval is cut; NULL copies it. */
    uint64_t (*on_cut)(void *context, uint64_t payload);
    void *context;
} gy_imap;

/* One interval [first, last) with `payload`. An empty domain (first == last) is allowed. false: out of memory. */
bool gy_imap_init(gy_imap *map, int64_t first, int64_t last, uint64_t payload);
void gy_imap_free(gy_imap *map);
/* The interval that contains `point`, or GY_IMAP_NONE outside the domain. */
uint32_t gy_imap_find(const gy_imap *map, int64_t point);
/* Makes boundaries at `first` and `last` (inside the domain, first < last) and returns the interval that begins at
 * `first`; GY_IMAP_NONE: out of memory, the map is as it was. The lower half keeps its index. Walk on with gy_imap_next
 * while at[i].first < last. */
uint32_t gy_imap_cut(gy_imap *map, int64_t first, int64_t last);
uint32_t gy_imap_next(const gy_imap *map, uint32_t i); /* in order; GY_IMAP_NONE after the last */
/* Joins neighbours inside [first, last], and at its two ends, whose payloads are equal. Optional tidying. */
void gy_imap_join(gy_imap *map, int64_t first, int64_t last);
/* Gives [first, last) one payload, and joins; nothing to do where first >= last. gy_imap_fill: only where the payload
 * is 0. false: out of memory, the map is as it was. */
bool gy_imap_set(gy_imap *map, int64_t first, int64_t last, uint64_t payload);
bool gy_imap_fill(gy_imap *map, int64_t first, int64_t last, uint64_t payload);

#endif
