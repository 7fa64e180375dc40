/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The steps of the algorithms, as R. Thakur, R. Rabenseifner and W. Gropp describe them (Optimization of collective
 * communication operations in MPICH, IJHPCA 19(1), 2005), and the two that peer memory allows:
 *
 *   copy_engine  every transfer that is needed, at once, by copy engines
 *   ring         p-1 steps of a part to the next rank; all_reduce 2 (p-1). broadcast and reduce: a chain, in the number
 *                of pieces that is best. all_to_all: in step k to the rank k places on
 *   tree         binomial: as many steps as halvings; all_reduce, all_gather and reduce_scatter up and down again
 *   recursive    halving (reduce_scatter) and doubling (all_gather) with the rank 1, 2, 4 ... away; all_reduce both
 *   one_shot     every rank loads what it needs from all that have it
 *   two_shot     every rank combines (or fetches) one part, then stores it to all that need it
 */
#include "scheduler/collective/collective.h"

/* A signal before and one behind: all have come, all are done. */
static gy_ticks both_signals(const gy_net *net, const gy_group *g)
{
    gy_ticks most = 0;
    for (uint32_t i = 0; i < g->ranks; i++)
        for (uint32_t k = 0; k < g->ranks; k++) {
            gy_ticks t = i == k ? 0 : gy_route_latency(gy_machine_route(net->m, g->memory[i], g->memory[k]));
            most = t > most ? t : most;
        }
    return gy_ticks_times(most, 2);
}

static void add_needs(gy_net *net, const gy_group *g)
{
    for (uint32_t from = 0; from < g->ranks; from++)
        for (uint32_t to = 0; to < g->ranks; to++)
            gy_net_add(net, g, from, to, gy_group_need(g, from, to));
}

gy_ticks gy_time_copy(gy_net *net, const gy_group *g)
{
    add_needs(net, g);
    return gy_net_copies(net);
}

gy_ticks gy_time_one_shot(gy_net *net, const gy_group *g)
{
    gy_ticks time = gy_ticks_sum(net->launch, both_signals(net, g));
    add_needs(net, g);
    return gy_ticks_sum(time, gy_net_flow(net));
}

/* Part i of `bytes` in as many as there are ranks, in whole vectors of 16 bytes. */
static int64_t share(const gy_group *g, uint32_t i)
{
    return 16 * (gy_part_bound(g->bytes / 16, g->ranks, i + 1) - gy_part_bound(g->bytes / 16, g->ranks, i));
}

gy_ticks gy_time_two_shot(gy_net *net, const gy_group *g)
{
    gy_ticks time = gy_ticks_sum(net->launch, both_signals(net, g));
    for (uint32_t part = 0; part < g->ranks; part++) /* rank `part` gets it from those that give */
        for (uint32_t from = 0; from < g->ranks; from++)
            gy_net_add(net, g, from, part, g->gives[from] ? share(g, part) : 0);
    time = gy_ticks_sum(time, gy_net_flow(net));
    for (uint32_t part = 0; part < g->ranks; part++)
        for (uint32_t to = 0; to < g->ranks; to++)
            gy_net_add(net, g, part, to, g->takes[to] ? share(g, part) : 0);
    return gy_ticks_sum(time, gy_net_flow(net));
}

/* ---- ring ---- */

static int64_t largest_part(const gy_group *g)
{
    int64_t most = 0;
    for (uint32_t i = 0; i < g->ranks; i++)
        most = g->part[i] > most ? g->part[i] : most;
    return most;
}

/* Every rank, but the last of a chain, sends to the next. */
static gy_ticks around(gy_net *net, const gy_group *g, uint32_t hops, uint32_t first, int64_t bytes)
{
    const uint32_t *order = net->order.at;
    for (uint32_t i = 0; i < hops; i++)
        gy_net_add(net, g, order[(first + i) % g->ranks], order[(first + i + 1) % g->ranks], bytes);
    return gy_net_step(net);
}

/* From or to the root, piece after piece. */
static gy_ticks chain(gy_net *net, const gy_group *g)
{
    gy_ticks best = GY_TICKS_MAX;
    uint32_t first = 0;
    while (net->order.at[first] != g->root)
        first++;
    if (g->kind == GANTRY_REDUCE)
        first++; /* the root is the last */
    for (int64_t pieces = 1; pieces <= 1024 && pieces <= g->bytes; pieces *= 2) {
        int64_t bytes = (g->bytes + pieces - 1) / pieces, steps = (int64_t)g->ranks - 2 + pieces;
        gy_ticks time = gy_ticks_times(around(net, g, g->ranks - 1, first, bytes), steps);
        best = time < best ? time : best;
    }
    return g->bytes ? best : 0;
}

/* In step k every rank sends to the one k places on. */
static gy_ticks pairs(gy_net *net, const gy_group *g)
{
    gy_ticks time = 0;
    for (uint32_t k = 1; k < g->ranks; k++) {
        for (uint32_t i = 0; i < g->ranks; i++) {
            uint32_t from = net->order.at[i], to = net->order.at[(i + k) % g->ranks];
            gy_net_add(net, g, from, to, gy_group_need(g, from, to));
        }
        time = gy_ticks_sum(time, gy_net_step(net));
    }
    return time;
}

gy_ticks gy_time_ring(gy_net *net, const gy_group *g)
{
    int64_t steps = (int64_t)g->ranks - 1, part;
    gy_ticks time = 0;
    switch (g->kind) {
    case GANTRY_BROADCAST:
    case GANTRY_REDUCE:
        time = chain(net, g);
        break;
    case GANTRY_ALL_TO_ALL:
        time = pairs(net, g);
        break;
    default:
        part = g->kind == GANTRY_ALL_REDUCE ? (g->bytes + g->ranks - 1) / g->ranks : largest_part(g);
        time = gy_ticks_times(around(net, g, g->ranks, 0, part), g->kind == GANTRY_ALL_REDUCE ? 2 * steps : steps);
        break;
    }
    return gy_ticks_sum(net->launch, time);
}

/* ---- tree ---- */

/* Bytes of the parts of ranks i .. i+width-1, counted from the root. */
static int64_t subtree(const gy_group *g, uint32_t i, uint32_t width)
{
    int64_t sum = 0;
    for (uint32_t k = i; k < i + width && k < g->ranks; k++)
        sum += g->part[(g->root + k) % g->ranks];
    return sum;
}

/* One pass over the tree: `up` to the root or down from it, of all bytes or of the parts of each subtree. */
static gy_ticks pass(gy_net *net, const gy_group *g, bool up, bool parts)
{
    gy_ticks time = 0;
    for (uint32_t width = 1; width < g->ranks; width *= 2) {
        for (uint32_t i = 0; i + width < g->ranks; i += 2 * width) {
            uint32_t near = (g->root + i) % g->ranks, far = (g->root + i + width) % g->ranks;
            int64_t bytes = parts ? subtree(g, i + width, width) : g->bytes;
            gy_net_add(net, g, up ? far : near, up ? near : far, bytes);
        }
        time = gy_ticks_sum(time, gy_net_step(net));
    }
    return time;
}

gy_ticks gy_time_tree(gy_net *net, const gy_group *g)
{
    gy_ticks time = net->launch;
    bool parts = g->kind == GANTRY_GATHER || g->kind == GANTRY_ALL_GATHER;
    if (g->reduce || parts)
        time = gy_ticks_sum(time, pass(net, g, true, parts));
    if (g->kind != GANTRY_REDUCE && g->kind != GANTRY_GATHER)
        time = gy_ticks_sum(time, pass(net, g, false, g->kind == GANTRY_SCATTER || g->kind == GANTRY_REDUCE_SCATTER));
    return time;
}

/* ---- recursive ---- */

/* Bytes of the parts of the block of `width` ranks that rank i is in; of all_reduce: equal parts. */
static int64_t block_of(const gy_group *g, uint32_t i, uint32_t width)
{
    int64_t sum = 0;
    uint32_t first = i / width * width;
    for (uint32_t k = first; k < first + width; k++)
        sum += g->kind == GANTRY_ALL_REDUCE
                   ? gy_part_bound(g->bytes, g->ranks, k + 1) - gy_part_bound(g->bytes, g->ranks, k)
                   : g->part[k];
    return sum;
}

/* Every rank with the one `width` away: halving, it sends what the other's half is to have; doubling, what its own has.
 */
static gy_ticks exchange(gy_net *net, const gy_group *g, bool halving)
{
    gy_ticks time = 0;
    for (uint32_t width = 1; width < g->ranks; width *= 2) {
        for (uint32_t i = 0; i < g->ranks; i++)
            gy_net_add(net, g, i, i ^ width, block_of(g, halving ? i ^ width : i, width));
        time = gy_ticks_sum(time, gy_net_step(net));
    }
    return time;
}

gy_ticks gy_time_recursive(gy_net *net, const gy_group *g)
{
    gy_ticks time = net->launch;
    if (g->kind != GANTRY_ALL_GATHER)
        time = gy_ticks_sum(time, exchange(net, g, true));
    if (g->kind != GANTRY_REDUCE_SCATTER)
        time = gy_ticks_sum(time, exchange(net, g, false));
    return time;
}
