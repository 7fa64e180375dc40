/* SPDX-License-Identifier: Apache-2.0 */
/* Cutting a schedule into the parts of ranks (schedule/part.h). */
#ifndef GY_SCHEDULE_RANKS_RANKS_H
#define GY_SCHEDULE_RANKS_RANKS_H

#include "schedule/part.h"

/* The part of one rank; `own`: see gy_part. A schedule without phases. Rows of the sync table that reach into later
 * starts are left out: each rank begins a start when its part of the one before has ended. gy_part_free, also after an
 * error. */
gantry_status gy_part_make(gy_part *part, const gantry_schedule *s, uint32_t rank, gy_part_queues by,
                           const uint8_t *own, gantry_error *err);
void gy_part_free(gy_part *part);

/* Rows of the sync table of distance 0, by the op that waits: those of op i are row[first[i]] to row[first[i + 1] - 1].
 */
typedef struct gy_part_rows {
    uint32_t *first, *row;
} gy_part_rows;
/* Finds copies that are packed. head: per op, the one whose step carries its message, or GY_NONE. before: per op of a
 * group, on whatever ranks, 1 + the one of the group before it in its lane, or 0. False: no memory. */
bool gy_packs_find(uint32_t *head, uint32_t *before, const gy_part *part, const gantry_schedule *s,
                   const gy_part_rows *rows);

/* Adds GY_OWN_OUTPUT for outputs whose rows each are written by ops of one rank only, whatever happens, and read by
 * none. `own`: per buffer of the graph. */
gantry_status gy_own_outputs(uint8_t *own, const gantry_schedule *s, gantry_error *err);
/* Rows of an own output that ops of a rank write. */
typedef struct gy_own_rows {
    uint32_t buffer, rank;
    int64_t first, last;
} gy_own_rows;
typedef GY_VEC(gy_own_rows) gy_own_list;
/* All of them, by buffers and rows. gy_vec_free, also after an error. */
gantry_status gy_own_list_make(gy_own_list *list, const uint8_t *own, const gantry_schedule *s, gantry_error *err);
/* The rows of an input from the first to the last that the rank reads from an array of its own; 0 and 0: none. */
void gy_own_input_rows(const gantry_schedule *s, const uint8_t *own, uint32_t rank, uint32_t buffer, int64_t *first,
                       int64_t *last);

#endif
