/* SPDX-License-Identifier: Apache-2.0 */
/* The walk: what leaves when, and where it goes. */
#include "scheduler/spill.h"

#include "base/error.h"

/* The op that uses the instance next, GY_NONE: none. */
static uint32_t next_op(const gy_spill *w, uint32_t x)
{
    return w->held[x].next < w->use_first[x + 1] ? w->uses[w->held[x].next].op : GY_NONE;
}

/* The next op that changes it, GY_NONE: none. Looks no further than op `limit`. */
static uint32_t next_write(const gy_spill *w, uint32_t x, uint32_t limit)
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

static bool is_wanted(const gy_spill *w, uint32_t x, uint32_t i)
{
    const gy_held *h = &w->held[x];
    if (h->lo >= h->hi)
        return false;
    return (h->keep != GY_NONE && h->keep >= i) || !is_overwritten(w, x);
}

/* The new instance that has the rows. */
static uint32_t find_rows(const gy_spill *w, uint32_t x)
{
    const gy_held *h = &w->held[x];
    while (h->now == GY_NONE && h->from != GY_NONE)
        h = &w->held[h->from];
    return h->now != GY_NONE ? h->now : h->backing;
}

/* ---- leaving ---- */

/* Will what the rows were copied from still have them at op j? */
static bool can_come_again(const gy_spill *w, uint32_t x, uint32_t j)
{
    const gy_held *h = &w->held[x], *s = &w->held[h->source];
    const gy_instance *in;
    if (h->source == GY_NONE || h->home != GY_NONE)
        return false;
    in = gy_spill_old(w, h->source);
    if (in->space == GY_SPACE_INPUT)
        return true;
    if (!w->direct || in->space != GY_SPACE_SLAB || s->writes != h->source_writes ||
        (j && next_write(w, h->source, j - 1) != GY_NONE))
        return false;
    return s->ours ? s->last >= j && s->lo <= h->lo && h->hi <= s->hi : in->role == GY_ROLE_PERSIST;
}

#define LARGEST 3

/* The largest of what the op itself has in the memory. */
static void add_largest(const gy_spill *w, uint32_t memory, uint32_t i, gy_text *to)
{
    const gy_op *op = &w->old->draft.at[i].op;
    uint32_t top[LARGEST], count = 0;
    for (uint32_t k = 0; k < op->uses; k++) {
        uint32_t x = w->old->use.at[op->use + k].instance, at = 0;
        while (at < count && top[at] != x)
            at++;
        if (at < count || gy_spill_old(w, x)->memory != memory || !w->held[x].bytes)
            continue;
        for (at = count < LARGEST ? count++ : LARGEST; at && w->held[top[at - 1]].bytes < w->held[x].bytes; at--)
            if (at < LARGEST)
                top[at] = top[at - 1];
        if (at < LARGEST)
            top[at] = x;
    }
    for (uint32_t n = 0; n < count; n++) {
        const gy_instance *in = gy_spill_old(w, top[n]);
        const gy_buffer *b = gy_lower_buffer(&w->lower, in->value);
        char size[32];
        gy_text_printf(to, "%s%s", n ? ", " : "; largest: ", b->name);
        if (in->first != 0 || in->last != b->rows)
            gy_text_printf(to, "{%lld:%lld}", (long long)in->first, (long long)in->last);
        gy_text_printf(to, " %s", gy_bytes_text(size, sizeof size, in->bytes));
    }
}

/* The node that an op belongs to; a copy belongs to the node that it is made for, the next one. */
static const char *node_at(const gy_spill *w, uint32_t i)
{
    for (; i < w->old->draft.count; i++)
        if (w->old->draft.at[i].op.node != GY_NONE)
            return w->p->graph->nodes.at[w->old->draft.at[i].op.node].id;
    return "the end";
}

/* Everything else is out of the way, and it is still too much. */
static gantry_status cannot(const gy_spill *w, uint32_t memory, uint32_t i, gantry_error *err)
{
    const gy_plan *p = w->p;
    uint32_t device = gy_plan_device_of(p, memory);
    char needs[32], has[32];
    gy_text largest = { 0 };
    add_largest(w, memory, i, &largest);
    gantry_status status =
        gy_fail(err, GANTRY_E_CAPACITY, NULL,
                "%s needs %s at node \"%s\" and has %s%s; try --max-memory, more parts, or more devices",
                device == GY_NONE ? p->machine->memory[memory].id : p->machine->device[device].id,
                gy_bytes_text(needs, sizeof needs, gy_spill_load(w, memory, i, i)), node_at(w, i),
                gy_bytes_text(has, sizeof has, p->capacity[memory]), largest.failed || !largest.at ? "" : largest.at);
    if (err && device != GY_NONE)
        err->device = (int32_t)device;
    gy_text_free(&largest);
    return status;
}

/* The nearest memory of another device with room from op i to op j, else host memory, else GY_NONE. */
static uint32_t choose_lodge(const gy_spill *w, uint32_t x, uint32_t i, uint32_t j)
{
    const gantry_machine *m = w->p->machine;
    uint32_t own = gy_spill_old(w, x)->memory, best = GY_NONE, begin = i ? i - 1 : 0;
    gy_ticks least = GY_TICKS_MAX;
    for (uint32_t to = 1; to < m->memories && w->how.sixteenths; to++) { /* else there may be holes there */
        if (to == own || !gy_spill_reach(w, own, to) || !gy_spill_reach(w, to, own))
            continue;
        gy_ticks time = gy_transfer_time(w->p, own, to, (int64_t)w->held[x].bytes) +
                        gy_transfer_time(w->p, to, own, (int64_t)w->held[x].bytes);
        if (time < least && gy_spill_has_room(w, to, begin, j, w->held[x].bytes)) {
            least = time;
            best = to;
        }
    }
    if (best != GY_NONE || own == 0 || !gy_spill_reach(w, own, 0) || !gy_spill_reach(w, 0, own))
        return best;
    return gy_spill_has_room(w, 0, begin, j, w->held[x].bytes) ? 0 : GY_NONE;
}

/* Does the copy outside last until op j, or can it? */
static bool keeps_backing(gy_spill *w, uint32_t x, uint32_t j)
{
    gy_held *h = &w->held[x];
    if (h->backing == GY_NONE)
        return false;
    if (h->backing == h->home || h->until >= j)
        return true;
    if (!gy_spill_has_room(w, h->lodge, h->until + 1, j, h->bytes))
        return false;
    gy_spill_book(w, h->lodge, h->until + 1, j, h->bytes);
    h->until = j;
    return true;
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
        gy_spill_book(w, lodge, i, j, h->bytes);
        h->lodge = lodge;
        h->until = j;
        if (!status && h->lodged != lodge && !gy_vec_push(&w->lodged[lodge], x))
            status = gy_fail_nomem(err);
        h->lodged = lodge;
    }
    h->backing = to;
    return status ? status : gy_spill_copy(w, GY_OP_EVICT, from, to, h->lo, h->hi, err);
}

/* Makes an instance leave its memory before op i. *gone: it could. */
static gantry_status leave(gy_spill *w, uint32_t x, uint32_t i, bool *gone, gantry_error *err)
{
    gy_held *h = &w->held[x];
    uint32_t j = next_op(w, x), lodge = 0, from = h->now;
    gantry_status status = GANTRY_OK;
    if (h->keep != GY_NONE && h->keep > j)
        j = h->keep;
    *gone = true;
    if (!is_wanted(w, x, i)) {
        h->lo = h->hi = 0;
        h->backing = h->source = GY_NONE;
    } else if (can_come_again(w, x, j)) {
        gy_held *s = &w->held[h->source];
        h->from = h->source;
        h->backing = GY_NONE;
        s->keep = s->keep == GY_NONE || s->keep < j ? j : s->keep;
    } else if (!keeps_backing(w, x, j)) {
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

/* What another memory lodged here goes on to host memory. */
static gantry_status move_on(gy_spill *w, uint32_t x, uint32_t i, bool *gone, gantry_error *err)
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
static victim choose_victim(gy_spill *w, uint32_t memory, uint32_t i)
{
    victim best = { GY_NONE, 0, false };
    gy_ids *list = &w->there[memory];
    size_t kept = 0;
    for (size_t n = 0; n < list->count; n++) {
        uint32_t x = list->at[n];
        gy_held *h = &w->held[x];
        h->listed = h->now != GY_NONE && h->last >= i;
        if (!h->listed)
            continue;
        list->at[kept++] = x;
        if (w->seen[x] != i + 1 && h->bytes)
            consider(w, &best, x, next_op(w, x), false);
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
            consider(w, &best, x, h->until, true);
    }
    list->count = kept;
    return best;
}

static gantry_status make_room(gy_spill *w, uint32_t memory, uint32_t i, gantry_error *err)
{
    gantry_status status = GANTRY_OK;
    while (gy_spill_load(w, memory, i, i) > w->capacity[memory] && !status) {
        victim v = choose_victim(w, memory, i);
        bool gone = false;
        if (v.x == GY_NONE) /* the share is what is wished for */
            return gy_spill_load(w, memory, i, i) > w->p->capacity[memory] ? cannot(w, memory, i, err) : GANTRY_OK;
        status = v.lodger ? move_on(w, v.x, i, &gone, err) : leave(w, v.x, i, &gone, err);
        if (!gone)
            *(v.lodger ? &w->stuck[v.x] : &w->seen[v.x]) = i + 1;
    }
    return status;
}

/* ---- one op ---- */

static bool is_copy(const gy_op *op)
{
    return op->kind == GY_OP_COPY && op->node == GY_NONE;
}

/* Will the rows still be where they are for the use after op i, if they do not come at op i? */
static bool stays_out(gy_spill *w, uint32_t x, uint32_t i)
{
    gy_held *h = &w->held[x];
    uint32_t n = h->next, j = h->keep != GY_NONE && h->keep > i ? h->keep : i;
    while (n < w->use_first[x + 1] && w->uses[n].op <= i)
        n++;
    j = n < w->use_first[x + 1] && w->uses[n].op > j ? w->uses[n].op : j;
    if (j == i)
        return true;
    if (h->from == GY_NONE)
        return keeps_backing(w, x, j);
    if (h->from != h->source || !can_come_again(w, x, j))
        return false;
    gy_held *s = &w->held[h->source];
    s->keep = s->keep == GY_NONE || s->keep < j ? j : s->keep;
    return true;
}

/* A copy from an instance that is out can read the rows where they are. */
static bool reads_elsewhere(gy_spill *w, uint32_t i)
{
    const gy_op *op = &w->old->draft.at[i].op;
    const gy_use *u = &w->old->use.at[op->use];
    if (!is_copy(op))
        return false;
    const gy_held *h = &w->held[u->instance];
    if (!h->ours || h->booked || h->now != GY_NONE || h->lo > u->first || u->last > h->hi)
        return false;
    return gy_spill_reach(w, w->p->instance.at[find_rows(w, u->instance)].memory,
                          gy_spill_old(w, u[1].instance)->memory) &&
           stays_out(w, u->instance, i);
}

static bool list_needed(gy_spill *w, uint32_t i, bool elsewhere)
{
    const gy_op *op = &w->old->draft.at[i].op;
    w->needed.count = 0;
    for (uint32_t k = elsewhere; k < op->uses; k++) {
        uint32_t x = w->old->use.at[op->use + k].instance;
        gy_held *h = &w->held[x];
        if (!h->ours || w->wants[x] == i + 1)
            continue;
        w->wants[x] = i + 1;
        if (!h->booked) {
            gy_spill_book(w, gy_spill_old(w, x)->memory, i, h->last, h->bytes);
            h->booked = true;
        }
        if (!gy_vec_push(&w->needed, x))
            return false;
    }
    return true;
}

/* What the op uses must not move while room is made, nor what it reads elsewhere. */
static void pin_all(gy_spill *w, uint32_t i, bool elsewhere)
{
    const gy_op *op = &w->old->draft.at[i].op;
    for (uint32_t k = elsewhere; k < op->uses; k++)
        w->seen[w->old->use.at[op->use + k].instance] = i + 1;
    w->reader = elsewhere ? gy_spill_old(w, w->old->use.at[op->use + 1].instance)->memory : GY_NONE;
    for (uint32_t x = elsewhere ? w->old->use.at[op->use].instance : GY_NONE; x != GY_NONE;
         x = w->held[x].now == GY_NONE ? w->held[x].from : GY_NONE)
        w->seen[x] = i + 1;
}

/* The last resort against holes: nothing stays in a memory from one op to the next. */
static gantry_status clear_all(gy_spill *w, uint32_t i, gantry_error *err)
{
    const gy_op *op = &w->old->draft.at[i].op;
    gantry_status status = GANTRY_OK;
    for (uint32_t k = 0; k < op->uses; k++) {
        gy_ids *list = &w->there[gy_spill_old(w, w->old->use.at[op->use + k].instance)->memory];
        for (size_t n = 0; n < list->count && !status; n++) {
            gy_held *h = &w->held[list->at[n]];
            bool gone;
            if (h->now != GY_NONE && h->last >= i && h->bytes)
                status = leave(w, list->at[n], i, &gone, err);
        }
    }
    return status;
}

static gantry_status make_all_room(gy_spill *w, uint32_t i, gantry_error *err)
{
    const gy_op *op = &w->old->draft.at[i].op;
    gantry_status status = GANTRY_OK;
    for (uint32_t k = 0; k < op->uses && !status; k++) {
        const gy_instance *in = gy_spill_old(w, w->old->use.at[op->use + k].instance);
        if (in->space == GY_SPACE_SLAB || in->space == GY_SPACE_STAGING)
            status = make_room(w, in->memory, i, err);
    }
    return status;
}

static gantry_status come(gy_spill *w, uint32_t x, uint32_t i, gantry_error *err)
{
    gy_held *h = &w->held[x];
    if (h->now != GY_NONE)
        return GANTRY_OK;
    uint32_t memory = gy_spill_old(w, x)->memory, rows = h->lo < h->hi ? find_rows(w, x) : GY_NONE;
    gantry_status status = gy_spill_here(w, x, err);
    h->from = GY_NONE;
    if (!status && rows != GY_NONE && is_wanted(w, x, i))
        status = gy_spill_copy(w, GY_OP_FETCH, rows, h->now, h->lo, h->hi, err);
    if (!status && !h->listed && !gy_vec_push(&w->there[memory], x))
        status = gy_fail_nomem(err);
    h->listed = true;
    return status;
}

static void note_write(gy_spill *w, const gy_op *op, const gy_use *u)
{
    gy_held *h = &w->held[u->instance];
    uint32_t source = is_copy(op) ? w->old->use.at[op->use].instance : GY_NONE;
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
    h->backing = GY_NONE;
}

/* What has been written, what comes next; what persists at home and was changed goes there after its last use. */
static gantry_status note_op(gy_spill *w, uint32_t i, gantry_error *err)
{
    const gy_op *op = &w->old->draft.at[i].op;
    gantry_status status = GANTRY_OK;
    for (uint32_t k = 0; k < op->uses; k++) {
        const gy_use *u = &w->old->use.at[op->use + k];
        if (u->mode != GANTRY_READ)
            note_write(w, op, u);
        gy_held *h = &w->held[u->instance];
        while (h->next < w->use_first[u->instance + 1] && w->uses[h->next].op <= i)
            h->next++;
    }
    for (uint32_t k = 0; k < op->uses && !status; k++) {
        uint32_t x = w->old->use.at[op->use + k].instance;
        gy_held *h = &w->held[x];
        if (h->home == GY_NONE || h->last != i || h->backing != GY_NONE)
            continue;
        status = move_out(w, x, h->now, 0, i, i, err);
    }
    return status;
}

static gantry_status step(gy_spill *w, uint32_t i, gantry_error *err)
{
    const gy_op *op = &w->old->draft.at[i].op;
    gantry_status status = w->how.sixteenths ? GANTRY_OK : clear_all(w, i, err);
    bool elsewhere = !status && reads_elsewhere(w, i);
    if (!status && !list_needed(w, i, elsewhere))
        status = gy_fail_nomem(err);
    if (status)
        return status;
    pin_all(w, i, elsewhere);
    status = make_all_room(w, i, err);
    for (size_t n = 0; n < w->needed.count && !status; n++)
        status = come(w, w->needed.at[n], i, err);
    if (!status)
        status = gy_spill_op(w, i, elsewhere ? find_rows(w, w->old->use.at[op->use].instance) : GY_NONE, err);
    w->moved = w->moved || elsewhere;
    return status ? status : note_op(w, i, err);
}

gantry_status gy_plan_spill(gy_plan *p, const gy_spill_draft *from, const gy_spill_try *how, bool *moved,
                            gantry_error *err)
{
    gy_spill w = { .p = p, .lower = { .p = p }, .old = from, .how = *how };
    p->instance.count = p->draft.count = p->use.count = p->edges.count = 0;
    gantry_status status = from->draft.count ? gy_spill_open(&w, err) : GANTRY_OK;
    for (uint32_t i = 0; i < from->draft.count && !status; i++)
        status = step(&w, i, err);
    *moved = w.moved;
    if (from->draft.count)
        gy_spill_close(&w);
    return status;
}
