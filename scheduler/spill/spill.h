/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Spilling: a draft that needs more memory than there is becomes one that needs less, by ops that bring rows out of a
 * memory (GY_OP_EVICT) and back in before they are used (GY_OP_FETCH), or make them again (gy_op.repeat). One walk over
 * the draft in its order:
 *
 *   - Where an op's instances do not fit beside what else its memory holds, instances leave whose next use is furthest
 *     (L. Belady, A Study of Replacement Algorithms for a Virtual-Storage Computer, IBM Systems Journal 5(2), 1966).
 *   - What can be had again is dropped: copies that were not changed since, of an input, of what persists, or of an
 *     instance that keeps these rows until they are needed; what was brought back and not changed, whose copy outside
 *     is still there; rows that will be overwritten before they are read.
 *   - Rows that a node can make again in less time than they take out and back are dropped too, as long as what it
 *     reads can be had then (spill_remake.c).
 *   - The rest is copied to the nearest memory of another device that has room until then, else to host memory.
 *   - Where even what persists is too much, some of it moves to host memory, is brought where it is used like an input,
 *     and taken back if it was changed.
 *
 * Addresses in the memories of devices are given out on the way (spill_blocks.c), so that what leaves is what lies side
 * by side, and there is a hole where one is needed. Rows come, and room is made, some time before they are used
 * (spill_ahead.c): copies then go beside the computing. If that fails, since what one op uses lies too scattered, the
 * same is done by bytes alone, and addresses are left to the packer.
 *
 * An instance that left and comes back is two instances; uses are renamed, and dependencies made anew from what ops do
 * to instances. The order of ops stays.
 */
#ifndef GY_SCHEDULER_SPILL_SPILL_H
#define GY_SCHEDULER_SPILL_SPILL_H

#include "scheduler/lower/lowering.h"

/* How to try. */
typedef struct gy_spill_try {
    bool addressed; /* addresses are given out here; else `sixteenths` counts */
    /* Of each memory's capacity that should be filled at most: the rest is for holes. 0: nothing stays in a memory from
     * one op to the next, so that there are no holes. */
    uint32_t sixteenths;
    gy_persisting persists;
    bool remake; /* nodes may be repeated */
    const gy_spill_way *way;
} gy_spill_try;

/*
 * Rewrites the draft so that no memory holds more than its share at any op. E_CAPACITY when an op's instances alone are
 * too much, or nothing more can leave; the draft is then not to be used. `from` is the draft to begin with, which stays
 * as it is. `spilled` of the plan is filled in any case.
 */
gantry_status gy_plan_spill(gy_plan *p, const gy_draft *from, const gy_spill_try *how, gantry_error *err);

/* ---- inside: the walk (spill.c), who leaves and where to (spill_leave.c), what each memory holds over the ops
 * (spill_room.c), the new draft (spill_emit.c) ---- */

typedef GY_VEC(uint32_t) gy_ids;

typedef struct gy_spill_use {
    uint32_t op, use; /* of the old draft */
} gy_spill_use;

/* Rows of an instance that a copy brought from another one: that one, its writes then, and the next piece. */
typedef struct gy_spill_piece {
    uint32_t source, writes, next;
    int64_t first, last;
} gy_spill_piece;

/* An instance of the old draft: the rows that it has, and where they are now. */
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
    uint32_t pieces;                /* the first of those that make up its rows, if all were copied; GY_NONE */
    bool pieced;                    /* it left, and comes back in pieces */
    bool stays;                     /* never leaves: what was gathered from it may */
    uint32_t from; /* it left, and comes back from where this old instance is then; GY_NONE: from the backing */
    uint32_t keep; /* copies from it count on the rows up to that op, GY_NONE: nobody */

    /* making again */
    uint32_t maker, maker_writes; /* op that wrote all its rows, and `writes` then; GY_NONE: it cannot be repeated */
    uint32_t written;             /* the op that wrote some of its rows last */
    uint32_t needed; /* nodes that are to be repeated count on it, in its memory, up to that op; GY_NONE: nobody */
    uint32_t soon;   /* the first op known to ask for that; GY_NONE */
    bool remake;     /* it left, and will be made again */
    uint32_t pins;   /* it must not move */
} gy_held;

/* A range of a memory that an old instance has: as itself, or lodging there. */
typedef struct gy_block {
    uint64_t offset, bytes;
    uint32_t x, instance; /* old; new */
} gy_block;

/* The addresses of a memory that are given out. */
typedef struct gy_ground {
    GY_VEC(gy_block) at; /* by offset */
    uint64_t floor, end; /* above what persists */
    bool ours;           /* else only bytes are counted */
    /* A hole that was found, before block `hole`, and for how much; 0 bytes: none, or something came since. */
    size_t hole;
    uint64_t hole_offset, hole_bytes;
    uint64_t onward; /* the end of what was given out last */
} gy_ground;

/* A tree of largest values, for adding to and asking about ranges in O(log n). */
typedef struct gy_spill_levels {
    int64_t *most, *added;
} gy_spill_levels;

typedef struct gy_spill {
    gy_plan *p;
    gy_lower lower; /* of the new draft: hazards */
    const gy_draft *old;
    gy_spill_try how;
    gy_held *held;      /* per old instance */
    gy_spill_use *uses; /* grouped by instance, rising: those of x are uses[use_first[x]] ... */
    uint32_t *use_first;
    gy_spill_levels *load; /* per memory: bytes at each old op */
    uint64_t *capacity;    /* per memory: what may be filled */
    gy_ids *there;         /* per memory: old instances that are there, or were */
    gy_ids *lodged;        /* per memory: old instances of other memories that have a backing there, or had */
    uint32_t *seen;        /* per old instance: 1 + the op at hand, which it could not leave for */
    uint32_t *stuck;       /* the same for what lodges */
    uint32_t reader;       /* memory of the op at hand, if that is a copy which reads rows where they lodge; GY_NONE */
    uint32_t *wants;       /* per old instance: 1 + the op at hand that has it in `needs` */
    gy_ids needs;          /* old instances of the op at hand that are ours and must be there */
    gy_ids pinned;         /* those with pins, one entry each */
    gy_ids homes;          /* new instances */
    gy_map task_of;        /* node and iteration -> task */
    uint32_t *task_draft, *after_stamp; /* per task: its new draft; per node: marks */
    gy_ground *ground;                  /* per memory */
    gy_ids nearest;                     /* scratch of spill_blocks.c */
    gy_ids leaving;
    gy_ids lack;             /* scratch of spill_ahead.c */
    uint32_t ahead;          /* first op that nothing was done for yet */
    gy_ticks *begin, *clock; /* per old op: when its device comes to it, if it never waits; per device: where it is */
    gy_ticks *sent;          /* per memory: when what was sent out of it is out, by the clock of its device */
    GY_VEC(gy_spill_piece) piece;
    gy_ids again; /* scratch of gy_spill_remake */
    size_t remade;
    bool alone;
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
/* From op i to the instance's last, unless it is booked. */
void gy_spill_book_from(gy_spill *w, uint32_t x, uint32_t i);
bool gy_spill_has_room(const gy_spill *w, uint32_t memory, uint32_t first, uint32_t last, uint64_t bytes);

/* ---- spill_persist.c: what persists and is too much moves to host memory ---- */
gantry_status gy_spill_lighten(gy_spill *w, gantry_error *err);

/* ---- spill_leave.c ---- */
/* The op that uses the instance next, GY_NONE: none; where it is asked for to make others again, too. */
uint32_t gy_spill_next(const gy_spill *w, uint32_t x, uint32_t i);
/* The next op that changes it, GY_NONE: none. Looks no further than op `limit`. */
uint32_t gy_spill_next_write(const gy_spill *w, uint32_t x, uint32_t limit);
bool gy_spill_is_wanted(const gy_spill *w, uint32_t x, uint32_t i);
/* The new instance that has the rows. */
uint32_t gy_spill_rows(const gy_spill *w, uint32_t x);
/* Will what the rows were copied from still have them at op j? Does the copy outside last until then, or can it? */
bool gy_spill_comes_again(const gy_spill *w, uint32_t x, uint32_t j);
/* The same of what is made up of pieces: their sources stay where they are. */
bool gy_spill_comes_in_pieces(const gy_spill *w, uint32_t x, uint32_t j);
bool gy_spill_keeps_backing(gy_spill *w, uint32_t x, uint32_t i, uint32_t j);
/* Takes what was changed home. */
gantry_status gy_spill_go_home(gy_spill *w, uint32_t x, uint32_t i, gantry_error *err);
/* The time that it takes at least to leave and come back. */
gy_ticks gy_spill_price(const gy_spill *w, uint32_t x);
/* Makes an instance leave its memory before op i. What another memory lodged goes on to host memory. *gone: it could.
 */
gantry_status gy_spill_leave(gy_spill *w, uint32_t x, uint32_t i, bool *gone, gantry_error *err);
gantry_status gy_spill_move_on(gy_spill *w, uint32_t x, uint32_t i, bool *gone, gantry_error *err);
/* By bytes: until what is booked in the memory at op i fits. */
gantry_status gy_spill_make_room(gy_spill *w, uint32_t memory, uint32_t i, gantry_error *err);
/* E_CAPACITY: everything else is out of the way, and it is still too much. */
gantry_status gy_spill_cannot(gy_spill *w, uint32_t memory, uint32_t i, gantry_error *err);

/* ---- spill_blocks.c ---- */
bool gy_spill_has_hole(gy_spill *w, uint32_t memory, uint32_t i, uint64_t bytes);
/* Gives the new instance, of old instance x, an address in its memory, where there is a hole: at op i. */
gantry_status gy_spill_settle(gy_spill *w, uint32_t x, uint32_t instance, uint32_t i, gantry_error *err);
/* Makes a hole before op i. Nothing leaves that is used before op `from`. *made: there is one. */
gantry_status gy_spill_make_hole(gy_spill *w, uint32_t memory, uint32_t i, uint32_t from, uint64_t bytes, bool *made,
                                 gantry_error *err);

/* ---- spill.c ---- */
/* Room for an instance before op i, by what is not used before op `from`. *made: there is; E_CAPACITY if there is not
 * and `from` is i. */
gantry_status gy_spill_make_way(gy_spill *w, uint32_t x, uint32_t i, uint32_t from, bool *made, gantry_error *err);
/* The instance is in its memory before op i, with its rows, if anybody wants them. *came, `from`: the same. */
gantry_status gy_spill_come(gy_spill *w, uint32_t x, uint32_t i, uint32_t from, bool *came, gantry_error *err);
/* The same for one that is to be made again. */
gantry_status gy_spill_remake(gy_spill *w, uint32_t x, uint32_t i, gantry_error *err);
bool gy_spill_pin(gy_spill *w, uint32_t x);
/* But for the first `count` pins. */
void gy_spill_unpin(gy_spill *w, size_t count);
static inline bool gy_spill_is_copy(const gy_op *op)
{
    return op->kind == GY_OP_COPY && op->node == GY_NONE;
}

/* ---- spill_ahead.c ---- */
gantry_status gy_spill_begin_ahead(gy_spill *w, gantry_error *err);
/* After op i: room and rows for the ops that follow soon. */
gantry_status gy_spill_look_ahead(gy_spill *w, uint32_t i, gantry_error *err);

/* ---- spill_remake.c ---- */
/* Op i has written the rows of one of its uses: can they be made again so? */
void gy_spill_note_maker(gy_spill *w, uint32_t i, const gy_use *u);
/* The time until what is sent out of the memory now begins to go. */
gy_ticks gy_spill_queue(const gy_spill *w, uint32_t memory);
/* Before op i: is it better to make the rows again at op j than to bring them out and back? Then all is noted. */
bool gy_spill_plan_remake(gy_spill *w, uint32_t x, uint32_t i, uint32_t j);

/* A collective that was found writes, where it is carried out again, only what is to be made again so. Not this use? */
bool gy_spill_is_spared(const gy_spill *w, uint32_t maker, const gy_use *u);

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
/* The same once more, with the uses of w->again: their numbers, rising. */
gantry_status gy_spill_repeat(gy_spill *w, uint32_t i, gantry_error *err);

#endif
