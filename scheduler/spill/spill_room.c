/* SPDX-License-Identifier: Apache-2.0 */
/* The start of a spilling walk: which op uses what, what may leave, and how much each memory holds at each op. */
#include "scheduler/spill/spill.h"

#include "base/align.h"
#include "base/error.h"
#include "scheduler/pack/packing.h"

/* ---- bytes over the ops: a tree whose leaves are ops, with what is added to all below a node ---- */

static void add_range(gy_spill_levels *t, size_t node, size_t low, size_t high, size_t first, size_t last,
                      int64_t bytes)
{
    if (last < low || high < first)
        return;
    if (first <= low && high <= last) {
        t->most[node] += bytes;
        t->added[node] += bytes;
        return;
    }
    size_t middle = low + (high - low) / 2;
    add_range(t, 2 * node, low, middle, first, last, bytes);
    add_range(t, 2 * node + 1, middle + 1, high, first, last, bytes);
    int64_t left = t->most[2 * node], right = t->most[2 * node + 1];
    t->most[node] = (left > right ? left : right) + t->added[node];
}

static int64_t most_in(const gy_spill_levels *t, size_t node, size_t low, size_t high, size_t first, size_t last)
{
    if (last < low || high < first)
        return 0;
    if (first <= low && high <= last)
        return t->most[node];
    size_t middle = low + (high - low) / 2;
    bool one_side = last <= middle || first > middle;
    if (one_side) {
        size_t child = last <= middle ? 2 * node : 2 * node + 1;
        return t->added[node] + (last <= middle ? most_in(t, child, low, middle, first, last)
                                                : most_in(t, child, middle + 1, high, first, last));
    }
    int64_t left = most_in(t, 2 * node, low, middle, first, last),
            right = most_in(t, 2 * node + 1, middle + 1, high, first, last);
    return t->added[node] + (left > right ? left : right);
}

static size_t last_op(const gy_spill *w)
{
    return w->old->op.count - 1;
}

void gy_spill_book(gy_spill *w, uint32_t memory, uint32_t first, uint32_t last, uint64_t bytes)
{
    add_range(&w->load[memory], 1, 0, last_op(w), first, last, (int64_t)bytes);
}

void gy_spill_unbook(gy_spill *w, uint32_t memory, uint32_t first, uint32_t last, uint64_t bytes)
{
    add_range(&w->load[memory], 1, 0, last_op(w), first, last, -(int64_t)bytes);
}

uint64_t gy_spill_load(const gy_spill *w, uint32_t memory, uint32_t first, uint32_t last)
{
    return (uint64_t)most_in(&w->load[memory], 1, 0, last_op(w), first, last);
}

bool gy_spill_has_room(const gy_spill *w, uint32_t memory, uint32_t first, uint32_t last, uint64_t bytes)
{
    return gy_spill_load(w, memory, first, last) + bytes <= w->capacity[memory];
}

void gy_spill_book_from(gy_spill *w, uint32_t x, uint32_t i)
{
    gy_held *h = &w->held[x];
    if (!h->booked)
        gy_spill_book(w, gy_spill_old(w, x)->memory, i, h->last, h->bytes);
    h->booked = true;
}

bool gy_spill_reach(const gy_spill *w, uint32_t from, uint32_t to)
{
    return gy_machine_route(w->p->machine, from, to)->kind == GY_ROUTE_DIRECT &&
           gy_plan_copier(w->p, from, to) != GY_NONE;
}

static bool all_direct(const gy_spill *w)
{
    for (uint32_t a = 0; a < w->p->machine->memories; a++)
        for (uint32_t b = 0; b < w->p->machine->memories; b++)
            if (a != b && !gy_spill_reach(w, a, b))
                return false;
    return true;
}

/* ---- lives ---- */

static void note_lives(gy_spill *w)
{
    const gy_draft *old = w->old;
    for (uint32_t i = 0; i < old->op.count; i++) {
        const gy_op *op = &old->op.at[i].op;
        for (uint32_t k = 0; k < op->uses; k++) {
            uint32_t x = old->use.at[op->use + k].instance;
            gy_held *h = &w->held[x];
            h->first = h->first == GY_NONE ? i : h->first;
            h->last = i;
            w->use_first[x + 1]++;
        }
    }
    for (size_t x = 0; x < old->instance.count; x++)
        w->use_first[x + 1] += w->use_first[x];
    for (uint32_t i = 0; i < old->op.count; i++) {
        const gy_op *op = &old->op.at[i].op;
        for (uint32_t k = 0; k < op->uses; k++) {
            gy_held *h = &w->held[old->use.at[op->use + k].instance];
            w->uses[w->use_first[h - w->held] + h->next++] = (gy_spill_use){ i, op->use + k };
        }
    }
    for (size_t x = 0; x < old->instance.count; x++)
        w->held[x].next = w->use_first[x];
}

/* An instance that rows were gathered from stays as long as these: it takes less room, and they can be had again. */
static void keep_sources(gy_spill *w)
{
    const gy_draft *old = w->old;
    for (size_t i = old->op.count;
         i-- > 0;) { /* what goes on from where others brought it keeps the first source, too */
        const gy_op *op = &old->op.at[i].op;
        uint32_t last = 0;
        if (op->node != GY_NONE || op->reduce || (op->kind != GY_OP_COPY && op->kind != GY_OP_COLLECTIVE))
            continue;
        uint32_t ins = op->kind == GY_OP_COPY ? 1 : op->ins;
        for (uint32_t k = ins; k < op->uses; k++) {
            const gy_held *h = &w->held[old->use.at[op->use + k].instance];
            last = h->ours && h->last > last ? h->last : last;
        }
        for (uint32_t k = 0; k < ins; k++) {
            gy_held *h = &w->held[old->use.at[op->use + k].instance];
            if (!h->ours || h->last >= last)
                continue;
            h->last = last;
            h->pins = 1;
            h->stays = true;
        }
    }
}

static void make_held(gy_spill *w)
{
    for (uint32_t x = 0; x < w->old->instance.count; x++) {
        const gy_instance *in = gy_spill_old(w, x);
        gy_held *h = &w->held[x];
        *h = (gy_held){ .first = GY_NONE, .bytes = gy_aligned(in->bytes), .now = GY_NONE, .home = GY_NONE };
        h->pieces = h->backing = h->source = h->from = h->keep = h->lodged = h->maker = h->needed = h->soon = GY_NONE;
        h->ours = in->space == GY_SPACE_SLAB && in->role != GY_ROLE_PERSIST;
    }
}

static bool takes_room(const gy_instance *in)
{
    return in->space == GY_SPACE_SLAB || in->space == GY_SPACE_STAGING;
}

static void book_all(gy_spill *w)
{
    uint32_t last = (uint32_t)w->old->op.count - 1;
    for (uint32_t x = 0; x < w->old->instance.count; x++) {
        const gy_instance *in = gy_spill_old(w, x);
        gy_held *h = &w->held[x];
        if (h->first == GY_NONE || !takes_room(in))
            continue;
        h->booked = true;
        if (in->role == GY_ROLE_PERSIST)
            gy_spill_book(w, in->memory, 0, last, h->bytes);
        else
            gy_spill_book(w, in->memory, h->first, h->last, h->bytes);
    }
}

/* ---- begin and end ---- */

static bool make_loads(gy_spill *w)
{
    uint32_t memories = w->p->machine->memories;
    w->load = gy_calloc(memories, sizeof *w->load);
    w->capacity = gy_calloc(memories, sizeof *w->capacity);
    w->there = gy_calloc(memories, sizeof *w->there);
    w->lodged = gy_calloc(memories, sizeof *w->lodged);
    w->sent = gy_calloc(memories, sizeof *w->sent);
    bool done = w->load && w->capacity && w->there && w->lodged && w->sent;
    for (uint32_t m = 0; m < memories && done; m++) {
        uint64_t all = w->p->capacity[m], share = w->how.sixteenths && !w->how.addressed ? w->how.sixteenths : 16;
        w->capacity[m] = all / 16 * share + all % 16 * share / 16;
        w->load[m].most = gy_calloc(4 * w->old->op.count, sizeof(int64_t));
        w->load[m].added = gy_calloc(4 * w->old->op.count, sizeof(int64_t));
        done = w->load[m].most && w->load[m].added;
    }
    return done;
}

static bool map_tasks(gy_spill *w)
{
    const gy_flow *f = w->p->flow;
    for (uint32_t t = 0; t < f->tasks; t++) {
        w->task_draft[t] = GY_NONE;
        if (!gy_map_put(&w->task_of, (uint64_t)f->task[t].node << 32 | f->task[t].iteration, t))
            return false;
    }
    return true;
}

/* Addresses begin above what stays there for good, and end where those of one start do (pack.h). */
static gantry_status make_ground(gy_spill *w, gantry_error *err)
{
    uint64_t starts = w->p->attempt->in_flight > 1 ? w->p->attempt->in_flight : 1;
    w->ground = gy_calloc(w->p->machine->memories, sizeof *w->ground);
    if (!w->ground)
        return gy_fail_nomem(err);
    for (uint32_t x = 0; x < w->old->instance.count; x++)
        if (gy_spill_old(w, x)->role == GY_ROLE_PERSIST && !w->held[x].ours && w->held[x].first != GY_NONE)
            w->ground[gy_spill_old(w, x)->memory].floor += w->held[x].bytes;
    for (uint32_t m = 1; m < w->p->machine->memories; m++) {
        gy_ground *g = &w->ground[m];
        uint64_t room = w->p->capacity[m] > g->floor ? w->p->capacity[m] - g->floor : 0;
        g->ours = w->how.addressed;
        g->end = g->floor + room / starts / GY_ALIGN * GY_ALIGN;
    }
    return GANTRY_OK;
}

gantry_status gy_spill_open(gy_spill *w, gantry_error *err)
{
    size_t instances = w->old->instance.count + 2;
    w->held = gy_calloc(instances, sizeof *w->held);
    w->uses = gy_calloc(w->old->use.count + 1, sizeof *w->uses);
    w->use_first = gy_calloc(instances, sizeof *w->use_first);
    w->seen = gy_calloc(instances, sizeof *w->seen);
    w->wants = gy_calloc(instances, sizeof *w->wants);
    w->stuck = gy_calloc(instances, sizeof *w->stuck);
    w->task_draft = gy_calloc((size_t)w->p->flow->tasks + 1, sizeof *w->task_draft);
    w->after_stamp = gy_calloc(w->p->graph->nodes.count + 1, sizeof *w->after_stamp);
    if (!w->held || !w->uses || !w->use_first || !w->seen || !w->wants || !w->stuck || !w->task_draft ||
        !w->after_stamp || !make_loads(w) || !map_tasks(w))
        return gy_fail_nomem(err);
    w->direct = all_direct(w);
    make_held(w);
    note_lives(w);
    if (w->p->attempt->spill.gather_again)
        keep_sources(w);
    book_all(w);
    gantry_status status = gy_spill_lighten(w, err);
    if (!status)
        status = make_ground(w, err);
    return status || !w->how.addressed ? status : gy_spill_begin_ahead(w, err);
}

void gy_spill_close(gy_spill *w)
{
    for (uint32_t m = 0; m < w->p->machine->memories; m++) {
        if (w->load) {
            gy_free(w->load[m].most);
            gy_free(w->load[m].added);
        }
        if (w->there)
            gy_vec_free(&w->there[m]);
        if (w->lodged)
            gy_vec_free(&w->lodged[m]);
        if (w->ground)
            gy_vec_free(&w->ground[m].at);
    }
    gy_free(w->ground);
    gy_free(w->begin);
    gy_free(w->clock);
    gy_vec_free(&w->nearest);
    gy_vec_free(&w->leaving);
    gy_vec_free(&w->again);
    gy_vec_free(&w->piece);
    gy_vec_free(&w->lack);
    gy_vec_free(&w->pinned);
    gy_free(w->load);
    gy_free(w->capacity);
    gy_free(w->there);
    gy_free(w->lodged);
    gy_free(w->sent);
    gy_free(w->held);
    gy_free(w->uses);
    gy_free(w->use_first);
    gy_free(w->seen);
    gy_free(w->wants);
    gy_free(w->stuck);
    gy_free(w->task_draft);
    gy_free(w->after_stamp);
    gy_vec_free(&w->needs);
    gy_vec_free(&w->homes);
    gy_map_free(&w->task_of);
    gy_hazards_free(&w->lower);
}
