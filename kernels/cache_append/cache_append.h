/* SPDX-License-Identifier: Apache-2.0 */
/* How the host version and the launcher of cache_append.cu take arrays apart. */
#ifndef GY_KERNELS_CACHE_APPEND_H
#define GY_KERNELS_CACHE_APPEND_H

#include "kernels/manifest.h"

enum {
    GY_APPEND_BASE,
    GY_APPEND_PLACE,
    GY_APPEND_Q,
    GY_APPEND_K,
    GY_APPEND_V,
    GY_APPEND_TURNED,
    GY_APPEND_KEYS,
    GY_APPEND_VALUES
};

/* cache_append.cu has the same. */
typedef struct gy_append {
    int64_t heads, places, dim, queries; /* of the cache; heads of q */
    double base;
} gy_append;

static inline gy_append gy_append_of(const gantry_launch *l)
{
    const gantry_arg *keys = &l->arg[GY_APPEND_KEYS];
    gy_append a = { keys->rows, keys->shape[1], keys->shape[2], 0, l->arg[GY_APPEND_BASE].number };
    a.queries = a.dim > 0 ? gy_arg_size(&l->arg[GY_APPEND_Q]) / a.dim : 0;
    return a;
}

#endif
