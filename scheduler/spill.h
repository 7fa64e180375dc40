/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Spilling: a draft that needs more memory than there is becomes one that needs less, by ops that bring rows out of a
 * memory (GY_OP_EVICT) and back in before they are used (GY_OP_FETCH). One walk over the draft in its order:
 *
 *   - Where an op's instances do not fit beside what else its memory holds, instances leave whose next use is furthest
 *     (L. Belady, A Study of Replacement Algorithms for a Virtual-Storage Computer, IBM Systems Journal 5(2), 1966).
 *   - What can be had again is dropped: copies that were not changed since, of an input, of what persists, or of an
 *     instance that keeps these rows until they are needed; what was brought back and not changed, whose copy outside
 * is still there; rows that will be overwritten before they are read.
 *   - The rest is copied to the nearest memory of another device that has room until then, else to host memory.
 *   - Where even what persists is too much, some of it moves to host memory, is brought where it is used like an input,
 *     and taken back if it was changed.
 *
 * An instance that left and comes back is two instances; uses are renamed, and dependencies made anew from what ops do
 * to instances. The order of ops stays, so nothing is learned about time here.
 */
#ifndef GY_SCHEDULER_SPILL_H
#define GY_SCHEDULER_SPILL_H

#include "scheduler/lower.h"

/* How hard to try. */
typedef struct gy_spill_try {
    /* Of each memory's capacity that should be filled at most: the rest is for holes. 0: nothing stays in a memory from
     * one op to the next, so that there are no holes. */
    uint32_t sixteenths;
    uint32_t persists; /* of what persists in memories that overflow, how much stays there: 2 all, 1 half a memory, 0 */
} gy_spill_try;

/* The draft as it was before: a try can be taken back. */
typedef struct gy_spill_draft {
    GY_VEC(gy_instance) instance;
    GY_VEC(gy_draft) draft;
    GY_VEC(gy_use) use;
    gy_edges edges;
} gy_spill_draft;

/*
 * Rewrites the draft so that no memory holds more than its share at any op. E_CAPACITY when an op's instances alone are
 * too much, or nothing more can leave; the draft is then not to be used. `from` is the draft to begin with, which stays
 * as it is. *moved: something was evicted, dropped or fetched.
 */
gantry_status gy_plan_spill(gy_plan *p, const gy_spill_draft *from, const gy_spill_try *how, bool *moved,
                            gantry_error *err);

/* ---- inside: decisions (spill.c), the book of memories (spill_room.c), the new draft (spill_emit.c) ---- */

typedef GY_VEC(uint32_t) gy_ids;

typedef struct gy_spill_use {
    uint32_t op, use; /* of the old draft */
} gy_spill_use;

/* What an instance of the old draft holds, and where that is now. */
typedef struct gy_held {
    uint32_t first, last; /* ops of the old draft that use it first and last; GY_NONE: none do */
    uint32_t next;        /* index of its next use in gy_spill.uses */
    uint64_t bytes;       /* rounded up */
    bool ours;            /* can leave its memory */
    bool booked;          /* its bytes are booked from the op at hand to its last */
    bool listed;          /* in gy_spill.there of its memory */
    uint32_t now;         /* new instance in its own memory, GY_NONE: not there */
    int64_t lo, hi;       /* rows that something wrote */
    uint32_t writes;      /* so far */
    uint32_t home;        /* new instance in host memory that it persists in, GY_NONE */
    uint32_t backing;     /* new instance elsewhere that has the rows; GY_NONE once something is written here */
    uint32_t lodge;       /* memory of the backing */
    uint32_t until;       /* its bytes are booked there up to that op */
    uint32_t lodged;      /* memory whose list of gy_spill.lodged it is in, GY_NONE */
    uint32_t source, source_writes; /* old instance that the rows were copied from, and its writes then; GY_NONE */
    uint32_t from; /* it left, and comes back from where this old instance is then; GY_NONE: from the backing */
    uint32_t keep; /* others count on the rows up to that op, GY_NONE: nobody */
} gy_held;

/* A tree of largest values, for adding to and asking about ranges in O(log n). */
typedef struct gy_levels {
    int64_t *most, *added;
} gy_levels;

typedef struct gy_spill {
    gy_plan *p;
    gy_lower lower; /* of the new draft: histories */
    const gy_spill_draft *old;
    gy_spill_try how;
    gy_held *held;      /* per old instance */
    gy_spill_use *uses; /* grouped by instance, rising: those of x are uses[use_first[x]] ... */
    uint32_t *use_first;
    gy_levels *load;    /* per memory: bytes at each old op */
    uint64_t *capacity; /* per memory: what may be filled */
    gy_ids *there;      /* per memory: old instances that are there, or were */
    gy_ids *lodged;     /* per memory: old instances of other memories that have a backing there, or had */
    uint32_t *seen;     /* per old instance: 1 + the op at hand, which it must not move for, or could not */
    uint32_t *stuck;    /* the same for what lodges */
    uint32_t reader;    /* memory of the op at hand, if that is a copy which reads rows where they lodge; GY_NONE */
    uint32_t *wants;    /* per old instance: 1 + the op at hand that has it in `needed` */
    gy_ids needed;      /* old instances of the op at hand that are ours and must be there */
    gy_ids homes;       /* new instances */
    gy_map task_of;     /* node and iteration -> task */
    uint32_t *task_draft, *after_stamp; /* per task: its new draft; per node: marks */
    bool direct; /* every two memories with devices, and host memory, have direct routes both ways */
    bool moved;
} gy_spill;

/* Can one copy bring rows there? */
bool gy_spill_reach(const gy_spill *w, uint32_t from, uint32_t to);
static inline const gy_instance *gy_spill_old(const gy_spill *w, uint32_t x)
{
    return &w->old->instance.at[x];
}

/* ---- spill_room.c: uses, lives, and bytes over the ops ---- */
gantry_status gy_spill_open(gy_spill *w, gantry_error *err);
void gy_spill_close(gy_spill *w);
void gy_spill_book(gy_spill *w, uint32_t memory, uint32_t first, uint32_t last, uint64_t bytes);
void gy_spill_unbook(gy_spill *w, uint32_t memory, uint32_t first, uint32_t last, uint64_t bytes);
uint64_t gy_spill_load(const gy_spill *w, uint32_t memory, uint32_t first, uint32_t last); /* the most */
bool gy_spill_has_room(const gy_spill *w, uint32_t memory, uint32_t first, uint32_t last, uint64_t bytes);

/* ---- spill_emit.c ---- */
/* An inserted copy between new instances; EVICT or FETCH. */
gantry_status gy_spill_copy(gy_spill *w, gy_op_kind kind, uint32_t from, uint32_t to, int64_t first, int64_t last,
                            gantry_error *err);
/* A new instance elsewhere for the rows that the old one has. */
gantry_status gy_spill_lodge(gy_spill *w, uint32_t x, uint32_t memory, uint32_t *id, gantry_error *err);
/* The new instance that is the old one, made if there is none. */
gantry_status gy_spill_here(gy_spill *w, uint32_t x, gantry_error *err);
/* Old op i, its uses renamed. `source`: the new instance that a copy reads instead, or GY_NONE. */
gantry_status gy_spill_op(gy_spill *w, uint32_t i, uint32_t source, gantry_error *err);

#endif
