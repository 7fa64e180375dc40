/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The last way of packing: where best fit in the order of beginnings leaves holes that a store has no room for, other
 * orders, then search (offsets.h). Lifetimes are positions, as there: from the first use to the last.
 */
#include "scheduler/pack/packing.h"

#include "base/align.h"
#include "base/error.h"
#include "base/map.h"
#include "scheduler/pack/offsets.h"
#include "scheduler/plan/packings.h"
#include <stdlib.h>
#include <string.h>

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

typedef struct question {
    gy_pack *k;
    uint32_t store, count;
    uint64_t room, budget;
    gy_offset_item *item;
    uint32_t *which;  /* instance of each item */
    int64_t *section; /* per position: how many times something began and then something ended before it */
    uint64_t *offset;
} question;

/* Positions at which nothing of the store begins or ends count for nothing, as things meet with and without them. */
static void find_sections(const question *q)
{
    const gy_pack *k = q->k;
    bool began = false;
    int64_t sections = 0;
    for (size_t i = 0; i < k->s->ops.count; i++) {
        q->section[i] = sections;
        for (size_t n = k->start_first[i]; n < k->start_first[i + 1] && !began; n++)
            began = k->life[k->start[n]].store == q->store && !gy_pack_persists(k, k->start[n]);
        bool ended = false;
        for (size_t n = k->end_first[i]; n < k->end_first[i + 1] && !ended; n++)
            ended = k->life[k->end[n]].store == q->store;
        sections += began && ended;
        began = began && !ended;
    }
    q->section[k->s->ops.count] = sections;
}

/* Of equal items the lower instance comes first: each may have the other's place. */
static int by_life(const void *a, const void *b, void *context)
{
    const question *q = context;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    const gy_life *f = &q->k->life[x], *g = &q->k->life[y];
    const int64_t *at = q->section;
    if (at[f->first] != at[g->first])
        return at[f->first] < at[g->first] ? -1 : 1;
    if (at[f->last + 1] != at[g->last + 1])
        return at[f->last + 1] < at[g->last + 1] ? -1 : 1;
    if (f->bytes != g->bytes)
        return f->bytes > g->bytes ? -1 : 1;
    return x < y ? -1 : x > y;
}

/* The instances that are ours to place, as items. */
static void list_items(question *q)
{
    const gy_pack *k = q->k;
    find_sections(q);
    for (uint32_t i = 0; i < k->s->instances.count; i++)
        if (k->life[i].store == q->store && !gy_pack_persists(k, i))
            q->which[q->count++] = i;
    qsort_r(q->which, q->count, sizeof *q->which, by_life, q);
    for (uint32_t i = 0; i < q->count; i++) {
        const gy_life *f = &k->life[q->which[i]];
        q->item[i] = (gy_offset_item){ q->section[f->first], q->section[f->last + 1], f->bytes, GY_ALIGN };
    }
}

static gy_packing_key key_of(const question *q)
{
    gy_packing_key key = { { q->room, ~q->room } };
    for (uint32_t i = 0; i < q->count; i++) {
        uint64_t life[] = { (uint64_t)q->item[i].first, (uint64_t)q->item[i].last, q->item[i].size };
        key.half[0] = gy_hash_bytes(life, sizeof life, key.half[0]);
        key.half[1] = gy_hash_bytes(life, sizeof life, key.half[1]);
    }
    return key;
}

/* Fills `packing` with the answer, and the list of all with a copy. */
static gantry_status search(question *q, gy_packing_key key, gy_packing *packing, gantry_error *err)
{
    gy_offset_answer answer = { 0 };
    gy_packings *all = q->k->p->packings;
    GY_TRY(gy_offsets_find(q->item, q->count, q->room, q->budget, q->offset, &answer, err));
    *packing = (gy_packing){ key, q->budget, answer.peak, answer.fits ? q->offset : NULL, answer.proved };
    if (!all)
        return GANTRY_OK;
    gy_packing kept = *packing;
    if (answer.fits) {
        kept.offset = gy_calloc((size_t)q->count + 1, sizeof *kept.offset);
        if (!kept.offset)
            return gy_fail_nomem(err);
        memcpy(kept.offset, q->offset, q->count * sizeof *kept.offset);
    }
    return gy_packings_keep(all, &kept) ? GANTRY_OK : gy_fail_nomem(err);
}

static gantry_status solve(question *q, uint64_t floor, gantry_error *err)
{
    list_items(q);
    q->budget = WORK / q->k->how->search_shorter / (q->count + 1);
    gy_packing packing = { 0 };
    gy_packing_key key = key_of(q);
    const gy_packing *known = q->k->p->packings ? gy_packings_find(q->k->p->packings, key, q->budget) : NULL;
    if (known)
        packing = *known;
    else
        GY_TRY(search(q, key, &packing, err));
    if (!packing.offset)
        return GANTRY_OK;
    for (uint32_t i = 0; i < q->count; i++)
        q->k->s->instances.at[q->which[i]].offset = floor + packing.offset[i];
    q->k->used[q->store] = floor + packing.peak;
    return GANTRY_OK;
}

gantry_status gy_pack_offsets(gy_pack *k, uint32_t store, gantry_error *err)
{
    size_t instances = k->s->instances.count + 1;
    uint64_t floor = floor_of(k, store);
    question q = { .k = k, .store = store, .room = gy_pack_limit(k, store) - floor };
    q.offset = gy_calloc(instances, sizeof *q.offset);
    q.which = gy_calloc(instances, sizeof *q.which);
    q.item = gy_calloc(instances, sizeof *q.item);
    q.section = gy_calloc(k->s->ops.count + 2, sizeof *q.section);
    gantry_status status = q.offset && q.which && q.item && q.section ? solve(&q, floor, err) : gy_fail_nomem(err);
    gy_free(q.offset);
    gy_free(q.which);
    gy_free(q.item);
    gy_free(q.section);
    return status;
}
