/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The trail of a decode: the state that it was in at places along the order, so that a placement that differs from some
 * task on is decoded from the last of these places before it. Each place has two states, that of the placement that was
 * kept last and that of the one at hand: a placement that is not kept leaves nothing behind.
 */
#ifndef GY_SCHEDULER_SEARCH_TRAIL_H
#define GY_SCHEDULER_SEARCH_TRAIL_H

#include "scheduler/search/model.h"

struct gy_decode;

typedef struct gy_trail {
    uint32_t stride;                       /* tasks from one place to the next */
    size_t words;                          /* of a state */
    gy_ticks *state;                       /* places x 2 x words */
    uint8_t *kept;                         /* per place: which of the two is of the placement that was kept */
    gy_ticks *finish, *arrived, *uploaded; /* of that placement, as in gy_decode and gy_traffic */
    uint32_t *before, *device;             /* device: where decodes choose it, else NULL */
    uint32_t end;
} gy_trail;

gantry_status gy_trail_init(gy_trail *t, const gy_model *m, gantry_error *err);
void gy_trail_free(gy_trail *t);
/* Notes the state of the decode before the task at that position, if that is one of the places. */
void gy_trail_note(struct gy_decode *d, uint32_t position);
/* Brings back the state at the last place up to that position, as it was with the placement that was kept; returns its
 * position. */
uint32_t gy_trail_return(struct gy_decode *d, uint32_t position);
/* Keeps what the decode made of the tasks from the position `from` on, and before all if `uploads`, or takes it back.
 */
void gy_trail_keep(struct gy_decode *d, const uint32_t *order, uint32_t from, bool uploads);
void gy_trail_drop(struct gy_decode *d, const uint32_t *order, uint32_t from, bool uploads);

#endif
