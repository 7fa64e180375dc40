/* SPDX-License-Identifier: Apache-2.0 */
/**
 * A combination for all ranks where these are on islands: within one, routes are quick; between them slow. Each island
 * adds up what it has, each of its ranks a part; ranks with one part on all islands exchange it; then each island
 * shares out its parts. So every byte crosses between islands once each way, where a ring has it cross 2 (p-1) / p
 * times at the pace of its slowest hop. (The three phases are those of J. Cho et al., BlueConnect, IBM J. Res. Dev.
 * 63(6), 2019.)
 *
 * They are three rows of ordinary collectives in the draft, so whoever runs them needs to know nothing of islands.
 */
#include "scheduler/collective/collective.h"
#include "scheduler/lower/lowering.h"

#include "base/error.h"

/* Ranks by island: those of island i are rank[i * size] ... The ranks are places in the epoch's readers. */
typedef struct islands {
    uint32_t count, size, *rank;
} islands;

typedef struct end {
    uint32_t instance, rank;
    int64_t first, last;
} end;

/* One collective in the making. */
typedef struct team {
    gantry_collective kind;
    uint8_t reduce;
    uint32_t ranks, *device;
    end *in, *out;
    uint32_t ins, outs;
} team;

/* ---- islands ---- */

/* How long so many bytes take at least, also where resources on the way are slower than the route. */
static gy_ticks pace(const gantry_machine *m, uint32_t from, uint32_t to, int64_t bytes)
{
    const gy_route *r = gy_machine_route(m, from, to);
    gy_ticks time = gy_route_time(m, r, bytes);
    for (uint32_t i = 0; i < r->resources; i++) {
        gy_ticks t = gy_ticks_of((uint64_t)bytes, m->resource[r->resource[i]].rate);
        time = t > time ? t : time;
    }
    return time;
}

static uint32_t memory_of(const gy_epoch *e, uint32_t rank)
{
    return e->reader.at[rank].memory;
}

/* The ranks that are at least twice as near to `first` as the farthest pair are to each other: *count of them. */
static void list_near(const gy_lower *l, const gy_epoch *e, uint32_t first, gy_ticks far, int64_t bytes, uint32_t *to,
                      uint32_t *count)
{
    *count = 0;
    for (uint32_t k = 0; k < e->reader.count; k++) {
        gy_ticks t = k == first ? 0 : pace(l->p->machine, memory_of(e, first), memory_of(e, k), bytes);
        if (2 * t <= far)
            to[(*count)++] = k;
    }
}

static gy_ticks farthest(const gy_lower *l, const gy_epoch *e, int64_t bytes)
{
    gy_ticks far = 0;
    for (uint32_t i = 0; i < e->reader.count; i++)
        for (uint32_t k = 0; k < e->reader.count; k++) {
            gy_ticks t = i == k ? 0 : pace(l->p->machine, memory_of(e, i), memory_of(e, k), bytes);
            far = t > far ? t : far;
        }
    return far < GY_TICKS_MAX / 2 ? far : 0;
}

/* Islands of one size, two ranks or more, each seen alike by all of its ranks; none: count 0. false: out of memory. */
static bool find_islands(gy_lower *l, const gy_epoch *e, int64_t bytes, islands *all)
{
    uint32_t n = (uint32_t)e->reader.count, near = 0;
    uint32_t *list = gy_arena_alloc(&l->arena, n * sizeof *list), *of = gy_arena_calloc(&l->arena, n, sizeof *of);
    gy_ticks far = farthest(l, e, bytes);
    *all = (islands){ .rank = gy_arena_alloc(&l->arena, n * sizeof *all->rank) };
    if (!list || !of || !all->rank)
        return false;
    uint32_t listed = 0;
    bool alike = true;
    for (uint32_t i = 0; i < n && alike; i++) {
        list_near(l, e, i, far, bytes, list, &near);
        bool first = !of[i];
        all->size = i ? all->size : near;
        all->count += first;
        alike = near == all->size && near > 1;
        for (uint32_t k = 0; k < near && alike; k++) {
            alike = first ? !of[list[k]] : of[list[k]] == of[i];
            of[list[k]] = first ? all->count : of[list[k]];
            if (first)
                all->rank[listed++] = list[k];
        }
    }
    all->count = alike && all->count > 1 ? all->count : 0;
    return true;
}

/* ---- one collective ---- */

static bool team_make(gy_lower *l, team *t, gantry_collective kind, uint8_t reduce, uint32_t ranks, uint32_t outs)
{
    *t = (team){ .kind = kind, .reduce = reduce, .ranks = ranks };
    t->device = gy_arena_alloc(&l->arena, ranks * sizeof *t->device);
    t->in = gy_arena_alloc(&l->arena, ranks * sizeof *t->in);
    t->out = gy_arena_alloc(&l->arena, outs * sizeof *t->out);
    return t->device && t->in && t->out;
}

static gantry_status team_emit(gy_lower *l, const team *t, uint32_t *id, gantry_error *err)
{
    gy_plan *p = l->p;
    gy_draft_op d = { .lane = GY_LANE_COLLECTIVE, .rank = (uint32_t)p->rank_device.count, .ranks = t->ranks };
    d.op = (gy_op){ .kind = GY_OP_COLLECTIVE, .collective = (uint8_t)t->kind, .reduce = t->reduce, .node = GY_NONE };
    for (uint32_t i = 0; i < t->ranks; i++)
        if (!gy_vec_push(&p->rank_device, t->device[i]))
            return gy_fail_nomem(err);
    size_t edge = p->draft.edges.count;
    GY_TRY(gy_lower_op(l, &d, id, err));
    for (uint32_t i = 0; i < t->ins; i++)
        GY_TRY(gy_lower_use(l, t->in[i].instance, GANTRY_READ, t->in[i].rank, t->in[i].first, t->in[i].last, err));
    p->draft.op.at[*id].op.ins = t->ins;
    for (uint32_t i = 0; i < t->outs; i++)
        GY_TRY(gy_lower_use(l, t->out[i].instance, GANTRY_WRITE, t->out[i].rank, t->out[i].first, t->out[i].last, err));
    return gy_lower_time_collective(l, *id, edge, err);
}

static void add_in(team *t, uint32_t instance, uint32_t rank, int64_t first, int64_t last)
{
    t->in[t->ins++] = (end){ instance, rank, first, last };
}

static void add_out(team *t, uint32_t instance, uint32_t rank, int64_t first, int64_t last)
{
    if (first < last)
        t->out[t->outs++] = (end){ instance, rank, first, last };
}

/* ---- the three phases ---- */

typedef struct phases {
    gy_lower *l;
    gy_epoch *e;
    const islands *all;
    gy_holder *dest;
    uint32_t *partial; /* of each rank in the order of islands: the accumulator of its part */
} phases;

static int64_t bound_of(const phases *h, uint32_t part)
{
    return h->e->first + gy_part_bound(h->e->last - h->e->first, h->all->size, part);
}

static const gy_member *member_of(const phases *h, uint32_t rank)
{
    const gy_member *m = h->e->member.at;
    while (m->memory != memory_of(h->e, rank))
        m++;
    return m;
}

static gantry_status add_up(phases *h, uint32_t island, gantry_error *err)
{
    uint32_t size = h->all->size, id;
    team t;
    if (!team_make(h->l, &t, GANTRY_REDUCE_SCATTER, h->e->op, size, size))
        return gy_fail_nomem(err);
    for (uint32_t j = 0; j < size; j++) {
        const gy_member *m = member_of(h, h->all->rank[island * size + j]);
        uint32_t *part = &h->partial[island * size + j];
        gy_instance in = { .value = h->e->value, .memory = m->memory, .role = GY_ROLE_ACCUMULATOR, .op = h->e->op };
        in.first = bound_of(h, j);
        in.last = bound_of(h, j + 1);
        GY_TRY(gy_lower_instance(h->l, &in, part, err));
        t.device[j] = m->device;
        add_in(&t, m->instance, j, h->e->first, h->e->last);
        add_out(&t, *part, j, in.first, in.last);
    }
    return team_emit(h->l, &t, &id, err);
}

static gantry_status exchange(phases *h, uint32_t part, gantry_error *err)
{
    uint32_t count = h->all->count, id;
    team t;
    if (!team_make(h->l, &t, GANTRY_ALL_REDUCE, h->e->op, count, count))
        return gy_fail_nomem(err);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = i * h->all->size + part, rank = h->all->rank[at];
        t.device[i] = member_of(h, rank)->device;
        add_in(&t, h->partial[at], i, bound_of(h, part), bound_of(h, part + 1));
        add_out(&t, h->dest[rank].instance, i, bound_of(h, part), bound_of(h, part + 1));
    }
    return team_emit(h->l, &t, &id, err);
}

static gantry_status share_out(phases *h, uint32_t island, gantry_error *err)
{
    uint32_t size = h->all->size, id = GY_NONE;
    team t;
    if (!team_make(h->l, &t, GANTRY_ALL_GATHER, 0, size, 2 * size))
        return gy_fail_nomem(err);
    for (uint32_t j = 0; j < size; j++) {
        uint32_t rank = h->all->rank[island * size + j], instance = h->dest[rank].instance;
        t.device[j] = member_of(h, rank)->device;
        add_in(&t, instance, j, bound_of(h, j), bound_of(h, j + 1));
        add_out(&t, instance, j, h->e->first, bound_of(h, j));
        add_out(&t, instance, j, bound_of(h, j + 1), h->e->last);
    }
    GY_TRY(team_emit(h->l, &t, &id, err));
    for (uint32_t j = 0; j < size; j++)
        h->dest[h->all->rank[island * size + j]].draft = id;
    return GANTRY_OK;
}

/* ---- whether it pays ---- */

/* A group of ranks that all have, and get, `bytes`, or parts of them. */
static bool time_group(gy_lower *l, gantry_collective kind, uint8_t reduce, const uint32_t *memory, uint32_t ranks,
                       int64_t bytes, gy_ticks *time)
{
    gy_group_span *span = gy_arena_calloc(&l->arena, 2 * (size_t)ranks, sizeof *span);
    gy_group g;
    gy_way way = { 0 };
    for (uint32_t i = 0; span && i < ranks; i++) {
        int64_t first = gy_part_bound(bytes / 16, ranks, i) * 16, last = gy_part_bound(bytes / 16, ranks, i + 1) * 16;
        bool in = kind == GANTRY_ALL_GATHER, out = kind == GANTRY_REDUCE_SCATTER;
        span[i] = (gy_group_span){ memory[i], i, in ? first : 0, in ? last : bytes };
        span[ranks + i] = (gy_group_span){ memory[i], ranks + i, out ? first : 0, out ? last : bytes };
    }
    if (!span || !gy_group_of_rows(&g, kind, reduce, span, ranks, ranks))
        return false;
    bool done = gy_collective_choose(l->p->net, &g, &way);
    gy_group_free(&g);
    *time = way.time;
    return done;
}

/* The phases of the first island, the parts exchanged one after the other, against all at once. */
static bool is_quicker(gy_lower *l, const gy_epoch *e, const islands *all, int64_t bytes, bool *quicker)
{
    uint32_t n = all->count * all->size, *memory = gy_arena_alloc(&l->arena, 2 * (size_t)n * sizeof *memory);
    gy_ticks flat, up, across, down;
    for (uint32_t i = 0; memory && i < n; i++)
        memory[i] = memory_of(e, all->rank[i]);
    for (uint32_t i = 0; memory && i < all->count; i++)
        memory[n + i] = memory[i * all->size];
    if (!memory || !time_group(l, GANTRY_ALL_REDUCE, e->op, memory, n, bytes, &flat) ||
        !time_group(l, GANTRY_REDUCE_SCATTER, e->op, memory, all->size, bytes, &up) ||
        !time_group(l, GANTRY_ALL_REDUCE, e->op, memory + n, all->count, bytes, &across) ||
        !time_group(l, GANTRY_ALL_GATHER, 0, memory, all->size, bytes, &down))
        return false;
    *quicker = gy_ticks_sum(up, gy_ticks_sum(across, down)) < flat;
    return true;
}

/* Every rank gives all rows and gets all of them. */
static bool is_full(const gy_epoch *e)
{
    bool full = e->member.count == e->reader.count && e->reader.count > 3 && !e->scatter;
    for (uint32_t i = 0; i < e->member.count && full; i++) {
        bool takes = false;
        for (uint32_t k = 0; k < e->reader.count; k++)
            takes = takes || e->reader.at[k].memory == e->member.at[i].memory;
        full = takes && e->member.at[i].first == e->first && e->member.at[i].last == e->last;
    }
    return full;
}

gantry_status gy_lower_by_islands(gy_lower *l, gy_epoch *e, gy_holder *dest, bool *done, gantry_error *err)
{
    islands all;
    phases h = { .l = l, .e = e, .all = &all, .dest = dest };
    int64_t bytes = gy_buffer_span(gy_lower_buffer(l, e->value), e->first, e->last);
    *done = false;
    if (!is_full(e) || !l->p->machine->contention)
        return GANTRY_OK;
    if (!find_islands(l, e, bytes, &all))
        return gy_fail_nomem(err);
    if (all.count && e->last - e->first >= all.size && !is_quicker(l, e, &all, bytes, done))
        return gy_fail_nomem(err);
    h.partial = gy_arena_alloc(&l->arena, e->reader.count * sizeof *h.partial);
    if (!h.partial)
        return gy_fail_nomem(err);
    for (uint32_t i = 0; i < all.count && *done; i++)
        GY_TRY(add_up(&h, i, err));
    for (uint32_t j = 0; j < all.size && *done; j++)
        GY_TRY(exchange(&h, j, err));
    for (uint32_t i = 0; i < all.count && *done; i++)
        GY_TRY(share_out(&h, i, err));
    return GANTRY_OK;
}
