/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sort.h"

#include "base/memory.h"
#include <string.h>

enum { BITS = 11, DIGITS = 1 << BITS, FEW = 64 };

typedef struct pair {
    uint64_t key; /* less the lowest of all */
    uint32_t item;
} pair;

static void insert_few(uint32_t *item, const int64_t *key, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        uint32_t new = item[i];
        size_t k = i;
        for (; k && key[item[k - 1]] > key[new]; k--)
            item[k] = item[k - 1];
        item[k] = new;
    }
}

static void sort_digit(pair *to, const pair *from, size_t count, unsigned shift)
{
    size_t begin[DIGITS + 1] = { 0 };
    for (size_t i = 0; i < count; i++)
        begin[(from[i].key >> shift) % DIGITS + 1]++;
    for (size_t d = 1; d < DIGITS; d++)
        begin[d] += begin[d - 1];
    for (size_t i = 0; i < count; i++)
        to[begin[(from[i].key >> shift) % DIGITS]++] = from[i];
}

static bool is_sorted(const uint32_t *item, const int64_t *key, size_t count)
{
    size_t i = 1;
    while (i < count && key[item[i - 1]] <= key[item[i]])
        i++;
    return i >= count;
}

bool gy_sort_by_key(uint32_t *item, const int64_t *key, size_t count)
{
    if (count <= FEW) {
        insert_few(item, key, count);
        return true;
    }
    if (is_sorted(item, key, count))
        return true;
    pair *room = gy_calloc(2 * count, sizeof *room), *from = room;
    if (!room)
        return false;
    pair *to = room + count;
    int64_t low = key[item[0]], high = low;
    for (size_t i = 0; i < count; i++) {
        low = key[item[i]] < low ? key[item[i]] : low;
        high = key[item[i]] > high ? key[item[i]] : high;
    }
    for (size_t i = 0; i < count; i++)
        from[i] = (pair){ (uint64_t)key[item[i]] - (uint64_t)low, item[i] };
    uint64_t span = (uint64_t)high - (uint64_t)low;
    for (unsigned shift = 0; shift < 64 && span >> shift; shift += BITS) {
        sort_digit(to, from, count, shift);
        pair *t = from;
        from = to;
        to = t;
    }
    for (size_t i = 0; i < count; i++)
        item[i] = from[i].item;
    gy_free(room);
    return true;
}
