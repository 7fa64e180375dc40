/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes in use in one memory over time. */
#ifndef GY_SCHEDULE_MEMORY_PROFILE_H
#define GY_SCHEDULE_MEMORY_PROFILE_H

#include "schedule/schedule.h"

typedef struct gy_memory_step {
    gy_ticks time;
    uint64_t bytes; /* from then on */
} gy_memory_step;
typedef GY_VEC(gy_memory_step) gy_memory_profile;

/* When an op was carried out. */
typedef struct gy_op_span {
    gy_ticks start, end;
} gy_op_span;

/* Of the slab and staging of one memory, from time 0 on; an instance counts from the beginning of its first use to the
 * end of its last, a persistent one always. `span` is of each op; NULL: as predicted. false: out of memory. */
bool gy_memory_profile_make(gy_memory_profile *profile, const gantry_schedule *s, uint32_t memory,
                            const gy_op_span *span);

#endif
