/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GY_KERNELS_TRANSPOSE_H
#define GY_KERNELS_TRANSPOSE_H

#include "kernels/manifest.h"

/* Columns of x: its second axis; of a matrix that becomes several, [n, heads * d] to [heads, n, d], as many as y has
 * rows. */
static inline int64_t gy_transpose_columns(const gantry_launch *l)
{
    const gantry_arg *x = &l->arg[0], *y = &l->arg[1];
    return x->rank == 2 && y->rank > 2 ? y->rows : x->shape[1];
}

#endif
