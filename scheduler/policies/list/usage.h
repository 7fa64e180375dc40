/* SPDX-License-Identifier: Apache-2.0 */
/* How much is in use over time: each change is from some time on; the most that there will be takes O(log n) to find,
 * whatever order the changes come in. */
#ifndef GY_SCHEDULER_POLICIES_LIST_USAGE_H
#define GY_SCHEDULER_POLICIES_LIST_USAGE_H

#include "base/ticks.h"
#include "base/vec.h"
#include <stdbool.h>

/* A treap (Aragon and Seidel 1989) by time; the weights are a fixed sequence. `most`: of the sums of what is in the
 * subtree up to each of its changes. */
typedef struct gy_usage_change {
    gy_ticks time;
    int64_t delta, sum, most;
    uint64_t weight;
    uint32_t left, right;
} gy_usage_change;

typedef struct gy_usage {
    GY_VEC(gy_usage_change) at; /* entry 0 is nobody */
    uint32_t root;
} gy_usage;

bool gy_usage_init(gy_usage *u); /* 0 all the time; false: out of memory */
void gy_usage_free(gy_usage *u);
bool gy_usage_add(gy_usage *u, gy_ticks from, int64_t delta); /* false: out of memory */
int64_t gy_usage_most(const gy_usage *u, gy_ticks from);

#endif
