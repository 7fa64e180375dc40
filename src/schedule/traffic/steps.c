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
 *   counters     the same as two_shot; ranks wait for each other by counters in memory, where they may
 *   islands      two_shot on each island, and between islands with the parts, level by level (islands.c)
 */
#include "schedule/traffic/traffic.h"

typedef struct steps {
    const gy_group *g;
    const uint32_t *order;
    const gy_islands *islands;
    int64_t pieces;
    const gy_step_walk *walk;
} steps;

static void send(const steps *s, uint32_t from, uint32_t to, int64_t bytes)
{
    s->walk->send(s->walk->context, from, to, bytes);
}

static void end_step(const steps *s, int64_t times)
{
    s->walk->end(s->walk->context, times);
}

/* ---- copy_engine, one_shot, two_shot ---- */

static void walk_needs(const steps *s)
{
    for (uint32_t from = 0; from < s->g->ranks; from++)
        for (uint32_t to = 0; to < s->g->ranks; to++)
            send(s, from, to, gy_group_need(s->g, from, to));
    end_step(s, 1);
}

/* Part i of `bytes` in as many as there are ranks, in whole vectors of 16 bytes. */
static int64_t share(const gy_group *g, uint32_t i)
{
    return 16 * (gy_part_bound(g->bytes / 16, g->ranks, i + 1) - gy_part_bound(g->bytes / 16, g->ranks, i));
}

static void walk_two_shot(const steps *s)
{
    const gy_group *g = s->g;
    for (uint32_t part = 0; part < g->ranks; part++) /* rank `part` gets it from those that give */
        for (uint32_t from = 0; from < g->ranks; from++)
            send(s, from, part, g->gives[from] ? share(g, part) : 0);
    end_step(s, 1);
    for (uint32_t part = 0; part < g->ranks; part++)
        for (uint32_t to = 0; to < g->ranks; to++)
            send(s, part, to, g->takes[to] ? share(g, part) : 0);
    end_step(s, 1);
}

/* ---- ring ---- */

/* Every rank, but the last of a chain, sends to the next. */
static void walk_around(const steps *s, uint32_t hops, uint32_t first, int64_t bytes, int64_t times)
{
    for (uint32_t i = 0; i < hops; i++)
        send(s, s->order[(first + i) % s->g->ranks], s->order[(first + i + 1) % s->g->ranks], bytes);
    end_step(s, times);
}

/* From or to the root, piece after piece. */
static void walk_chain(const steps *s)
{
    const gy_group *g = s->g;
    uint32_t first = 0;
    while (s->order[first] != g->root)
        first++;
    if (g->kind == GANTRY_REDUCE)
        first++; /* the root is the last */
    int64_t pieces = s->pieces ? s->pieces : 1, behind = s->pieces ? (int64_t)g->ranks - 2 : 0;
    walk_around(s, g->ranks - 1, first, (g->bytes + pieces - 1) / pieces, behind + pieces);
}

/* In step k every rank sends to the one k places on. */
static void walk_pairs(const steps *s)
{
    for (uint32_t k = 1; k < s->g->ranks; k++) {
        for (uint32_t i = 0; i < s->g->ranks; i++) {
            uint32_t from = s->order[i], to = s->order[(i + k) % s->g->ranks];
            send(s, from, to, gy_group_need(s->g, from, to));
        }
        end_step(s, 1);
    }
}

static void walk_ring(const steps *s)
{
    const gy_group *g = s->g;
    int64_t times = (int64_t)g->ranks - 1;
    switch (g->kind) {
    case GANTRY_BROADCAST:
    case GANTRY_REDUCE:
        walk_chain(s);
        break;
    case GANTRY_ALL_TO_ALL:
        walk_pairs(s);
        break;
    case GANTRY_ALL_REDUCE:
        walk_around(s, g->ranks, 0, (g->bytes + g->ranks - 1) / g->ranks, 2 * times);
        break;
    default:
        walk_around(s, g->ranks, 0, gy_group_largest(g), times);
        break;
    }
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
static void walk_pass(const steps *s, bool up, bool parts)
{
    const gy_group *g = s->g;
    for (uint32_t width = 1; width < g->ranks; width *= 2) {
        for (uint32_t i = 0; i + width < g->ranks; i += 2 * width) {
            uint32_t near = (g->root + i) % g->ranks, far = (g->root + i + width) % g->ranks;
            int64_t bytes = parts ? subtree(g, i + width, width) : g->bytes;
            send(s, up ? far : near, up ? near : far, bytes);
        }
        end_step(s, 1);
    }
}

static void walk_tree(const steps *s)
{
    gantry_collective kind = s->g->kind;
    bool parts = kind == GANTRY_GATHER || kind == GANTRY_ALL_GATHER;
    if (s->g->reduce || parts)
        walk_pass(s, true, parts);
    if (kind != GANTRY_REDUCE && kind != GANTRY_GATHER)
        walk_pass(s, false, kind == GANTRY_SCATTER || kind == GANTRY_REDUCE_SCATTER);
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
static void walk_exchange(const steps *s, bool halving)
{
    for (uint32_t width = 1; width < s->g->ranks; width *= 2) {
        for (uint32_t i = 0; i < s->g->ranks; i++)
            send(s, i, i ^ width, block_of(s->g, halving ? i ^ width : i, width));
        end_step(s, 1);
    }
}

static void walk_recursive(const steps *s)
{
    if (s->g->kind != GANTRY_ALL_GATHER)
        walk_exchange(s, true);
    if (s->g->kind != GANTRY_REDUCE_SCATTER)
        walk_exchange(s, false);
}

/* ---- islands ---- */

static void send_move(void *context, const gy_step_move *move)
{
    send(context, move->from, move->to, move->last - move->first);
}

static void end_moves(void *context, int64_t times)
{
    end_step(context, times);
}

static void walk_islands(const steps *s)
{
    steps mine = *s;
    gy_move_walk walk = { send_move, end_moves, &mine, true };
    bool gathers = s->g->kind == GANTRY_ALL_GATHER;
    gy_islands_moves(s->islands, s->g->kind, gathers ? GY_NONE : s->g->root, gathers ? s->g->part : &s->g->bytes,
                     &walk);
}

/* ---- nccl ---- */

/* A switch may combine on the way, so that all_reduce takes each byte over a port once. */
static void walk_least(const steps *s)
{
    const gy_group *g = s->g;
    if (!gy_group_is_full(g) || g->kind == GANTRY_SCATTER || g->kind == GANTRY_GATHER)
        walk_needs(s);
    else if (g->kind == GANTRY_ALL_REDUCE)
        walk_around(s, g->ranks, 0, g->bytes, 1);
    else
        walk_ring(s);
}

static void walk_counters(const steps *s)
{
    if (s->g->kind == GANTRY_ALL_REDUCE)
        walk_two_shot(s);
    else
        walk_needs(s);
}

void gy_algorithm_steps(const gy_group *g, gy_algorithm algorithm, const uint32_t *order, const gy_islands *islands,
                        int64_t pieces, const gy_step_walk *walk)
{
    static void (*const walks[GY_ALGORITHM_COUNT])(const steps *s) = {
        [GY_ALGORITHM_NONE] = walk_least,          [GY_ALGORITHM_COPY] = walk_needs,
        [GY_ALGORITHM_RING] = walk_ring,           [GY_ALGORITHM_TREE] = walk_tree,
        [GY_ALGORITHM_RECURSIVE] = walk_recursive, [GY_ALGORITHM_ONE_SHOT] = walk_needs,
        [GY_ALGORITHM_TWO_SHOT] = walk_two_shot,   [GY_ALGORITHM_ISLANDS] = walk_islands,
        [GY_ALGORITHM_COUNTERS] = walk_counters,   [GY_ALGORITHM_NCCL] = walk_least,
    };
    steps s = { g, order, islands, pieces, walk };
    walks[algorithm](&s);
}
