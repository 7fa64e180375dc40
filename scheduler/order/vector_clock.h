/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Vector clocks over lanes: what is known to have ended when an op begins. Ops are visited in the order of their
 * positions; an op's tick is its position + 1, in each of its lanes.
 *
 * Clocks are kept for ops that somebody may still wait for: not for those that every lane knows to have ended, because
 * whatever comes next knows it from its lane. Where lanes wait for each other often, these are few.
 */
#ifndef GY_SCHEDULER_ORDER_VECTOR_CLOCK_H
#define GY_SCHEDULER_ORDER_VECTOR_CLOCK_H

#include "scheduler/plan/plan.h"

typedef struct gy_vector_clock {
    const gantry_schedule *s;
    size_t lanes;
    uint32_t *at; /* clocks of the ops from `first` on, `count` of them, lanes entries each; room for `room` */
    size_t first, count, room;
    uint32_t *lane_at; /* per lane: the clock of its last op so far */
    uint32_t *last;    /* per lane: position + 1 of that op; 0: none */
    uint32_t *now;     /* clock of the current op before it begins */
    uint32_t *known;   /* per lane: room for what all lanes know of it */
} gy_vector_clock;

bool gy_vector_clock_init(gy_vector_clock *c, const gantry_schedule *s); /* false: out of memory */
void gy_vector_clock_free(gy_vector_clock *c);
/* The op at `position` comes next: `now` is what the order of its lanes gives. */
void gy_vector_clock_begin(gy_vector_clock *c, uint32_t position);
/* The current op waits for `from`, which it does not know to have ended. */
void gy_vector_clock_wait(gy_vector_clock *c, uint32_t from);
/* Has `from` ended before the current op begins? */
bool gy_vector_clock_has(const gy_vector_clock *c, uint32_t from);
bool gy_vector_clock_end(gy_vector_clock *c, uint32_t position); /* false: out of memory */

#endif
