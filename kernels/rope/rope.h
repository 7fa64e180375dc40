/* SPDX-License-Identifier: Apache-2.0 */
/* How the host version and the launcher of rope.cu take an array apart. */
#ifndef GY_KERNELS_ROPE_H
#define GY_KERNELS_ROPE_H

#include "kernels/manifest.h"
#include <stdbool.h>

enum { GY_ROPE_DIM, GY_ROPE_FIRST, GY_ROPE_LENGTH, GY_ROPE_BASE, GY_ROPE_SIGN, GY_ROPE_AXIS, GY_ROPE_X, GY_ROPE_Y };

/* Rows of `width` elements: what lies behind the axis of positions. Row r has position r % positions, from the first.
 */
typedef struct gy_rope_rows {
    int64_t rows, width, positions;
} gy_rope_rows;

/* False: x has no such axis. */
static inline bool gy_rope_rows_of(const gantry_launch *l, gy_rope_rows *r)
{
    const gantry_arg *x = &l->arg[GY_ROPE_X];
    int64_t axis = l->arg[GY_ROPE_AXIS].integer + (l->arg[GY_ROPE_AXIS].integer < 0 ? x->rank : 0);
    *r = (gy_rope_rows){ x->rows, gy_arg_width(x), x->rows };
    for (int64_t k = 1; k <= axis && axis < x->rank; k++) {
        r->positions = x->shape[k];
        r->rows *= r->positions;
        r->width = r->positions > 0 ? r->width / r->positions : 0;
    }
    return axis >= 0 && axis < x->rank;
}

#endif
