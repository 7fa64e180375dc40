/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes that are added when a graph is sealed go where they belong, and all numbers of nodes with them. */
#include "base/memory.h"
#include "graph/build/build_state.h"
#include "graph/nest.h"

#include <stdlib.h>

static int compare_placed(const void *one, const void *other)
{
    const gy_placed *a = one, *b = other;
    if (a->at != b->at)
        return a->at < b->at ? -1 : 1;
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    if (a->loop != b->loop)
        return a->loop < b->loop ? -1 : 1;
    return (a->node > b->node) - (a->node < b->node);
}

/* A graph to which nodes were added behind those it had. */
typedef struct added {
    const gantry_graph *g;
    const gy_placed_nodes *placed;
    uint32_t old;
} added;

typedef struct borders {
    uint32_t first, last;
} borders;

/* The new order, while it is made. */
typedef struct order {
    gy_nodes nodes;
    uint32_t *number,
        *start;      /* by node: its new number; by old node, and one more: where what stands before it begins */
    uint32_t *first; /* by loop of `inner` */
    borders *was;    /* of loops, those of `inner` and uses */
    size_t next;     /* of `placed` */
    bool ok;
} order;

static void take(const added *x, order *o, uint32_t node)
{
    o->number[node] = (uint32_t)o->nodes.count;
    o->ok = gy_vec_push(&o->nodes, x->g->nodes.at[node]) && o->ok;
}

static void take_placed(const added *x, order *o, uint32_t at, uint32_t kind, uint32_t loop)
{
    for (; o->next < x->placed->count; o->next++) {
        const gy_placed *p = &x->placed->at[o->next];
        if (p->at != at || p->kind != kind || (kind == GY_BEGIN && p->loop > loop))
            return;
        take(x, o, p->node);
    }
}

static void order_all(const added *x, order *o)
{
    const gantry_graph *g = x->g;
    size_t loop = 0; /* of `inner`, in the order in which they begin */
    for (uint32_t i = 0; i <= x->old && o->ok; i++) {
        o->start[i] = (uint32_t)o->nodes.count;
        for (; loop < g->inner.count && g->inner.at[loop].first_node == i; loop++) {
            take_placed(x, o, i, GY_BEGIN, (uint32_t)loop);
            o->first[loop] = (uint32_t)o->nodes.count;
        }
        if (i == x->old)
            return;
        take_placed(x, o, i, GY_AHEAD, 0);
        take(x, o, i);
        take_placed(x, o, i, GY_BEHIND, 0);
    }
}

/* Loops and uses have what stands ahead of their first nodes, too. */
static void move_borders(gantry_graph *g, const order *o)
{
    const borders *was = o->was;
    for (size_t i = 0; i < g->loops.count; i++, was++) {
        g->loops.at[i].first_node = o->start[was->first];
        g->loops.at[i].last_node = o->start[was->last];
    }
    for (size_t i = 0; i < g->inner.count; i++, was++) {
        uint32_t first = o->first[i], last = o->start[was->last];
        g->inner.at[i].first_node = first;
        g->inner.at[i].last_node = last < first ? first : last; /* without nodes */
    }
    for (size_t i = 0; i < g->build_->uses.count; i++, was++) {
        g->build_->uses.at[i].first = o->start[was->first];
        g->build_->uses.at[i].last = o->start[was->last];
    }
}

static bool make_order(const added *x, order *o)
{
    const gantry_graph *g = x->g;
    size_t loops = gy_loop_count(g), uses = g->build_->uses.count;
    o->number = gy_calloc(g->nodes.count + 1, sizeof *o->number);
    o->start = gy_calloc((size_t)x->old + 1, sizeof *o->start);
    o->first = gy_calloc(g->inner.count + 1, sizeof *o->first);
    o->was = gy_calloc(loops + uses + 1, sizeof *o->was);
    o->ok = o->number && o->start && o->first && o->was;
    for (size_t i = 0; i < loops + uses && o->ok; i++)
        o->was[i] = i < loops ? (borders){ gy_loop_at(g, i)->first_node, gy_loop_at(g, i)->last_node }
                              : (borders){ g->build_->uses.at[i - loops].first, g->build_->uses.at[i - loops].last };
    if (o->ok)
        order_all(x, o);
    if (o->ok)
        o->number[g->nodes.count] = (uint32_t)o->nodes.count;
    return o->ok;
}

bool gy_build_order(gantry_graph *graph, uint32_t old, gy_placed_nodes *placed)
{
    added x = { graph, placed, old };
    order o = { 0 };
    if (placed->count)
        qsort(placed->at, placed->count, sizeof *placed->at, compare_placed);
    bool ok = make_order(&x, &o) && gy_build_replace_nodes(graph, &o.nodes, o.number);
    if (ok)
        move_borders(graph, &o);
    gy_vec_free(&o.nodes);
    gy_free(o.number);
    gy_free(o.start);
    gy_free(o.first);
    gy_free(o.was);
    return ok;
}
