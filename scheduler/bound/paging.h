/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Rows that have to be in memory over stretches of a chain of tasks, where they have room or not: the inside of the
 * bound of moved bytes (bound_moved.c).
 */
#ifndef GY_SCHEDULER_BOUND_PAGING_H
#define GY_SCHEDULER_BOUND_PAGING_H

#include "base/vec.h"
#include <stdint.h>

/* Bytes that are used before task `first` of the chain and after task `last`, and by none of those between. */
typedef struct gy_stay {
    int64_t bytes;
    uint32_t first, last;
} gy_stay;
typedef GY_VEC(gy_stay) gy_stays;

typedef struct gy_paging {
    uint32_t length;  /* of the chain */
    int64_t *room;    /* per task of the chain: what it leaves to rows that it does not use */
    int64_t *staying; /* room for a sweep: bytes by the last task that they stay for; 0 */
    uint64_t steps;   /* taken so far */
} gy_paging;

/* By the first task. false: out of memory. */
bool gy_stays_sort(gy_stays *stays);
/* The least bytes that cannot stay, parts of rows included: at each task those go that are used last (L. Belady, IBM
 * Systems Journal 5(2), 1966; for intervals: M. C. Carlisle, E. L. Lloyd, Discrete Applied Mathematics 59, 1995). */
int64_t gy_paging_missed(gy_paging *x, const gy_stays *stays);

#endif
