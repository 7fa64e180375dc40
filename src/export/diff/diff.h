/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Two schedules next to each other. Ops that do the same thing are pairs: launches, fills, host calls and collectives
 * of one node, one iteration and one count of repeats; copies of the same rows of the same value. Of several that could
 * be each other's those that agree in memories too come first, then those that come first in the order of ops.
 */
#ifndef GY_EXPORT_DIFF_H
#define GY_EXPORT_DIFF_H

#include "export/export.h"

typedef struct gy_diff_count {
    uint64_t ops, copies, bytes; /* bytes: of copies and collectives */
} gy_diff_count;

typedef struct gy_diff {
    gy_view a, b;
    uint32_t *match;              /* per op of b: that of a, or GY_NONE */
    uint8_t *matched;             /* per op of a */
    uint64_t pairs, moved;        /* moved: of a node, and on another device */
    gy_diff_count added, removed; /* without a partner */
    GY_VEC(uint32_t) changed;     /* ops of b that take another time than their partner, the largest change first */
} gy_diff;

gantry_status gy_diff_make(gy_diff *diff, const gantry_schedule *a, const gantry_schedule *b, gantry_error *err);
void gy_diff_free(gy_diff *diff);

/* Names of the devices on which an op runs: "gpu0", "-" for none. */
const char *gy_diff_device(const gantry_schedule *s, const gy_op *op);
/* Op i of b does what its partner does, somewhere else. */
bool gy_diff_is_moved(const gy_diff *diff, uint32_t i);
/* How long an op takes, and how much longer than its partner op i of b does. */
gy_ticks gy_diff_took(const gantry_schedule *s, uint32_t op);
gy_ticks gy_diff_change(const gy_diff *diff, uint32_t i);
/* Index of the device of that name; GY_NONE. */
uint32_t gy_diff_find_device(const gantry_machine *machine, const char *id);

void gy_diff_text(gy_text *to, const gy_diff *diff);
void gy_diff_report(gy_text *to, const gy_diff *diff); /* one JSON object */

#endif
