/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Loops within loops. graph->loops has the outermost ones, which phases are cut from. graph->inner has all others in
 * the order in which they begin, so that those inside a loop are next to each other: [inner, inner_last) of it.
 *
 * A task is known by its node and one number, `iteration`: how often the node has run before in this start (or in this
 * start of a phase). With loops of 5, 4 and 3 iterations the node within all three is in iteration (a * 4 + b) * 3 + c.
 */
#ifndef GY_GRAPH_NEST_H
#define GY_GRAPH_NEST_H

#include "graph/graph.h"

enum { GY_LOOPS_DEEP = 16 };             /* loops in one another, at most: each is a turn of recursion */
#define GY_TURNS_MOST (INT64_C(1) << 40) /* more tasks than any graph may have */

/* a * b, and INT64_MAX where that is more. */
static inline int64_t gy_turns_times(int64_t a, int64_t b)
{
    int64_t product = 0;
    return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

/* All loops, in any order but the outermost first. */
static inline size_t gy_loop_count(const gantry_graph *g)
{
    return g->loops.count + g->inner.count;
}
static inline const gy_loop *gy_loop_at(const gantry_graph *g, size_t i)
{
    return i < g->loops.count ? &g->loops.at[i] : &g->inner.at[i - g->loops.count];
}
/* How often the node runs in each iteration of its outermost loop. */
static inline int64_t gy_node_turns(const gantry_graph *g, const gy_node *n)
{
    return n->inner == GY_NONE ? 1 : g->inner.at[n->inner].turns;
}
/* The tasks of the node in the flow. */
static inline int64_t gy_node_tasks(const gantry_graph *g, const gy_node *n)
{
    return n->loop == GY_NONE ? 1 : gy_turns_times(g->loops.at[n->loop].unrolled, gy_node_turns(g, n));
}
/* How often the node runs in one start of the graph, unless `until` ends its loop. */
static inline int64_t gy_node_runs(const gantry_graph *g, const gy_node *n)
{
    return n->loop == GY_NONE ? 1 : gy_turns_times(g->loops.at[n->loop].count, gy_node_turns(g, n));
}

/* The iterations [*first, *last) of `other` that `after`, `with` and `apart` of a node in that iteration mean: those in
 * the same iteration of all loops that both are in. */
void gy_node_partners(const gantry_graph *graph, const gy_node *node, const gy_node *other, int64_t iteration,
                      int64_t *first, int64_t *last);
/* Nodes that are next to each other, and the inner loops among them. */
typedef struct gy_range {
    uint32_t first, last, inner, inner_last;
} gy_range;
static inline gy_range gy_loop_range(const gy_loop *l)
{
    return (gy_range){ l->first_node, l->last_node, l->inner, l->inner_last };
}
/* The iterations that a flow takes: without nodes nothing but names changes, and after three iterations not even those,
 * unless loops inside carry them on. */
static inline int64_t gy_loop_shown(const gy_loop *l)
{
    return l->first_node == l->last_node && l->inner == l->inner_last && l->unrolled > 3 ? 3 : l->unrolled;
}
/* The value of an index when the node runs for the `iteration`th time; *value NULL: only asks for the name. False: no
 * loop around the node calls its index so. */
bool gy_node_index(const gantry_graph *graph, const gy_node *node, int64_t iteration, const char *name, int64_t *value);
/* Sets `tasks` of all loops, when the graph is sealed. */
void gy_graph_count_tasks(gantry_graph *graph);

#endif
