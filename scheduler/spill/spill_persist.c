/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Constants and states that are too much for a memory: some persist there, and the rest persists in host memory and
 * comes in every start. Those persist that would come most often; and of equals some here and some there, so that
 * between two that come there is time for the copies. As many as there is room for, beside what else is there at each
 * op and what comes for it and for those after it.
 */
#include "scheduler/spill/spill.h"

#include "base/align.h"
#include "base/error.h"
#include <stdlib.h>

/* One home serves all memories that a constant persists in. What is written differs from memory to memory until the
 * end. */
static bool same_home(const gy_instance *home, const gy_instance *in)
{
    return home->value == in->value && home->first == in->first && home->last == in->last;
}

static gantry_status find_home(gy_spill *w, uint32_t x, gantry_error *err)
{
    const gy_instance *in = gy_spill_old(w, x);
    gy_held *h = &w->held[x];
    bool fixed = gy_lower_buffer(&w->lower, in->value)->cls == GANTRY_CONST;
    for (size_t i = 0; i < w->homes.count && fixed && h->home == GY_NONE; i++)
        if (same_home(&w->p->draft.instance.at[w->homes.at[i]], in))
            h->home = w->homes.at[i];
    if (h->home != GY_NONE)
        return GANTRY_OK;
    gy_instance home = { .value = in->value, .role = GY_ROLE_PERSIST, .first = in->first, .last = in->last };
    gantry_status status = gy_lower_instance(&w->lower, &home, &h->home, err);
    if (!status && !gy_vec_push(&w->homes, h->home))
        status = gy_fail_nomem(err);
    if (!status)
        gy_spill_book(w, 0, 0, (uint32_t)w->old->op.count - 1, h->bytes);
    return status;
}

static gantry_status send_home(gy_spill *w, uint32_t x, gantry_error *err)
{
    const gy_instance *in = gy_spill_old(w, x);
    gy_held *h = &w->held[x];
    gantry_status status = find_home(w, x, err);
    gy_spill_unbook(w, in->memory, 0, (uint32_t)w->old->op.count - 1, h->bytes);
    h->ours = true;
    h->booked = false;
    h->backing = h->home;
    h->lodge = 0;
    h->until = GY_NONE;
    h->lo = in->first;
    h->hi = in->last;
    return status;
}

/* ---- how often they come ---- */

typedef struct item {
    uint32_t x;
    uint32_t visits; /* times that it comes, and goes back, where it does not persist */
    bool stays;
} item;

typedef struct persisting {
    gy_spill *w;
    uint32_t memory;
    GY_VEC(item) item;
    uint64_t all, biggest; /* bytes; in one op */
    uint64_t *there;       /* per op: bytes of the rest */
    uint64_t *comes;       /* per op: bytes of what does not persist */
} persisting;

/* Uses that come one after the other, with little in between, are one visit. */
static uint32_t visits_of(const persisting *x, uint32_t id, const uint64_t *used_before)
{
    const gy_spill *w = x->w;
    uint32_t visits = 1;
    bool changed = false;
    for (uint32_t n = w->use_first[id]; n < w->use_first[id + 1]; n++) {
        changed = changed || w->old->use.at[w->uses[n].use].mode != GANTRY_READ;
        if (n > w->use_first[id] && w->uses[n].op > w->uses[n - 1].op)
            visits += used_before[w->uses[n].op] - used_before[w->uses[n - 1].op + 1] > x->biggest;
    }
    return visits + changed;
}

static bool is_candidate(const gy_spill *w, uint32_t memory, uint32_t x)
{
    const gy_instance *in = gy_spill_old(w, x);
    return in->memory == memory && in->role == GY_ROLE_PERSIST && w->held[x].first != GY_NONE;
}

/* Adds the bytes of an item to the ops that use it. */
static void add_uses(const persisting *x, uint32_t id, uint64_t *bytes)
{
    const gy_spill *w = x->w;
    for (uint32_t n = w->use_first[id]; n < w->use_first[id + 1]; n++)
        if (n == w->use_first[id] || w->uses[n].op != w->uses[n - 1].op)
            bytes[w->uses[n].op] += w->held[id].bytes;
}

static gantry_status list_items(persisting *x, gantry_error *err)
{
    gy_spill *w = x->w;
    size_t ops = w->old->op.count;
    uint64_t *before = gy_calloc(ops + 2, sizeof *before);
    gantry_status status = before ? GANTRY_OK : gy_fail_nomem(err);
    for (uint32_t id = 0; id < w->old->instance.count && !status; id++) {
        if (!is_candidate(w, x->memory, id))
            continue;
        x->all += w->held[id].bytes;
        add_uses(x, id, x->comes);
        status = gy_vec_push(&x->item, ((item){ .x = id })) ? GANTRY_OK : gy_fail_nomem(err);
    }
    for (size_t i = 0; i < ops && !status; i++) {
        before[i + 1] = before[i] + x->comes[i];
        x->biggest = x->comes[i] > x->biggest ? x->comes[i] : x->biggest;
        x->there[i] = gy_spill_load(w, x->memory, (uint32_t)i, (uint32_t)i) - x->all;
    }
    for (size_t k = 0; k < x->item.count && !status; k++)
        x->item.at[k].visits = visits_of(x, x->item.at[k].x, before);
    gy_free(before);
    return status;
}

/* ---- who stays ---- */

static int by_visits(const void *a, const void *b, void *context)
{
    const item *x = a, *y = b;
    const gy_held *held = context;
    if (x->visits != y->visits)
        return x->visits > y->visits ? -1 : 1;
    if (held[x->x].first != held[y->x].first)
        return held[x->x].first < held[y->x].first ? -1 : 1;
    return x->x < y->x ? -1 : x->x > y->x;
}

/* Nothing goes on beside the first that comes, nor beside the last that goes back. */
static uint64_t keep_ends(persisting *x, size_t first, size_t last, uint64_t room)
{
    const gy_held *held = x->w->held;
    size_t end = first;
    uint64_t kept = 0;
    for (size_t k = first; k < last; k++)
        end = held[x->item.at[k].x].last > held[x->item.at[end].x].last ? k : end;
    size_t ends[] = { first, end };
    for (size_t i = 0; i < 2 && first < last; i++) {
        item *at = &x->item.at[ends[i]];
        if (at->stays || kept + held[at->x].bytes > room)
            continue;
        at->stays = true;
        kept += held[at->x].bytes;
    }
    return kept;
}

/* Items [first, last) come equally often, in the order of their first uses: so many bytes of them stay, spread over
 * the time. */
static void spread(persisting *x, size_t first, size_t last, uint64_t room)
{
    const gy_held *held = x->w->held;
    uint64_t all = 0, seen = 0, kept = 0;
    for (size_t k = first; k < last; k++) {
        all += held[x->item.at[k].x].bytes;
        x->item.at[k].stays = false;
    }
    bool ends = x->w->how.way->ends;
    kept = ends ? keep_ends(x, first, last, room) : 0;
    for (size_t k = first; k < last; k++) {
        uint64_t bytes = held[x->item.at[k].x].bytes;
        seen += ends ? 0 : bytes;
        bool due = (double)kept + (ends ? 0 : (double)bytes) <= (double)room * ((double)seen / (double)all);
        seen += ends ? bytes : 0;
        if (x->item.at[k].stays || (!due && all > room) || kept + bytes > room)
            continue;
        x->item.at[k].stays = true;
        kept += bytes;
    }
    for (size_t k = last; k-- > first;) {
        uint64_t bytes = held[x->item.at[k].x].bytes;
        if (x->item.at[k].stays || kept + bytes > room)
            continue;
        x->item.at[k].stays = true;
        kept += bytes;
    }
}

static uint64_t choose(persisting *x, uint64_t room)
{
    uint64_t kept = 0;
    for (size_t first = 0, last = 0; first < x->item.count; first = last) {
        while (last < x->item.count && x->item.at[last].visits == x->item.at[first].visits)
            last++;
        spread(x, first, last, room - kept);
        for (size_t k = first; k < last; k++)
            kept += x->item.at[k].stays ? x->w->held[x->item.at[k].x].bytes : 0;
    }
    return kept;
}

/* Is there room for them, for what else is there at each op, and for what comes for it and for the next ops that
 * something comes for, `beside` ops in all? */
static bool has_room(persisting *x, uint64_t kept, uint32_t beside)
{
    const gy_spill *w = x->w;
    size_t ops = w->old->op.count;
    uint64_t next = 0, after = 0;
    for (size_t i = 0; i < ops; i++)
        x->comes[i] = 0;
    for (size_t k = 0; k < x->item.count; k++)
        if (!x->item.at[k].stays)
            add_uses(x, x->item.at[k].x, x->comes);
    for (size_t i = ops; i-- > 0;) {
        uint64_t ahead = (beside > 1 ? next : 0) + (beside > 2 ? after : 0);
        if (kept + x->there[i] + x->comes[i] + ahead > w->capacity[x->memory])
            return false;
        after = x->comes[i] ? next : after;
        next = x->comes[i] ? x->comes[i] : next;
    }
    return true;
}

static void choose_most(persisting *x, uint32_t beside)
{
    uint64_t low = 0, high = x->w->capacity[x->memory];
    while (high - low > GY_ALIGN) {
        uint64_t middle = low + (high - low) / 2, kept = choose(x, middle);
        if (has_room(x, kept, beside))
            low = middle;
        else
            high = middle;
    }
    choose(x, low);
}

static gantry_status send_homes(gy_spill *w, uint32_t memory, gantry_error *err)
{
    persisting x = { .w = w, .memory = memory };
    size_t ops = w->old->op.count;
    gy_persisting how = w->how.persists;
    x.there = gy_calloc(ops + 1, sizeof *x.there);
    x.comes = gy_calloc(ops + 1, sizeof *x.comes);
    gantry_status status = x.there && x.comes ? list_items(&x, err) : gy_fail_nomem(err);
    if (!status && x.item.count) {
        qsort_r(x.item.at, x.item.count, sizeof *x.item.at, by_visits, w->held);
        if (how >= GY_PERSIST_BESIDE_ONE && how <= GY_PERSIST_BESIDE_THREE)
            choose_most(&x, (uint32_t)(how - GY_PERSIST_BESIDE_ONE) + 1);
        else
            choose(&x, how == GY_PERSIST_HALF ? w->capacity[memory] / 2 : 0);
    }
    for (size_t k = 0; k < x.item.count && !status; k++)
        if (!x.item.at[k].stays)
            status = send_home(w, x.item.at[k].x, err);
    gy_vec_free(&x.item);
    gy_free(x.there);
    gy_free(x.comes);
    return status;
}

static bool overflows(const gy_spill *w, uint32_t memory)
{
    return gy_spill_load(w, memory, 0, (uint32_t)w->old->op.count - 1) > w->capacity[memory];
}

gantry_status gy_spill_lighten(gy_spill *w, gantry_error *err)
{
    for (uint32_t m = 1; m < w->p->machine->memories && w->how.persists < GY_PERSIST_ALL; m++)
        if (gy_spill_reach(w, 0, m) && gy_spill_reach(w, m, 0) && overflows(w, m))
            GY_TRY(send_homes(w, m, err));
    return GANTRY_OK;
}
