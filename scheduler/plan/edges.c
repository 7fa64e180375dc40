/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/plan/plan.h"

#include "base/sort.h"

enum { FEW = 32, REASONS = 4 };

static bool goes_before(const gy_edge *a, const gy_edge *b, bool falling)
{
    if (a->to != b->to)
        return a->to < b->to;
    if (a->from != b->from)
        return (a->from < b->from) != falling;
    return a->reason < b->reason;
}

static void insert_few(gy_edge *edge, size_t count, bool falling)
{
    for (size_t i = 1; i < count; i++) {
        gy_edge new = edge[i];
        size_t k = i;
        for (; k && goes_before(&new, &edge[k - 1], falling); k--)
            edge[k] = edge[k - 1];
        edge[k] = new;
    }
}

static bool is_sorted(const gy_edge *edge, size_t count, bool falling)
{
    size_t i = 1;
    while (i < count && !goes_before(&edge[i], &edge[i - 1], falling))
        i++;
    return i >= count;
}

/* By `from` and the reason first, then by `to`: the second keeps the order of equals. */
static bool sort_many(gy_edge *edge, size_t count, bool falling, uint32_t *item, int64_t *key, gy_edge *old)
{
    for (size_t i = 0; i < count; i++) {
        old[i] = edge[i];
        item[i] = (uint32_t)i;
        key[i] = (int64_t)(falling ? UINT32_MAX - edge[i].from : edge[i].from) * REASONS + edge[i].reason;
    }
    if (!gy_sort_by_key(item, key, count))
        return false;
    for (size_t i = 0; i < count; i++)
        key[i] = edge[i].to;
    if (!gy_sort_by_key(item, key, count))
        return false;
    for (size_t i = 0; i < count; i++)
        edge[i] = old[item[i]];
    return true;
}

bool gy_edges_sort(gy_edge *edge, size_t count, bool falling)
{
    if (count <= FEW) {
        insert_few(edge, count, falling);
        return true;
    }
    if (is_sorted(edge, count, falling))
        return true;
    uint32_t *item = count < UINT32_MAX ? gy_calloc(count, sizeof *item) : NULL;
    int64_t *key = gy_calloc(count, sizeof *key);
    gy_edge *old = gy_calloc(count, sizeof *old);
    bool done = item && key && old && sort_many(edge, count, falling, item, key, old);
    gy_free(item);
    gy_free(key);
    gy_free(old);
    return done;
}
