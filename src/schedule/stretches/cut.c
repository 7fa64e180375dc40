/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A minimum cut by a maximum flow: Dinic, "Algorithm for solution of a problem of maximum flow in networks with power
 * estimation", 1970. The source is side 1, the sink is side 0; what is left of the flow tells the sides.
 */
#include "schedule/stretches/stretches.h"

#include "base/memory.h"
#include <string.h>

/* Arcs 2 k and 2 k + 1 are an edge and its way back. */
typedef struct arc {
    uint32_t to, next; /* next: of the same node; GY_NONE */
    int64_t left;
} arc;

typedef struct network {
    uint32_t nodes, arcs, source, sink;
    uint32_t *first, *now; /* of each node: its first arc; the one that a search has come to */
    uint32_t *level, *queue, *path;
    arc *arc;
} network;

static void add(network *n, uint32_t a, uint32_t b, int64_t there, int64_t back)
{
    n->arc[n->arcs] = (arc){ b, n->first[a], there };
    n->first[a] = n->arcs++;
    n->arc[n->arcs] = (arc){ a, n->first[b], back };
    n->first[b] = n->arcs++;
}

static bool open_network(network *n, uint32_t nodes, size_t edges)
{
    n->source = nodes;
    n->sink = nodes + 1;
    n->nodes = nodes + 2;
    n->first = gy_calloc(n->nodes, sizeof *n->first);
    n->now = gy_calloc(n->nodes, sizeof *n->now);
    n->level = gy_calloc(n->nodes, sizeof *n->level);
    n->queue = gy_calloc(n->nodes, sizeof *n->queue);
    n->path = gy_calloc(n->nodes, sizeof *n->path);
    n->arc = gy_calloc(2 * (nodes + edges) + 1, sizeof *n->arc);
    if (n->first)
        memset(n->first, 0xFF, n->nodes * sizeof *n->first);
    return n->first && n->now && n->level && n->queue && n->path && n->arc;
}

static void close_network(network *n)
{
    gy_free(n->first);
    gy_free(n->now);
    gy_free(n->level);
    gy_free(n->queue);
    gy_free(n->path);
    gy_free(n->arc);
}

/* How many arcs each node is from the source; GY_NONE: none leads there. True: the sink has one. */
static bool find_levels(network *n)
{
    uint32_t begin = 0, end = 0;
    memset(n->level, 0xFF, n->nodes * sizeof *n->level);
    n->level[n->source] = 0;
    n->queue[end++] = n->source;
    while (begin < end) {
        uint32_t at = n->queue[begin++];
        for (uint32_t a = n->first[at]; a != GY_NONE; a = n->arc[a].next) {
            uint32_t to = n->arc[a].to;
            if (n->arc[a].left > 0 && n->level[to] == GY_NONE) {
                n->level[to] = n->level[at] + 1;
                n->queue[end++] = to;
            }
        }
    }
    return n->level[n->sink] != GY_NONE;
}

/* Pushes along the path of so many arcs; returns how many of them stay, up to the first that is full. */
static uint32_t push(network *n, uint32_t arcs)
{
    int64_t least = INT64_MAX;
    uint32_t stay = arcs;
    for (uint32_t i = 0; i < arcs; i++)
        least = n->arc[n->path[i]].left < least ? n->arc[n->path[i]].left : least;
    for (uint32_t i = arcs; i-- > 0;) {
        n->arc[n->path[i]].left -= least;
        n->arc[n->path[i] ^ 1].left += least;
        stay = n->arc[n->path[i]].left ? stay : i;
    }
    return stay;
}

/* All paths from level to level. */
static void fill_levels(network *n)
{
    uint32_t arcs = 0, at = n->source;
    memcpy(n->now, n->first, n->nodes * sizeof *n->now);
    for (;;) {
        if (at == n->sink) {
            arcs = push(n, arcs);
            at = arcs ? n->arc[n->path[arcs - 1]].to : n->source;
        }
        uint32_t a = n->now[at];
        while (a != GY_NONE && !(n->arc[a].left > 0 && n->level[n->arc[a].to] == n->level[at] + 1))
            a = n->arc[a].next;
        n->now[at] = a;
        if (a != GY_NONE) {
            n->path[arcs++] = a;
            at = n->arc[a].to;
            continue;
        }
        if (!arcs)
            return;
        n->level[at] = GY_NONE; /* nothing leads on */
        arcs--;
        at = n->arc[n->path[arcs] ^ 1].to;
    }
}

bool gy_cut_least(uint32_t nodes, const int64_t *costs, const gy_cut_edges *edges, uint8_t *side)
{
    network n = { 0 };
    bool done = open_network(&n, nodes, edges->count);
    for (uint32_t i = 0; i < nodes && done; i++)
        if (costs[i] > 0)
            add(&n, i, n.sink, costs[i], 0);
        else if (costs[i] < 0)
            add(&n, n.source, i, -costs[i], 0);
    for (size_t i = 0; i < edges->count && done; i++)
        if (edges->at[i].a != edges->at[i].b)
            add(&n, edges->at[i].a, edges->at[i].b, edges->at[i].cost, edges->at[i].one_way ? 0 : edges->at[i].cost);
    while (done && find_levels(&n))
        fill_levels(&n);
    for (uint32_t i = 0; i < nodes && done; i++)
        side[i] = n.level[i] != GY_NONE;
    close_network(&n);
    return done;
}
