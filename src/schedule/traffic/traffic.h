/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The transfers of a collective: step by step, as the scheduler times an algorithm, and in all, as the simulator has
 * them share links with what else goes on.
 */
#ifndef GY_SCHEDULE_TRAFFIC_TRAFFIC_H
#define GY_SCHEDULE_TRAFFIC_TRAFFIC_H

#include "base/vec.h"
#include "schedule/traffic/group.h"

/* ---- order.c ---- */

/* The ranks along a ring: `order` has room for all. The next is the nearest that is left, the lower of equals. */
void gy_ring_order(const gantry_machine *m, const gy_group *g, uint32_t *order);

/* ---- islands.c ---- */

enum { GY_ISLAND_LEVELS = 8 };

/* Ranks in islands of one size, these in islands of islands, and so on: within an island, routes are quicker than
 * between. Rank `rank[x]` has place x; its digits, the first counting to size[0], say where it is on each level. Ranks
 * of one digit at level 0 in all islands are as near to each other as there are. */
typedef struct gy_islands {
    uint32_t levels, ranks; /* levels: 1: there are no islands */
    uint32_t size[GY_ISLAND_LEVELS], *rank;
    uint32_t *key, keys; /* memories of the ranks */
} gy_islands;
/* Those of a group; from the last call where the ranks are the same. false: out of memory. */
bool gy_islands_find(gy_islands *islands, const gantry_machine *m, const gy_group *g);
void gy_islands_free(gy_islands *islands);

/* One transfer: bytes [first, last) go from one rank to another, which combines them with its own where that is what
 * the step is for. */
typedef struct gy_step_move {
    uint32_t from, to;
    int64_t first, last;
    bool combines;
    bool given, to_given; /* the rank sends, and the other combines, what it gives; else what came there before */
} gy_step_move;
/* Called with the moves of each step, then at its end. Moves to combine in one rank come one behind the other, those of
 * the same bytes from one rank, too. */
typedef struct gy_move_walk {
    void (*move)(void *context, const gy_step_move *move);
    void (*end)(void *context, int64_t times); /* times: steps in all, if `brief`; else 1 */
    void *context;
    bool brief; /* steps one behind the other that differ only in which bytes they move are given once */
} gy_move_walk;
/* all_reduce of *bytes: each level, from the innermost, adds up a part for each rank; then the parts are gathered, from
 * the outermost. broadcast from `root`: scattered so, and gathered. Both in pieces, from 64 MiB on. all_gather: what
 * `root` has is gathered; GY_NONE: what all have, bytes[rank] of each. */
void gy_islands_moves(const gy_islands *islands, gantry_collective kind, uint32_t root, const int64_t *bytes,
                      const gy_move_walk *walk);

/* ---- moves.c ---- */

/* The moves of an algorithm for `bytes`: of `root`, or in an all_reduce, where it is 0, of all. All ranks give and
 * take. false: it has no steps for the kind, or all go at once. */
bool gy_algorithm_moves(const gy_group *g, gy_algorithm algorithm, const uint32_t *order, const gy_islands *islands,
                        uint32_t root, int64_t bytes, const gy_move_walk *walk);
/* So many pieces go through a chain (broadcast by ring). */
int64_t gy_chain_pieces(int64_t bytes);

/* ---- steps.c ---- */

/* Told of each transfer of a step, then of the step's end. `times`: the step is made so often, one after the other. */
typedef struct gy_step_walk {
    void (*send)(void *context, uint32_t from, uint32_t to, int64_t bytes); /* ranks */
    void (*end)(void *context, int64_t times);
    void *context;
} gy_step_walk;

/* The steps of an algorithm that can do the group; `order` is that of its ring, `islands` those of its ranks, `pieces`
 * are those that a chain cuts its bytes into, 0: so many that what is under way first and last counts for nothing. Of
 * NCCL nobody knows the steps: they are those by which the fewest bytes cross any cut. */
void gy_algorithm_steps(const gy_group *g, gy_algorithm algorithm, const uint32_t *order, const gy_islands *islands,
                        int64_t pieces, const gy_step_walk *walk);

/* ---- traffic.c ---- */

/* Bytes that cross a resource of the machine. */
typedef struct gy_crossing {
    uint32_t resource;
    int64_t bytes;
} gy_crossing;
typedef GY_VEC(gy_crossing) gy_crossings;

/* Room to work out the loads of many ops. Zeroed, with the machine. */
typedef struct gy_link_traffic {
    const gantry_machine *m;
    const gy_group *g;
    int64_t *step, *all;             /* per resource */
    int64_t step_messages, messages; /* bytes of the step at hand and of the last op that are messages */
    GY_VEC(uint32_t) used, order, ranks;
    gy_islands islands;
} gy_link_traffic;
bool gy_link_traffic_init(gy_link_traffic *t, const gantry_machine *m);
void gy_link_traffic_free(gy_link_traffic *t);
/* Appends what a collective op, with the batch that it begins, puts on each resource, each once. false: out of memory.
 */
bool gy_link_traffic_of_op(gy_link_traffic *t, const gantry_schedule *s, const gy_op *op, gy_crossings *to);

#endif
