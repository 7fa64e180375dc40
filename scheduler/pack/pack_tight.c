/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Offsets by positions: instances in the order in which they begin; each takes the smallest hole that is large enough
 * between those that are still used, or goes on top. Instances share bytes whenever one's last use has a lower position
 * than the other's first: the fewest bytes this order of ops can do with, but for holes.
 */
#include "base/error.h"
#include "scheduler/pack/packing.h"
#include <string.h>

/* Instances of one store that are in use, by offset. */
typedef GY_VEC(uint32_t) live;

static uint64_t offset_of(const gy_pack *k, uint32_t instance)
{
    return k->s->instances.at[instance].offset;
}

/* Where in the list a hole of the size is, and its offset. */
static size_t best_fit(const gy_pack *k, const live *l, uint64_t floor, uint64_t bytes, uint64_t *offset)
{
    uint64_t best = UINT64_MAX, end = floor;
    size_t at = l->count;
    for (size_t i = 0; i < l->count; i++) {
        uint64_t begin = offset_of(k, l->at[i]), size = begin > end ? begin - end : 0;
        if (size >= bytes && size < best) {
            best = size;
            at = i;
            *offset = end;
        }
        end = begin + k->life[l->at[i]].bytes;
    }
    if (best == UINT64_MAX)
        *offset = end;
    return at;
}

static void use_up_to(gy_pack *k, uint32_t store, uint64_t end)
{
    k->used[store] = end > k->used[store] ? end : k->used[store];
}

static bool add(gy_pack *k, live *l, uint64_t floor, uint32_t instance)
{
    gy_life *f = &k->life[instance];
    uint64_t offset = floor;
    size_t at = best_fit(k, l, floor, f->bytes, &offset);
    k->s->instances.at[instance].offset = offset;
    use_up_to(k, f->store, offset + f->bytes);
    if (!f->bytes)
        return true;
    if (!gy_vec_push(l, instance))
        return false;
    memmove(&l->at[at + 1], &l->at[at], (l->count - 1 - at) * sizeof *l->at);
    l->at[at] = instance;
    return true;
}

static void drop(const gy_pack *k, live *l, uint32_t instance)
{
    size_t low = 0, high = l->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (offset_of(k, l->at[middle]) < offset_of(k, instance))
            low = middle + 1;
        else
            high = middle;
    }
    if (low == l->count || l->at[low] != instance) /* empty ones are not in the list */
        return;
    memmove(&l->at[low], &l->at[low + 1], (l->count - 1 - low) * sizeof *l->at);
    l->count--;
}

gantry_status gy_pack_tight(gy_pack *k, gantry_error *err)
{
    live *l = gy_calloc(k->stores, sizeof *l);
    uint64_t *floor = gy_calloc(k->stores, sizeof *floor); /* above what persists */
    bool done = l && floor;
    for (uint32_t i = 0; i < k->stores && done; i++)
        floor[i] = k->used[i];
    for (size_t i = 0; i < k->s->ops.count && done; i++) {
        for (size_t n = k->start_first[i]; n < k->start_first[i + 1] && done; n++) {
            uint32_t store = k->life[k->start[n]].store;
            if (gy_pack_persists(k, k->start[n]))
                continue;
            if (gy_pack_is_given(k, store))
                use_up_to(k, store, offset_of(k, k->start[n]) + k->life[k->start[n]].bytes);
            else
                done = add(k, &l[store], floor[store], k->start[n]);
        }
        for (size_t n = k->end_first[i]; n < k->end_first[i + 1]; n++)
            if (!gy_pack_is_given(k, k->life[k->end[n]].store))
                drop(k, &l[k->life[k->end[n]].store], k->end[n]);
    }
    for (uint32_t i = 0; l && i < k->stores; i++)
        gy_vec_free(&l[i]);
    gy_free(l);
    gy_free(floor);
    return done ? GANTRY_OK : gy_fail_nomem(err);
}
