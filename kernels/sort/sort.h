/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GY_KERNELS_SORT_H
#define GY_KERNELS_SORT_H

#include "kernels/radix.h"

/* The arguments of a launch as they are sorted. */
static inline gy_radix gy_sort_of(const gantry_launch *l)
{
    const gantry_arg *x = &l->arg[1];
    char *scratch = l->scratch;
    gy_radix r = { .dtype = x->dtype,
                   .descending = l->arg[0].number != 0,
                   .n = gy_arg_size(x),
                   .keys = x->data,
                   .sorted = l->arg[2].data };
    r.spare_keys = gy_radix_take(&scratch, x->rows * x->row_bytes);
    r.counts = scratch;
    return r;
}

#endif
