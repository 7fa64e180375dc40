/* SPDX-License-Identifier: Apache-2.0 */
/* How much is in use over time: each change is from some time on; the most that there will be takes O(log n) to find,
 * whatever order the changes come in. */
#ifndef GY_SCHEDULER_POLICIES_LIST_PROFILE_H
#define GY_SCHEDULER_POLICIES_LIST_PROFILE_H

#include "base/ticks.h"
#include "base/vec.h"
#include <stdbool.h>

/* A treap (Aragon and Seidel 1989) by time; the weights are a fixed sequence. `most`: of the sums of what is in the
 * subtree up to each of its changes. */
typedef struct gy_profile_change {
    gy_ticks time;
    int64_t delta, sum, most;
    uint64_t weight;
    uint32_t left, right;
} gy_profile_change;

typedef struct gy_profile {
    GY_VEC(gy_profile_change) at; /* entry 0 is nobody */
    uint32_t root;
} gy_profile;

bool gy_profile_init(gy_profile *u); /* 0 all the time; false: out of memory */
void gy_profile_free(gy_profile *u);
bool gy_profile_add(gy_profile *u, gy_ticks from, int64_t delta); /* false: out of memory */
int64_t gy_profile_most(const gy_profile *u, gy_ticks from);

#endif
