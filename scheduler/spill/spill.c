/* SPDX-License-Identifier: Apache-2.0 */
/* The walk, op by op. */
#include "scheduler/spill/spill.h"

#include "base/error.h"

/* Will the rows still be where they are for the use after op i, if they do not come at op i? */
static bool stays_out(gy_spill *w, uint32_t x, uint32_t i)
{
    gy_held *h = &w->held[x];
    uint32_t n = h->next, j = h->keep != GY_NONE && h->keep > i ? h->keep : i;
    j = h->needed != GY_NONE && h->needed > j ? h->needed : j;
    while (n < w->use_first[x + 1] && w->uses[n].op <= i)
        n++;
    j = n < w->use_first[x + 1] && w->uses[n].op > j ? w->uses[n].op : j;
    if (j == i)
        return true;
    if (h->pieced)
        return gy_spill_comes_in_pieces(w, x, j);
    if (h->from == GY_NONE)
        return gy_spill_keeps_backing(w, x, i, j);
    if (h->from != h->source || !gy_spill_comes_again(w, x, j))
        return false;
    gy_held *s = &w->held[h->source];
    s->keep = s->keep == GY_NONE || s->keep < j ? j : s->keep;
    return true;
}

/* A copy from an instance that is out can read the rows where they are. */
static bool reads_elsewhere(gy_spill *w, uint32_t i)
{
    const gy_op *op = &w->old->op.at[i].op;
    const gy_use *u = gy_vec_from(&w->old->use, op->use);
    if (!gy_spill_is_copy(op))
        return false;
    const gy_held *h = &w->held[u->instance];
    if (!h->ours || h->booked || h->now != GY_NONE || h->remake || h->pieced || h->lo > u->first || u->last > h->hi)
        return false;
    return gy_spill_reach(w, w->p->draft.instance.at[gy_spill_rows(w, u->instance)].memory,
                          gy_spill_old(w, u[1].instance)->memory) &&
           stays_out(w, u->instance, i);
}

static bool list_needed(gy_spill *w, uint32_t i, bool elsewhere)
{
    const gy_op *op = &w->old->op.at[i].op;
    w->needs.count = 0;
    for (uint32_t k = elsewhere; k < op->uses; k++) {
        uint32_t x = w->old->use.at[op->use + k].instance;
        if (!w->held[x].ours || w->wants[x] == i + 1)
            continue;
        w->wants[x] = i + 1;
        gy_spill_book_from(w, x, i);
        if (!gy_vec_push(&w->needs, x))
            return false;
    }
    return true;
}

/* Instances that the op uses, or reads elsewhere, must not move while room is made. */
static bool pin_all(gy_spill *w, uint32_t i, bool elsewhere)
{
    const gy_op *op = &w->old->op.at[i].op;
    bool done = true;
    for (uint32_t k = elsewhere; k < op->uses && done; k++)
        done = gy_spill_pin(w, w->old->use.at[op->use + k].instance);
    w->reader = elsewhere ? gy_spill_old(w, w->old->use.at[op->use + 1].instance)->memory : GY_NONE;
    for (uint32_t x = elsewhere ? w->old->use.at[op->use].instance : GY_NONE; x != GY_NONE && done;
         x = w->held[x].now == GY_NONE ? w->held[x].from : GY_NONE)
        done = gy_spill_pin(w, x);
    return done;
}

bool gy_spill_pin(gy_spill *w, uint32_t x)
{
    w->held[x].pins++;
    return gy_vec_push(&w->pinned, x);
}

void gy_spill_unpin(gy_spill *w, size_t count)
{
    while (w->pinned.count > count)
        w->held[w->pinned.at[--w->pinned.count]].pins--;
}

/* The last resort against holes: nothing stays in a memory from one op to the next. */
static gantry_status clear_all(gy_spill *w, uint32_t i, gantry_error *err)
{
    const gy_op *op = &w->old->op.at[i].op;
    gantry_status status = GANTRY_OK;
    for (uint32_t k = 0; k < op->uses; k++) {
        gy_ids *list = &w->there[gy_spill_old(w, w->old->use.at[op->use + k].instance)->memory];
        for (size_t n = 0; n < list->count && !status; n++) {
            gy_held *h = &w->held[list->at[n]];
            bool gone;
            if (h->now != GY_NONE && h->last >= i && h->bytes)
                status = gy_spill_leave(w, list->at[n], i, &gone, err);
        }
    }
    return status;
}

static gantry_status make_all_room(gy_spill *w, uint32_t i, gantry_error *err)
{
    const gy_op *op = &w->old->op.at[i].op;
    gantry_status status = GANTRY_OK;
    for (uint32_t k = 0; k < op->uses && !status; k++) {
        const gy_instance *in = gy_spill_old(w, w->old->use.at[op->use + k].instance);
        if (in->space == GY_SPACE_STAGING || (in->space == GY_SPACE_SLAB && !w->ground[in->memory].ours))
            status = gy_spill_make_room(w, in->memory, i, err);
    }
    return status;
}

static gantry_status be_there(gy_spill *w, uint32_t x, uint32_t i, gantry_error *err)
{
    gy_held *h = &w->held[x];
    uint32_t memory = gy_spill_old(w, x)->memory;
    gantry_status status = gy_spill_here(w, x, err);
    if (!status)
        status = gy_spill_settle(w, x, h->now, i, err);
    if (!status && !h->listed && !gy_vec_push(&w->there[memory], x))
        status = gy_fail_nomem(err);
    h->listed = true;
    return status;
}

gantry_status gy_spill_make_way(gy_spill *w, uint32_t x, uint32_t i, uint32_t from, bool *made, gantry_error *err)
{
    uint32_t memory = gy_spill_old(w, x)->memory;
    *made = true;
    if (!w->ground[memory].ours)
        return GANTRY_OK;
    gantry_status status = gy_spill_make_hole(w, memory, i, from, w->held[x].bytes, made, err);
    return status || *made || from > i ? status : gy_spill_cannot(w, memory, i, err);
}

static gantry_status fetch_pieces(gy_spill *w, uint32_t x, gantry_error *err)
{
    gy_held *h = &w->held[x];
    gantry_status status = GANTRY_OK;
    h->pieced = false;
    for (uint32_t n = h->pieces; n != GY_NONE && !status; n = w->piece.at[n].next) {
        const gy_spill_piece *piece = &w->piece.at[n];
        uint32_t from = gy_spill_rows(w, piece->source);
        status = gy_spill_copy(w, GY_OP_FETCH, from, h->now, piece->first, piece->last, err);
    }
    return status;
}

gantry_status gy_spill_come(gy_spill *w, uint32_t x, uint32_t i, uint32_t from, bool *came, gantry_error *err)
{
    gy_held *h = &w->held[x];
    *came = true;
    if (h->now != GY_NONE)
        return GANTRY_OK;
    if (h->remake)
        return gy_spill_remake(w, x, i, err);
    gantry_status status = gy_spill_make_way(w, x, i, from, came, err);
    if (status || !*came)
        return status;
    uint32_t rows = h->lo < h->hi ? gy_spill_rows(w, x) : GY_NONE;
    status = be_there(w, x, i, err);
    h->from = GY_NONE;
    if (h->pieced)
        return status ? status : fetch_pieces(w, x, err);
    if (!status && rows != GY_NONE && gy_spill_is_wanted(w, x, i))
        status = gy_spill_copy(w, GY_OP_FETCH, rows, h->now, h->lo, h->hi, err);
    return status;
}

/* The instance is in its memory before op i, for an op that writes all its rows again. */
static gantry_status come_empty(gy_spill *w, uint32_t x, uint32_t i, gantry_error *err)
{
    gy_held *h = &w->held[x];
    bool made;
    if (h->now != GY_NONE)
        return GANTRY_OK;
    GY_TRY(gy_spill_make_way(w, x, i, i, &made, err));
    h->remake = h->pieced = false;
    h->from = GY_NONE;
    return be_there(w, x, i, err);
}

/* All that the op reads is in its memory before op i, and stays until it is unpinned. */
static gantry_status reads_come(gy_spill *w, const gy_op *op, uint32_t i, gantry_error *err)
{
    gantry_status status = GANTRY_OK;
    bool made;
    for (uint32_t k = 0; k < op->uses && !status; k++) {
        const gy_use *u = &w->old->use.at[op->use + k];
        if (u->mode != GANTRY_READ || !w->held[u->instance].ours)
            continue;
        gy_spill_book_from(w, u->instance, i);
        status = gy_spill_pin(w, u->instance) ? gy_spill_come(w, u->instance, i, i, &made, err) : gy_fail_nomem(err);
    }
    return status;
}

/* The uses that the maker has when it is carried out again. */
static bool list_again(gy_spill *w, uint32_t maker)
{
    const gy_op *op = &w->old->op.at[maker].op;
    bool done = true;
    w->again.count = 0;
    for (uint32_t k = 0; k < op->uses && done; k++)
        done = gy_spill_is_spared(w, maker, &w->old->use.at[op->use + k]) || gy_vec_push(&w->again, k);
    return done;
}

static gantry_status make_again(gy_spill *w, uint32_t maker, uint32_t i, gantry_error *err)
{
    const gy_op *op = &w->old->op.at[maker].op;
    GY_TRY(reads_come(w, op, i, err));
    if (!list_again(w, maker))
        return gy_fail_nomem(err);
    for (size_t n = 0; n < w->again.count; n++) {
        const gy_use *u = &w->old->use.at[op->use + w->again.at[n]];
        if (u->mode == GANTRY_READ || !w->held[u->instance].ours)
            continue;
        gy_spill_book_from(w, u->instance, i);
        GY_TRY(gy_spill_pin(w, u->instance) ? come_empty(w, u->instance, i, err) : gy_fail_nomem(err));
    }
    return gy_spill_repeat(w, maker, err);
}

gantry_status gy_spill_remake(gy_spill *w, uint32_t x, uint32_t i, gantry_error *err)
{
    size_t pinned = w->pinned.count;
    gantry_status status = make_again(w, w->held[x].maker, i, err);
    w->held[x].remake = false;
    gy_spill_unpin(w, pinned);
    return status;
}

/* Other rows come in place of these: the pieces have what is left of them. */
static gantry_status cut_pieces(gy_spill *w, gy_held *h, int64_t first, int64_t last, gantry_error *err)
{
    for (uint32_t n = h->pieces, before = GY_NONE, next; n != GY_NONE; n = next) {
        gy_spill_piece *piece = &w->piece.at[n], rest = *piece;
        bool below = piece->first < first, above = last < piece->last;
        next = piece->next;
        if (piece->last <= first || last <= piece->first) {
            before = n;
            continue;
        }
        piece->first = below ? piece->first : last;
        piece->last = below ? first : piece->last;
        if (below || above)
            before = n;
        else
            *(before == GY_NONE ? &h->pieces : &w->piece.at[before].next) = next;
        if (!below || !above)
            continue;
        rest.first = last;
        rest.next = h->pieces;
        h->pieces = (uint32_t)w->piece.count;
        if (!gy_vec_push(&w->piece, rest))
            return gy_fail_nomem(err);
    }
    return GANTRY_OK;
}

/* One more piece if the op copied, else none are known. Each row is in one piece, in that which came last, so they may
 * come back in any order. */
static gantry_status note_piece(gy_spill *w, uint32_t i, const gy_use *u, gantry_error *err)
{
    const gy_op *op = &w->old->op.at[i].op;
    gy_held *h = &w->held[u->instance];
    bool empty = h->lo >= h->hi;
    if (u->first >= u->last)
        return GANTRY_OK;
    if (!gy_spill_is_copy(op) || (!empty && h->pieces == GY_NONE)) {
        h->pieces = GY_NONE;
        return GANTRY_OK;
    }
    h->pieces = empty ? GY_NONE : h->pieces;
    if (u->first < h->hi && h->lo < u->last)
        GY_TRY(cut_pieces(w, h, u->first, u->last, err));
    gy_spill_piece piece = { .source = w->old->use.at[op->use].instance, .first = u->first, .last = u->last };
    piece.next = h->pieces;
    piece.writes = w->held[piece.source].writes;
    h->pieces = (uint32_t)w->piece.count;
    return gy_vec_push(&w->piece, piece) ? GANTRY_OK : gy_fail_nomem(err);
}

static void note_write(gy_spill *w, uint32_t i, const gy_use *u)
{
    const gy_op *op = &w->old->op.at[i].op;
    gy_held *h = &w->held[u->instance];
    uint32_t source = gy_spill_is_copy(op) ? w->old->use.at[op->use].instance : GY_NONE;
    bool first = h->lo >= h->hi;
    if (u->first >= u->last)
        return;
    if (source != GY_NONE && !first && (h->source != source || h->source_writes != w->held[source].writes))
        source = GY_NONE;
    h->source = source;
    h->source_writes = source == GY_NONE ? 0 : w->held[source].writes;
    h->lo = first || u->first < h->lo ? u->first : h->lo;
    h->hi = first || u->last > h->hi ? u->last : h->hi;
    h->writes++;
    h->written = i;
    h->backing = GY_NONE;
    gy_spill_note_maker(w, i, u);
}

/* Notes writes and next uses; a changed instance that persists at home goes there after its last use. */
static gantry_status note_op(gy_spill *w, uint32_t i, gantry_error *err)
{
    const gy_op *op = &w->old->op.at[i].op;
    gantry_status status = GANTRY_OK;
    for (uint32_t k = 0; k < op->uses; k++) {
        const gy_use *u = &w->old->use.at[op->use + k];
        if (u->mode != GANTRY_READ) {
            GY_TRY(note_piece(w, i, u, err));
            note_write(w, i, u);
        }
        gy_held *h = &w->held[u->instance];
        while (h->next < w->use_first[u->instance + 1] && w->uses[h->next].op <= i)
            h->next++;
    }
    for (uint32_t k = 0; k < op->uses && !status; k++) {
        uint32_t x = w->old->use.at[op->use + k].instance;
        gy_held *h = &w->held[x];
        if (h->home != GY_NONE && h->last == i && h->backing == GY_NONE)
            status = gy_spill_go_home(w, x, i, err);
    }
    return status;
}

static gantry_status step(gy_spill *w, uint32_t i, gantry_error *err)
{
    const gy_op *op = &w->old->op.at[i].op;
    bool cleared = !w->how.addressed && !w->how.sixteenths, came;
    gantry_status status = cleared ? clear_all(w, i, err) : GANTRY_OK;
    bool elsewhere = !status && reads_elsewhere(w, i);
    if (!status && (!list_needed(w, i, elsewhere) || !pin_all(w, i, elsewhere)))
        status = gy_fail_nomem(err);
    if (!status)
        status = make_all_room(w, i, err);
    for (size_t n = 0; n < w->needs.count && !status; n++)
        status = gy_spill_come(w, w->needs.at[n], i, i, &came, err);
    if (!status)
        status = gy_spill_op(w, i, elsewhere ? gy_spill_rows(w, w->old->use.at[op->use].instance) : GY_NONE, err);
    w->moved = w->moved || elsewhere;
    gy_spill_unpin(w, 0);
    if (!status)
        status = note_op(w, i, err);
    return status || !w->how.addressed ? status : gy_spill_look_ahead(w, i, err);
}

/* Does a device copy longer than it computes? */
static gantry_status compare_lanes(const gy_plan *p, bool *copies, gantry_error *err)
{
    gy_ticks *balance = gy_calloc(p->devices, sizeof *balance);
    if (!balance)
        return gy_fail_nomem(err);
    for (size_t i = 0; i < p->draft.op.count; i++) {
        const gy_draft_op *d = &p->draft.op.at[i];
        if (d->lane != GY_LANE_COLLECTIVE)
            balance[d->device] += d->lane == GY_LANE_COPY ? d->op.duration : -d->op.duration;
    }
    for (uint32_t d = 0; d < p->devices; d++)
        *copies = *copies || balance[d] > 0;
    gy_free(balance);
    return GANTRY_OK;
}

gantry_status gy_plan_spill(gy_plan *p, const gy_draft *from, const gy_spill_try *how, gantry_error *err)
{
    gy_spill w = { .p = p, .lower = { .p = p }, .old = from, .how = *how };
    p->draft.instance.count = p->draft.op.count = p->draft.use.count = p->draft.edges.count = 0;
    gantry_status status = from->op.count ? gy_spill_open(&w, err) : GANTRY_OK;
    for (uint32_t i = 0; i < from->op.count && !status; i++)
        status = step(&w, i, err);
    p->spilled = (gy_spilled){ .moved = w.moved, .alone = w.alone, .repeats = w.remade };
    if (!status)
        status = compare_lanes(p, &p->spilled.copies_bound, err);
    if (from->op.count)
        gy_spill_close(&w);
    return status;
}
