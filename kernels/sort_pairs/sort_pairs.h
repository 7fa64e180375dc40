/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GY_KERNELS_SORT_PAIRS_H
#define GY_KERNELS_SORT_PAIRS_H

#include "kernels/radix.h"

/* The arguments of a launch as they are sorted. */
static inline gy_radix gy_sort_pairs_of(const gantry_launch *l)
{
    const gantry_arg *keys = &l->arg[1], *values = &l->arg[2];
    char *scratch = l->scratch;
    gy_radix r = { .dtype = keys->dtype,
                   .value_bytes = (int32_t)gantry_dtype_size(values->dtype),
                   .descending = l->arg[0].number != 0,
                   .n = gy_arg_size(keys),
                   .keys = keys->data,
                   .values = values->data,
                   .sorted = l->arg[3].data,
                   .moved = l->arg[4].data };
    r.spare_keys = gy_radix_take(&scratch, keys->rows * keys->row_bytes);
    r.spare_values = gy_radix_take(&scratch, values->rows * values->row_bytes);
    r.counts = scratch;
    return r;
}

#endif
