/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of rule ranks: check_parts.c is its entry, check_messages.c looks at messages. */
#ifndef GY_SCHEDULE_CHECK_PARTS_H
#define GY_SCHEDULE_CHECK_PARTS_H

#include "schedule/check/check.h"
#include "schedule/part.h"

typedef struct gy_fitting {
    const gantry_schedule *s;
    const gy_part *part;
    uint32_t ranks;
    gantry_error *err;
    uint32_t *at;    /* per rank: its next step */
    uint32_t *ended; /* per rank: the place of its rows in `clock` */
    uint32_t *clock; /* per step of all ranks and queue: 1 + the last step that has ended when this one has */
    size_t *first;   /* per rank: its first row of `clock` */
    uint32_t *lane_first, *lane_entry; /* per lane: its entries of op_lane, in the order of ops */
    uint32_t *op_of;                   /* per entry of op_lane */
    uint32_t *latest;  /* per rank and entry: 1 + the latest step of that lane up to it; 0: the rank has none */
    uint32_t *carrier; /* per op and end, the rank that sends and the one that receives: 1 + the step there that moves
                          the rows of a copy between ranks; 0: none does */
    gy_clocks clocks;
} gy_fitting;

/* "rule ranks: op 3 "..." WHAT on rank 1". */
gantry_status gy_parts_stuck(const gy_fitting *f, uint32_t op, const char *what, uint32_t rank);
/* The rank that has what a use touches: that of its memory, but of arrays that each rank has itself. */
uint32_t gy_parts_rank(const gy_fitting *f, const gy_op *op, uint32_t k);

/* check_messages.c: all messages meet, however fast ranks are, and are those that have to be there. Fills `carrier`. */
gantry_status gy_parts_exchange(gy_fitting *f);

#endif
