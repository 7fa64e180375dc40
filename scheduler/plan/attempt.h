/* SPDX-License-Identifier: Apache-2.0 */
/**
 * An attempt: the things that one plan is asked to try. The maker of the plan fills it in; the passes read it and never
 * change it. Results of a pass are in the part of the plan that belongs to the pass.
 */
#ifndef GY_SCHEDULER_PLAN_ATTEMPT_H
#define GY_SCHEDULER_PLAN_ATTEMPT_H

#include "graph/graph.h"

/* Treatment of rows that do not fit: none; they are copied out and back; or made again where that may pay. */
typedef enum gy_spilling { GY_SPILL_OFF, GY_SPILL_COPY, GY_SPILL_REMAKE } gy_spilling;

/* How much stays of what persists in memories that overflow: nothing, half a memory, as much as leaves room for the
 * rest to come for one op at a time, for two or for three, all. */
typedef enum gy_persisting {
    GY_PERSIST_ANY, /* from the most to the least, the first that fits */
    GY_PERSIST_NONE,
    GY_PERSIST_HALF,
    GY_PERSIST_BESIDE_ONE,
    GY_PERSIST_BESIDE_TWO,
    GY_PERSIST_BESIDE_THREE,
    GY_PERSIST_ALL
} gy_persisting;

enum { GY_QUEUED = 5 };

/* How rows are spilled, where the attempt makes room. */
typedef struct gy_spill_way {
    gy_spilling spilling;
    gy_persisting persisting;
    bool ends;       /* of what persists, what is used first and last stays, if something does */
    uint32_t queued; /* 0: what is made faster than copied is made again; k: than its copies wait, and take, by k - 1
                        quarters of that (GY_QUEUED are tried) */
    bool late;       /* rows that were spilled come back no sooner than for the ops that are next */
    bool onward;     /* addresses go round a memory, so that rows come to where others left long ago */
    bool weigh;      /* what leaves is what takes least to come back, by the time that it is not asked for */
    bool walk;       /* addresses are given out by the walk of spilling even if nothing has to leave, so that rows come
                        ahead of their use, and none wait for what the packer put below them */
    bool gather_again; /* rows that live elsewhere can be dropped, and brought from there again: they are lowered so
                          (gathered.c), and collectives in place of copies stay */
    bool
        relayed; /* with gather_again: rows that go by way of another memory are in collectives, or this does not fit */
} gy_spill_way;

typedef struct gy_attempt {
    const struct gy_candidate *candidate; /* the placement that the policy "search" repeats; borrowed */
    const uint32_t *assigned;             /* per unit of load.h: the device that the search for the least load chose */
    uint32_t in_flight;                   /* starts that may overlap; more than 1 only for the objective "period" */
    uint32_t watch;                       /* a task whose candidates are kept, to be explained; or GY_NONE */
    gy_spill_way spill;
    bool make_room;           /* what does not fit is lowered for least memory, and then spilled */
    bool is_known_not_to_fit; /* with make_room: the ways that spill nothing are left out */
    bool spare_memory;        /* the last resort: gy_plan_scratch and gy_place_ranks say what is given up */
    bool keep_copies;         /* no collective is put in place of copies */
    bool prefer_collectives;  /* collectives are, also where copies may be faster if they are in nobody's way */
    bool keep_hops;           /* copies that go on from halfway stay copies */
    bool from_makers;         /* with prefer_collectives: rows come from where they were made, if that reaches */
    bool keep_single;         /* no launches are put together as batches */
    bool pack_copies;         /* small copies are */
    bool wait_everywhere;     /* placing lets a write wait for all that read what it overwrites, wherever they are */
    bool one_instance;        /* versions of rows do not take turns in two instances */
    uint32_t join_teams;      /* alike collectives are put together, in so many batches; 0: none are */
    bool replicate;           /* tasks are carried out on several devices where that may spare copies */
    bool settled;             /* planned so, and in no other of these ways */
    gy_ticks
        beat; /* the least makespan so far: what takes more than twice as long is planned in no other way; 0: none */
} gy_attempt;

#define GY_ATTEMPT_INIT                                                                                                \
    {                                                                                                                  \
        .in_flight = 1, .watch = GY_NONE                                                                               \
    }

/* How a draft is arranged: ordered, given lanes, and packed. */
typedef struct gy_arrangement {
    bool early;              /* copies are queued as soon as they can begin; else just before their rows are used */
    bool tight;              /* addresses are shared wherever positions allow, not only where it costs no waiting */
    bool last;               /* the draft is given up on the way, since nothing is to be done with it later */
    bool addressed;          /* spilling has chosen the addresses in memories of devices */
    uint32_t search_shorter; /* the search for offsets takes so many times fewer steps */
} gy_arrangement;

#endif
