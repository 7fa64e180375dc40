/* SPDX-License-Identifier: Apache-2.0 */
/* The placements that are tried for the least makespan: those of the policies, with and without making room. */
#ifndef GY_SCHEDULER_SEARCH_PORTFOLIO_H
#define GY_SCHEDULER_SEARCH_PORTFOLIO_H

#include "scheduler/search/search.h"
#include "scheduler/search/trials.h"

/* How a placement ended: several policies often place alike, and lowering takes far longer than placing. */
typedef struct gy_outcome {
    uint64_t hash;        /* of the placement and of what was asked for */
    gy_ticks makespan;    /* GY_TICKS_MAX: it did not fit */
    gantry_status status; /* and why not */
} gy_outcome;

typedef struct gy_portfolio {
    gy_trials t; /* `placed`: what the policies that fit decided, if `keep` */
    bool keep;
    bool make_room;         /* what does not fit is spilled */
    bool spare_memory;      /* what is fast but takes memory is given up: gy_portfolio_make_room */
    bool first_made_room;   /* t.first did not fit even with spilling */
    bool persistent;        /* something persists in memories of devices, in the best schedule */
    bool moved;             /* something left a memory in the best schedule */
    gy_spill_way way;       /* how rows are spilled, once that was looked for */
    gy_spill_way best_way;  /* of the best schedule */
    const gy_policy *plain; /* the best policy where rows are not gathered again, and how it ended; NULL: none fits */
    gy_plan_end plain_end;
    gantry_status last;          /* why the last that did not fit did not */
    gy_known_plans known;        /* all that were carried through, unless the options have those of this graph */
    GY_VEC(gy_outcome) outcomes; /* of the placements of policies, each once */
} gy_portfolio;

/* At least half of the nodes say where they run: then most of what is left to choose is the order. */
bool gy_portfolio_is_placed(const gantry_graph *g);
/* Runs every policy that fits the size, or the one that the options name; in small graphs, what does not fit in memory
 * with spilling too. */
gantry_status gy_portfolio_policies(gy_portfolio *f, gantry_error *err);
/* When nothing fitted: a placement that looks at memory, and if that does not fit either, spilling. As the last resort
 * all of it again with memory spared: devices whose small nodes ask for scratch compute in one lane, which has it once
 * (gy_plan_scratch), and ranks of collectives that no node wrote go where there is room (gy_place_ranks). */
gantry_status gy_portfolio_make_room(gy_portfolio *f, gantry_error *err);
/* Lowers and simulates a candidate, in the way in which the best was made or in all; *makespan is GY_TICKS_MAX if it
 * does not fit in memory. */
gantry_status gy_portfolio_candidate(gy_portfolio *f, const gy_candidate *c, bool all_ways, const char *name,
                                     gy_ticks *makespan, gantry_error *err);
/* Runs the policy, or the candidate, with rows spilled in this way and no other; *makespan becomes that, if it is less.
 */
gantry_status gy_portfolio_spill(gy_portfolio *f, const gy_policy *policy, const gy_candidate *c,
                                 const gy_spill_way *way, gy_ticks *makespan, gantry_error *err);
/* The best placement once more, in other ways to spill (spill_ways.c). */
gantry_status gy_portfolio_spill_ways(gy_portfolio *f, gantry_error *err);
void gy_portfolio_free(gy_portfolio *f);

#endif
