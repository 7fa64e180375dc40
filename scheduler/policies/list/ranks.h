/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Ranks: how much work hangs on a task, over devices that differ. A task's time is one figure for all devices (mean,
 * least, most or median), a transfer's time the mean over all ordered pairs of them. With p devices all of it is kept
 * times 2 p (p - 1): nothing is divided, and every compiler orders tasks alike. (Only where a task can run on some of
 * the devices its mean is rounded, to a whole number of these units.)
 */
#ifndef GY_SCHEDULER_POLICIES_LIST_RANKS_H
#define GY_SCHEDULER_POLICIES_LIST_RANKS_H

#include "scheduler/plan/plan.h"

__extension__ typedef __int128 gy_rank;

typedef enum { GY_BY_MEAN, GY_BY_LEAST, GY_BY_MOST, GY_BY_MEDIAN } gy_rank_by;

typedef struct gy_ranks {
    const gy_plan *p;
    gy_rank_by by;
    gy_rank scale;    /* 2 p (p - 1), 2 for one device */
    gy_ticks *sorted; /* room for the times of one task */
    gy_map transfer;  /* bytes -> sum over ordered pairs of devices: most transfers have one of a few sizes */
} gy_ranks;

bool gy_ranks_init(gy_ranks *r, const gy_plan *p, gy_rank_by by); /* false: out of memory */
void gy_ranks_free(gy_ranks *r);

gy_rank gy_ranks_time(gy_ranks *r, uint32_t task);
/* false: out of memory, here and below. */
bool gy_ranks_transfer(gy_ranks *r, const gy_dep *dep, gy_rank *time);
/* Per task, its time plus the largest, over its successors, of transfer plus rank (upward rank); without `transfers`
 * these count nothing (static level). O(tasks p log p + dependencies). */
bool gy_ranks_up(gy_ranks *r, bool transfers, gy_rank *rank);
/* Per task the largest, over its predecessors, of rank plus time plus transfer (downward rank). */
bool gy_ranks_down(gy_ranks *r, gy_rank *rank);

/* The upward ranks of all tasks, by one kind of time: yours, gy_free. NULL: out of memory. */
gy_rank *gy_upward_ranks(const gy_plan *p, gy_rank_by by);
/* For qsort_r over task numbers, with the ranks as context: falling rank, then number. */
int gy_by_falling_rank(const void *a, const void *b, void *ranks);

#endif
