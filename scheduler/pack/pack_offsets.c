/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The last way of packing: where best fit in the order of beginnings leaves holes that a store has no room for, other
 * orders, then search (offsets.h). Lifetimes are positions, as there: from the first use to the last.
 */
#include "scheduler/pack/packing.h"

#include "base/align.h"
#include "base/error.h"
#include "scheduler/pack/offsets.h"

/* Steps times instances: a step of the search looks at all that is left. About a second, and less where there are other
 * ways to go on (gy_arrangement). */
#define WORK UINT64_C(400000000)

static uint64_t floor_of(const gy_pack *k, uint32_t store)
{
    uint64_t floor = 0;
    for (uint32_t i = 0; i < k->s->instances.count; i++)
        floor += k->life[i].store == store && gy_pack_persists(k, i) ? k->life[i].bytes : 0;
    return floor;
}

/* The instances that are ours to place, as items; `which` tells whose. */
static size_t list_items(const gy_pack *k, uint32_t store, gy_offset_item *item, uint32_t *which)
{
    size_t count = 0;
    for (uint32_t i = 0; i < k->s->instances.count; i++) {
        const gy_life *f = &k->life[i];
        if (f->store != store || gy_pack_persists(k, i))
            continue;
        item[count] = (gy_offset_item){ f->first, (int64_t)f->last + 1, f->bytes, GY_ALIGN };
        which[count++] = i;
    }
    return count;
}

uint64_t gy_pack_load(const gy_pack *k, uint32_t store)
{
    uint64_t sum = floor_of(k, store), most = 0;
    for (size_t i = 0; i < k->s->ops.count; i++) {
        for (size_t n = k->start_first[i]; n < k->start_first[i + 1]; n++)
            if (k->life[k->start[n]].store == store && !gy_pack_persists(k, k->start[n]))
                sum += k->life[k->start[n]].bytes;
        most = sum > most ? sum : most;
        for (size_t n = k->end_first[i]; n < k->end_first[i + 1]; n++)
            sum -= k->life[k->end[n]].store == store ? k->life[k->end[n]].bytes : 0;
    }
    return most;
}

gantry_status gy_pack_offsets(gy_pack *k, uint32_t store, gantry_error *err)
{
    size_t instances = k->s->instances.count + 1;
    uint64_t floor = floor_of(k, store), limit = gy_pack_limit(k, store);
    uint64_t *offset = gy_calloc(instances, sizeof *offset);
    uint32_t *which = gy_calloc(instances, sizeof *which);
    gy_offset_item *item = gy_calloc(instances, sizeof *item);
    gy_offset_answer answer = { 0 };
    gantry_status status = offset && which && item ? GANTRY_OK : gy_fail_nomem(err);
    if (!status) {
        size_t count = list_items(k, store, item, which);
        status = gy_offsets_find(item, count, limit - floor, WORK / k->how->search_shorter / (count + 1), offset,
                                 &answer, err);
        for (size_t i = 0; i < count && !status && answer.fits; i++)
            k->s->instances.at[which[i]].offset = floor + offset[i];
        if (!status && answer.fits)
            k->used[store] = floor + answer.peak;
    }
    gy_free(offset);
    gy_free(which);
    gy_free(item);
    return status;
}
