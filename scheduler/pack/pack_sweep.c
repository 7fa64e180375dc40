/* SPDX-License-Identifier: Apache-2.0 */
/* One walk over the ops with vector clocks: reuse of bytes becomes dependencies, and loose offsets are chosen. */
#include "base/align.h"
#include "base/error.h"
#include "base/imap.h"
#include "scheduler/pack/packing.h"
#include <stdlib.h>
#include <string.h>

#define LOOKS     4 /* at how many of a shelf an instance looks: the oldest are the likeliest to have ended */

#define ADDRESSES (UINT64_C(1) << 62) /* that a store can have; more than any memory */

/* Instances of one store and size whose last use is behind us, oldest first. */
typedef struct shelf {
    GY_VEC(uint32_t) at;
    size_t first;
} shelf;

typedef struct sweep {
    gy_pack *k;
    gy_vector_clock clock;
    gy_imap *map; /* per store: which instance had the bytes last (payload: it + 1) */
    gy_edges need;
    gy_map shelf_of; /* store and size -> shelf */
    GY_VEC(shelf) shelves;
    GY_VEC(uint32_t) old; /* scratch of take_bytes */
    uint32_t beyond;      /* a store that was given addresses beyond all that there are; GY_NONE */
} sweep;

/* ---- loose offsets ---- */

static shelf *find_shelf(sweep *w, const gy_life *f)
{
    uint64_t key = f->bytes / GY_ALIGN * w->k->stores + f->store, index;
    if (!gy_map_get(&w->shelf_of, key, &index)) {
        shelf new = { 0 };
        index = w->shelves.count;
        if (!gy_vec_push(&w->shelves, new) || !gy_map_put(&w->shelf_of, key, index))
            return NULL;
    }
    return &w->shelves.at[index];
}

static bool has_ended(const sweep *w, uint32_t instance)
{
    for (const gy_last_use *u = w->k->life[instance].uses; u; u = u->next)
        if (!gy_vector_clock_has(&w->clock, u->op))
            return false;
    return true;
}

/* An instance of the shelf that has ended before the current op, taken off it; or GY_NONE. */
static uint32_t take_over(sweep *w, shelf *from)
{
    for (size_t i = from->first; i < from->at.count && i < from->first + LOOKS; i++) {
        uint32_t old = from->at.at[i];
        if (!has_ended(w, old))
            continue;
        memmove(&from->at.at[from->first + 1], &from->at.at[from->first], (i - from->first) * sizeof old);
        from->first++;
        return old;
    }
    return GY_NONE;
}

static bool place_loosely(sweep *w, uint32_t instance)
{
    gy_pack *k = w->k;
    gy_life *f = &k->life[instance];
    shelf *from = find_shelf(w, f);
    if (!from)
        return false;
    uint32_t old = f->bytes ? take_over(w, from) : GY_NONE;
    if (old == GY_NONE && f->bytes > ADDRESSES - k->used[f->store]) {
        w->beyond = f->store;
        return false;
    }
    if (old == GY_NONE) {
        k->s->instances.at[instance].offset = k->used[f->store];
        k->used[f->store] += f->bytes;
    } else {
        k->s->instances.at[instance].offset = k->s->instances.at[old].offset;
    }
    return true;
}

/* Instances whose last use was the op at `position` can be taken over from now on. */
static bool shelve(sweep *w, uint32_t position)
{
    for (size_t i = w->k->end_first[position]; i < w->k->end_first[position + 1]; i++) {
        shelf *to = find_shelf(w, &w->k->life[w->k->end[i]]);
        if (!to || !gy_vec_push(&to->at, w->k->end[i]))
            return false;
    }
    return true;
}

/* ---- reuse ---- */

/* Keeps what is in w->old as the instances that `f` follows. */
static bool keep_old(sweep *w, gy_life *f)
{
    size_t count = w->old.count;
    if (!count)
        return true;
    uint32_t *list = gy_arena_alloc(&w->k->arena, (count + 1) * sizeof *list);
    if (!list)
        return false;
    list[0] = (uint32_t)count;
    memcpy(list + 1, w->old.at, count * sizeof *list);
    f->before = list;
    return true;
}

static bool take_bytes(sweep *w, uint32_t instance)
{
    gy_life *f = &w->k->life[instance];
    int64_t first = (int64_t)w->k->s->instances.at[instance].offset, last = first + (int64_t)f->bytes;
    gy_imap *map = &w->map[f->store];
    w->old.count = 0;
    if (!f->bytes)
        return true;
    uint32_t i = gy_imap_cut(map, first, last);
    if (i == GY_IMAP_NONE)
        return false;
    for (; i != GY_IMAP_NONE && map->at[i].first < last; i = gy_imap_next(map, i)) {
        uint32_t who = (uint32_t)map->at[i].payload;
        if (who && (!w->old.count || *gy_vec_last(&w->old) != who - 1) && !gy_vec_push(&w->old, who - 1))
            return false;
        map->at[i].payload = (uint64_t)instance + 1;
    }
    gy_imap_join(map, first, last);
    return keep_old(w, f);
}

/* The current op is the first to use the instance, or writes it: all who had its bytes before must have ended. One that
 * is only used, with no rows, waits too: whoever gets the bytes from it looks no further back. */
static bool wait_for_users(sweep *w, uint32_t instance, uint32_t position)
{
    const uint32_t *before = w->k->life[instance].before;
    for (uint32_t i = 0; before && i < before[0]; i++)
        for (const gy_last_use *u = w->k->life[before[i + 1]].uses; u; u = u->next) {
            gy_edge e = { u->op, position, GY_WHY_REUSE };
            if (gy_vector_clock_has(&w->clock, u->op))
                continue;
            if (!gy_vec_push(&w->need, e))
                return false;
            gy_vector_clock_wait(&w->clock, u->op);
        }
    return true;
}

static int by_from(const void *a, const void *b)
{
    const gy_edge *x = a, *y = b;
    if (x->from != y->from)
        return x->from > y->from ? -1 : 1;
    return x->reason < y->reason ? -1 : x->reason > y->reason;
}

static bool wait_for_needs(sweep *w, uint32_t i)
{
    const gy_plan *p = w->k->p;
    for (size_t e = p->sequence.need_first[i]; e < p->sequence.need_first[i + 1]; e++) {
        if (!gy_vec_push(&w->need, p->sequence.need.at[e]))
            return false;
        if (!gy_vector_clock_has(&w->clock, p->sequence.need.at[e].from))
            gy_vector_clock_wait(&w->clock, p->sequence.need.at[e].from);
    }
    return true;
}

/* The instances that the op at `position` uses get their bytes, and the op at `i`, which is that one or begins its
 * batch, waits for who had them. */
static bool use_bytes(sweep *w, uint32_t position, uint32_t i, bool loose)
{
    gy_pack *k = w->k;
    const gy_op *op = &k->s->ops.at[position];
    for (size_t n = k->start_first[position]; n < k->start_first[position + 1]; n++) {
        if (loose && !gy_pack_persists(k, k->start[n]) && !place_loosely(w, k->start[n]))
            return false;
        if (!take_bytes(w, k->start[n]))
            return false;
    }
    for (uint32_t u = 0; u < op->uses; u++) {
        const gy_use *use = &k->s->use.at[op->use + u];
        bool begins = k->life[use->instance].first == position;
        if ((begins || use->mode != GANTRY_READ) && !wait_for_users(w, use->instance, i))
            return false;
    }
    return true;
}

/* All of a batch happens when its first op does. */
static bool step(sweep *w, uint32_t i, bool loose)
{
    gy_pack *k = w->k;
    const gy_op *op = &k->s->ops.at[i];
    size_t begin = w->need.count;
    uint32_t last = op->joined ? i : i + (op->batch ? op->batch : 1);
    gy_vector_clock_begin(&w->clock, i);
    if (!wait_for_needs(w, i))
        return false;
    for (uint32_t position = i; position < last; position++)
        if (!use_bytes(w, position, i, loose))
            return false;
    if (w->need.count > begin + 1)
        qsort(w->need.at + begin, w->need.count - begin, sizeof *w->need.at, by_from);
    k->p->sequence.need_first[i] = begin; /* the old one has been read */
    return gy_vector_clock_end(&w->clock, i) && (!loose || shelve(w, i));
}

static void end_sweep(sweep *w)
{
    for (uint32_t i = 0; w->map && i < w->k->stores; i++)
        gy_imap_free(&w->map[i]);
    for (size_t i = 0; i < w->shelves.count; i++)
        gy_vec_free(&w->shelves.at[i].at);
    gy_free(w->map);
    gy_vec_free(&w->need);
    gy_vec_free(&w->shelves);
    gy_vec_free(&w->old);
    gy_map_free(&w->shelf_of);
    gy_vector_clock_free(&w->clock);
}

gantry_status gy_pack_sweep(gy_pack *k, bool loose, gantry_error *err)
{
    gy_plan *p = k->p;
    sweep w = { .k = k, .map = gy_calloc(k->stores, sizeof *w.map), .beyond = GY_NONE };
    bool done = gy_vector_clock_init(&w.clock, k->s) && w.map && gy_vec_reserve(&w.need, p->sequence.need.count);
    for (uint32_t i = 0; i < k->stores && done; i++)
        done = gy_imap_init(&w.map[i], 0, (int64_t)ADDRESSES, 0);
    for (uint32_t i = 0; i < k->s->ops.count && done; i++)
        done = step(&w, i, loose);
    if (done) { /* the plan's needs are now these */
        gy_edges old = p->sequence.need;
        p->sequence.need = w.need;
        w.need = old;
        p->sequence.need_first[k->s->ops.count] = p->sequence.need.count;
    }
    end_sweep(&w);
    if (w.beyond != GY_NONE)
        return gy_pack_refuse(k, w.beyond, err);
    return done ? GANTRY_OK : gy_fail_nomem(err);
}
