/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/cupti.h"

#include <string.h>

void gy_cupti_table_clear(gy_cupti_table *t)
{
    t->key.count = t->piece.count = 0;
    t->told = 0;
}

void gy_cupti_table_free(gy_cupti_table *t)
{
    gy_vec_free(&t->key);
    gy_vec_free(&t->piece);
    t->told = 0;
}

/* The first that is not smaller. */
static size_t place_of(const gy_cupti_table *t, uint64_t id)
{
    size_t low = 0, high = t->key.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (t->key.at[middle].id < id) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Numbers are given out rising, so that most are put at the end; nothing promises it. */
static bool put(gy_cupti_table *t, uint64_t id, uint32_t piece)
{
    size_t at = t->key.count && t->key.at[t->key.count - 1].id < id ? t->key.count : place_of(t, id);
    if (at < t->key.count && t->key.at[at].id == id) {
        t->key.at[at].piece = piece;
        return true;
    }
    if (!gy_vec_add(&t->key, 1)) {
        return false;
    }
    memmove(&t->key.at[at + 1], &t->key.at[at], (t->key.count - 1 - at) * sizeof *t->key.at);
    t->key.at[at] = (gy_cupti_key){ id, piece };
    return true;
}

static const gy_cupti_key *find(const gy_cupti_table *t, uint64_t id)
{
    size_t at = place_of(t, id);
    return at < t->key.count && t->key.at[at].id == id ? &t->key.at[at] : NULL;
}

bool gy_cupti_table_add(gy_cupti_table *t, uint64_t id, uint32_t op)
{
    if (find(t, id)) {
        return true; /* told twice */
    }
    return gy_vec_push(&t->piece, ((gy_cupti_piece){ op, false })) && put(t, id, (uint32_t)t->piece.count - 1);
}

void gy_cupti_table_alias(gy_cupti_table *t, uint64_t id, uint64_t like)
{
    const gy_cupti_key *key = find(t, like);
    if (key) {
        put(t, id, key->piece);
    }
}

gy_cupti_piece *gy_cupti_table_find(const gy_cupti_table *t, uint64_t id)
{
    const gy_cupti_key *key = find(t, id);
    return key ? &t->piece.at[key->piece] : NULL;
}

void gy_cupti_table_again(gy_cupti_table *t)
{
    for (size_t i = 0; i < t->piece.count; i++) {
        t->piece.at[i].told = false;
    }
    t->told = 0;
}
