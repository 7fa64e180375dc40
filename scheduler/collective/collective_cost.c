/* SPDX-License-Identifier: Apache-2.0 */
/* The algorithms: what each can do, and its time. One row each; to add one, add it to GY_ALGORITHM_MAP and here. All
 * know every element type, and those that combine every reduction. */
#include "scheduler/collective/collective.h"

#include <string.h>

#define BIT(kind)   (1U << GANTRY_##kind)
#define MOVES       (BIT(BROADCAST) | BIT(SCATTER) | BIT(GATHER) | BIT(ALL_GATHER) | BIT(ALL_TO_ALL))
#define REDUCES     (BIT(ALL_REDUCE) | BIT(REDUCE) | BIT(REDUCE_SCATTER))
#define ALL_TO_SOME (BIT(ALL_REDUCE) | BIT(REDUCE_SCATTER) | BIT(ALL_GATHER))

typedef struct method {
    unsigned kinds;
    bool full;         /* wants every rank to give and to take (a root of a rooted kind aside) */
    bool root_takes;   /* but the root of a reduce may do no more than take */
    bool even;         /* wants parts of one size */
    bool power_of_two; /* ranks */
    bool direct;       /* ranks reach into each other's memory: a direct route for every transfer */
    bool islands;      /* wants the ranks to be on islands */
    bool measured;     /* there is no model of it: only where the machine has a table */
    bool unproven;     /* its model is that of another: it may be asked for, and is chosen only where it was measured */
    int64_t align;     /* bytes that parts must be multiples of; 0: any */
    const char *(*refuses)(const gy_group *g); /* what else it cannot do, or NULL; NULL: nothing */
    int64_t (*scratch)(const gy_group *g);     /* bytes beside input and output, in each rank's memory; NULL: none */
    gy_ticks (*cost)(gy_net *net, const gy_group *g);
} method;

/* ---- scratch ---- */

/* A partial sum has no place in the output, which holds one part; the others add up where the result goes. */
static int64_t scratch_ring(const gy_group *g)
{
    return g->kind == GANTRY_REDUCE_SCATTER ? 2 * gy_group_largest(g) : g->kind == GANTRY_REDUCE ? g->bytes : 0;
}

/* Ranks of a tree keep data in scratch that they only pass on. */
static int64_t scratch_tree(const gy_group *g)
{
    return g->kind == GANTRY_BROADCAST ? 0 : g->bytes;
}

static int64_t scratch_recursive(const gy_group *g)
{
    return g->kind == GANTRY_REDUCE_SCATTER ? g->bytes : 0;
}

/* In place, others still read what is about to be written: the input is set aside first. */
static int64_t scratch_one_shot(const gy_group *g)
{
    if (!g->in_place)
        return 0;
    return g->kind == GANTRY_ALL_REDUCE ? g->bytes : g->kind == GANTRY_ALL_TO_ALL ? g->bytes / g->ranks : 0;
}

/* ---- refusals of one ---- */

enum { MOST_IN_RING = 256, MOST_THAT_MEET = 16 }; /* ranks: back ends make as many rounds, of as many pieces */

static const char *ring_refuses(const gy_group *g)
{
    if (g->ranks > MOST_IN_RING)
        return "it takes too many steps for more than 256 ranks";
    return g->in_place && g->kind == GANTRY_ALL_TO_ALL ? "it swaps nothing in place" : NULL;
}

/* Each rank adds up in the one place that it has for the result. */
static const char *islands_refuses(const gy_group *g)
{
    return g->twice ? "a rank has two values of one row" : NULL;
}

/* A rank meets each of the others by a counter of its own. */
static const char *counters_refuses(const gy_group *g)
{
    if (g->ranks > MOST_THAT_MEET)
        return "more than 16 ranks do not meet by counters";
    if (g->twice)
        return "a rank has two values of one row";
    return g->in_place && g->kind == GANTRY_ALL_TO_ALL ? "it swaps nothing in place" : NULL;
}

static const char *nccl_refuses(const gy_group *g)
{
    if (g->twice)
        return "a rank has two values of one row";
    if (g->with_nan)
        return "its min and max pass over NaN";
    return g->in_place && g->kind == GANTRY_ALL_TO_ALL ? "it swaps nothing in place" : NULL;
}

/* ---- the table ---- */

static const method METHODS[GY_ALGORITHM_COUNT] = {
    [GY_ALGORITHM_COPY] = { .kinds = MOVES, .cost = gy_time_copy },
    [GY_ALGORITHM_RING] = { .kinds = ALL_TO_SOME | BIT(BROADCAST) | BIT(REDUCE) | BIT(ALL_TO_ALL),
                            .full = true,
                            .root_takes = true,
                            .refuses = ring_refuses,
                            .scratch = scratch_ring,
                            .cost = gy_time_ring },
    [GY_ALGORITHM_TREE] = { .kinds = REDUCES | (MOVES & ~BIT(ALL_TO_ALL)),
                            .scratch = scratch_tree,
                            .cost = gy_time_tree },
    [GY_ALGORITHM_RECURSIVE] = { .kinds = ALL_TO_SOME,
                                 .full = true,
                                 .power_of_two = true,
                                 .scratch = scratch_recursive,
                                 .cost = gy_time_recursive },
    [GY_ALGORITHM_ONE_SHOT] = { .kinds = MOVES | REDUCES,
                                .direct = true,
                                .scratch = scratch_one_shot,
                                .cost = gy_time_one_shot },
    [GY_ALGORITHM_TWO_SHOT] = { .kinds = BIT(ALL_REDUCE) | BIT(REDUCE) | BIT(BROADCAST),
                                .full = true,
                                .root_takes = true,
                                .direct = true,
                                .align = 16,
                                .cost = gy_time_two_shot },
    [GY_ALGORITHM_ISLANDS] = { .kinds = BIT(ALL_REDUCE) | BIT(BROADCAST) | BIT(ALL_GATHER),
                               .full = true,
                               .islands = true,
                               .refuses = islands_refuses,
                               .cost = gy_time_islands },
    [GY_ALGORITHM_COUNTERS] = { .kinds = MOVES | REDUCES,
                                .full = true,
                                .direct = true,
                                .unproven = true,
                                .align = 16,
                                .refuses = counters_refuses,
                                .cost = gy_time_counters },
    [GY_ALGORITHM_NCCL] = { .kinds = MOVES | REDUCES,
                            .full = true,
                            .even = true,
                            .refuses = nccl_refuses,
                            .measured = true },
};

/* ---- who can ---- */

/* True if ranks that exchange data have direct routes; `all`: all pairs, because two_shot cuts its data anew. */
static bool is_direct(const gy_net *net, const gy_group *g, bool all)
{
    for (uint32_t from = 0; from < g->ranks; from++)
        for (uint32_t to = 0; to < g->ranks; to++)
            if (from != to && (all || gy_group_need(g, from, to)) &&
                gy_machine_route(net->m, g->memory[from], g->memory[to])->kind != GY_ROUTE_DIRECT)
                return false;
    return true;
}

static bool has_room(const gy_net *net, const gy_group *g, int64_t scratch)
{
    for (uint32_t i = 0; i < g->ranks; i++) {
        const gy_memory *y = &net->m->memory[g->memory[i]];
        if (scratch > 0 && (uint64_t)scratch > y->capacity - y->reserved)
            return false;
    }
    return true;
}

static const gy_collective_table *find_table(const gy_net *net, const gy_group *g, gy_algorithm algorithm)
{
    const char *kind = NULL;
    if (!net->m->tables || !gy_group_is_full(g))
        return NULL;
    for (uint32_t i = 0; i < g->ranks; i++) {
        uint32_t d = net->device[g->memory[i]];
        if (d == GY_MACHINE_NONE || (kind && strcmp(kind, net->m->device[d].kind) != 0))
            return NULL;
        kind = net->m->device[d].kind;
    }
    return gy_machine_table(net->m, g->kind, algorithm, kind, g->ranks);
}

/* All but the root give to a reduce. */
static bool all_others_give(const gy_group *g)
{
    bool all = g->kind == GANTRY_REDUCE;
    for (uint32_t i = 0; i < g->ranks; i++)
        all = all && (g->gives[i] || i == g->root);
    return all;
}

static const char *refusal(const gy_net *net, const gy_group *g, const method *q, const gy_collective_table *table)
{
    if (!(q->kinds & 1U << g->kind))
        return g->reduce && q->cost == gy_time_copy ? "copy engines cannot combine" : "there is none for this kind";
    if (q->power_of_two && g->ranks & (g->ranks - 1))
        return "the number of ranks is no power of two";
    if (q->full && !gy_group_is_full(g) && !(q->root_takes && all_others_give(g)))
        return "some ranks only give or only take";
    if (q->even && !gy_group_is_even(g))
        return "parts differ in size";
    if (q->islands && net->islands.levels < 2)
        return "the machine has no islands of these ranks";
    const char *why = q->refuses ? q->refuses(g) : NULL;
    if (why)
        return why;
    if (q->align && g->align % q->align)
        return "parts are no multiples of 16 bytes";
    if (q->direct && !is_direct(net, g, q->full))
        return "some ranks have no direct route";
    if (q->measured && !table)
        return "the machine has no measured times for these devices";
    if (q->scratch && !has_room(net, g, q->scratch(g)))
        return "its scratch does not fit in the memory of a rank";
    return NULL;
}

bool gy_collective_is_unproven(const gy_way *way)
{
    return METHODS[way->algorithm].unproven && way->provenance != GY_COST_MEASURED;
}

bool gy_collective_knows(gy_algorithm algorithm, gantry_collective kind)
{
    return METHODS[algorithm].kinds & 1U << kind;
}

gy_way gy_collective_look(gy_net *net, const gy_group *g, gy_algorithm algorithm)
{
    const method *q = &METHODS[algorithm];
    const gy_collective_table *table = find_table(net, g, algorithm);
    gy_way c = { .algorithm = algorithm, .time = GY_TICKS_MAX, .provenance = GY_COST_ROOFLINE };
    c.refused = refusal(net, g, q, table);
    if (c.refused)
        return c;
    if (table) {
        c.time = gy_points_time(table->point, table->points, g->bytes);
        c.provenance = GY_COST_MEASURED;
    } else {
        c.time = q->cost(net, g);
    }
    return c;
}
