/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mutation tests of the checker. A small random graph (make_graph.c) gets a schedule by a lowering written for this
 * test (make_schedule.c, make_sync.c); it is damaged in one place (mutate.c); an oracle (oracle*.c) and the checker
 * judge it. Oracle and checker share the structures of schedule.h and graph.h and no code.
 */
#ifndef TESTS_MUTANTS_H
#define TESTS_MUTANTS_H

#include "schedule/schedule.h"

typedef struct rng {
    uint64_t state;
} rng;
uint64_t rng_next(rng *r);
uint32_t rng_below(rng *r, uint32_t n); /* 0 .. n-1 */
static inline bool rng_chance(rng *r, uint32_t percent)
{
    return rng_below(r, 100) < percent;
}
static inline int64_t rng_range(rng *r, int64_t low, int64_t high)
{
    return low + (int64_t)rng_below(r, (uint32_t)(high - low + 1));
}

/* NULL: the numbers made no valid graph; try others. */
gantry_graph *make_graph(rng *r, uint32_t devices);
gantry_machine *make_machine(rng *r, uint32_t devices);
/* NULL: too many ops to try all interleavings. */
gantry_schedule *make_schedule(rng *r, gantry_graph *g, const gantry_machine *m);
#define OPS_MAX    12 /* with in_flight 1 */
#define WINDOW_MAX 20 /* ops of all starts, with in_flight 2 */
/* Adds the sync table that the uses of the ops ask for. */
void make_sync(rng *r, gantry_schedule *s, const gantry_graph *g);

/* A copy that can be changed; strings are those of the original, which must live longer. */
gantry_schedule *clone_schedule(const gantry_schedule *s);

#define MUTATION_MAP(X)                                                                                                \
    X(DROP_SYNC, "drop a row of the sync table")                                                                       \
    X(MOVE_SYNC, "change an end of a row")                                                                             \
    X(CARRIER, "change a carrier")                                                                                     \
    X(SLOT, "change a slot")                                                                                           \
    X(DISTANCE, "change a distance")                                                                                   \
    X(SWAP, "swap two ops")                                                                                            \
    X(SWAP_BARE, "swap two ops, the table staying as it is")                                                           \
    X(DROP_OP, "drop an op")                                                                                           \
    X(TWICE, "do an op twice")                                                                                         \
    X(REPEAT, "repeat a task")                                                                                         \
    X(REPEATS, "call an op a repeat, or a repeat the task's own op")                                                   \
    X(ADDRESS, "change an address")                                                                                    \
    X(MEMORY, "change the memory of an instance")                                                                      \
    X(SPACE, "change the space or role of an instance")                                                                \
    X(VALUE, "change the value of an instance")                                                                        \
    X(INSTANCE_ROWS, "change the rows of an instance")                                                                 \
    X(SLAB, "change the size of a slab")                                                                               \
    X(WINDOW, "change the size of a window")                                                                           \
    X(IN_FLIGHT, "change how many starts are in flight")                                                               \
    X(JOINT, "drop or change a row between starts")                                                                    \
    X(USE_ROWS, "change the rows of a use")                                                                            \
    X(USE_INSTANCE, "change the instance of a use")                                                                    \
    X(USE_MODE, "change the mode of a use")                                                                            \
    X(COPY_ROUTE, "copy from another place")                                                                           \
    X(REDUCTION, "change a reduction")                                                                                 \
    X(COLLECTIVE_LANES, "change the lanes of a collective")                                                            \
    X(COLLECTIVE_USES, "change ranks, kind or reads of a collective")                                                  \
    X(LANE, "move an op to another lane")                                                                              \
    X(LANE_DEVICE, "move a lane to another device")                                                                    \
    X(NODE, "change node or iteration of an op")                                                                       \
    X(TRANSFER_ROWS, "copy other rows, both ends alike")                                                               \
    X(REVERSE, "turn two neighbours and what joins them round")                                                        \
    X(JOIN, "make a batch of ops")                                                                                     \
    X(BATCH, "change a batch that was right")                                                                          \
    X(ALIAS, "name other rows or another value at the same address")                                                   \
    X(TWO, "two of these")
typedef enum mutation {
#define X(name, text) MUTATE_##name,
    MUTATION_MAP(X)
#undef X
        MUTATIONS
} mutation;
extern const char *const mutation_text[];
/* false: the schedule has nothing of the kind. */
bool mutate(rng *r, gantry_schedule *s, mutation kind);

/* Rules as bits. */
#define RULE_MAP(X)                                                                                                    \
    X(form)                                                                                                            \
    X(node)                                                                                                            \
    X(place)                                                                                                           \
    X(route) X(capacity) X(order) X(carrier) X(batch) X(collective) X(external) X(after) X(race) X(version) X(exit)
typedef enum rule {
#define X(name) RULE_##name,
    RULE_MAP(X)
#undef X
        RULES
} rule;
extern const char *const rule_text[];
#define BIT(rule) (1u << RULE_##rule)

/* All rules that the schedule breaks: those seen without running it, or, if there are none, all that any interleaving
 * breaks. `*capped` is set if there were more states than it looked at. */
uint32_t oracle(const gantry_schedule *s, const gantry_graph *g, bool *capped);
uint32_t oracle_static(const gantry_schedule *s, const gantry_graph *g);
uint32_t oracle_run(const gantry_schedule *s, const gantry_graph *g, bool *capped);

/* True unless the ops are in different iterations of a loop that both are in. Loops of these tests take two turns. */
static inline bool are_in_one_turn(const gantry_graph *g, const gy_op *a, const gy_op *b)
{
    const gy_node *x = &g->nodes.at[a->node], *y = &g->nodes.at[b->node];
    if (x->loop == GY_NONE || x->loop != y->loop)
        return true;
    if (x->inner != GY_NONE && x->inner == y->inner)
        return a->iteration == b->iteration;
    return (x->inner == GY_NONE ? a->iteration : a->iteration / 2) ==
           (y->inner == GY_NONE ? b->iteration : b->iteration / 2);
}

#endif
