/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GY_KERNELS_ARGSORT_H
#define GY_KERNELS_ARGSORT_H

#include "kernels/radix.h"

/* The arguments of a launch as they are sorted: keys stay in scratch, places are the values. */
static inline gy_radix gy_argsort_of(const gantry_launch *l)
{
    const gantry_arg *x = &l->arg[1], *index = &l->arg[2];
    char *scratch = l->scratch;
    gy_radix r = { .dtype = x->dtype,
                   .value_bytes = (int32_t)gantry_dtype_size(index->dtype),
                   .descending = l->arg[0].number != 0,
                   .n = gy_arg_size(x),
                   .keys = x->data,
                   .moved = index->data };
    r.sorted = gy_radix_take(&scratch, x->rows * x->row_bytes);
    r.spare_keys = gy_radix_take(&scratch, x->rows * x->row_bytes);
    r.spare_values = gy_radix_take(&scratch, index->rows * index->row_bytes);
    r.counts = scratch;
    return r;
}

#endif
