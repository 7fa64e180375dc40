/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Epochs of reductions. A contribution joins the open epochs of its rows if they have the same reduction, and makes
 * them one. Any other access to a row of an epoch closes all of it: what follows is another epoch, with the result so
 * far as its previous value. That is right for any sequence that the dependencies allow, because a result may be
 * combined in any number of steps. A contribution that is `after` the last one is such a step of its own, so what is
 * told to come one after the other is added in that order, wherever nodes run.
 */
#include "scheduler/lower/lowering.h"

#include "base/error.h"
#include <stdlib.h>

static uint32_t find(gy_lower *l, uint32_t e)
{
    while (l->epoch.at[e].parent != e) {
        l->epoch.at[e].parent = l->epoch.at[l->epoch.at[e].parent].parent;
        e = l->epoch.at[e].parent;
    }
    return e;
}

gy_epoch *gy_epoch_root(gy_lower *l, uint32_t epoch)
{
    return &l->epoch.at[find(l, epoch)];
}

static bool add_reader(gy_epoch *e, uint32_t memory, int64_t first, int64_t last)
{
    for (size_t i = 0; i < e->reader.count; i++) {
        gy_result_reader *old = &e->reader.at[i];
        if (old->memory != memory)
            continue;
        old->first = first < old->first ? first : old->first;
        old->last = last > old->last ? last : old->last;
        return true;
    }
    gy_result_reader new = { memory, first, last, 0 };
    return gy_vec_push(&e->reader, new);
}

static bool add_member(gy_epoch *e, const gy_member *m)
{
    for (size_t i = 0; i < e->member.count; i++) {
        gy_member *old = &e->member.at[i];
        if (old->memory != m->memory)
            continue;
        old->first = m->first < old->first ? m->first : old->first;
        old->last = m->last > old->last ? m->last : old->last;
        return true;
    }
    return gy_vec_push(&e->member, *m);
}

/* Makes two open epochs one; the lower number stays the root. */
static bool join(gy_lower *l, uint32_t *root, uint32_t other)
{
    other = find(l, other);
    if (other == *root)
        return true;
    uint32_t low = other < *root ? other : *root, high = other < *root ? *root : other;
    gy_epoch *to = &l->epoch.at[low], *from = &l->epoch.at[high];
    to->first = from->first < to->first ? from->first : to->first;
    to->last = from->last > to->last ? from->last : to->last;
    for (size_t i = 0; i < from->member.count; i++)
        if (!add_member(to, &from->member.at[i]))
            return false;
    from->parent = low;
    *root = low;
    return true;
}

/* Each execution of the task is a reader of the rows. */
static bool add_readers(const gy_lower *l, gy_epoch *e, uint32_t task, uint32_t k, const gy_interval *rows)
{
    for (uint32_t i = 0; i < gy_plan_executions(l->p, task); i++)
        if (!add_reader(e, gy_lower_memory_of(l, task, i, k), rows->first, rows->last))
            return false;
    return true;
}

/* A read closes the epochs of its rows and is one of their readers; a write closes them and ends their result. */
static bool see_access(gy_lower *l, gy_imap *map, const gy_access *a, uint32_t task, uint32_t k)
{
    if (a->first >= a->last)
        return true;
    uint32_t i = gy_imap_cut(map, a->first, a->last);
    if (i == GY_IMAP_NONE)
        return false;
    for (; i != GY_IMAP_NONE && map->at[i].first < a->last; i = gy_imap_next(map, i)) {
        if (!map->at[i].payload)
            continue;
        gy_epoch *e = gy_epoch_root(l, (uint32_t)(map->at[i].payload - 1));
        e->open = false;
        if (a->mode != GANTRY_WRITE && !add_readers(l, e, task, k, &map->at[i]))
            return false;
        if (a->mode != GANTRY_READ)
            map->at[i].payload = 0;
    }
    gy_imap_join(map, a->first, a->last);
    return true;
}

static bool see_contribution(gy_lower *l, gy_imap *map, const gy_access *a, const gy_member *m, size_t access,
                             uint32_t node)
{
    const gantry_graph *g = l->p->graph;
    uint32_t root = (uint32_t)l->epoch.count, value = l->p->flow->access[access].value;
    gy_epoch new = { .value = value, .parent = root, .node = node, .op = a->mode, .open = true };
    new.first = a->first;
    new.last = a->last;
    if (!gy_vec_push(&l->epoch, new) || !add_member(&l->epoch.at[root], m))
        return false;
    l->epoch_of[access] = root;
    if (a->first >= a->last)
        return true;
    uint32_t i = gy_imap_cut(map, a->first, a->last);
    if (i == GY_IMAP_NONE)
        return false;
    for (; i != GY_IMAP_NONE && map->at[i].first < a->last; i = gy_imap_next(map, i)) {
        gy_epoch *e = map->at[i].payload ? gy_epoch_root(l, (uint32_t)(map->at[i].payload - 1)) : NULL;
        map->at[i].payload = (uint64_t)l->epoch_of[access] + 1;
        if (!e)
            continue;
        if (e->open && e->op == a->mode && !gy_node_is_after(g, &g->nodes.at[node], e->node)) {
            if (!join(l, &root, (uint32_t)(e - l->epoch.at)))
                return false;
            l->epoch.at[root].node = node;
        } else {
            e->open = false;
        }
    }
    gy_imap_join(map, a->first, a->last);
    return true;
}

gantry_status gy_epochs_walk(gy_lower *l, uint32_t task, uint32_t k, gantry_error *err)
{
    const gy_plan *p = l->p;
    size_t i = p->flow->task[task].access + k;
    uint32_t value = p->flow->access[i].value;
    const gy_access *a = gy_flow_access_of(p->graph, p->flow, i);
    if (!l->reduced || !l->reduced[value])
        return GANTRY_OK;
    if (!l->open[value]) {
        l->open[value] = gy_arena_calloc(&l->arena, 1, sizeof(gy_imap));
        if (!l->open[value] || !gy_imap_init(l->open[value], 0, gy_lower_buffer(l, value)->rows, 0))
            return gy_fail_nomem(err);
    }
    gy_member m = { gy_lower_memory(l, task, k), gy_lower_device(l, task, k), a->first, a->last, GY_NONE };
    bool done = a->mode >= GANTRY_SUM ? see_contribution(l, l->open[value], a, &m, i, p->flow->task[task].node)
                                      : see_access(l, l->open[value], a, task, k);
    return done ? GANTRY_OK : gy_fail_nomem(err);
}

static int by_memory(const void *a, const void *b)
{
    const gy_member *x = a, *y = b;
    return x->memory < y->memory ? -1 : x->memory > y->memory;
}

static int by_rows(const void *a, const void *b)
{
    const gy_result_reader *x = a, *y = b;
    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    return x->memory < y->memory ? -1 : x->memory > y->memory;
}

/* Each reader reads rows that no other reads: it gets these alone, with those up to the next that nobody reads. What is
 * kept from start to start lives in one memory and is brought there whole. */
static bool find_scatter(const gy_lower *l, gy_epoch *e)
{
    size_t n = e->reader.count;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < i; k++)
            if (e->reader.at[i].first < e->reader.at[k].last && e->reader.at[k].first < e->reader.at[i].last)
                return false;
    if (n < 2 || l->home[e->value])
        return false;
    qsort(e->reader.at, n, sizeof *e->reader.at, by_rows);
    for (size_t i = 0; i < n; i++) {
        e->reader.at[i].first = i ? e->reader.at[i].first : e->first;
        e->reader.at[i].last = i + 1 < n ? e->reader.at[i + 1].first : e->last;
    }
    return true;
}

/* The result goes to the memories of its readers; without readers (it is only kept or fetched) to the first member. */
static gantry_status choose_dests(gy_lower *l, gy_epoch *e, gantry_error *err)
{
    gantry_status status = GANTRY_OK;
    if (!e->reader.count && !add_reader(e, e->member.at[0].memory, e->first, e->last))
        return gy_fail_nomem(err);
    e->scatter = find_scatter(l, e);
    for (size_t i = 0; i < e->reader.count && !status; i++) {
        gy_result_reader *r = &e->reader.at[i];
        r->first = e->scatter ? r->first : e->first;
        r->last = e->scatter ? r->last : e->last;
        status = gy_lower_touch(l, e->value, r->memory, r->first, r->last, &r->index, err);
    }
    return status;
}

gantry_status gy_epochs_finish(gy_lower *l, gantry_error *err)
{
    gantry_status status = GANTRY_OK;
    for (uint32_t i = 0; i < l->epoch.count && !status; i++) {
        gy_epoch *e = &l->epoch.at[i];
        if (e->parent != i)
            continue;
        qsort(e->member.at, e->member.count, sizeof *e->member.at, by_memory);
        e->split = e->member.count > 1;
        if (e->split)
            status = choose_dests(l, e, err);
    }
    for (uint32_t v = 0; v < l->p->flow->values && l->reduced && !status; v++) /* the second walk fills them anew */
        if (l->open[v]) {
            gy_imap_free(l->open[v]);
            if (!gy_imap_init(l->open[v], 0, gy_lower_buffer(l, v)->rows, 0))
                status = gy_fail_nomem(err);
        }
    return status;
}
