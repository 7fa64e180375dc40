/* SPDX-License-Identifier: Apache-2.0 */
/**
 * About how long what has no room in the memories would be under way, for an order of tasks and their devices: what the
 * model does not know, and what makes a placement poor where memory is short.
 *
 * Rows are cut into pieces wherever an access begins or ends. A piece of a constant or a state is in the memory of each
 * device that touches it, all the time; any other version of a piece from where it is made, or first read there, to
 * where it is last read. A task of a memory that would hold more than it has finds of its own pieces as large a part
 * missing: so much leaves, and comes back.
 */
#ifndef GY_SCHEDULER_SEARCH_ROOM_H
#define GY_SCHEDULER_SEARCH_ROOM_H

#include "scheduler/search/model.h"

typedef struct gy_room {
    const gy_model *m;
    size_t *first;  /* per task: its first use; tasks + 1 */
    uint32_t *use;  /* a piece, and what is done to it */
    uint64_t *size; /* per piece */
    bool *stays;    /* likewise: of a constant or a state */
    uint32_t pieces, memories;
    /* room to count in */
    uint64_t *needed; /* per piece: the memories in which it is used later, a bit each */
    uint32_t *uses;   /* pieces x memories: that are still to come */
    uint64_t *held;   /* per memory */
    gy_ticks *mib;    /* per memory: how long 1 MiB takes to leave and to come back */
} gy_room;

/* Without pieces where there would be too many of them, or more than 64 memories. E_NOMEM; gy_room_free in any case. */
gantry_status gy_room_make(gy_room *r, const gy_model *m, gantry_error *err);
void gy_room_free(gy_room *r);
/* 0 where all that is used fits. O(tasks + uses). */
gy_ticks gy_room_lack(gy_room *r, const uint32_t *order, const uint32_t *device);

#endif
