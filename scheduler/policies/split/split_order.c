/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The precedence of units. Tasks that must share a device (forward and backward passes of one layer) make
 * cycles: then the first task of a unit stands for it. Every dependency that goes up in the order of first tasks
 * holds, and of the others those that close no cycle; so a training graph is cut as its forward half is, and a graph
 * in which every unit can run as one piece keeps all its dependencies.
 */
#include "base/error.h"
#include "scheduler/policies/split/split.h"

#define MOST_BACK 4096 /* units for which dependencies that go down are looked at: each costs a walk */

typedef struct arc {
    uint32_t from, to;
} arc;

typedef struct builder {
    const gy_load *l;
    gy_map seen;
    GY_VEC(arc) arcs;      /* kept */
    GY_VEC(arc) back;      /* not yet decided */
    GY_VEC(uint32_t) next; /* per arc: the next of the same `from`, + 1 */
    uint32_t *head;        /* per unit: its last arc + 1 */
    uint32_t *stack, *mark, marks;
} builder;

static bool keep(builder *b, arc a)
{
    uint32_t next = b->head[a.from];
    if (!gy_vec_push(&b->arcs, a) || !gy_vec_push(&b->next, next))
        return false;
    b->head[a.from] = (uint32_t)b->arcs.count;
    return true;
}

static bool reaches(builder *b, uint32_t from, uint32_t to)
{
    uint32_t depth = 0;
    b->stack[depth++] = from;
    b->mark[from] = ++b->marks;
    while (depth) {
        uint32_t u = b->stack[--depth];
        if (u == to)
            return true;
        for (uint32_t i = b->head[u]; i; i = b->next.at[i - 1]) {
            uint32_t v = b->arcs.at[i - 1].to;
            if (b->mark[v] == b->marks)
                continue;
            b->mark[v] = b->marks;
            b->stack[depth++] = v;
        }
    }
    return false;
}

static bool add_arcs(builder *b)
{
    const gy_flow *f = b->l->p->flow;
    uint64_t ignored;
    bool done = true;
    for (uint32_t t = 0; t < f->tasks && done; t++)
        for (const gy_dep *d = gy_deps_begin(f, t); d < gy_deps_end(f, t) && done; d++) {
            arc a = { b->l->unit_of[d->from], b->l->unit_of[t] };
            uint64_t key = (uint64_t)a.from << 32 | a.to;
            if (a.from == a.to || a.from == GY_NONE || a.to == GY_NONE || gy_map_get(&b->seen, key, &ignored))
                continue;
            /* Units are numbered by their first tasks. */
            done = gy_map_put(&b->seen, key, 1) && (a.from < a.to ? keep(b, a) : gy_vec_push(&b->back, a));
        }
    for (size_t i = 0; i < b->back.count && done && b->l->units <= MOST_BACK; i++)
        if (!reaches(b, b->back.at[i].to, b->back.at[i].from))
            done = keep(b, b->back.at[i]);
    return done;
}

/* Kahn's, the lowest number first among equals by depth first: what became ready last goes first, so that a line
 * follows one branch to its end before it begins the next. */
static bool sort_units(const builder *b, gy_precedence *o)
{
    uint32_t *waits = gy_calloc((size_t)o->units + 1, sizeof *waits), depth = 0, done = 0;
    if (!waits)
        return false;
    for (uint32_t u = 0; u < o->units; u++)
        waits[u] = o->first[u + 1] - o->first[u];
    for (uint32_t u = o->units; u-- > 0;)
        if (!waits[u])
            b->stack[depth++] = u;
    while (depth) {
        uint32_t u = b->stack[--depth];
        o->order[done++] = u;
        for (uint32_t i = b->head[u]; i; i = b->next.at[i - 1])
            if (--waits[b->arcs.at[i - 1].to] == 0)
                b->stack[depth++] = b->arcs.at[i - 1].to;
    }
    gy_free(waits);
    return true;
}

static bool list_before(const builder *b, gy_precedence *o)
{
    o->first = gy_calloc((size_t)o->units + 2, sizeof *o->first);
    o->before = gy_calloc(b->arcs.count + 1, sizeof *o->before);
    o->order = gy_calloc((size_t)o->units + 1, sizeof *o->order);
    if (!o->first || !o->before || !o->order)
        return false;
    for (size_t i = 0; i < b->arcs.count; i++)
        o->first[b->arcs.at[i].to + 2]++;
    for (uint32_t u = 2; u < o->units + 2; u++)
        o->first[u] += o->first[u - 1];
    for (size_t i = 0; i < b->arcs.count; i++)
        o->before[o->first[b->arcs.at[i].to + 1]++] = b->arcs.at[i].from;
    return sort_units(b, o);
}

gantry_status gy_split_precedence(gy_precedence *o, const gy_load *l, gantry_error *err)
{
    builder b = { .l = l };
    *o = (gy_precedence){ .units = l->units };
    b.head = gy_calloc((size_t)l->units + 1, sizeof *b.head);
    b.stack = gy_calloc((size_t)l->units + 1, sizeof *b.stack);
    b.mark = gy_calloc((size_t)l->units + 1, sizeof *b.mark);
    bool done = b.head && b.stack && b.mark && add_arcs(&b) && list_before(&b, o);
    gy_map_free(&b.seen);
    gy_vec_free(&b.arcs);
    gy_vec_free(&b.back);
    gy_vec_free(&b.next);
    gy_free(b.head);
    gy_free(b.stack);
    gy_free(b.mark);
    return done ? GANTRY_OK : gy_fail_nomem(err);
}

void gy_precedence_free(gy_precedence *o)
{
    gy_free(o->first);
    gy_free(o->before);
    gy_free(o->order);
    *o = (gy_precedence){ 0 };
}
