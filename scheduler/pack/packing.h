/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Packing. First what persists, at the bottom of each slab, for good (pack.c). Then either loosely (pack_sweep.c): an
 * instance takes over the bytes of one of its size if every use of that one has ended before it begins anyway, else
 * fresh bytes. Or, when that is too much, tightly (pack_tight.c): by positions alone, best fit, and where that leaves
 * holes that there is no room for, by search (pack_offsets.c). Whatever the way, a sweep over the ops makes reuse of
 * bytes a dependency: all uses of the one instance before each write of the other. Where starts overlap (`in_flight` of
 * the plan), what persists is followed by that many windows of one size; all this happens in the first of them.
 * pack_refuse.c says why it cannot be done. A *store* is a memory's slab; the last one is the staging space.
 */
#ifndef GY_SCHEDULER_PACK_PACKING_H
#define GY_SCHEDULER_PACK_PACKING_H

#include "scheduler/order/vector_clock.h"

/* The last op of a lane that used an instance. */
typedef struct gy_last_use {
    uint32_t lane, op;
    struct gy_last_use *next;
} gy_last_use;

typedef struct gy_life {
    uint32_t store;       /* GY_NONE: not ours to place */
    uint32_t first, last; /* positions of the first and last use */
    uint64_t bytes;       /* rounded up to the alignment */
    gy_last_use *uses;
    const uint32_t *before; /* count, then the instances whose bytes it takes over; NULL: none */
} gy_life;

typedef struct gy_pack {
    gy_plan *p;
    const gy_arrangement *how;
    gantry_schedule *s;
    uint32_t stores;
    gy_life *life;   /* per instance */
    uint64_t *used;  /* per store: end of the bytes that were given out, to the first of the starts that overlap */
    uint64_t *fixed; /* per store: of these, what all starts share: what persists. The rest they have each */
    uint32_t *start; /* instances that we place, by first use: those of position i are start[start_first[i] ...) */
    uint32_t *end;   /* the same by last use; without what persists */
    size_t *start_first, *end_first;
    gy_arena arena;
} gy_pack;

static inline bool gy_pack_persists(const gy_pack *k, uint32_t instance)
{
    return k->s->instances.at[instance].role == GY_ROLE_PERSIST;
}
/* The offsets of what does not persist there are decided. */
static inline bool gy_pack_is_given(const gy_pack *k, uint32_t store)
{
    return k->how->addressed && store > 0 && store < k->stores - 1; /* GY_NONE: not ours */
}
/* How far `used` may go. The staging space shares the host memory with the slab there. */
uint64_t gy_pack_limit(const gy_pack *k, uint32_t store);

/* Makes the dependencies of reuse; with `loose`, chooses offsets on the way. */
gantry_status gy_pack_sweep(gy_pack *k, bool loose, gantry_error *err);
/* Offsets of all that does not persist. */
gantry_status gy_pack_tight(gy_pack *k, gantry_error *err);
/* Most bytes that are there at one op: no offsets do with less. */
uint64_t gy_pack_load(const gy_pack *k, uint32_t store);
/* Offsets for one store that they overfill: others if there are some that fit, else all stays as it is. */
gantry_status gy_pack_offsets(gy_pack *k, uint32_t store, gantry_error *err);
/* E_CAPACITY for a store that needs too much: where, how much, what is there. */
gantry_status gy_pack_refuse(gy_pack *k, uint32_t store, gantry_error *err);

#endif
