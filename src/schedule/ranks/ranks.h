/* SPDX-License-Identifier: Apache-2.0 */
/* Cutting a schedule into the parts of ranks (schedule/part.h). */
#ifndef GY_SCHEDULE_RANKS_RANKS_H
#define GY_SCHEDULE_RANKS_RANKS_H

#include "schedule/part.h"

/* The part of one rank. A schedule without phases. Rows of the sync table that reach into later starts are left out:
 * each rank begins a start when its part of the one before has ended. gy_part_free, also after an error. */
gantry_status gy_part_make(gy_part *part, const gantry_schedule *s, uint32_t rank, gy_part_queues by,
                           gantry_error *err);
void gy_part_free(gy_part *part);

#endif
