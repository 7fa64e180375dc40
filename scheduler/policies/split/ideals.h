/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Ideals (downsets) of an acyclic order of units: sets that with a unit hold all that must be before it. A cut of a
 * graph into consecutive parts is a chain of ideals. Listed by rising size; the first is empty, the last has all units.
 */
#ifndef GY_SCHEDULER_POLICIES_SPLIT_IDEALS_H
#define GY_SCHEDULER_POLICIES_SPLIT_IDEALS_H

#include "base/vec.h"
#include <stdint.h>

/* The precedence of units: before[first[u] .. first[u + 1]) are before u. Acyclic. */
typedef struct gy_precedence {
    uint32_t units;
    uint32_t *first, *before;
    uint32_t *order; /* all units, each after those before it */
} gy_precedence;

/* A step down: this ideal without units[unit .. unit + units) is `ideal`. */
typedef struct gy_ideal_step {
    uint32_t ideal, unit, units;
} gy_ideal_step;

typedef struct gy_ideals {
    uint32_t count;
    GY_VEC(uint32_t) first; /* count + 1: steps down from ideal i are step[first[i] .. first[i + 1]) */
    GY_VEC(gy_ideal_step) step;
    GY_VEC(uint32_t) unit;
} gy_ideals;

typedef enum gy_ideals_result { GY_IDEALS_ALL, GY_IDEALS_TOO_MANY, GY_IDEALS_NOMEM } gy_ideals_result;

/* All of them, unless there are more than `most`: then `out` is empty. */
gy_ideals_result gy_ideals_all(gy_ideals *out, const gy_precedence *order, uint32_t most);
/* Only those along the line `order->order`, of which at most `most` (>= 2), evenly spaced. false: out of memory. */
bool gy_ideals_line(gy_ideals *out, const gy_precedence *order, uint32_t most);
void gy_ideals_free(gy_ideals *ideals);

#endif
