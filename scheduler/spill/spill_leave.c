/* SPDX-License-Identifier: Apache-2.0 */
/* Instances that leave a memory: which ones, where to, and what is left behind. */
#include "scheduler/spill/spill.h"

#include "base/error.h"
#include "scheduler/cost/cost.h"

/* The op that uses the instance next, GY_NONE: none. */
static uint32_t next_op(const gy_spill *w, uint32_t x)
{
    return w->held[x].next < w->use_first[x + 1] ? w->uses[w->held[x].next].op : GY_NONE;
}

uint32_t gy_spill_next(const gy_spill *w, uint32_t x, uint32_t i)
{
    const gy_held *h = &w->held[x];
    uint32_t next = next_op(w, x);
    return h->soon != GY_NONE && h->soon >= i && h->soon < next ? h->soon : next;
}

uint32_t gy_spill_next_write(const gy_spill *w, uint32_t x, uint32_t limit)
{
    for (uint32_t n = w->held[x].next; n < w->use_first[x + 1] && w->uses[n].op <= limit; n++)
        if (w->old->use.at[w->uses[n].use].mode != GANTRY_READ)
            return w->uses[n].op;
    return GY_NONE;
}

/* Will the next op that uses it overwrite all that it has, unread? */
static bool is_overwritten(const gy_spill *w, uint32_t x)
{
    const gy_held *h = &w->held[x];
    bool covered = false;
    for (uint32_t n = h->next; n < w->use_first[x + 1] && w->uses[n].op == w->uses[h->next].op; n++) {
        const gy_use *u = &w->old->use.at[w->uses[n].use];
        if (u->mode != GANTRY_WRITE)
            return false;
        covered = covered || (u->first <= h->lo && h->hi <= u->last);
    }
    return covered;
}

bool gy_spill_is_wanted(const gy_spill *w, uint32_t x, uint32_t i)
{
    const gy_held *h = &w->held[x];
    if (h->lo >= h->hi)
        return false;
    if ((h->keep != GY_NONE && h->keep >= i) || (h->needed != GY_NONE && h->needed >= i))
        return true;
    return h->next < w->use_first[x + 1] && !is_overwritten(w, x);
}

uint32_t gy_spill_rows(const gy_spill *w, uint32_t x)
{
    const gy_held *h = &w->held[x];
    while (h->now == GY_NONE && h->from != GY_NONE)
        h = &w->held[h->from];
    return h->now != GY_NONE ? h->now : h->backing;
}

/* ---- leaving ---- */

bool gy_spill_comes_again(const gy_spill *w, uint32_t x, uint32_t j)
{
    const gy_held *h = &w->held[x], *s = &w->held[h->source];
    const gy_instance *in;
    if (h->source == GY_NONE || h->home != GY_NONE || s->remake)
        return false;
    in = gy_spill_old(w, h->source);
    if (in->space == GY_SPACE_INPUT)
        return true;
    if (!w->direct || in->space != GY_SPACE_SLAB || s->writes != h->source_writes ||
        (j && gy_spill_next_write(w, h->source, j - 1) != GY_NONE))
        return false;
    return s->ours ? s->last >= j && s->lo <= h->lo && h->hi <= s->hi : in->role == GY_ROLE_PERSIST;
}

static bool is_piece_kept(const gy_spill *w, const gy_spill_piece *piece, uint32_t memory, uint32_t j)
{
    const gy_held *s = &w->held[piece->source];
    const gy_instance *in = gy_spill_old(w, piece->source);
    bool stays = s->stays || (!s->ours && in->role == GY_ROLE_PERSIST);
    return stays && in->space == GY_SPACE_SLAB && s->writes == piece->writes &&
           (!j || gy_spill_next_write(w, piece->source, j - 1) == GY_NONE) &&
           (in->memory == memory || gy_spill_reach(w, in->memory, memory));
}

bool gy_spill_comes_in_pieces(const gy_spill *w, uint32_t x, uint32_t j)
{
    const gy_held *h = &w->held[x];
    uint32_t n = h->pieces;
    while (n != GY_NONE && is_piece_kept(w, &w->piece.at[n], gy_spill_old(w, x)->memory, j))
        n = w->piece.at[n].next;
    return h->pieces != GY_NONE && n == GY_NONE && h->home == GY_NONE;
}

/* The nearest memory of another device with room from op i to op j, else host memory, else GY_NONE. */
static uint32_t choose_lodge(gy_spill *w, uint32_t x, uint32_t i, uint32_t j)
{
    const gantry_machine *m = w->p->machine;
    uint32_t own = gy_spill_old(w, x)->memory, best = GY_NONE, begin = i ? i - 1 : 0;
    gy_ticks least = GY_TICKS_MAX;
    for (uint32_t to = 1; to < m->memories && (w->how.addressed || w->how.sixteenths); to++) { /* else: holes there */
        if (to == own || !gy_spill_reach(w, own, to) || !gy_spill_reach(w, to, own))
            continue;
        gy_ticks time = gy_transfer_time(w->p, own, to, (int64_t)w->held[x].bytes) +
                        gy_transfer_time(w->p, to, own, (int64_t)w->held[x].bytes);
        if (time < least && gy_spill_has_room(w, to, begin, j, w->held[x].bytes) &&
            gy_spill_has_hole(w, to, i, w->held[x].bytes)) {
            least = time;
            best = to;
        }
    }
    if (best != GY_NONE || own == 0 || !gy_spill_reach(w, own, 0) || !gy_spill_reach(w, 0, own))
        return best;
    return gy_spill_has_room(w, 0, begin, j, w->held[x].bytes) ? 0 : GY_NONE;
}

bool gy_spill_keeps_backing(gy_spill *w, uint32_t x, uint32_t i, uint32_t j)
{
    gy_held *h = &w->held[x];
    if (h->backing == GY_NONE)
        return false;
    if (h->backing == h->home || h->until >= j)
        return true;
    bool gone = w->ground[h->lodge].ours && h->until < i;
    if (gone || !gy_spill_has_room(w, h->lodge, h->until + 1, j, h->bytes))
        return false;
    gy_spill_book(w, h->lodge, h->until + 1, j, h->bytes);
    h->until = j;
    return true;
}

gy_ticks gy_spill_queue(const gy_spill *w, uint32_t memory)
{
    uint32_t device = gy_plan_device_of(w->p, memory);
    gy_ticks now = device == GY_NONE || !w->clock ? 0 : w->clock[device];
    return w->sent[memory] > now ? w->sent[memory] - now : 0;
}

static void note_sent(gy_spill *w, uint32_t from, uint32_t to, int64_t bytes)
{
    uint32_t device = gy_plan_device_of(w->p, from);
    gy_ticks now = device == GY_NONE || !w->clock ? 0 : w->clock[device];
    w->sent[from] = (w->sent[from] > now ? w->sent[from] : now) + gy_transfer_time(w->p, from, to, bytes);
}

/* The copies of all pieces, one after the other. */
static gy_ticks time_of_pieces(const gy_spill *w, uint32_t x)
{
    gy_ticks time = 0;
    const gy_instance *in = gy_spill_old(w, x);
    const gy_buffer *b = gy_lower_buffer(&w->lower, in->value);
    for (uint32_t n = w->held[x].pieces; n != GY_NONE; n = w->piece.at[n].next) {
        const gy_spill_piece *piece = &w->piece.at[n];
        time += gy_transfer_time(w->p, gy_spill_old(w, piece->source)->memory, in->memory,
                                 gy_buffer_span(b, piece->first, piece->last));
    }
    return time;
}

gy_ticks gy_spill_price(const gy_spill *w, uint32_t x)
{
    const gy_held *h = &w->held[x];
    uint32_t here = gy_spill_old(w, x)->memory;
    int64_t bytes = (int64_t)h->bytes;
    if (h->lo >= h->hi)
        return 0;
    if (h->backing != GY_NONE)
        return gy_transfer_time(w->p, h->lodge, here, bytes);
    if (gy_spill_comes_again(w, x, 0))
        return gy_transfer_time(w->p, gy_spill_old(w, h->source)->memory, here, bytes);
    if (gy_spill_comes_in_pieces(w, x, 0))
        return time_of_pieces(w, x);
    gy_ticks copies = gy_transfer_time(w->p, here, 0, bytes) + gy_transfer_time(w->p, 0, here, bytes);
    if (h->maker == GY_NONE || h->maker_writes != h->writes || w->old->op.at[h->maker].op.duration > copies)
        return copies;
    return w->old->op.at[h->maker].op.duration;
}

/* Copies the rows out of the instance `from`, where they are now. */
static gantry_status move_out(gy_spill *w, uint32_t x, uint32_t from, uint32_t lodge, uint32_t i, uint32_t j,
                              gantry_error *err)
{
    gy_held *h = &w->held[x];
    uint32_t to = h->home;
    gantry_status status = GANTRY_OK;
    if (to == GY_NONE) {
        status = gy_spill_lodge(w, x, lodge, &to, err);
        if (!status)
            status = gy_spill_settle(w, x, to, i, err);
        gy_spill_book(w, lodge, i, j, h->bytes);
        h->lodge = lodge;
        h->until = j;
        if (!status && h->lodged != lodge && !gy_vec_push(&w->lodged[lodge], x))
            status = gy_fail_nomem(err);
        h->lodged = lodge;
    }
    h->backing = to;
    note_sent(w, gy_spill_old(w, x)->memory, lodge, (int64_t)h->bytes);
    return status ? status : gy_spill_copy(w, GY_OP_EVICT, from, to, h->lo, h->hi, err);
}

gantry_status gy_spill_go_home(gy_spill *w, uint32_t x, uint32_t i, gantry_error *err)
{
    return move_out(w, x, w->held[x].now, 0, i, i, err);
}

/* Until when its rows are counted on. */
static uint32_t wanted_until(const gy_spill *w, uint32_t x)
{
    const gy_held *h = &w->held[x];
    uint32_t j = next_op(w, x);
    j = h->keep != GY_NONE && (h->keep > j || j == GY_NONE) ? h->keep : j;
    return h->needed != GY_NONE && (h->needed > j || j == GY_NONE) ? h->needed : j;
}

gantry_status gy_spill_leave(gy_spill *w, uint32_t x, uint32_t i, bool *gone, gantry_error *err)
{
    gy_held *h = &w->held[x];
    uint32_t j = wanted_until(w, x), lodge = 0, from = h->now;
    gantry_status status = GANTRY_OK;
    *gone = true;
    if (!gy_spill_is_wanted(w, x, i)) {
        h->lo = h->hi = 0;
        h->backing = h->source = h->pieces = GY_NONE;
    } else if (gy_spill_comes_again(w, x, j)) {
        gy_held *s = &w->held[h->source];
        h->from = h->source;
        h->backing = GY_NONE;
        s->keep = s->keep == GY_NONE || s->keep < j ? j : s->keep;
    } else if (gy_spill_comes_in_pieces(w, x, j)) {
        h->pieced = true;
        h->backing = GY_NONE;
    } else if (!gy_spill_keeps_backing(w, x, i, j) && !gy_spill_plan_remake(w, x, i, j)) {
        lodge = h->home == GY_NONE ? choose_lodge(w, x, i, j) : 0;
        *gone = lodge != GY_NONE;
        if (*gone)
            status = move_out(w, x, from, lodge, i, j, err);
    }
    if (!*gone || status)
        return status;
    gy_spill_unbook(w, gy_spill_old(w, x)->memory, i, h->last, h->bytes);
    h->booked = false;
    h->now = GY_NONE;
    w->moved = true;
    return GANTRY_OK;
}

gantry_status gy_spill_move_on(gy_spill *w, uint32_t x, uint32_t i, bool *gone, gantry_error *err)
{
    gy_held *h = &w->held[x];
    uint32_t here = h->lodge, j = h->until, begin = i ? i - 1 : 0;
    *gone = here != 0 && gy_spill_reach(w, here, 0) && gy_spill_reach(w, 0, gy_spill_old(w, x)->memory) &&
            (w->reader == GY_NONE || gy_spill_reach(w, 0, w->reader)) && gy_spill_has_room(w, 0, begin, j, h->bytes);
    if (!*gone)
        return GANTRY_OK;
    gy_spill_unbook(w, here, i, j, h->bytes);
    return move_out(w, x, h->backing, 0, i, j, err);
}

/* ---- who leaves ---- */

typedef struct victim {
    uint32_t x, next;
    bool lodger;
} victim;

static void consider(const gy_spill *w, victim *best, uint32_t x, uint32_t next, bool lodger)
{
    victim v = { x, next, lodger };
    uint64_t bytes = w->held[x].bytes, most = best->x == GY_NONE ? 0 : w->held[best->x].bytes;
    if (best->x == GY_NONE || next > best->next ||
        (next == best->next && (bytes > most || (bytes == most && x < best->x))))
        *best = v;
}

/* The one whose next use is furthest, of those that could leave. Forgets those that are no longer there. */
static void choose_victim(gy_spill *w, uint32_t memory, uint32_t i, victim *best)
{
    *best = (victim){ .x = GY_NONE };
    gy_ids *list = &w->there[memory];
    size_t kept = 0;
    for (size_t n = 0; n < list->count; n++) {
        uint32_t x = list->at[n];
        gy_held *h = &w->held[x];
        h->listed = h->now != GY_NONE && h->last >= i;
        if (!h->listed)
            continue;
        list->at[kept++] = x;
        if (w->seen[x] != i + 1 && !h->pins && h->bytes)
            consider(w, best, x, gy_spill_next(w, x, i), false);
    }
    list->count = kept;
    list = &w->lodged[memory];
    kept = 0;
    for (size_t n = 0; n < list->count; n++) {
        uint32_t x = list->at[n];
        gy_held *h = &w->held[x];
        if (h->last < i || h->lodge != memory || h->backing == GY_NONE || h->backing == h->home) {
            h->lodged = h->lodged == memory ? GY_NONE : h->lodged;
            continue;
        }
        list->at[kept++] = x;
        if (w->stuck[x] != i + 1 && h->now == GY_NONE && h->from == GY_NONE && h->until >= i && h->bytes)
            consider(w, best, x, h->until, true);
    }
    list->count = kept;
}

gantry_status gy_spill_make_room(gy_spill *w, uint32_t memory, uint32_t i, gantry_error *err)
{
    gantry_status status = GANTRY_OK;
    while (gy_spill_load(w, memory, i, i) > w->capacity[memory] && !status) {
        victim v;
        choose_victim(w, memory, i, &v);
        bool gone = false;
        if (v.x == GY_NONE) /* the share is what is wished for */
            return gy_spill_load(w, memory, i, i) > w->p->capacity[memory] ? gy_spill_cannot(w, memory, i, err)
                                                                           : GANTRY_OK;
        status = v.lodger ? gy_spill_move_on(w, v.x, i, &gone, err) : gy_spill_leave(w, v.x, i, &gone, err);
        if (!gone)
            *(v.lodger ? &w->stuck[v.x] : &w->seen[v.x]) = i + 1;
    }
    return status;
}
