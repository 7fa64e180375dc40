/* SPDX-License-Identifier: Apache-2.0 */
/* How the host version and the launcher of transpose.cu take arrays apart. */
#ifndef GY_KERNELS_TRANSPOSE_H
#define GY_KERNELS_TRANSPOSE_H

#include "kernels/manifest.h"
#include <stdbool.h>

enum { GY_TRANSPOSE_AXIS, GY_TRANSPOSE_X, GY_TRANSPOSE_Y };

/* So many matrices, one behind the other, of cells of so many bytes: what lies behind the second of the axes that
 * change places. */
typedef struct gy_transposition {
    int64_t arrays, rows, columns, cell;
} gy_transposition;

/* An axis of x or y; of those that a region may have less of, its own rows. */
static inline int64_t gy_transpose_extent(const gantry_arg *a, int64_t axis)
{
    return axis ? a->shape[axis] : a->rows;
}

/*
 * With axis 0, columns of x are its second axis; of a matrix that becomes several, [n, heads * d] to [heads, n, d], as
 * many as y has rows. With axis 1, so it is of each of the arrays that axis 0 counts; a matrix has them below each
 * other, [arrays * n, heads * d] to [arrays, heads, n, d] and back.
 */
static inline gy_transposition gy_transposition_of(const gantry_launch *l)
{
    const gantry_arg *x = &l->arg[GY_TRANSPOSE_X], *y = &l->arg[GY_TRANSPOSE_Y];
    int64_t axis = l->arg[GY_TRANSPOSE_AXIS].integer;
    bool splits = x->rank == 2 && y->rank > 2 + axis;
    gy_transposition t = { .arrays = axis ? (x->rank > 2 ? x->rows : y->rows) : 1 };
    t.columns = splits ? gy_transpose_extent(y, axis) : x->shape[x->rank > 2 ? axis + 1 : 1];
    t.rows = x->rank > 2 ? gy_transpose_extent(x, axis) : t.arrays ? x->rows / t.arrays : 0;
    int64_t cells = t.arrays * t.rows * t.columns;
    t.cell = cells ? x->rows * x->row_bytes / cells : 0;
    return t;
}

#endif
